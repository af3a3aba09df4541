"""Every record against enumeration: the mid rule and the differences, in every parameter."""

import pytest
import scipy.stats
import torch
from laws import LAWS
from torch.distributions import Poisson

import gengs
from gengs.lab.testing import check_law
from gengs.laws.law import records

# one has no sample to compare with, the other atoms that copies of it share
WHOLE = [law for law in LAWS if law.name not in ("own-pmf", "learned-atoms")]


@pytest.mark.parametrize("law", WHOLE, ids=lambda law: law.name)
def test_draws_and_edges_are_those_of_the_probabilities(law):
    """4,000 gradients: an error of 10 % of their standard deviation is found; 1e-6 false alarms."""
    tensors = law.tensors(torch.float64, requires_grad=True)
    check_law(law.build(*tensors), draws=4_000)


def test_the_kit_finds_a_wrong_rate():
    class Photons(Poisson):
        def sample(self, sample_shape=torch.Size()):
            return super().sample(sample_shape)

    @gengs.register(Photons)
    class PhotonsLaw(type(gengs.law_of(Poisson(1.0)))):
        @property
        def rates(self):
            up, below = super().rates["rate"]
            return {"rate": (up, lambda z, rate: 0.8 * below(z, rate))}

    rate = torch.tensor([0.7, 3.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="mid rule"):
        check_law(Photons(rate), draws=4_000)


def test_names_on_the_command_line_are_used_once():
    specs = {record.spec for record in records() if record.spec is not None}
    names = [spec.name for spec in specs]
    assert len(names) == len(set(names)) and {"poisson", "binomial", "skellam"} <= set(names)


def test_only_distributions_are_registered():
    with pytest.raises(TypeError, match=r"register expects classes.* 3"):
        gengs.register(3)(gengs.Law)


@pytest.mark.parametrize(
    "q",
    [
        torch.distributions.Multinomial(3, torch.ones(3)),
        gengs.Subset(2, logits=torch.zeros(4)),
        gengs.PlackettLuce(logits=torch.zeros(4)),
    ],
    ids=lambda q: type(q).__name__,
)
def test_vectors_have_no_antithetic_draws(q):
    with pytest.raises(TypeError, match=f"{type(q).__name__} have none; draw independent"):
        gengs.rsample(q, (2,), antithetic=True)


@pytest.mark.parametrize("law", [law for law in LAWS if law.scipy], ids=lambda law: law.name)
def test_quantiles_are_scipys(law):
    u = torch.linspace(0.003, 0.997, 41, dtype=torch.float64)
    record = gengs.law_of(law.build(*law.tensors(torch.float64)))
    assert torch.equal(record.quantile(u), torch.from_numpy(law.reference.ppf(u.numpy())))


def test_quantiles_of_a_heavy_tail():
    r, p = torch.tensor(0.01, dtype=torch.float64), torch.tensor(0.99, dtype=torch.float64)
    u = torch.tensor([0.5, 0.97, 0.999, 1 - 1e-9], dtype=torch.float64)
    found = gengs.law_of(torch.distributions.NegativeBinomial(r, p)).quantile(u)
    assert torch.equal(found, torch.from_numpy(scipy.stats.nbinom(0.01, 0.01).ppf(u.numpy())))


def test_only_a_record_is_registered():
    before = type(gengs.law_of(Poisson(torch.tensor(1.0))))
    with pytest.raises(TypeError, match=r"expects a subclass of gengs\.Law as record"):
        gengs.register(Poisson)(object)
    with pytest.raises(TypeError, match="expects classes of distributions, but got 3"):
        gengs.register(3)
    assert type(gengs.law_of(Poisson(torch.tensor(1.0)))) is before
