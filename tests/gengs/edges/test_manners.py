"""A law behaves as torch's distributions do: copies, prints, errors, derivatives."""

import copy
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from reference import binomial, geometric, negative_binomial, poisson
from torch import nn
from torch.distributions import Binomial, Geometric, NegativeBinomial, Poisson

import gengs

CUTS = {
    "poisson": (lambda x: Poisson(x, validate_args=False), 2.5, lambda x: poisson(x), "rate"),
    "geometric": (lambda x: Geometric(x, validate_args=False), 0.4, geometric, "probs"),
    "binomial": (
        lambda x: Binomial(torch.tensor(6.0), x, validate_args=False),
        0.3,
        lambda x: binomial(x, 6),
        "probs",
    ),
    "negative binomial": (
        lambda x: NegativeBinomial(torch.tensor(2.5).to(x), x, validate_args=False),
        0.4,
        lambda x: negative_binomial(x, 2.5),
        "probs",
    ),
}
# forward mode of lgamma is a decomposition that torch compiles the old way
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
cuts = pytest.mark.parametrize(("build", "at", "table", "name"), CUTS.values(), ids=list(CUTS))


def lumped(row, n=5):
    return np.append(row[: n - 1], row[n - 1 :].sum())


@cuts
@pytest.mark.parametrize("transform", ["jacfwd", "jacrev"])
def test_the_derivative_of_a_cut_table_in_both_modes(build, at, table, name, transform):
    def probs(x):
        return gengs.truncate(build(x), 5, validate_args=False).probs

    x = torch.tensor(at, dtype=torch.float64)
    found = getattr(torch.func, transform)(probs)(x)
    wanted = lumped(table(at).slopes[name])
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-9)


@cuts
def test_second_derivatives_of_a_cut_table(build, at, table, name):
    def mean(x):
        return gengs.truncate(build(x), 5, validate_args=False).mean

    x = torch.tensor(at, dtype=torch.float64)
    forward = torch.func.jacfwd(torch.func.jacrev(mean))(x)
    step = 1e-5
    ends = [table(at + s * step).slopes[name] for s in (1, -1)]
    wanted = (lumped(ends[0]) - lumped(ends[1])) @ np.arange(5) / (2 * step)
    np.testing.assert_allclose(forward.numpy(), wanted, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@cuts
def test_a_traced_table_follows_new_parameters(build, at, table, name):
    def probs(x):
        return gengs.truncate(build(x), 5, validate_args=False).probs

    traced = torch.jit.trace(probs, torch.tensor(at, dtype=torch.float64), check_trace=False)
    found = traced(torch.tensor(0.8 * at, dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), lumped(table(0.8 * at).probs), atol=1e-9)


LAWS = {
    "finite": lambda x: gengs.Finite(torch.arange(3.0), logits=x.expand(3) * torch.arange(3.0)),
    "a parameter itself": lambda x: gengs.Finite(
        torch.arange(3.0), logits=nn.Parameter(torch.tensor([0.1, 0.5, -0.3]))
    ),
    "cut poisson": lambda x: gengs.truncate(Poisson(x), 6),
    "cut skellam": lambda x: gengs.truncate(gengs.Skellam(x, torch.tensor(2.0)), low=-4, high=4),
    "skellam": lambda x: gengs.Skellam(x, torch.tensor(2.0)),
    "relaxed": lambda x: gengs.Relaxed(0.5, gengs.truncate(Poisson(x), 6)),
    "independent": lambda x: torch.distributions.Independent(
        gengs.truncate(Poisson(x.expand(2)), 6), 1
    ),
}
laws = pytest.mark.parametrize("build", LAWS.values(), ids=list(LAWS))


@laws
@pytest.mark.parametrize("asked", [False, True])
def test_a_law_on_a_parameter_is_copied(build, asked):
    law = build(nn.Parameter(torch.tensor(1.3)))
    value = law.sample()
    before = law.log_prob(value) if asked else None
    twin = copy.deepcopy(law)
    torch.testing.assert_close(twin.log_prob(value), law.log_prob(value))
    assert twin.batch_shape == law.batch_shape and twin.event_shape == law.event_shape
    assert before is None or torch.equal(before, law.log_prob(value))


@laws
def test_a_law_is_pickled(build):
    law = build(torch.tensor(1.3))
    value = law.sample()
    twin = pickle.loads(pickle.dumps(law))  # noqa: S301 (our own bytes)
    torch.testing.assert_close(twin.log_prob(value), law.log_prob(value))


@laws
def test_support_prints_its_name(build):
    law = build(torch.tensor(1.3))
    assert re.match(r"[A-Z]\w{2,}", repr(law.support).lstrip("_")), repr(law.support)
    assert repr(law).startswith(type(law).__name__)


PAIRS = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])


def vectors(batch=()):
    return gengs.Finite(PAIRS, logits=torch.zeros(*batch, 3), event_dim=1)


@pytest.mark.parametrize("method", ["cdf", "icdf"])
def test_vectors_have_no_cdf_as_in_torch(method):
    with pytest.raises(NotImplementedError):
        getattr(vectors(), method)(torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize(
    ("law", "value"),
    [
        (vectors(), torch.zeros(3)),
        (vectors(), torch.zeros(())),
        (vectors((4,)), torch.zeros(4)),
        (vectors((4,)), torch.zeros(3, 2)),
        (gengs.Finite(torch.arange(3.0), logits=torch.zeros(4, 3)), torch.zeros(3)),
        (gengs.truncate(Poisson(torch.ones(4)), 6), torch.zeros(5)),
    ],
    ids=["width", "number", "batch for event", "batch of vectors", "batch", "cut"],
)
def test_a_value_of_the_wrong_shape_is_a_value_error(law, value):
    with pytest.raises(ValueError, match=r"shape|size|broadcast"):
        law.log_prob(value)


def test_vector_atoms_without_event_dim_name_it():
    with pytest.raises(ValueError, match="event_dim=1"):
        gengs.Finite(torch.eye(10), logits=torch.zeros(100, 30, 10))


def measurement():
    rate = torch.tensor(2.0, requires_grad=True)
    law = gengs.truncate(Poisson(rate), 6)
    return gengs.lab.measure(lambda z: z.square(), law, [gengs.RLOO(2)], gradients=20)


@pytest.mark.parametrize(
    ("missing", "use", "extra"),
    [
        ("matplotlib", lambda: measurement().plot(), "apps"),
        ("pandas", lambda: measurement().to_dataframe(), "apps"),
        ("pyro", lambda: gengs.pyro, "pyro"),
    ],
    ids=["matplotlib", "pandas", "pyro"],
)
def test_a_missing_package_names_its_extra(missing, use, extra, monkeypatch):
    gone = [name for name in sys.modules if name.split(".")[0] == missing]
    for name in {missing, *gone}:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("gengs.integrations")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(gengs), "pyro", raising=False)
    with pytest.raises(ImportError, match=re.escape(f"gengs[{extra}]")):
        use()
