"""Draws inside a block: the same numbers as outside, with gradients, and nothing else changes."""

import asyncio
import threading
import warnings

import numpy as np
import pyro
import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    Gamma,
    Geometric,
    Independent,
    MixtureSameFamily,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)

import gengs
from gengs import CutGradientWarning, ProgramWarning, differentiable

R = 40_000


@pytest.fixture(autouse=True)
def cuts_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CutGradientWarning)
        yield


def parameter(x, n=R):
    return torch.full((n,), x, dtype=torch.float64, requires_grad=True)


# a draw of one parameter, where, and d/dp E (z - 2.6)²; z counts from 0
CALLS = {
    "torch.poisson": (torch.poisson, 3.0, lambda p: p + (p - 2.6) ** 2),
    "torch.bernoulli": (torch.bernoulli, 0.3, lambda p: p * 1.6**2 + (1 - p) * 2.6**2),
    "Tensor.bernoulli": (lambda p: p.bernoulli(), 0.3, lambda p: p * 1.6**2 + (1 - p) * 2.6**2),
    "Tensor.bernoulli_": (
        lambda p: torch.zeros_like(p).bernoulli_(p),
        0.3,
        lambda p: p * 1.6**2 + (1 - p) * 2.6**2,
    ),
    "torch.binomial": (
        lambda p: torch.binomial(torch.full_like(p, 7), p),
        0.3,
        lambda p: 7 * p * (1 - p) + (7 * p - 2.6) ** 2,
    ),
    "Binomial.sample": (
        lambda p: Binomial(7, p).sample(),
        0.3,
        lambda p: 7 * p * (1 - p) + (7 * p - 2.6) ** 2,
    ),
    "Independent.sample": (
        lambda p: Independent(Binomial(7, p.unsqueeze(-1)), 1).sample().squeeze(-1),
        0.3,
        lambda p: 7 * p * (1 - p) + (7 * p - 2.6) ** 2,
    ),
    "Geometric.sample": (
        lambda p: Geometric(p).sample(),
        0.4,
        lambda p: (1 - p) / p**2 + ((1 - p) / p - 2.6) ** 2,
    ),
    "NegativeBinomial.sample": (
        lambda p: NegativeBinomial(3.0, p).sample(),
        0.4,
        lambda p: 3 * p / (1 - p) ** 2 + (3 * p / (1 - p) - 2.6) ** 2,
    ),
    "rand < p": (lambda p: (torch.rand_like(p) < p).double(), 0.3, lambda p: 6.76 - 4.2 * p),
    "p > rand": (lambda p: 1.0 * (p > torch.rand(R)), 0.3, lambda p: 6.76 - 4.2 * p),
    "rand >= p": (
        lambda p: 1 - (torch.rand(R) >= p).to(torch.float64),
        0.3,
        lambda p: 6.76 - 4.2 * p,
    ),
    "Pyro's sample": (
        lambda p: pyro.distributions.Poisson(p).sample(),
        3.0,
        lambda p: p + (p - 2.6) ** 2,
    ),
    "pyro.sample": (
        lambda p: pyro.sample("z", pyro.distributions.Poisson(p)),
        3.0,
        lambda p: p + (p - 2.6) ** 2,
    ),
    "Finite.sample": (
        lambda p: gengs.truncate(Poisson(p), 30).sample(),
        3.0,
        lambda p: p + (p - 2.6) ** 2,
    ),
    "a gamma rate": (
        lambda p: torch.poisson(Gamma(p, torch.ones_like(p)).sample()),
        2.0,
        lambda p: 2 * p + (p - 2.6) ** 2,
    ),
    "a mixture": (
        lambda p: MixtureSameFamily(
            Categorical(torch.ones(R, 2)), Poisson(torch.stack([p, 2 * p], -1))
        ).sample(),
        2.0,
        lambda p: (p + (p - 2.6) ** 2 + 2 * p + (2 * p - 2.6) ** 2) / 2,
    ),
}


