"""``icdf(cdf(k)) == k`` for every atom that is possible, in float32 and in float64."""

import pytest
import torch
from torch.distributions import Binomial, Geometric, NegativeBinomial, Poisson

import gengs

LAWS = {
    **{
        f"poisson({rate}), {n} atoms": lambda t, rate=rate, n=n: gengs.truncate(
            Poisson(torch.tensor(rate).to(t)), n
        )
        for rate, n in ((3.0, 12), (0.7, 6), (9.3, 30), (40.0, 80))
    },
    "geometric": lambda t: gengs.truncate(Geometric(torch.tensor(0.3).to(t)), 25),
    "binomial": lambda t: gengs.truncate(Binomial(17, torch.tensor(0.35).to(t))),
    "negative binomial": lambda t: gengs.truncate(
        NegativeBinomial(torch.tensor(2.5).to(t), torch.tensor(0.4).to(t)), 20
    ),
    "skellam": lambda t: gengs.truncate(
        gengs.Skellam(torch.tensor(3.0).to(t), torch.tensor(1.5).to(t)), low=-6, high=9
    ),
    "uneven": lambda t: gengs.Finite(
        torch.tensor([-1.0, 0.1, 0.2, 5.0]).to(t), logits=torch.tensor([0.3, -2.0, 0.4, 1.0]).to(t)
    ),
    "out of order": lambda t: gengs.Finite(
        torch.tensor([5.0, -1.0, 0.2, 0.1]).to(t), probs=torch.tensor([0.3, 0.1, 0.35, 0.25]).to(t)
    ),
    "forbidden": lambda t: gengs.Finite(
        torch.arange(6.0).to(t), probs=torch.tensor([0.0, 0.2, 0.0, 0.5, 0.3, 0.0]).to(t)
    ),
    "many": lambda t: gengs.Finite(
        torch.arange(300.0).to(t),
        logits=torch.randn(300, generator=torch.Generator().manual_seed(1)).to(t),
    ),
    "batch": lambda t: gengs.truncate(Poisson(torch.linspace(0.2, 6.0, 40).to(t)), 16),
}
laws = pytest.mark.parametrize("make", LAWS.values(), ids=list(LAWS))
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@types
@laws
def test_the_quantile_of_the_cdf_is_the_atom(make, dtype):
    law = make(torch.zeros((), dtype=dtype))
    atoms = law.enumerate_support()  # (n, *batch)
    possible = law.log_prob(atoms) > -torch.inf
    at = law.cdf(atoms)
    # an atom too small to move the sum cannot be told from the one before
    moves = (at - law.cdf(torch.nextafter(atoms, torch.full_like(atoms, -torch.inf)))) > 0
    back = law.icdf(at)
    wrong = (back != atoms) & possible & moves
    assert not wrong.any(), atoms[wrong]


@types
@laws
def test_cdf_and_icdf_rise_and_end_where_the_law_ends(make, dtype):
    law = make(torch.zeros((), dtype=dtype))
    atoms = law.enumerate_support()
    possible = law.log_prob(atoms) > -torch.inf
    batch = law.batch_shape
    last = atoms.where(possible, -torch.inf).amax(0)
    first = atoms.where(possible, torch.inf).amin(0)
    ones = torch.ones(batch, dtype=dtype)
    # up to what float64 or float32 can see of the tail
    assert (law.cdf(law.icdf(ones)) >= law.cdf(last)).all() and (law.icdf(ones) <= last).all()
    tiny = torch.full(batch, torch.finfo(dtype).tiny, dtype=dtype)
    assert (law.icdf(tiny) == first).all()
    assert ((law.cdf(last) - 1).abs() < 1e-5).all()
    assert (law.cdf(first - 1) == 0).all()
    levels = torch.linspace(0, 1, 101, dtype=dtype).reshape(-1, *[1] * len(batch))
    quantiles = law.icdf(levels.expand(101, *batch))
    assert (quantiles.diff(dim=0) >= 0).all()
    # the definition: the smallest atom whose CDF reaches the level
    assert (law.cdf(quantiles)[1:-1] >= levels[1:-1] - 4 * torch.finfo(dtype).eps).all()
