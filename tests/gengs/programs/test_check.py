"""The measurement on the spot: path beside score, means, rules for each line, ``by="auto"``."""

import re
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch.distributions import Bernoulli, Binomial, NegativeBinomial, Poisson

import gengs
from gengs import ProgramWarning, differentiable
from gengs.programs.check import _as_normal, _compare

N = 2000


def parameter(x=0.3):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def epidemic(t, n=N, people=1000.0, steps=10):
    infected = torch.full((n,), people / 20, dtype=torch.float64)
    susceptible = people - infected
    for _ in range(steps):
        new = torch.binomial(susceptible, 1 - torch.exp(-t * infected / people))
        susceptible, infected = susceptible - new, infected + new
    return 1 - susceptible / people


def rumour(t, n=N):
    x = torch.zeros(n, 8, dtype=torch.float64)
    x[:, 0] = 1
    for _ in range(12):
        heard = 1 - torch.exp(-t * (x.roll(1, -1) + x.roll(-1, -1)))
        x = torch.bernoulli((heard * (1 - x) + 0.7 * x).clamp(1e-6, 1 - 1e-6))
    return x.mean(-1)


def checked(simulate, **settings):
    torch.manual_seed(0)
    t = parameter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        with differentiable(**settings) as program:
            cost = simulate(t)
        return program.check(cost), program, cost, t


def test_the_path_is_confirmed_where_it_is_right():
    found, program, cost, t = checked(epidemic)
    assert found.agrees and "agree within" in str(found) and found.off < 0.05
    assert found.path.shape == found.score.shape == (1,)
    assert (found.path - found.score).abs() < 5 * (found.path_error + found.score_error)
    program.loss(cost).mean().backward()  # the graph is still there
    torch.testing.assert_close(t.grad, found.path.squeeze(), rtol=0.01, atol=0)


def test_the_path_is_refuted_where_it_is_wrong_and_the_line_is_named():
    found, *_ = checked(rumour)
    assert found.agrees is False and found.z > 3.3 and found.off > 0.2
    assert "test_check.py:" in str(found) and "feed later draws" in str(found)
    assert "FittedScore" in str(found)


def test_a_cost_with_a_step_has_no_path():
    found, *_ = checked(lambda t: (epidemic(t) > 0.45).double())
    assert found.agrees is False and found.off == pytest.approx(1.0) and (found.path == 0).all()


def test_where_the_score_varies_too_much_it_says_so():
    found, *_ = checked(lambda t: epidemic(t, 25))
    assert found.agrees is None and "more replicates" in str(found)


def test_draws_that_no_replicate_has_for_itself_cannot_be_checked():
    """The path is right: time is first here, and no dimension was named."""

    def simulate(t):
        return torch.bernoulli(t.expand(30, N)).sum(0).square()

    found, *_ = checked(simulate)
    assert found.agrees is None and "test_check.py:" in str(found) and "dim=" in str(found)
    assert checked(simulate, dim=1)[0].agrees


def test_an_infinite_slope_is_no_agreement():
    found, *_ = checked(lambda t: torch.poisson(t.expand(N)).sqrt())
    assert found.agrees is False and "not finite" in str(found)


