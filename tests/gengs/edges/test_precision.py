"""Which type comes back from what: counts are drawn in float32 at least, whatever the parameters.

bfloat16 tells 256 from 257 no more, and float16 no number from 65,520 on from infinity. So tables,
draws and values are wider than such parameters; gradients come back in the parameters' own type,
and so do vectors of 0 and 1.
"""

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Independent,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)

import gengs
from gengs.estimators import ALL

WIDE = {
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}
types = pytest.mark.parametrize("dtype", WIDE, ids=lambda dtype: str(dtype)[6:])
half = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
named = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)

LAWS = {
    "poisson": (2.5, lambda p: Poisson(p, validate_args=False)),
    "bernoulli": (0.3, lambda p: Bernoulli(p, validate_args=False)),
    "binomial": (0.3, lambda p: Binomial(5, p, validate_args=False)),
    "geometric": (0.4, lambda p: Geometric(p, validate_args=False)),
    "negative binomial": (0.4, lambda p: NegativeBinomial(3, p, validate_args=False)),
    "categorical": ([0.25, 0.25, 0.5], lambda p: Categorical(p, validate_args=False)),
    "one-hot": ([0.25, 0.25, 0.5], lambda p: OneHotCategorical(p, validate_args=False)),
    "multinomial": ([0.25, 0.25, 0.5], lambda p: Multinomial(3, p, validate_args=False)),
    "table": ([0.0, 1.0, 0.5], lambda t: gengs.Finite(torch.arange(3), logits=t)),
}
# vectors of 0 and 1
ZERO_ONE = {
    "one-hot": LAWS["one-hot"],
    "logits": ([0.0, 1.0, 0.5], lambda t: gengs.OneHot(t)),
    "probs": ([0.25, 0.25, 0.5], lambda p: gengs.OneHot(probs=p)),
    "subset": ([0.0, 1.0, 0.5], lambda t: gengs.Subset(2, logits=t)),
    "order": ([0.0, 1.0, 0.5], lambda t: gengs.PlackettLuce(logits=t)),
    "first two": ([0.0, 1.0, 0.5], lambda t: gengs.PlackettLuce(logits=t, k=2)),
}


def made(name, dtype, batch=(4,)):
    value, build = (LAWS | ZERO_ONE)[name]
    p = torch.tensor(value).expand(*batch, *torch.tensor(value).shape)
    p = p.to(dtype).requires_grad_()
    return build(p), p


def values_of(name, dtype):
    """The type of values: that of a table's atoms, which are integers here, in the default type."""
    if name in ZERO_ONE:  # of 0 and 1, which every type holds
        return dtype
    return torch.float32 if name == "table" else WIDE[dtype]


@types
@pytest.mark.parametrize("name", LAWS)
def test_rsample(name, dtype):
    law, p = made(name, dtype)
    z = gengs.rsample(law)
    assert z.dtype == values_of(name, dtype)
    (found,) = torch.autograd.grad(z.square().sum(), p)
    assert found.dtype == dtype and found.isfinite().all()


@types
@pytest.mark.parametrize("name", LAWS)
def test_a_truncation_and_its_relaxation(name, dtype):
    law, p = made(name, dtype)
    known = law.event_shape or name == "table"
    table = law if name == "table" else gengs.truncate(law, **{} if known else {"level": 9})
    assert table.sample().dtype == (torch.float32 if name == "table" else WIDE[dtype])
    z = gengs.gumbel_relax(law, 0.5)
    assert z.dtype == (dtype if name in ZERO_ONE else WIDE[dtype])
    assert torch.autograd.grad(z.square().sum(), p)[0].dtype == dtype


RULES = {
    "own": {},
    "weight": {"weight": 0.3},
    "relaxed": {"by": gengs.GenGS(0.5)},
    "hard": {"by": gengs.GenGS(0.5, hard=True)},
    "mid": {"by": gengs.MidCDF()},
    "mean": {"by": gengs.StraightThroughMean()},
}


@half
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ZERO_ONE)
def test_vectors_of_0_and_1_have_the_type_of_their_logits(name, rule, dtype):
    """As those of ``F.gumbel_softmax``, with a gradient close to that in float32."""
    if rule in ("weight", "mean") and name in ("subset", "order", "first two")[rule == "mean" :]:
        return  # which have no such rule
    worth = torch.tensor([0.5, -1.0, 2.0])
    found = []
    for kind in (dtype, torch.float32):
        p = made(name, dtype)[1].detach().to(kind).requires_grad_()
        torch.manual_seed(0)
        z = gengs.rsample(Independent(ZERO_ONE[name][1](p), 1), (100,), **RULES[rule])
        assert z.dtype == kind
        value = (z @ worth.to(kind)).float()
        found.append(torch.autograd.grad(value.square().mean(), p)[0])
    assert found[0].dtype == dtype
    assert (found[0].float() - found[1]).norm() < 0.02 * found[1].norm()


