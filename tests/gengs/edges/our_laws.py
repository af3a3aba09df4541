"""Every kind of law that the library makes, by name, for the generic tests.

Most are those of ``tests/laws.py``, on their tables; beside them, tables of unusual shapes.
"""

import torch
from laws import LAWS as ALL
from laws import LOGITS, PAIRS

import gengs

FLOAT, DOUBLE = torch.float32, torch.float64


def numbers(values, dtype, batch):
    tensor = torch.tensor(values, dtype=dtype)
    return tensor.expand((*batch, *tensor.shape)).clone()


def finite(atoms, event_dim=0, logits=LOGITS):
    def make(dtype, batch):
        values = torch.as_tensor(atoms, dtype=dtype)
        return gengs.Finite(values, logits=numbers(logits, dtype, batch), event_dim=event_dim)

    return make


def listed(name):
    """A law of the list, on its table."""
    (law,) = (one for one in ALL if one.name == name)
    return lambda dtype, batch: law.finite(*law.tensors(dtype, batch=batch))


LAWS = {
    "even atoms": finite([0.0, 1.0, 2.0, 3.0]),
    "uneven atoms": finite([-1.0, 0.5, 2.0, 5.0]),
    "atoms out of order": finite([3.0, -1.0, 7.0, 0.0]),
    "a forbidden atom": finite([0.0, 1.0, 2.0, 3.0], logits=[0.3, -torch.inf, 0.8, 0.1]),
    "one atom": finite([2.0], logits=[0.7]),
    "vectors": finite(PAIRS, 1),
    "matrices": finite(torch.arange(16.0).reshape(4, 2, 2), 2),
    "cut poisson": listed("poisson"),
    "poisson between": listed("poisson-window"),
    "cut geometric": listed("geometric"),
    "cut binomial": listed("binomial"),
    "cut negative binomial": listed("negative-binomial"),
    "cut bernoulli": listed("bernoulli"),
    "cut categorical": listed("categorical"),
    "cut one-hot": listed("one-hot"),
    "cut multinomial": listed("multinomial"),
    "cut skellam": listed("skellam"),
    "cut mixture": listed("mixture"),
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