MISSING = {
    "lost": lambda t: torch.bernoulli(torch.full((N,), float(t.detach()))),
    "unrecognised": lambda t: torch.floor(torch.rand(N) + t),
    "by hand": lambda t: torch.bernoulli(t.expand(N)) + t - t.detach(),
    "no_grad": lambda t: torch.no_grad()(torch.bernoulli)(t.expand(N)),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_neither_path_nor_score_knows_is_no_agreement(name):
    found, *_ = checked(lambda t: MISSING[name](t) + torch.bernoulli(t.expand(N)))
    assert found.agrees is None and "test_check.py:" in str(found)


def test_false_alarms():
    """A bias is found by chance in one of 1,000, a doubt in one of 100: here 1 of 120 at most, 5.

    By chance this fails in one of 150. With normal errors of five groups, z > 3.3, it would find 3
    in 100. Both programs are exact; the square of a count with a heavy tail varies most.
    """

    def counts(t, n=400):
        born = torch.poisson(9 * t.expand(n))
        return torch.binomial(born + 5, t.expand(n)) * torch.bernoulli(t.expand(n))

    def heavy(t, n=100):
        return NegativeBinomial(torch.full((n,), 2.0), logits=1.1 * t.expand(n) / 0.3).sample() ** 2

    wrong = doubtful = 0
    for seed in range(120):
        torch.manual_seed(seed)
        with differentiable() as program:
            cost = (heavy if seed % 2 else counts)(parameter())
        found = program.check(cost)
        wrong += found.agrees is False
        doubtful += "perhaps" in str(found)
        assert found.agrees is not False or found.z < 6
    assert wrong <= 1 and doubtful <= 5


def test_a_few_large_costs_are_no_evidence():
    """Nine replicates hold all of the variance, or all do."""
    _, program, cost, _ = checked(epidemic)
    few = (torch.arange(N) < 9).double()
    score = torch.tensor([[1.0], [1.01], [0.99], [1.0], [1.0]]).double()
    found = [_compare(0 * score, score, c, program) for c in (few, cost)]
    assert [f.agrees for f in found] == [None, False]
    assert "perhaps" in str(found[0]) and found[0].seems_off


@pytest.mark.parametrize(
    ("t", "z"), [(1.0, 0.8893), (4.604, 2.5758), (8.610, 3.2905), (25, 4.3258)]
)
def test_five_groups_have_the_tails_of_student_with_four_degrees_of_freedom(t, z):
    assert _as_normal(t) == pytest.approx(z, abs=1e-3)
    assert _as_normal(-t) == _as_normal(float("nan")) == 0 < _as_normal(1e200) < 40


NOTHING = {
    "carries no gradient": lambda t: 0 * torch.poisson(t.expand(N)).detach() + 1,
    "tells the score nothing": lambda t: (z := torch.poisson(t.expand(N))) - z.detach(),
    "the cost is NaN": lambda t: torch.poisson(t.expand(N)) * float("nan"),
    "the cost is infinite in 1 ": lambda t: torch.poisson(t.expand(N)) / (torch.arange(N) > 0),
}


@pytest.mark.parametrize("words", NOTHING)
def test_a_cost_without_a_gradient_is_no_agreement(words):
    found, *_ = checked(lambda t: NOTHING[words](t) + 1)
    assert found.agrees is None and words in str(found)


def test_uniforms_indices_and_compounds_are_checked_too():
    def simulate(t):
        a = (torch.rand(N) < t).double()
        u = torch.rand(N)
        b = (u < t).double() + (u < 2 * t)
        k = torch.multinomial(torch.stack([t, 1 - t]).expand(N, 2), 1).squeeze(-1).double()
        r = torch.distributions.NegativeBinomial(5 * t.expand(N), t.expand(N)).sample()
        return a + b.square() + 3 * k + Binomial(r + 3, t).sample()

    found, *_ = checked(simulate)
    assert found.agrees and found.off < 0.1


def test_updates_in_place_are_checked_too():
    def simulate(t):
        state = torch.full((N,), 50.0, dtype=torch.float64)
        for _ in range(4):
            state -= torch.binomial(state, t.expand(N))
        return state

    assert checked(simulate)[0].agrees


def test_what_cannot_be_checked_is_refused():
    t = parameter()
    with differentiable() as program:
        z = Binomial(10 * t.expand(N), torch.tensor(0.5).double(), validate_args=False).sample()
    with pytest.raises(TypeError, match="total_count"):
        program.check(z)
    with differentiable(by=gengs.RLOO()) as program:
        z = torch.poisson(t.expand(N))
    with pytest.raises(TypeError, match="without `by`"):
        program.check(z)
    with differentiable() as program:
        z = torch.poisson(t.expand(3))
    with pytest.raises(ValueError, match="at least 20"):
        program.check(z)
    with differentiable() as program:
        z = torch.poisson(t.expand(N, 2))
    with pytest.raises(ValueError, match=r"program.check\(x\[:, 0\]\)"):
        program.check(z)
    with pytest.raises(TypeError, match="check=True"):
        differentiable(by=gengs.RLOO(), check=True)


def test_the_first_call_is_checked_if_one_asks_for_it():
    def run(simulate):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for seed in range(2):
                torch.manual_seed(seed)
                with differentiable(check=True) as program:
                    cost = simulate(parameter())
                program.loss(cost)
        return [str(w.message) for w in caught if "check:" in str(w.message)]

    assert len(run(rumour)) == 1

    def right(t):
        return epidemic(t)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with differentiable(check=True) as program:
            cost = right(parameter())
        program.loss(cost)


def test_auto_takes_the_path_or_the_fitted_score_and_says_so(capsys):
    for simulate, rule in ((epidemic, "MidCDF"), (rumour, "FittedScore")):
        found = []
        for seed in range(3):
            torch.manual_seed(seed)
            t = parameter()
            with differentiable(by="auto") as program:
                cost = simulate(t)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProgramWarning)
                found += torch.autograd.grad(program.loss(cost).mean(), t)
        assert {site.rule for site in program.sites} == {rule}
        printed = capsys.readouterr().out
        assert printed.count('by="auto"') == 1 + (simulate is rumour)
        assert "test_check.py:" in printed
        gengs.programs.auto._DECIDED.clear()
        torch.manual_seed(9)
        by = gengs.FittedScore()
        t = parameter()
        with differentiable(by=by) as program:
            cost = simulate(t, 5000)
        (exact,) = torch.autograd.grad(program.loss(cost).mean(), t)
        assert abs(torch.stack(found).mean() / exact - 1) < 0.1