@pytest.mark.parametrize("by", [None, gengs.RLOO(), gengs.REINFORCE()], ids=["path", "RLOO", "RF"])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_has_the_right_gradient(name, by):
    """5.3 standard errors of 40,000 draws: 1e-5 false alarms over all calls and rules."""
    call, at, expected = CALLS[name]
    p = parameter(at)
    with differentiable(by=by) as program:
        z = call(p)
    loss = program.loss((z - 2.6).square())
    (gradients,) = torch.autograd.grad(loss.sum(), p)
    single = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(expected(single), single)
    assert (gradients.mean() - exact).abs() < 5.3 * gradients.std() / R**0.5
    assert loss.shape == (R,) and program.sites[-1].shape[0] == R


@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_are_those_of_the_program_without_a_block(name):
    """A block keeps the random stream: a seed gives the same simulation, with gradients."""
    call, at, _ = CALLS[name]
    found = []
    for block in (True, False):
        torch.manual_seed(3)
        if block:
            with differentiable():
                found.append(call(parameter(at)).detach())
        else:
            found.append(call(parameter(at)).detach())
    assert torch.equal(*found) and found[0].dtype == found[1].dtype


P = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64, requires_grad=True)
ATOMS = torch.tensor([3.0, 0.0, 7.0], dtype=torch.float64)
SEVERAL = {
    "a table": lambda: gengs.Finite(ATOMS, probs=P),
    "a table of vectors": lambda: gengs.Finite(ATOMS.outer(ATOMS), probs=P, event_dim=1),
    "a truncation": lambda: gengs.truncate(Poisson(9 * P), 40),
    "Multinomial": lambda: Multinomial(5, P),
    "OneHotCategorical": lambda: OneHotCategorical(P),
    "Skellam": lambda: gengs.Skellam(9 * P, 4 * P),
    "a mixture of tables": lambda: MixtureSameFamily(
        Categorical(P), gengs.truncate(Poisson(9 * P), 40)
    ),
    "BetaBinomial": lambda: pyro.distributions.BetaBinomial(P, P, torch.full((3,), 9.0)),
    "DirichletMultinomial": lambda: pyro.distributions.DirichletMultinomial(P, torch.tensor(9)),
    "ZeroInflatedPoisson": lambda: pyro.distributions.ZeroInflatedPoisson(9 * P, gate=P),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_draws_at_once_are_those_of_the_program_without_a_block(name):
    """Independent, that is: two strata of a table would be as far apart as they can."""
    torch.manual_seed(3)
    outside = SEVERAL[name]().sample((50,))
    torch.manual_seed(3)
    with differentiable():
        inside = SEVERAL[name]().sample((50,))
    assert inside.requires_grad and torch.equal(inside.detach(), outside.detach())


def test_several_draws_of_a_table_have_the_right_gradient():
    """E (z₀ - z₁)² = 2 var z; 6 standard errors of 50 blocks, 3e-7 false alarms."""
    torch.manual_seed(0)
    gradients = []
    for _ in range(50):
        with differentiable() as program:
            z = gengs.Finite(ATOMS, probs=P).sample((500, 2))
        gradients += torch.autograd.grad(program.loss(z.diff().square().squeeze(-1)).mean(), P)
    found, shares = torch.stack(gradients), P / P.sum()
    (exact,) = torch.autograd.grad(2 * (shares @ ATOMS**2 - (shares @ ATOMS) ** 2), P)
    assert ((found.mean(0) - exact).abs() < 6 * found.std(0) / 50**0.5).all()


def test_a_geometric_count_in_place():
    p = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    with differentiable() as program:
        z = torch.empty(R, dtype=torch.float64).geometric_(p)
    program.loss(z).mean().backward()
    assert (z >= 1).all()  # torch counts the trials here
    assert abs(p.grad + 1 / 0.16) < 5 * 6 / R**0.5 * 3


def test_vectors():
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    probs = logits.detach().softmax(-1)
    exact = probs * (weights - probs @ weights)
    for make, n in (
        (lambda: Multinomial(5, logits=logits).sample((R,)), 5),
        (lambda: OneHotCategorical(logits=logits).sample((R,)), 1),
        (
            lambda: torch.nn.functional.one_hot(
                Categorical(logits=logits).sample((R,)), 3
            ).double(),
            1,
        ),
        (
            lambda: (
                torch.nn.functional.one_hot(
                    torch.multinomial(logits.softmax(-1).expand(R, 3), 1).squeeze(-1), 3
                )
                * torch.ones(3, dtype=torch.float64)
            ),
            1,
        ),
    ):
        with differentiable() as program:
            z = make()
        (found,) = torch.autograd.grad(program.loss(z @ weights).mean(), logits)
        assert ((found - n * exact).abs() < 5 * n * 3 / R**0.5).all()


def test_an_index_keeps_its_type_and_may_be_a_number():
    logits = torch.zeros(R, 3, dtype=torch.float64, requires_grad=True)
    with differentiable() as program:
        index = Categorical(logits=logits).sample()
        assert index.dtype == torch.long
        number = index.double() + 1
    (found,) = torch.autograd.grad(program.loss(number).mean(), logits)
    torch.testing.assert_close(
        found.sum(0), torch.tensor([-1 / 3, 0, 1 / 3]).double(), atol=0.02, rtol=0
    )


def test_masks_may_be_combined():
    """P(a or not b) with a, b independent: 1 - (1 - p) q."""
    p, q = parameter(0.3), parameter(0.6)
    with differentiable() as program:
        a, b = torch.rand(R) < p, torch.rand(R) < q
        either = torch.where(a | ~b, 1.0, 0.0).double()
    of_p, of_q = torch.autograd.grad(program.loss(either).sum(), (p, q))
    assert abs(of_p.mean() - 0.6) < 0.02 and abs(of_q.mean() + 0.7) < 0.02


def test_sums_of_masks_are_counts():
    p = torch.full((R, 10), 0.3, dtype=torch.float64, requires_grad=True)
    with differentiable() as program:
        sick = torch.rand(R, 10) < p
        count = sick.sum(-1)
        assert count.dtype == torch.long
        total = torch.zeros(R, dtype=torch.long)
        total += count
        loss = program.loss(0.5 * total)
    (found,) = torch.autograd.grad(loss.mean(), p)
    assert abs(found.sum() - 5) < 0.05


# ------------------------------------------------------------------- nothing changes outside


def test_outside_of_the_block_nothing_changes():
    before = {kind: kind.sample for kind in (Distribution, Poisson, Binomial, gengs.Finite)}
    rate = parameter(3.0, 5)
    with differentiable():
        assert Poisson(rate).sample().requires_grad
    assert all(kind.sample is method for kind, method in before.items())
    assert not Poisson(rate).sample().requires_grad
    assert torch.autograd.grad(torch.poisson(rate).sum(), rate)[0].abs().sum() == 0


def test_after_an_exception_nothing_changes():
    rate = parameter(3.0, 5)
    with pytest.raises(ZeroDivisionError), differentiable(), differentiable(by=gengs.RLOO()):
        1 / 0  # noqa: B018
    assert not Poisson(rate).sample().requires_grad
    with differentiable():
        assert Poisson(rate).sample().requires_grad
    assert not Poisson(rate).sample().requires_grad


def test_other_threads_are_left_alone():
    rate, seen = parameter(3.0, 5), {}
    inside, done = threading.Event(), threading.Event()

    def other():
        inside.wait(10)
        seen["law"] = Poisson(rate).sample().requires_grad
        seen["slope"] = torch.autograd.grad(torch.poisson(rate).sum(), rate)[0].abs().sum()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with differentiable():
        inside.set()
        assert done.wait(10)
        assert torch.poisson(rate).requires_grad
    thread.join()
    assert seen == {"law": False, "slope": 0}


def test_the_users_no_grad_is_respected():
    rate = parameter(3.0, 5)
    with differentiable() as program:
        with torch.no_grad():
            assert (
                not torch.poisson(rate).requires_grad and not Poisson(rate).sample().requires_grad
            )
        assert torch.poisson(rate).requires_grad
    assert len(program.sites) == 1


def test_nested_blocks_have_their_own_rule():
    rate = parameter(3.0)
    with differentiable() as program:
        first = torch.poisson(rate)
        with differentiable(by=gengs.RLOO()) as inner:
            second = torch.poisson(rate + first)
        third = torch.poisson(rate)
    assert first.requires_grad and third.requires_grad and not second.requires_grad
    assert [site.rule for site in program.sites] == ["MidCDF", "RLOO", "MidCDF"]
    assert len(inner.sites) == 1
    with pytest.raises(RuntimeError, match="outermost"):
        inner.loss(second)
    # E[second · third] = (2λ)(λ), so the gradient is 4λ
    (found,) = torch.autograd.grad(program.loss(second * third).sum(), rate)
    assert (found.mean() - 12).abs() < 5 * found.std() / R**0.5


def test_a_block_runs_once():
    program = differentiable()
    with program:
        pass
    with pytest.raises(RuntimeError, match="once"), program:
        pass


def test_a_count_stays_where_earlier_draws_have_ended_it():
    """What counted nobody would grow without bound on the path: e^12 in 40 steps."""
    growth = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    with differentiable() as program:
        alive = torch.binomial(torch.full((4,), 5.0).double(), torch.zeros(4).double() * growth)
        for _ in range(40):
            alive = alive + torch.poisson(growth * alive)
    with pytest.warns(ProgramWarning, match=r"test_program.py:\d+: counts of Poisson stood"):
        loss = program.loss(alive).mean()
    (found,) = torch.autograd.grad(loss, growth)
    assert alive.sum() == 0 and found.abs() < 1
    theta = torch.zeros(4, requires_grad=True)  # a parameter on the boundary, and one individual
    with differentiable() as program:
        born = torch.poisson(theta)
        ill = torch.bernoulli(born.clamp(max=1.0))
    found = torch.autograd.grad(program.loss(born + ill).sum(), theta)[0]
    assert (found == 2).all()


@pytest.mark.parametrize("absorbing", [True, False])
def test_a_count_that_comes_back_from_zero(absorbing):
    """Deaths and newcomers: d E x / dt = 1 + .5 + ... + .5⁴; 5 standard errors."""
    torch.manual_seed(0)
    newcomers, x = parameter(0.3), torch.zeros(R, dtype=torch.float64)
    with differentiable(absorbing=absorbing) as program:
        for _ in range(5):
            x = torch.poisson(0.5 * x) + torch.poisson(newcomers)
    if absorbing:  # wrong here, and never in silence
        with pytest.warns(ProgramWarning, match="counts of Poisson.*absorbing=False"):
            program.loss(x)
        return
    (found,) = torch.autograd.grad(program.loss(x).sum(), newcomers)
    assert (found.mean() - 1.9375).abs() < 5 * found.std() / R**0.5


def test_draws_of_an_inner_block_are_reported_by_the_outer_one():
    rate = parameter(3.0, 5)
    with differentiable() as program, differentiable():
        z = (torch.poisson(rate) > 2).double()
    with pytest.warns(CutGradientWarning, match="compared"):
        program.loss(z + rate).sum().backward()


# ---------------------------------------------------------------------------- the score rule


def test_the_score_is_unbiased_whatever_the_program_does():
    """Branches, numpy and an index: exact by enumeration of two Bernoulli draws."""
    theta = torch.tensor([0.3, 0.6], dtype=torch.float64, requires_grad=True)
    table = np.array([[1.0, 5.0], [-2.0, 3.0]])

    def simulate(p, q):
        a = torch.rand(R) < p.expand(R)
        b = torch.bernoulli(torch.where(a, q, 1 - q))
        return torch.from_numpy(table[a.numpy().astype(int), b.numpy().astype(int)])

    with differentiable(by=gengs.RLOO()) as program:
        cost = simulate(*theta)
    (found,) = torch.autograd.grad(program.loss(cost).mean(), theta)
    p, q = theta
    exact = (
        p * q * table[1, 1]
        + p * (1 - q) * table[1, 0]
        + (1 - p) * (1 - q) * table[0, 1]
        + (1 - p) * q * table[0, 0]
    )
    (wanted,) = torch.autograd.grad(exact, theta)
    assert ((found - wanted).abs() < 5 * 12 / R**0.5).all()


def test_a_draw_is_credited_with_later_costs_only():
    """The same gradient, at less variance where early costs are large and unrelated."""
    found = {}
    for timely in (True, False):
        torch.manual_seed(0)
        p = parameter(0.4)
        with differentiable(by=gengs.RLOO()) as program:
            early = 50 * torch.bernoulli(p)
            if timely:
                program.cost(early)
            late = torch.bernoulli(p)
        loss = program.loss(late if timely else early + late)
        torch.testing.assert_close(loss.detach(), early + late)
        (found[timely],) = torch.autograd.grad(loss.sum(), p)
    for gradients in found.values():
        assert (gradients.mean() - 51).abs() < 5 * gradients.std() / R**0.5
    assert found[True].var() < 0.8 * found[False].var()


def test_costs_alone_and_a_cost_before_any_draw():
    p = parameter(0.4)
    with differentiable(by=gengs.RLOO()) as program:
        program.cost(torch.ones(R))
        program.cost(torch.bernoulli(p))
        torch.bernoulli(p)  # nothing is paid after it
    loss = program.loss()
    (found,) = torch.autograd.grad(loss.sum(), p)
    assert (found.mean() - 1).abs() < 5 * found.std() / R**0.5 and loss.min() == 1


@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_run_of_many_agents_needs_no_replicates(shape):
    """REINFORCE on the sum of 20 Bernoulli draws: the score of all of them, times the cost."""
    p = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    with differentiable(by=gengs.REINFORCE()) as program:
        z = torch.bernoulli(p.expand(20))
    loss = program.loss(z.sum().reshape(shape))
    assert loss.shape == shape and loss == z.sum()
    score = (z / 0.4 - (1 - z) / 0.6).sum()
    torch.testing.assert_close(torch.autograd.grad(loss.sum(), p), (score * z.sum(),))


def test_a_shared_draw_has_no_baseline():
    """Replicates that share a draw are no baseline for it: its score times the mean of all costs.

    An own draw has the mean of the others' costs for a baseline.
    """
    rate = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for _ in range(5):
        with differentiable(by=gengs.RLOO()) as program:
            shared = torch.poisson(rate)
            own = torch.poisson(torch.ones(3, dtype=torch.float64) * rate)
        cost = shared + own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutGradientWarning)  # it is noticed
            found = torch.autograd.grad(program.loss(cost).mean(), rate)
        assert [site.shared for site in program.sites] == [True, False]
        others = (cost.sum() - cost) / 2
        wanted = (shared / 2 - 1) * cost.mean() + ((own / 2 - 1) * (cost - others)).mean()
        torch.testing.assert_close(found, (wanted,))


