"""Laws at certain parameters, inside, on the boundary and far out, each with its reference."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from reference import (
    binomial,
    binomial_in_both,
    cut,
    geometric,
    mixture,
    multinomial,
    negative_binomial,
    poisson,
    scored,
    skellam,
    weighed,
)
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    MixtureSameFamily,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)

import gengs


@dataclass(frozen=True)
class Case:
    """A law at certain parameters: how torch builds it, and the table it is compared with."""

    name: str
    parameters: dict
    build: Callable
    table: Callable
    regime: str = "interior"
    event_dim: int = 0
    tags: frozenset = field(default_factory=frozenset)

    def tensors(self, replicates=None, dtype=torch.float64, requires_grad=True):
        """The parameters, each with a batch dimension in front unless ``replicates`` is None."""
        made = {}
        for name, value in self.parameters.items():
            tensor = torch.tensor(value, dtype=dtype)
            if replicates is not None:
                tensor = tensor.expand(replicates, *tensor.shape).clone()
            made[name] = tensor.requires_grad_(requires_grad)
        return made

    def reference(self):
        return self.table(**{name: np.asarray(v, float) for name, v in self.parameters.items()})

    def cost(self, kind):
        """A cost of unit scale for this law: of ``(z - centre) / spread``."""
        table = self.reference()
        numbers = _number(torch.as_tensor(table.atoms), self.event_dim).double().numpy()
        mean = table.probs @ numbers
        spread = max((table.probs @ (numbers - mean) ** 2) ** 0.5, 1.0)
        of_number = COSTS[kind]
        return lambda z: of_number((_number(z, self.event_dim) - mean - 0.4) / spread)


def _number(z, event_dim):
    """A number of a vector: its coordinates, weighed unevenly."""
    if not event_dim:
        return z
    weights = torch.linspace(-0.6, 1.1, z.shape[-1], dtype=z.dtype) + 0.3
    return (z * weights).sum(-1)


COSTS = {  # of a number
    "linear": lambda u: 1.5 * u + 1,
    "quadratic": lambda u: (u + 1.2).square(),
    "cubic": lambda u: u**3 / 3 - u,
    "smooth": lambda u: torch.sin(0.7 * u) + 0.2 * u,
    "step": lambda u: (u.detach() > 0).to(u.dtype),
}

UNEVEN = [-1.0, 0.5, 2.0, 5.0]
CODEBOOK = [[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [1.0, 3.0]]
SHARES, SCORES = [0.2, 0.3, 0.4, 0.6], [0.3, -1.2, 0.8, 0.1]


def _finite(atoms, event_dim=0, **given):
    atoms = torch.tensor(atoms, dtype=next(iter(given.values())).dtype)
    return gengs.Finite(atoms, **given, event_dim=event_dim)


def _total(n, like):
    return torch.full_like(like, n).detach()


def _one(name, table, **parameters):
    """A case of one of torch's families."""
    build = {
        "bernoulli": lambda **given: Bernoulli(**given),
        "poisson": Poisson,
        "geometric": lambda **given: Geometric(**given),
        "negative binomial": lambda total_count, **given: NegativeBinomial(total_count, **given),
        "binomial in n": lambda total_count, **given: Binomial(total_count, **given),
        "skellam": gengs.Skellam,
        "categorical": lambda **given: Categorical(**given),
        "one-hot": lambda **given: OneHotCategorical(**given),
    }[name]
    return Case(f"{name}({_shown(parameters)})", parameters, build, table)


def _shown(parameters):
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def _bernoulli(**p):
    return _one("bernoulli", lambda **p: binomial(*p.values(), 1, "logits" in p), **p)


def _binomial(n, **p):
    def build(**p):
        return Binomial(_total(n, *p.values()), **p)

    def table(**p):
        return binomial(*p.values(), n, "logits" in p)

    return Case(f"binomial(total_count={n}, {_shown(p)})", p, build, table)


