"""The score with a fitted martingale: unbiased whatever the program does, and quiet."""

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Multinomial,
    NegativeBinomial,
    Normal,
    Poisson,
    VonMises,
)

import gengs
from gengs import FittedScore, differentiable
from gengs.programs.increments import Fit

T = 0.3


def stepped(t, n):
    """A count, trials that it adds to, and a cost with a step and a branch."""
    born = torch.poisson(3 * t.expand(n))
    kept = torch.binomial(born + 2, t.expand(n))
    return (kept > 1).double() * born.square() - 2.0 * kept


def exact_of_stepped(t):
    born = torch.arange(60.0, dtype=torch.float64)
    total = 0
    for b, p in zip(born, Poisson(3 * t).log_prob(born).exp(), strict=True):
        kept = torch.arange(b.item() + 3, dtype=torch.float64)
        weight = Binomial(b + 2, t).log_prob(kept).exp()
        total = total + p * (weight * ((kept > 1) * b**2 - 2 * kept)).sum()
    return total


def gradients(simulate, rule, blocks, n=64, at=T, **settings):
    found = []
    for seed in range(blocks):
        torch.manual_seed(seed)
        t = torch.tensor(at, dtype=torch.float64, requires_grad=True)
        with differentiable(by=rule(), **settings) as program:
            cost = simulate(t, n)
        found += torch.autograd.grad(program.loss(cost).mean(), t)
    return torch.stack(found)


def z_of(found, exact):
    return float((found.mean() - exact) / (found.std() / len(found) ** 0.5))


def exact_gradient(function, at=T):
    t = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(function(t), t)[0]


@pytest.mark.parametrize(("memory", "n"), [(0.0, 64), (0.8, 64), (0.0, 32)])
def test_it_is_unbiased(memory, n):
    """5 standard errors: 6e-7 false alarms. 32 replicates are the fewest that are fitted."""
    rule = FittedScore(memory=memory)
    found = gradients(stepped, lambda: rule, 150, n=n)
    assert abs(z_of(found, exact_gradient(exact_of_stepped))) < 5


def test_a_wrong_sign_would_be_seen(monkeypatch):
    """With the sign of ∇m turned it is more than 8 standard errors off."""
    along = Fit.along
    monkeypatch.setattr(Fit, "along", lambda self, means: -along(self, means))
    found = gradients(stepped, lambda: FittedScore(memory=0.0), 150)
    assert abs(z_of(found, exact_gradient(exact_of_stepped))) > 8


def test_what_is_fitted_to_a_half_does_not_know_its_costs():
    """One replicate's cost changes no weight of its own half.

    Hundreds of gradients do not show the bias of a fit that knows it: it is below their error.
    """
    n = 64
    torch.manual_seed(0)
    t = torch.tensor(T, dtype=torch.float64, requires_grad=True)
    with differentiable(by=FittedScore(memory=0.0)) as program:
        cost = stepped(t, n)
    program.loss(cost)
    increments = program._credit(n)._increments
    other = cost.detach() + 100.0 * (torch.arange(n) == 6)
    one, two = (increments.fit([c]) for c in (cost.detach(), other))
    for before, after in zip(one.weights, two.weights, strict=True):
        changed = (before != after).any(0)
        assert not changed[::2].any() and changed[1::2].any()