@half
@pytest.mark.parametrize("name", ZERO_ONE)
def test_a_cost_sees_vectors_of_0_and_1_wide(name, dtype):
    for estimator in (gengs.RLOO(4), gengs.MidCDF(), gengs.FiniteDifference(2), gengs.GenGS(0.5)):
        (law, p), seen = made(name, dtype), []
        value = estimator.expect(
            lambda z, seen=seen: seen.append(z.dtype) or z.flatten(2).square().sum(-1), law
        )
        assert set(seen) == {torch.float32}
        assert torch.autograd.grad(value.sum(), p)[0].dtype == dtype


@types
@named
def test_every_estimator(kind, dtype):
    law, p = made("poisson", dtype)
    seen = []
    value = kind().expect(lambda z: seen.append(z.dtype) or z.square().sum(-1), Independent(law, 1))
    assert set(seen) == {WIDE[dtype]} and value.dtype == WIDE[dtype]
    (found,) = torch.autograd.grad(value, p)
    assert found.dtype == dtype and found.isfinite().all()


@half
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [gengs.RLOO, gengs.MidCDF, gengs.FiniteDifference, gengs.UnOrd])
def test_large_counts_are_counts(kind, dtype, training):
    """3,000 is a multiple of 8 or 16 in half precision; its counts are not."""
    rate = torch.full((20,), 3000.0, dtype=dtype, requires_grad=True)
    seen = []
    law = Poisson(rate, validate_args=False)
    kind().train(training).expect(lambda z: seen.append(z) or 0 * z, law)
    z = torch.cat([part.flatten() for part in seen])
    assert (z == z.round()).all()
    assert (z % 8 != 0).any()


@half
def test_draws_are_wide(dtype):
    rate = torch.full((200,), 3000.0, dtype=dtype, requires_grad=True)
    z = gengs.rsample(Poisson(rate, validate_args=False)).detach()
    assert z.dtype == torch.float32 and (z % 8 != 0).float().mean() > 0.7
    assert (z.mean() - rate.detach().float().mean()).abs() < 6 * (3000 / 200) ** 0.5


def test_a_rate_beyond_what_torch_draws():
    """torch's own draws have a wrong variance there, and from 2⁶³ on they are negative."""
    for rate in (1e13, 1e16, 1e19, 1e30):
        r = torch.full((1000,), rate, dtype=torch.float64, requires_grad=True)
        z = gengs.rsample(Poisson(r))
        assert z.isfinite().all() and (z > 0).all()
        off = (z.detach() - rate) / rate**0.5
        # 6 standard errors of the mean and of the variance: 4e-9
        assert off.mean().abs() < 6 / 1000**0.5 and (off.var() - 1).abs() < 6 * (2 / 1000) ** 0.5
        (found,) = torch.autograd.grad(z.sum(), r)
        torch.testing.assert_close(found, torch.ones_like(found), rtol=1e-6, atol=0)


def test_counts_made_of_poissons_beyond_what_torch_draws():
    r, half_p = torch.full((1000,), 1e20, dtype=torch.float64), torch.tensor(0.5)
    for q in (NegativeBinomial(r, half_p.to(r)), gengs.Skellam(r, torch.ones_like(r))):
        off = (gengs.law_of(q).draw(torch.Size()) - q.mean) / q.stddev
        assert off.mean().abs() < 6 / 1000**0.5 and (off.var() - 1).abs() < 6 * (2 / 1000) ** 0.5


@half
def test_arrival_times(dtype):
    rate = torch.full((4,), 3.0, dtype=dtype, requires_grad=True)
    z = gengs.rsample(Poisson(rate, validate_args=False), by=gengs.ArrivalTimes())
    assert z.dtype == torch.float32
    assert torch.autograd.grad(z.sum(), rate)[0].dtype == dtype
    table = gengs.truncate(Poisson(rate, validate_args=False), 12)
    with pytest.raises(TypeError, match="finitely many atoms"):
        gengs.rsample(table, by=gengs.ArrivalTimes())


# --------------------------------------------------------------------------------------- autocast


@named
def test_autocast(kind):
    """A decoder in bfloat16; draws, tables and gradients stay in float32."""
    rate = torch.full((4, 3), 2.5, requires_grad=True)
    decoder = torch.nn.Linear(3, 1)
    estimator = kind()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = Independent(Poisson(rate), 1)
        value = estimator.expect(lambda z: decoder(z).squeeze(-1).float().square(), q)
    assert value.dtype == torch.float32
    value.sum().backward()
    assert rate.grad.dtype == torch.float32 and rate.grad.isfinite().all()


def test_autocast_rounds_what_a_layer_sees():
    """A table's product with its atoms is taken in their own type: 257 stays 257."""
    logits = torch.tensor([-50.0, 50.0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = gengs.Finite(torch.tensor([0.0, 257.0]), logits=logits)
        assert q.mean == 257 and gengs.gumbel_relax(q, 0.1) == 257
