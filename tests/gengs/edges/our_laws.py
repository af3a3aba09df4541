"""Every kind of law that the library makes, by name, for the generic tests."""

import torch
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

FLOAT, DOUBLE = torch.float32, torch.float64


def numbers(values, dtype, batch):
    tensor = torch.tensor(values, dtype=dtype)
    return tensor.expand((*batch, *tensor.shape)).clone()


PAIRS = [[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [1.0, 3.0]]
LOGITS = [0.3, -1.2, 0.8, 0.1]


def finite(atoms, event_dim=0, logits=LOGITS):
    def make(dtype, batch):
        values = torch.tensor(atoms, dtype=dtype)
        return gengs.Finite(values, logits=numbers(logits, dtype, batch), event_dim=event_dim)

    return make


def cut(build, *values, **rule):
    def make(dtype, batch):
        return gengs.truncate(build(*(numbers(value, dtype, batch) for value in values)), **rule)

    return make


LAWS = {
    "even atoms": finite([0.0, 1.0, 2.0, 3.0]),
    "uneven atoms": finite([-1.0, 0.5, 2.0, 5.0]),
    "atoms out of order": finite([3.0, -1.0, 7.0, 0.0]),
    "a forbidden atom": finite([0.0, 1.0, 2.0, 3.0], logits=[0.3, -torch.inf, 0.8, 0.1]),
    "one atom": finite([2.0], logits=[0.7]),
    "vectors": finite(PAIRS, 1),
    "matrices": finite(torch.arange(16.0).reshape(4, 2, 2).tolist(), 2),
    "cut poisson": cut(Poisson, 2.5, level=9),
    "poisson between": cut(Poisson, 9.5, low=5, high=14),
    "cut geometric": cut(Geometric, 0.4, level=12),
    "cut binomial": cut(lambda p: Binomial(torch.full_like(p, 7), p), 0.3),
    "cut negative binomial": cut(NegativeBinomial, 2.5, 0.4, level=10),
    "cut bernoulli": cut(Bernoulli, 0.3),
    "cut categorical": cut(lambda p: Categorical(p), [0.1, 0.2, 0.7]),
    "cut one-hot": cut(lambda p: OneHotCategorical(p), [0.1, 0.2, 0.7]),
    "cut multinomial": cut(lambda p: Multinomial(3, p), [0.1, 0.2, 0.7]),
    "cut skellam": cut(gengs.Skellam, 3.0, 1.5, low=-5, high=8),
    "cut mixture": cut(
        lambda w, r: MixtureSameFamily(Categorical(w), Poisson(r)), [0.4, 0.6], [1.0, 6.0], level=12
    ),
    "skellam": lambda dtype, batch: gengs.Skellam(
        numbers(3.0, dtype, batch), numbers(1.5, dtype, batch)
    ),
    "one-hot logits": lambda dtype, batch: gengs.OneHot(
        logits=numbers([0.1, -0.2, 0.7], dtype, batch)
    ),
    "relaxed": lambda dtype, batch: gengs.Relaxed(0.5, finite(PAIRS, 1)(dtype, batch)),
}
DENSITIES = {"relaxed"}
TABLES = {name for name in LAWS if name not in {"skellam", "relaxed"}}
NUMBERS = sorted(
    TABLES - {"vectors", "matrices", "one-hot logits", "cut one-hot", "cut multinomial"},
    key=list(LAWS).index,
)
WITH_LOG_PROB = list(LAWS)
