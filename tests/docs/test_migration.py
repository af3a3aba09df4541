"""Every line of the migration tables that can run, runs, and the pairs agree where they should."""

import doctest
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import OneHotCategorical, Poisson, RelaxedOneHotCategorical

import gengs

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
# not packages that the tests can install, or not Python, or a loop of several lines
BY_HAND = ("storch.", "log_rate", ".apply(", "derivative_estimate", "stochastic_triple")
BY_HAND += ("log_probs", "simple.Layer", "neuralsort(", "torchsort.", "tfp.")


def rows():
    """(heading, what, theirs, ours) of every table row."""
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:].strip("`")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and "`" in cells[2]:
            yield pytest.param(*cells[1:], id=f"{heading}: {cells[0]}")


def renamed():
    """What stands in the second column of the table of old names, up to the first words."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 2:
            yield re.match("`(.*?)`", cells[1]).group(1)


def run(line):
    """One line, after the page's own imports and names."""
    setup = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S).group(1)
    source = setup + f">>> _ = {line}\n" if not line.startswith("z = ") else f"{setup}>>> {line}\n"
    test = doctest.DocTestParser().get_doctest(source, {}, line, str(PAGE), 0)
    report = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize(("theirs", "ours"), list(rows()))
def test_lines_run(theirs, ours):
    run(ours.strip("`"))
    if theirs and not any(name in theirs for name in BY_HAND):
        run(theirs.strip("`"))


@pytest.mark.parametrize("now", [line for line in renamed() if line.startswith("gengs.")])
def test_new_names(now):
    run(now)


def test_the_tables_are_found():
    assert len(list(rows())) >= 15 and len(list(renamed())) >= 15


def test_the_densities_are_the_same_number():
    logits = torch.randn(5, 7, dtype=torch.float64)
    y = torch.randn(5, 7, dtype=torch.float64).softmax(-1)
    theirs = RelaxedOneHotCategorical(torch.tensor(0.5), logits=logits, validate_args=False)
    ours = gengs.Relaxed(0.5, OneHotCategorical(logits=logits))
    torch.testing.assert_close(ours.log_prob(y), theirs.log_prob(y))


def test_what_the_dropped_tail_costs():
    """The composition renormalises; ours lumps: the means tell them apart at rate 10."""
    rate, atoms = torch.tensor([10.0]), torch.arange(12.0)
    renormalised = F.softmax(Poisson(rate.unsqueeze(-1)).log_prob(atoms), -1) @ atoms
    clipped = Poisson(rate).sample((200_000,)).clamp(max=11).mean()
    ours = gengs.truncate(Poisson(rate), 12).mean
    assert abs(float(ours - clipped)) < 0.02  # six standard errors of the clipped mean
    assert float(ours - renormalised) > 0.3
