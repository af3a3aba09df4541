"""Laws of somebody's own in a block: a subclass is the law that its methods say, and no other."""

from math import exp

import pytest
import torch
from torch.distributions import (
    Categorical,
    Distribution,
    OneHotCategorical,
    Poisson,
    TransformedDistribution,
    VonMises,
    constraints,
)
from torch.distributions.transforms import AffineTransform

import gengs
from gengs import differentiable

R = 5_000
RULES = pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "RLOO"])


class AtLeastOne(Poisson):
    """A Poisson count, or 1 where it is 0: E z² = λ + λ² + exp(-λ)."""

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return super().sample(sample_shape).clamp_min(1)

    def log_prob(self, value):
        one = torch.log1p(self.rate) - self.rate
        log_prob = torch.where(value == 1, one, super().log_prob(value))
        return log_prob.masked_fill(value == 0, -torch.inf)


class EpsGreedy(Categorical):
    """With a chance of 0.4 any of the categories, else one by the weights."""

    def sample(self, sample_shape=()):
        with torch.no_grad():
            z = super().sample(sample_shape)
            return torch.where(
                torch.rand(z.shape) < 0.4, torch.randint(self._num_events, z.shape), z
            )

    def log_prob(self, value):
        return torch.log(0.6 * super().log_prob(value).exp() + 0.4 / self._num_events)


class Halved(Poisson):
    """A count that is drawn in another way, and does not say how likely it is: half of it."""

    def sample(self, sample_shape=()):
        return super().sample(sample_shape) / 2


class Clumps(Distribution):
    """A Poisson number of clumps, a Poisson number in each: a law without a ``log_prob``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate):
        self.rate = rate
        super().__init__(rate.shape, validate_args=False)

    def sample(self, sample_shape=()):
        return torch.poisson(2 * torch.poisson(self.rate.expand(*sample_shape, *self.batch_shape)))


def first_weight(p):
    """Three categories; the first has probability p."""
    return torch.stack([p, (1 - p) / 2, (1 - p) / 2], -1)


# a draw of one parameter, where, and the derivative of E z²
LAWS = {
    "a PMF of its own": (lambda p: AtLeastOne(p).sample(), 2.0, 5 - exp(-2)),
    "an index with a PMF of its own": (
        lambda p: EpsGreedy(first_weight(p)).sample().double(),
        0.2,
        -0.6 * (1 + 4) / 2,
    ),
    "drawn otherwise": (lambda p: Halved(p).sample(), 2.0, (1 + 2 * 2) / 4),
    "no log_prob": (lambda p: Clumps(p).sample(), 6.0, 2 + 4 * (1 + 2 * 6)),
    "transformed": (
        lambda p: TransformedDistribution(Poisson(p), [AffineTransform(1.0, 3.0)]).sample(),
        2.0,
        9 * (1 + 2 * 2) + 6,
    ),
}


@RULES
@pytest.mark.parametrize("name", LAWS)
def test_the_gradient_is_that_of_the_law_that_is_drawn(name, by):
    """5 standard errors, on E z²: 6e-6 false alarms over all ten."""
    torch.manual_seed(0)
    replicates = R if by is None else 40 * R  # the score varies more, and is quick
    call, at, exact = LAWS[name]
    p = torch.full((replicates,), at, dtype=torch.float64, requires_grad=True)
    with differentiable(by=by) as program:
        z = call(p)
    (found,) = torch.autograd.grad(program.loss(z.square()).sum(), p)
    assert (found.mean() - exact).abs() < 5 * found.std() / replicates**0.5


def test_rsample_takes_a_table_by_its_own_log_prob_and_refuses_what_it_does_not_know():
    """5 standard errors."""
    torch.manual_seed(0)
    rate = torch.full((R,), 2.0, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(gengs.rsample(AtLeastOne(rate)).square().sum(), rate)
    assert (found.mean() - (5 - exp(-2))).abs() < 5 * found.std() / R**0.5
    with pytest.raises(TypeError, match=r"Halved has a sample\(\) of its own"):
        gengs.rsample(Halved(rate))


class Silent(Poisson):
    def sample(self, sample_shape=()):
        with torch.no_grad():
            return super().sample(sample_shape) + 1


@RULES
def test_what_cannot_be_known_is_refused_with_its_line(by):
    rate = torch.full((5,), 2.0, requires_grad=True)
    with differentiable(by=by), pytest.raises(TypeError, match=r"test_own_laws.py:\d+: Silent"):
        Silent(rate).sample()


def test_other_laws_without_a_slope_say_so():
    rate = torch.full((5,), 2.0, requires_grad=True)

    class Shifted(OneHotCategorical):
        def log_prob(self, value):
            return super().log_prob(value.roll(1, -1))

    class Unnormalised(Categorical):
        def log_prob(self, value):
            return super().log_prob(value) - 1

    class Growing(Poisson):
        def log_prob(self, value):
            return value * self.rate.log()

    with differentiable():
        with pytest.raises(ValueError, match="Growing has a log_prob that is not normalised"):
            Growing(rate).sample()  # the search for its end would not end
        with pytest.raises(TypeError, match=r"test_own_laws.py:\d+: VonMises is continuous"):
            VonMises(rate, rate).sample()
        with pytest.raises(TypeError, match=r"test_own_laws.py:\d+: Shifted draws vectors"):
            Shifted(rate).sample()
        with pytest.raises(ValueError, match=r"test_own_laws.py:\d+: Unnorm.*sum to 0.3679"):
            Unnormalised(rate).sample()


def test_transforms_that_are_learned():
    scale = torch.full((R,), 3.0, requires_grad=True)

    def draw():
        return TransformedDistribution(
            Poisson(torch.ones(R)), [AffineTransform(0.0, scale)]
        ).sample()

    with differentiable() as program:
        z = draw()
    (found,) = torch.autograd.grad(program.loss(z).sum(), scale)
    assert torch.equal(found, z.detach() / 3)
    with differentiable(by=gengs.RLOO()), pytest.raises(TypeError, match=r":\d+: .*transforms"):
        draw()