def _binomial_in_n(n, **p):
    def table(total_count, **p):
        return binomial_in_both(*p.values(), int(total_count), "logits" in p)

    case = _one("binomial in n", table, total_count=float(n), **p)
    return replace(case, tags=frozenset({"total"}))


def _poisson(rate):
    return _one("poisson", poisson, rate=rate)


def _geometric(**p):
    return _one("geometric", lambda **p: geometric(*p.values(), "logits" in p), **p)


def _negative_binomial(r, learned, **p):
    def table(total_count=r, **p):
        whole = negative_binomial(*p.values(), float(total_count), "logits" in p)
        return replace(whole, slopes={k: v for k, v in whole.slopes.items() if k in wanted})

    wanted = {"total_count", *p} if learned else set(p)
    if learned:
        return _one("negative binomial", table, total_count=r, **p)

    def build(**p):
        return NegativeBinomial(_total(r, *p.values()), **p)

    return Case(f"negative binomial({_shown({'fixed total_count': r, **p})})", p, build, table)


def _skellam(up, down):
    return _one("skellam", skellam, rate_up=up, rate_down=down)


def _listed(name, atoms, event_dim=0, **given):
    def table(**given):
        return (scored if "logits" in given else weighed)(atoms, *given.values())

    case = _one(name, table, **given) if name != "finite" else None
    if case is None:
        case = Case(
            f"finite({_shown(given)}{', vectors' if event_dim else ''})",
            given,
            lambda **given: _finite(atoms, event_dim, **given),
            table,
        )
    return replace(case, event_dim=event_dim)


def _multinomial(n, **p):
    def build(**p):
        return Multinomial(n, **p)

    def table(**p):
        return multinomial(*p.values(), n, "logits" in p)

    return Case(f"multinomial(total_count={n}, {_shown(p)})", p, build, table, event_dim=1)


def _cut(case, low=None, high=None, level=None):
    """A case whose law is truncated to a window."""
    rule = {k: v for k, v in {"low": low, "high": high, "level": level}.items() if v is not None}
    ends = (0, level - 1) if level else (-np.inf if low is None else low, high)
    return replace(
        case,
        name=f"cut {case.name} to {rule}",
        build=lambda **given: gengs.truncate(case.build(**given), **rule),
        table=lambda **given: cut(case.table(**given), *ends),
    )


def _mixture(level=None, **parameters):
    name = next(key for key in parameters if key != "weights")

    def build(weights, **of_parts):
        (values,) = of_parts.values()
        parts = Poisson(values) if name == "rate" else Binomial(_total(3, values), values)
        law = MixtureSameFamily(Categorical(weights), parts)
        return law if level is None else gengs.truncate(law, level)

    def table(weights, **of_parts):
        (values,) = of_parts.values()
        make = poisson if name == "rate" else lambda p: binomial(p, 3)
        whole = mixture(weights, [make(value) for value in values], name)
        return whole if level is None else cut(whole, 0, level - 1)

    return Case(f"mixture({_shown(parameters)}, level={level})", parameters, build, table)


def _in(regime, cases):
    return [replace(case, regime=regime) for case in cases]