def stops(t, n):
    """A loop whose length depends on the draws, as simulators have them."""
    alive, steps = torch.ones(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    while alive.any():
        steps = steps + alive
        alive = alive * torch.bernoulli((0.2 + t).expand(n))
    return steps


def test_a_loop_that_ends_by_its_draws():
    """The number of steps is geometric, with mean 1 / (0.8 - t)."""
    found = gradients(stops, FittedScore, 80, n=256)
    assert abs(z_of(found, 1 / 0.5**2)) < 5


LAWS = {
    "Categorical": lambda t, n: Categorical(torch.stack([t, 2 * t, 1 - 3 * t], -1).expand(n, 3)),
    "many categories": lambda t, n: Categorical(
        logits=(t * torch.arange(20.0, dtype=torch.float64)).expand(n, 20)
    ),
    "NegativeBinomial": lambda t, n: NegativeBinomial(3.0, t.expand(n)),
    "a table": lambda t, n: gengs.Finite(
        torch.tensor([1.0, 5.0]).double(), probs=torch.stack([t, 1 - t], -1).expand(n, 2)
    ),
    "agents": lambda t, n: Bernoulli(t.expand(n, 7)),
    "Multinomial": lambda t, n: Multinomial(5, torch.stack([t, 1 - t], -1).expand(n, 2)),
}


MEANS = {
    "Categorical": lambda t: 2 * t + 4 * (1 - 3 * t),
    "many categories": lambda t: (t * torch.arange(20.0)).softmax(-1) @ torch.arange(20.0).square(),
    "NegativeBinomial": lambda t: 3 * t / (1 - t) ** 2 + (3 * t / (1 - t)) ** 2,
    "a table": lambda t: t + 25 * (1 - t),
    "agents": lambda t: 140 * t * (1 - t) + 28**2 * t**2,
    "Multinomial": lambda t: 5 * t * (1 - t) + (10 - 5 * t) ** 2,
}
"""Of the cost below."""


@pytest.mark.parametrize("name", LAWS)
def test_any_distribution_with_a_mean(name):
    """5 standard errors of 30 gradients: 3e-5 false alarms.

    A mean that is 10 % off is found by 10 standard errors or more (by 3 for the NegativeBinomial).
    """

    def simulate(t, n):
        z = LAWS[name](t, n).sample().double().reshape(n, -1)
        return (z @ torch.arange(1.0, z.shape[1] + 1).double()).square()

    fitted, plain = (gradients(simulate, rule, 30, n=200) for rule in (FittedScore, gengs.RLOO))
    assert abs(z_of(fitted, exact_gradient(MEANS[name]))) < 5 and fitted.var() < plain.var()


def epidemic(t, n, people=1000.0):
    infected = torch.full((n,), people / 20, dtype=torch.float64)
    susceptible = people - infected
    for _ in range(12):
        new = torch.binomial(susceptible, 1 - torch.exp(-t * infected / people))
        gone = torch.binomial(infected, torch.full((n,), 0.2).double())
        susceptible, infected = susceptible - new, infected + new - gone
    return 1 - susceptible / people


def test_it_is_far_quieter_on_counts():
    fitted, plain = (gradients(epidemic, rule, 12, n=400) for rule in (FittedScore, gengs.RLOO))
    assert fitted.var() < plain.var() / 50


def test_it_never_harms_much():
    """A rare step, which no linear feature predicts."""

    def simulate(t, n):
        return (epidemic(t, n) > 0.34).double()

    fitted, plain = (gradients(simulate, rule, 40, n=100) for rule in (FittedScore, gengs.RLOO))
    assert fitted.var() < 1.6 * plain.var()


def test_below_a_few_dozen_replicates_it_is_rloo():
    fitted, plain = (gradients(epidemic, rule, 2, n=20) for rule in (FittedScore, gengs.RLOO))
    torch.testing.assert_close(fitted, plain)


def test_costs_that_arrive_over_time():
    """E of the sum of four counts with growing rates: 10 t."""
    found = []
    for seed in range(60):
        torch.manual_seed(seed)
        t = torch.tensor(T, dtype=torch.float64, requires_grad=True)
        with differentiable(by=FittedScore()) as program:
            for k in range(1, 5):
                program.cost(torch.poisson(k * t.expand(100)))
        found += torch.autograd.grad(program.loss().mean(), t)
    found = torch.stack(found)
    assert abs(z_of(found, 10.0)) < 5 and found.std() < 0.5


def test_several_losses_of_a_block_do_not_learn_from_each_other():
    """A cost is fitted without what another has seen of the same draws."""
    found = []
    for first in (False, True):
        rule = FittedScore(memory=0.9)
        for seed in range(2):  # there is something to remember
            torch.manual_seed(seed)
            t = torch.tensor(T, dtype=torch.float64, requires_grad=True)
            with differentiable(by=rule) as program:
                cost = stepped(t, 64)
            if first and seed:
                program.loss(cost)
            found += torch.autograd.grad(program.loss(cost).mean(), t)
    assert torch.equal(found[1], found[3])


def test_atoms_that_move():
    """Their slope is not the score's: E of t times 0 or 1 is t/2."""

    def simulate(t, n):
        atoms = t * torch.arange(2.0, dtype=torch.float64)
        return gengs.Finite(atoms, logits=torch.zeros(n, 2).double()).sample()

    assert abs(z_of(gradients(simulate, FittedScore, 60, n=200), 0.5)) < 5


def test_the_mean_of_an_angle_is_no_mean():
    """Nothing is fitted to it: torch's ``VonMises.mean`` is a direction."""

    def simulate(t, n):
        return VonMises(10 * t.expand(n), torch.ones(n).double()).sample()

    fitted, plain = (gradients(simulate, rule, 2, n=200) for rule in (FittedScore, gengs.RLOO))
    torch.testing.assert_close(fitted, plain)


class Shifted(Normal):
    """Its ``mean`` is not that of its draws."""

    has_rsample = False

    @property
    def mean(self):
        return self.loc + 0.5

    def sample(self, sample_shape=()):
        return torch.normal(self.loc, self.scale).detach()

    def log_prob(self, value):
        return super().log_prob(value)


def test_a_mean_that_the_draws_contradict_is_not_believed():
    def simulate(t, n):
        return Shifted(t.expand(n), torch.ones(n).double()).sample().square()

    fitted, plain = (gradients(simulate, rule, 2, n=400) for rule in (FittedScore, gengs.RLOO))
    torch.testing.assert_close(fitted, plain)


def test_columns_that_never_vary():
    """Before the first draw of a line there is no past: most features of a single visit are 0."""

    def simulate(t, n):
        return torch.poisson((10 * t).expand(n, 5)).std(-1)

    torch.manual_seed(11)
    assert torch.isfinite(gradients(simulate, FittedScore, 12, n=2000)).all()


def test_words():
    with pytest.raises(ValueError, match="memory"):
        FittedScore(memory=1.0)
    assert repr(FittedScore()) == "FittedScore()" and "0.5" in repr(FittedScore(memory=0.5))