def test_the_score_has_nothing_for_a_number_of_trials_that_carries_a_gradient():
    rate = parameter(3.0, 5)
    with differentiable():
        n = torch.poisson(rate)
        with (
            differentiable(by=gengs.RLOO()),
            pytest.raises(TypeError, match=r"test_program.py:\d+.*total_count"),
        ):
            torch.binomial(n, torch.full((5,), 0.3, dtype=torch.float64))


def test_at_a_rate_of_zero_the_score_is_finite():
    rate = torch.zeros(5, requires_grad=True)
    with differentiable(by=gengs.RLOO()) as program:
        z = torch.poisson(rate)
    with pytest.warns(gengs.BoundaryWarning, match=r"test_program.py:\d+: .* Poisson lies on"):
        loss = program.loss(z).sum()
    (found,) = torch.autograd.grad(loss, rate)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize(
    ("draw", "warns"),
    [
        (lambda p: torch.bernoulli(1 - p), True),
        (lambda p: Binomial(3, p).sample(), True),
        (lambda p: Categorical(torch.stack([p, 1 - p], -1)).sample(), True),
        (lambda p: torch.poisson(p * torch.zeros(5)), False),  # where it stays, whatever p is
        (lambda p: torch.poisson(p + 1), False),
        (lambda p: Categorical(torch.stack([p + 1, p + 2, 0 * p], -1)).sample(), False),
    ],
)
def test_a_score_draw_that_never_leaves_a_boundary_says_so(draw, warns):
    p = torch.zeros(5, requires_grad=True)
    with differentiable(by=gengs.RLOO()) as program:
        z = draw(p)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", gengs.BoundaryWarning)
        program.loss(z)
    assert len(caught) == warns


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("by", [None, gengs.RLOO()])
def test_a_parameter_outside_its_domain_names_the_line(by):
    rate = parameter(1.0, 5)
    for sentence, wrong in {
        r"test_program.py:\d+: Poisson expects `rate`.*first is -1": lambda: torch.poisson(
            rate - 2
        ),
        r"test_program.py:\d+: Bernoulli expects `probs`.*most 1": lambda: torch.bernoulli(
            rate + 1
        ),
        r"Poisson.*nan": lambda: torch.poisson(rate * torch.nan),
    }.items():
        with pytest.raises(ValueError, match=sentence), differentiable(by=by):
            wrong()


