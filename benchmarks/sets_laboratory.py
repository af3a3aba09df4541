"""Bias, variance, error and time of estimators on subsets and rankings.

All numbers are in units of the exact gradient's norm: **variance** is that of one gradient, summed
over elements; **bias** the distance of the mean from the reference; **error** the root mean square
distance of one gradient, the root of variance + bias². No reference is of the estimators that are
measured (:mod:`benchmarks.sets_references`); where it has an error of its own, that is part of the
bias' error. Squared bias is the mean product of independent groups of differences, which noise
leaves unbiased; where it is less than three standard errors, only a limit is stated. **Time** is
processor time for one gradient, as a ratio to the swap rule's.

python -m benchmarks.sets_laboratory -o results/sets/laboratory.json
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import gengs
from benchmarks.sets_cases import Case, ranking_cases, subset_cases
from benchmarks.sets_ranking import pl_rank_gradient, to_go_surrogate
from benchmarks.sets_references import GROUPS, Reference, by_arrival_times

SUBSETS = ((10, 1), (10, 5), (100, 10), (100, 50), (1000, 100), (1000, 500))
RANKINGS = (10, 100, 1000)
GRADIENTS = {10: 4000, 100: 1500, 1000: 100}
SLOW = gengs.GenGS
"""Measured on a fifth of the gradients from n = 1,000 on."""


def estimators(smooth: bool) -> list[gengs.Estimator]:
    any_cost = [gengs.FiniteDifference(4), gengs.RLOO(2), gengs.RLOO(8), gengs.REINFORCE()]
    any_cost += [gengs.UnOrd(4)]
    if not smooth:
        return any_cost
    paths = [gengs.MidCDF(), gengs.MidCDF(debias=1), gengs.StraightThroughMean()]
    return [*paths, gengs.GenGS(0.5), gengs.GenGS(0.5, hard=True), gengs.MuProp(), *any_cost]


Gradient = Callable[[Tensor], None]
"""From scores ``(R, n)`` to a gradient in each row."""


def methods(case: Case, build: Callable[[Tensor], Any]) -> Iterator[tuple[str, Gradient, int]]:
    """Names, what they do, and by what their number of gradients is divided."""
    for each in estimators(case.smooth):

        def by(theta: Tensor, each: gengs.Estimator = each) -> None:
            each.expect(case.cost, build(theta)).sum().backward()

        yield repr(each), by, 5 if isinstance(each, SLOW) else 1
    if case.gains is None:
        return
    worth: Tensor = case.gains
    discounts = 1 / torch.log2(2 + torch.arange(float(len(worth))))

    def arranged(theta: Tensor) -> None:
        law, gains = build(theta), worth.expand_as(theta)
        (law.arrange(law.sample_order(), gains) * discounts).sum().backward()

    yield "swap rule by `arrange`", arranged, 1
    for draws in (1, 8):

        def pl_rank(theta: Tensor, draws: int = draws) -> None:
            law, gains = build(theta.detach()), worth.expand_as(theta)
            theta.grad = pl_rank_gradient(
                law, law.sample_order(torch.Size([draws])), gains, discounts
            )

        yield f"PL-Rank, draws={draws}", pl_rank, 1
    for draws in (2, 8):

        def to_go(theta: Tensor, draws: int = draws) -> None:
            law, gains = build(theta), worth.expand_as(theta)
            order = law.sample_order(torch.Size([draws]))
            to_go_surrogate(law, order, gains, discounts).sum().backward()

        yield f"score to go, draws={draws}", to_go, 1


def gradients(method: Gradient, theta: Tensor, rows: int, portion: int) -> tuple[Tensor, float]:
    """Gradients ``(R, n)``, and the processor time of one in milliseconds."""
    found = []
    begin = time.process_time()
    for start in range(0, rows, portion):
        each = theta.expand(min(portion, rows - start), -1).clone().requires_grad_()
        method(each)
        found.append(each.grad)
    spent = time.process_time() - begin
    return torch.cat(found).double(), 1000 * spent / rows  # type: ignore[arg-type]


Methods = Callable[[Case], Iterable[tuple[str, Gradient, int]]]


def measure(
    title: str, theta: Tensor, cases: list[Case], methods_of: Methods, many: int, portion: int
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    swap_rule = None  # its time on the first cost
    for case in cases:
        torch.manual_seed(0)
        begin = time.process_time()
        reference = case.reference()
        size = float(reference.mean.square().sum()) - reference.squared_error
        print(
            f"{title}, {case.name}: {reference.kind}, relative error "
            f"{math.sqrt(reference.squared_error / size):.2g}, "
            f"{time.process_time() - begin:.0f} s",
            flush=True,
        )
        for name, method, slow in methods_of(case):
            rows = many // (slow if len(theta) == 1000 else 1)
            torch.manual_seed(1)
            try:
                gradients(method, theta, 1, 1)
            except (TypeError, ValueError) as refusal:
                print(f"  {name}: {refusal}", flush=True)
                continue
            g, spent = gradients(method, theta, rows, portion)
            swap_rule = swap_rule or spent
            row: dict[str, Any] = {"law": title, "cost": case.name, "estimator": name}
            row |= {"reference": reference.kind, "gradients": rows}
            row["reference's error"] = math.sqrt(reference.squared_error / size)
            squared, error = squared_bias(g, reference)
            row["variance"] = float(g.var(0).sum()) / size
            row["squared bias"], row["its error"] = squared / size, error / size
            row["error"] = math.sqrt(max(row["variance"] + max(row["squared bias"], 0.0), 0.0))
            row["milliseconds"], row["time"] = spent, spent / swap_rule
            found.append(row)
            print(
                f"  {name:36s} variance {row['variance']:.3g}  bias {bias(row)}  error "
                f"{row['error']:.3g}  time {row['time']:.2f}",
                flush=True,
            )
    return found


def members(n: int, k: int, seed: int) -> list[dict[str, Any]]:
    """The first k of an order as a set: given the order, and averaged over its orders."""
    generator = torch.Generator().manual_seed(seed)
    theta, weights = (torch.randn(n, generator=generator) for _ in range(2))
    inside = (torch.arange(n) < k).float().unsqueeze(-1)

    def given_the_order(each: Tensor) -> None:
        law = gengs.PlackettLuce(each, k)
        (law.matrix(law.sample_order()).sum(-2) @ weights).sum().backward()

    def averaged(each: Tensor) -> None:
        law = gengs.PlackettLuce(each, k)
        (law.members(law.sample_order()) @ weights).sum().backward()

    law = gengs.PlackettLuce(theta)
    case = Case("linear", lambda z: z @ weights, lambda: by_arrival_times(law, inside * weights))
    both = [("averaged over orders", averaged, 1), ("given the order", given_the_order, 1)]
    return measure(f"first {k} of {n}, as a set", theta, [case], lambda _: both, 1000, 50)


def squared_bias(g: Tensor, reference: Reference) -> tuple[float, float]:
    """An unbiased estimate of the squared bias, and its standard error."""
    many = min(GROUPS, len(g))
    means = torch.stack([part.mean(0) for part in g.tensor_split(many)])
    apart = means - (reference.groups if len(reference.groups) == 1 else reference.groups[:many])
    products = apart @ apart.T
    pairs = many * (many - 1)
    squared = float(products.sum() - products.trace()) / pairs
    centred = apart - apart.mean(0)
    noise = centred @ centred.T
    noise.fill_diagonal_(0.0)
    along = (apart @ apart.mean(0)).var() / many
    return squared, math.sqrt(2 * float(noise.square().sum()) / pairs**2 + 4 * float(along))


def bias(row: dict[str, Any]) -> str:
    """As a number, or the limit below which it is."""
    squared, error = row["squared bias"], row["its error"]
    limit = math.sqrt(max(squared, 0.0) + 3 * error)
    if limit < 1e-5:
        return "0"
    return number(math.sqrt(squared)) if squared > 3 * error else f"< {number(limit, 2)}"


def cell(row: dict[str, Any] | None) -> str:
    """Error and bias."""
    if row is None:
        return ""
    if not row["variance"] and row["error"] > 0.5:
        return "all zero"  # a step that no swap crossed
    return f"{number(row['error'])} ({bias(row)})"


def number(x: float, digits: int = 3) -> str:
    """With a few digits; zero where it is rounding."""
    if x < 1e-4:
        return "0"
    return f"{x:,.0f}" if x >= 100 else f"{x:.{digits}g}"


# ------------------------------------------------------------------------------------ the page


def page(rows: list[dict[str, Any]], command: str, versions: dict[str, str]) -> str:
    """A table for each distribution: estimators × costs."""
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = ["# Laboratory of subsets and rankings", "", f"`{command}` ({shown}, one thread).", ""]
    lines += [
        "Cells: error of one gradient (the root mean square distance from the exact gradient, in "
        "units of its norm), and its bias in brackets; `<` where bias is below three standard "
        "errors. Scores and weights are standard normal numbers. Time is processor time of a "
        "gradient over the swap rule's (`MidCDF()`), on the first cost. The swap rule refuses "
        "steps; `UnOrd`, and on rankings `StraightThroughMean` and `MuProp`, need a list of all "
        "outcomes, and are missing where that is too long. `VIMCO` estimates another quantity. "
        "Costs of rankings see the order as a matrix of n × n numbers; of DCG, the last rows see "
        "the gains in drawn order, n numbers. All zero: no swap crossed the step. References: "
        "`benchmarks/sets_references.py`.",
        "",
    ]
    for law in dict.fromkeys(row["law"] for row in rows):
        ours = [row for row in rows if row["law"] == law]
        costs = list(dict.fromkeys(row["cost"] for row in ours))
        kinds = []
        for cost in costs:
            row = next(row for row in ours if row["cost"] == cost)
            error = row["reference's error"]
            kinds.append(f"{cost}: {row['reference']}" + (f" (± {error:.2g})" if error else ""))
        lines += [f"## {law[0].upper()}{law[1:]}", "", f"References: {'; '.join(kinds)}.", ""]
        lines += ["| estimator | " + " | ".join(costs) + " | time |"]
        lines += ["| --- " + "| ---: " * (len(costs) + 1) + "|"]
        for name in dict.fromkeys(row["estimator"] for row in ours):
            mine = {row["cost"]: row for row in ours if row["estimator"] == name}
            cells = [cell(mine.get(cost)) for cost in costs]
            spent = next(iter(mine.values()))["time"]
            lines += [
                f"| {f'`{name}`' if name.endswith(')') else name} | "
                + " | ".join(cells)
                + f" | {spent:.2g} |"
            ]
        lines += [""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=None, help="JSON; the page is beside it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 100, 1000])
    config = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []

    def keep() -> None:
        if config.out is None:
            return
        command = f"python -m benchmarks.sets_laboratory --seed {config.seed}"
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        content = {"command": command, "versions": versions, "rows": rows}
        config.out.write_text(json.dumps(content, indent=1) + "\n")
        config.out.with_suffix(".md").write_text(page(rows, command, versions))

    for n, k in SUBSETS:
        if n in config.sizes:

            def subset(t: Tensor, k: int = k) -> gengs.Subset:
                return gengs.Subset(k, logits=t, validate_args=False)

            portion = max(1, min(200, 2_000_000 // (n * min(k, n - k))))
            rows += measure(
                f"{k} of {n}",
                *subset_cases(n, k, config.seed),
                partial(methods, build=subset),
                GRADIENTS[n],
                portion,
            )
            keep()
    for n in RANKINGS:
        if n in config.sizes:

            def ranking(t: Tensor) -> gengs.PlackettLuce:
                return gengs.PlackettLuce(t, validate_args=False)

            portion = max(1, min(200, 4_000_000 // n**2))
            rows += measure(
                f"orders of {n}",
                *ranking_cases(n, config.seed),
                partial(methods, build=ranking),
                GRADIENTS[n],
                portion,
            )
            keep()
    for n, k in ((10, 3), (100, 10), (784, 50)):
        rows += members(n, k, config.seed)
        keep()


if __name__ == "__main__":
    main()
