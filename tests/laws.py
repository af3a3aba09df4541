"""Every kind of law the library serves, once: the conformance tests run over this list."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyro.distributions as pyro
import scipy.stats
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    Geometric,
    MixtureSameFamily,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
    constraints,
)

import gengs


class LogSeries(Distribution):
    """A law a user might write, a PMF on 1, 2, … and nothing else: -p^k / (k log(1 - p))."""

    arg_constraints = {"p": constraints.unit_interval}
    support = constraints.positive_integer

    def __init__(self, p, validate_args=None):
        self.p = p
        super().__init__(p.shape, validate_args=validate_args)

    def log_prob(self, value):
        return value * self.p.log() - value.log() - (-torch.log1p(-self.p)).log()

    def expand(self, batch_shape, _instance=None):
        return type(self)(self.p.expand(batch_shape))


@dataclass(frozen=True)
class Law:
    """How to build a law from parameters, how to cut it, and scipy's version of it."""

    name: str
    parameters: tuple[list, ...]
    """The values of each parameter, for one batch element."""
    build: Callable[..., Distribution]
    rule: dict = field(default_factory=dict)
    scipy: Callable | None = None

    def tensors(self, dtype=torch.float32, device="cpu", batch=(), requires_grad=False):
        """The parameters, ``(*batch, *own shape)``."""
        made = []
        for values in self.parameters:
            tensor = torch.tensor(values, dtype=dtype, device=device)
            tensor = tensor.expand((*batch, *tensor.shape)).clone()
            made.append(tensor.requires_grad_(requires_grad))
        return made

    def finite(self, *tensors):
        """The law on finitely many atoms."""
        law = self.build(*tensors)
        return law if isinstance(law, gengs.Finite) else gengs.truncate(law, **self.rule)

    @property
    def reference(self):
        """The frozen scipy law for the same parameters, or None."""
        return self.scipy(*self.parameters) if self.scipy else None


PAIRS = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [1.0, 3.0]])
MATRICES = torch.arange(16.0).reshape(4, 2, 2)
WEIGHTS, LOGITS = [0.1, 0.2, 0.3, 0.4], [0.3, -1.2, 0.8, 0.1]


def _total(n, like):
    return torch.full_like(like, n).detach()


def _mixture(weights, rates):
    return MixtureSameFamily(Categorical(weights), Poisson(rates))


LAWS = [
    Law("bernoulli", (0.3,), lambda p: Bernoulli(p), {}, scipy.stats.bernoulli),
    Law("bernoulli-logits", (-0.7,), lambda t: Bernoulli(logits=t)),
    Law("categorical", (WEIGHTS,), lambda p: Categorical(p)),
    Law("categorical-logits", (LOGITS,), lambda t: Categorical(logits=t)),
    Law("one-hot", (WEIGHTS,), lambda p: OneHotCategorical(p)),
    Law("one-hot-logits", (LOGITS,), lambda t: OneHotCategorical(logits=t)),
    Law("poisson", (2.5,), lambda r: Poisson(r), {"level": 9}, scipy.stats.poisson),
    Law("poisson-window", (9.5,), lambda r: Poisson(r), {"low": 5, "high": 14}),
    Law(
        "geometric",
        (0.4,),
        lambda p: Geometric(p),
        {"level": 12},
        lambda p: scipy.stats.geom(p, loc=-1),
    ),
    Law("geometric-logits", (-0.4,), lambda t: Geometric(logits=t), {"level": 12}),
    Law(
        "binomial",
        (0.3,),
        lambda p: Binomial(_total(7, p), p),
        {"level": 8},
        lambda p: scipy.stats.binom(7, p),
    ),
    Law("binomial-logits", (0.4,), lambda t: Binomial(_total(7, t), logits=t), {"level": 8}),
    Law(
        "negative-binomial",
        (2.5, 0.4),
        lambda r, p: NegativeBinomial(r, p),
        {"level": 10},
        lambda r, p: scipy.stats.nbinom(r, 1 - p),
    ),
    Law(
        "negative-binomial-fixed-count",
        (0.4,),
        lambda p: NegativeBinomial(_total(3, p), p),
        {"level": 10},
        lambda p: scipy.stats.nbinom(3, 1 - p),
    ),
    Law(
        "negative-binomial-logits",
        (2.5, -0.4),
        lambda r, t: NegativeBinomial(r, logits=t),
        {"level": 10},
    ),
    Law("multinomial", ([*WEIGHTS[:2], 0.7],), lambda p: Multinomial(3, p)),
    Law("multinomial-logits", (LOGITS[:3],), lambda t: Multinomial(3, logits=t)),
    Law(
        "skellam",
        (3.0, 1.5),
        lambda up, down: gengs.Skellam(up, down),
        {"low": -5, "high": 8},
        scipy.stats.skellam,
    ),
    Law("mixture", (WEIGHTS[:2], [1.0, 7.0]), _mixture, {"level": 14}),
    Law("own-pmf", (0.6,), lambda p: LogSeries(p), {"level": 12}, scipy.stats.logser),
    Law(
        "zero-inflated-poisson",
        (0.3, 2.0),
        lambda gate, rate: pyro.ZeroInflatedPoisson(rate, gate=gate),
        {"level": 9},
    ),
    Law(
        "beta-binomial",
        (2.0, 3.0),
        lambda a, b: pyro.BetaBinomial(a, b, _total(6, a)),
        {"level": 7},
        lambda a, b: scipy.stats.betabinom(6, a, b),
    ),
    Law(
        "gamma-poisson",
        (3.0, 1.5),
        lambda shape, rate: pyro.GammaPoisson(shape, rate),
        {"level": 10},
        lambda shape, rate: scipy.stats.nbinom(shape, rate / (1 + rate)),
    ),
    Law("implicit", (LOGITS,), lambda t: gengs.Finite(torch.arange(4, device=t.device), logits=t)),
    Law("weights", (WEIGHTS,), lambda p: gengs.Finite(torch.arange(4, device=p.device), probs=p)),
    Law(
        "vector-atoms",
        (LOGITS,),
        lambda t: gengs.Finite(PAIRS.to(t.device), logits=t, event_dim=1),
    ),
    Law(
        "matrix-atoms",
        (LOGITS,),
        lambda t: gengs.Finite(MATRICES.to(t.device), logits=t, event_dim=2),
    ),
    Law("subset", (LOGITS,), lambda t: gengs.Subset(2, logits=t)),
    Law("ranking", (LOGITS,), lambda t: gengs.PlackettLuce(logits=t, k=2)),
    Law(
        "learned-atoms",
        ([-1.0, 0.5, 2.0, 7.0], LOGITS),
        lambda atoms, t: gengs.Finite(atoms, logits=t),
    ),
]