def test_a_program_without_a_draw_says_so():
    with differentiable() as program:
        z = torch.from_numpy(np.random.default_rng(0).poisson(3.0, 5))
    with pytest.raises(ValueError, match="no draw"):
        program.loss(z)


def test_a_draw_with_a_number_for_its_probability_is_a_draw():
    with differentiable() as program:
        z = torch.bernoulli(torch.zeros(5), p=0.3)
    with pytest.warns(CutGradientWarning, match="no draw's parameters require a gradient"):
        program.loss(z)


def test_tasks_that_take_turns_have_their_own_blocks():
    """Each draws in its own block, and the one without a block draws plainly."""

    async def simulate(rule, pause):
        rate = parameter(3.0, 5)
        with differentiable(by=rule) as program:
            for _ in range(3):
                z = torch.poisson(rate)
                mask = torch.rand(5) < rate / 6
                await asyncio.sleep(pause)
            z = z + mask
        await asyncio.sleep(pause)
        program.loss(z).mean().backward()
        assert len(program.sites) == 6 and rate.grad.abs().sum() > 0

    async def plain():
        for _ in range(4):
            await asyncio.sleep(0)
            assert not Poisson(parameter(3.0, 5)).sample().requires_grad
            assert torch.autograd.grad(torch.poisson(r := parameter(3.0, 5)).sum(), r)[0].sum() == 0

    async def together():
        await asyncio.gather(
            simulate(None, 0), plain(), simulate(gengs.RLOO(), 0.001), simulate(None, 0.002)
        )

    asyncio.run(together())