def queue(theta, replicates=30_000):
    """People in a queue: few at a time where it is served faster than they come."""
    waiting = torch.zeros(replicates)
    for _ in range(6):
        waiting = torch.relu(waiting + torch.poisson(theta[0].expand(replicates)))
        waiting = torch.relu(waiting - torch.poisson(theta[1].expand(replicates)))
    return waiting


def by_auto(take, theta):
    theta = torch.tensor(theta, requires_grad=True)
    with differentiable(by="auto") as program:
        waiting = queue(theta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        torch.autograd.grad(take(program, waiting), theta)
    return {site.rule for site in program.sites}


@pytest.mark.parametrize(
    "take",
    [lambda program, x: program.loss(x).mean(), lambda program, x: program.mean(x)],
    ids=["loss", "mean"],
)
def test_auto_asks_again_while_parameters_move(take, capsys):
    """Where many wait the path is right; it is not where nobody does, and that is noticed."""
    torch.manual_seed(0)
    gengs.programs.auto._DECIDED.clear()
    by_auto(take, [20.0, 2.0])
    assert "the path" in capsys.readouterr().out
    for _ in range(4):
        by_auto(take, [0.3, 2.2])
    assert "FittedScore()" in capsys.readouterr().out
    assert by_auto(take, [0.3, 2.2]) == {"FittedScore"}
    gengs.programs.auto._DECIDED.clear()


def verdict(agrees):
    seems_off = agrees is False or agrees == "perhaps"
    return SimpleNamespace(agrees=None if agrees == "perhaps" else agrees, seems_off=seems_off)


@pytest.mark.parametrize(
    ("verdicts", "rules", "prints"),
    [
        ([None] * 5, "PPPPP", 1),
        ([True, None, None, True], "PPPP", 2),
        ([False, True, False, None], "sPsP", 3),
        ([True, False, True, False, False], "PsPsS", 2),
        ([False, False], "sS", 2),
        ([True, "perhaps", False], "PPS", 3),
        ([True, False, "perhaps"], "PsS", 2),
        ([True, "perhaps", "perhaps", False], "PPPs", 2),
    ],
)
def test_auto_leaves_the_path_where_a_second_check_confirms_a_bias(verdicts, rules, prints, capsys):
    """P: the path; s: the fitted score for this call; S: for good."""
    auto, place = gengs.programs.auto, ("somewhere.py", 1)
    auto._DECIDED.pop(place, None)
    found = ""
    for agrees in verdicts:
        rule = auto.decide(place, verdict(agrees), "draws")
        for_good = isinstance(auto.decide(place), gengs.FittedScore)
        found += "S" if for_good else "s" if rule.scored else "P"
    assert found == rules
    assert capsys.readouterr().out.count("by=") == prints
    auto._DECIDED.pop(place)


def test_auto_keeps_the_path_where_nothing_can_be_told(capsys):
    gengs.programs.auto._DECIDED.clear()
    torch.manual_seed(0)
    for _ in range(20):
        with differentiable(by="auto") as program:
            cost = epidemic(parameter(), n=25, steps=3) ** 2
        program.loss(cost)
        assert {site.rule for site in program.sites} == {"MidCDF"}
    printed = capsys.readouterr().out
    assert "varies too much" in printed and "more replicates" in printed
    gengs.programs.auto._DECIDED.clear()


# ------------------------------------------------------------------------------------ means

RULES = [None, gengs.RLOO(), gengs.REINFORCE(), gengs.FittedScore()]


@pytest.mark.parametrize("by", RULES, ids=["path", "RLOO", "RF", "fitted"])
def test_a_function_of_expectations(by):
    """(E x₁ + E x₁x₂ - 3)² at rates t and 2 t: the gradient is 2 (t + 2 t² - 3)(1 + 4 t)."""
    found = []
    for seed in range(30):
        torch.manual_seed(seed)
        t = parameter(1.5)
        with differentiable(by=by) as program:
            x = torch.poisson(t * torch.ones(2000, 2).double() * torch.tensor([1.0, 2.0]))
            features = torch.stack([x[:, 0], x.prod(-1)], -1)  # any shape
        mean = program.mean(features)
        assert mean.shape == (2,)
        torch.testing.assert_close(mean.detach(), features.detach().mean(0))
        found += torch.autograd.grad((mean.sum() - 3).square(), t)
    found, exact = torch.stack(found), 2 * (1.5 + 4.5 - 3) * (1 + 4 * 1.5)
    # the square of a mean of 2,000 is biased by a little: the variance of the mean
    assert abs(found.mean() - exact) < 5 * found.std() / 30**0.5 + 0.01 * exact


def test_the_square_of_a_mean_adds_its_variance_and_two_halves_do_not():
    """At E x = target: the gradient of Var x / n = t / n, and 0; each within 5 standard errors."""
    torch.manual_seed(0)
    target, columns, n = 3.0, 5000, 10

    def mean(t, n):
        with differentiable() as program:
            x = torch.poisson(t.expand(n, columns))
        return program.mean(x) - target

    found = []
    for cost in (lambda t: mean(t, n).square(), lambda t: mean(t, n // 2) * mean(t, n // 2)):
        t = torch.full((columns,), target, dtype=torch.float64, requires_grad=True)
        found += torch.autograd.grad(cost(t).sum(), t)
    for gradients, exact in zip(found, (1 / n, 0.0), strict=True):
        assert abs(gradients.mean() - exact) < 5 * gradients.std() / columns**0.5 < 0.1


def test_a_mean_over_another_dimension():
    t = parameter()
    with differentiable(by=gengs.RLOO(), dim=1) as program:
        x = torch.bernoulli(t.expand(3, N))
    mean = program.mean(x)
    (found,) = torch.autograd.grad(mean.sum(), t)
    assert mean.shape == (3,) and abs(found - 3) < 0.5


def test_a_mean_has_no_second_derivative_by_the_score():
    t = parameter()
    with differentiable(by=gengs.RLOO()) as program:
        x = torch.poisson(t.expand(50))
    (first,) = torch.autograd.grad(program.mean(x).square(), t, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(first, t)


# -------------------------------------------------------------------------- rules for each line


def mixed(t, n=20_000):
    """A gate of 0 or 1 that sets a rate: E is t · 20 t, which the path of the gate gets wrong."""
    gate = Bernoulli(t.expand(n)).sample()
    count = Poisson(20 * t * gate).sample()
    return count


@pytest.mark.parametrize("key", [Bernoulli, "line"], ids=["distribution", "line"])
def test_rules_for_each_distribution_or_line(key):
    """Unbiased where the path part is exact: 5 standard errors of 40 blocks."""
    line = mixed.__code__.co_firstlineno + 2
    by = {key if key is Bernoulli else f"test_check.py:{line}": gengs.RLOO()}
    found = []
    for seed in range(40):
        torch.manual_seed(seed)
        t = parameter()
        with differentiable(by={**by, "default": gengs.MidCDF()}) as program:
            cost = mixed(t, 2000).square()
        found += torch.autograd.grad(program.loss(cost).mean(), t)
    assert [site.rule for site in program.sites] == ["RLOO", "MidCDF"]
    found, exact = torch.stack(found), 40 * 0.3 + 3 * 400 * 0.3**2
    assert abs(found.mean() - exact) < 5 * found.std() / 40**0.5


WRONG = {
    "`dim`, but got 'a'": {"dim": "a"},
    "`dim`, but got 2.5": {"dim": 2.5},
    "`check`, but got 'yes'": {"check": "yes"},
    "\"auto\" as `by`, but got 'path'": {"by": "path"},
    "\"auto\" as `by`, but got 'Auto'": {"by": "Auto"},
}


@pytest.mark.parametrize("words", WRONG)
def test_arguments_of_no_use_are_refused(words):
    with pytest.raises(TypeError, match=re.escape(words)):
        differentiable(**WRONG[words])


def test_a_dimension_that_no_draw_has_is_refused():
    with differentiable(by=gengs.RLOO(), dim=7) as program:
        x = torch.poisson(parameter().expand(50))
    with pytest.raises(ValueError, match="no draw that has the dimension dim=7"):
        program.loss(x)


def test_a_rule_that_was_never_used_is_named():
    with differentiable(by={Bernoulli: gengs.RLOO(), "model.py:3": gengs.RLOO()}) as program:
        x = torch.poisson(parameter().expand(50))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.loss(x)
    said = " ".join(str(w.message) for w in caught)
    assert "no Bernoulli was drawn" in said and "nothing was drawn at model.py:3" in said


def test_words_about_rules():
    with pytest.raises(TypeError, match="keys of `by`"):
        differentiable(by={"Bernoulli": gengs.RLOO()})
    with pytest.raises(TypeError, match="UnOrd needs the cost"):
        differentiable(by={Bernoulli: gengs.UnOrd(4)})


def test_a_check_after_backward_says_so():
    t = parameter()
    with differentiable() as program:
        cost = epidemic(t, n=50, steps=2)
    program.loss(cost).mean().backward()
    with pytest.raises(RuntimeError, match=r"before backward\(\)"):
        program.check(cost)