INTERIOR = [
    _bernoulli(probs=0.3),
    _bernoulli(logits=-0.7),
    _binomial(5, probs=0.3),
    _binomial(5, logits=0.4),
    _binomial_in_n(2, probs=0.6),
    _binomial_in_n(3, logits=0.4),
    _poisson(2.5),
    _geometric(probs=0.4),
    _geometric(logits=-0.4),
    _negative_binomial(2.5, False, probs=0.4),
    _negative_binomial(2.5, False, logits=-0.4),
    _negative_binomial(2.5, True, probs=0.4),
    _negative_binomial(2.5, True, logits=-0.4),
    _listed("categorical", np.arange(4.0), probs=SHARES),
    _listed("categorical", np.arange(4.0), logits=SCORES),
    _listed("one-hot", np.eye(4), 1, probs=SHARES),
    _listed("one-hot", np.eye(4), 1, logits=SCORES),
    _multinomial(3, probs=SHARES[:3]),
    _multinomial(3, logits=SCORES[:3]),
    _skellam(3.0, 1.5),
    _listed("finite", UNEVEN, probs=SHARES),
    _listed("finite", UNEVEN, logits=SCORES),
    _listed("finite", CODEBOOK, 1, logits=SCORES),
    _cut(_poisson(2.5), level=5),
    _cut(_poisson(6.5), low=4, high=9),
    _cut(_geometric(probs=0.4), level=5),
    _cut(_negative_binomial(2.5, True, probs=0.4), level=6),
    _cut(_binomial(5, probs=0.3), low=1, high=4),
    _cut(_skellam(3.0, 1.5), low=-2, high=5),
    _mixture(weights=[0.4, 0.6], rate=[1.0, 5.0]),
    _mixture(level=6, weights=[0.4, 0.6], rate=[1.0, 5.0]),
    _mixture(level=4, weights=[0.4, 0.6], probs=[0.2, 0.7]),
]
BOUNDARY = _in(
    "boundary",
    [
        _bernoulli(probs=0.0),
        _bernoulli(probs=1.0),
        _binomial(5, probs=0.0),
        _binomial(5, probs=1.0),
        _binomial(0, probs=0.3),
        _binomial_in_n(0, probs=0.3),
        _binomial_in_n(5, probs=0.0),
        _binomial_in_n(5, probs=1.0),
        _poisson(0.0),
        _geometric(probs=1.0),
        _negative_binomial(2.5, False, probs=0.0),
        _negative_binomial(2.5, True, probs=0.0),
        _negative_binomial(0.0, True, probs=0.4),
        _skellam(0.0, 1.5),
        _skellam(2.0, 0.0),
        _skellam(0.0, 0.0),
        _listed("categorical", np.arange(4.0), probs=[0.0, 0.3, 0.4, 0.3]),
        _listed("categorical", np.arange(4.0), probs=[0.2, 0.0, 0.5, 0.3]),
        _listed("one-hot", np.eye(4), 1, probs=[0.2, 0.0, 0.5, 0.3]),
        _multinomial(3, probs=[0.6, 0.0, 0.4]),
        _listed("finite", UNEVEN, probs=[0.2, 0.0, 0.5, 0.3]),
        _listed("finite", UNEVEN, probs=[0.2, 0.5, 0.3, 0.0]),
        _listed("finite", UNEVEN, logits=[0.3, -np.inf, 0.8, 0.1]),
        _listed("finite", CODEBOOK, 1, probs=[0.2, 0.0, 0.5, 0.3]),
        _cut(_poisson(0.0), level=5),
        _cut(_binomial(5, probs=1.0), low=0, high=5),
    ],
)
EXTREME = _in(
    "extreme",
    [
        _bernoulli(probs=1e-6),
        _bernoulli(probs=1 - 1e-6),
        _bernoulli(logits=12.0),
        _binomial(1000, probs=0.3),
        _binomial(5, logits=-14.0),
        _poisson(1e-6),
        _poisson(1e4),
        _geometric(probs=1e-3),
        _geometric(logits=12.0),
        _negative_binomial(0.01, True, probs=0.4),
        _negative_binomial(2.5, True, probs=0.99),
        _negative_binomial(2.5, True, probs=1e-6),
        _skellam(1e-6, 40.0),
        _listed("finite", UNEVEN, logits=[-12.0, 3.0, -2.0, 9.0]),
        _listed("finite", UNEVEN, probs=[1e-6, 0.5, 0.5, 1e-6]),
        _cut(_poisson(40.0), level=30),
        _cut(_poisson(1e-6), level=5),
    ],
)
CASES = INTERIOR + BOUNDARY + EXTREME