def test_words_about_the_loss():
    rate = parameter(1.0, 5)
    with differentiable(by=gengs.RLOO()) as program:
        z = torch.poisson(rate.expand(4, 5))
    with pytest.raises(ValueError, match=r"one number per replicate.*, 4 by its draws.*\(4, 5\)"):
        program.loss(z)
    with pytest.raises(ValueError, match=r"replicates.*\(5,\)"):
        program.loss(z.sum(0))
    with pytest.raises(ValueError, match=r"RLOO compares at least two runs; leave .*REINFORCE\(\)"):
        program.loss(z.sum())
    with pytest.raises(TypeError, match="float"):
        program.loss(3.0)
    with pytest.raises(ValueError, match="expects a cost"):
        program.loss()


def test_words_about_the_rule():
    with pytest.raises(TypeError, match="UnOrd needs the cost"):
        differentiable(by=gengs.UnOrd(4))
    with pytest.raises(TypeError, match=r"by=RLOO\(\)"):
        differentiable(by=gengs.RLOO)
    for rule in (gengs.RLOO(4), gengs.MidCDF(debias=1), gengs.GenGS(0.5, samples=2)):
        with pytest.raises(TypeError, match=rf"differentiable .* of {type(rule).__name__}"):
            differentiable(by=rule)
    with pytest.raises(TypeError, match="as `by`, but got 'MidCDF'"):
        differentiable(by="MidCDF")
    with pytest.raises(TypeError, match="as `by`, but got 'MidCDF'"):
        gengs.rsample(Poisson(1.0), by="MidCDF")


@pytest.mark.parametrize(
    "by",
    [
        gengs.GenGS(0.5),
        gengs.GenGS(0.5, hard=True),
        gengs.ReinMax(),
        gengs.GumbelRao(0.5),
        gengs.IGR(0.1),
        gengs.StraightThroughMean(),
        gengs.ArrivalTimes(),
        gengs.MidCDF(),
    ],
    ids=lambda by: f"{type(by).__name__}({by.extra_repr()})",
)
def test_every_estimator_whose_gradient_belongs_to_the_draw_is_a_rule(by):
    """The mean's gradient, which all have nearly right: within a third."""
    rate = torch.full((4000,), 3.0, requires_grad=True)
    with differentiable(by=by) as program:
        z = torch.poisson(rate)
        if not isinstance(by, gengs.ArrivalTimes):  # which is for Poisson counts
            z = z + 0.0 * (torch.rand(4000) < 0.1 * rate)
    (found,) = torch.autograd.grad(program.loss(z).sum(), rate)
    assert abs(found.mean() - 1) < 0.35 and program.sites[0].rule == type(by).__name__


def test_a_relaxed_draw_is_no_number_of_trials():
    rate = torch.full((50,), 3.0, requires_grad=True)
    with (
        pytest.raises(ValueError, match=r"test_program.py:\d+: Binomial.*whole number.*hard=True"),
        differentiable(by=gengs.GenGS(0.5)),
    ):
        torch.binomial(torch.poisson(rate), torch.full((50,), 0.3))


def test_sites_are_listed():
    rate = parameter(1.0, 5)
    with differentiable() as program:
        torch.poisson(rate)
        Bernoulli(torch.tensor(0.5)).sample()
    first, second = program.sites
    assert (first.law, first.shape, first.rule) == ("Poisson", (5,), "MidCDF")
    assert second.rule == "none" and "test_program.py:" in str(second)


def test_nothing_is_left_of_a_block_whose_end_fails(monkeypatch):
    sample = Poisson.sample
    program = differentiable()
    program.__enter__()
    end = program.mode.__exit__

    def fail(*error):
        end(*error)
        raise RuntimeError("the end")

    monkeypatch.setattr(type(program.mode), "__exit__", lambda self, *error: fail(*error))
    with pytest.raises(RuntimeError, match="the end"):
        program.__exit__(None, None, None)
    monkeypatch.undo()
    assert Poisson.sample is sample
    with differentiable() as another:  # an outermost block again
        z = torch.poisson(torch.ones(3, requires_grad=True))
    another.loss(z)
