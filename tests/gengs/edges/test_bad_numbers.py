"""NaN, infinite, negative or empty probabilities never become a plausible law."""

import pytest
import torch
from torch import inf, nan
from torch.distributions import Binomial, Categorical, Geometric, NegativeBinomial, Poisson

import gengs

ATOMS = torch.tensor([0.0, 1.0, 2.5])
BAD_PROBS = {
    "one NaN": [nan, 2.0, 1.0],
    "all NaN": [nan, nan, nan],
    "infinite": [inf, 1.0, 1.0],
    "negative": [-0.1, 0.6, 0.5],
    "all zero": [0.0, 0.0, 0.0],
    "one bad row of two": [[0.2, 0.3, 0.5], [0.2, nan, 0.5]],
    "one empty row of two": [[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]],
}
BAD_LOGITS = {
    "one NaN": [nan, 2.0, 1.0],
    "all NaN": [nan, nan, nan],
    "infinite": [inf, 1.0, 1.0],
    "all forbidden": [-inf, -inf, -inf],
    "one bad row of two": [[0.2, 0.3, 0.5], [0.2, nan, 0.5]],
}
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)


@types
@pytest.mark.parametrize("bad", BAD_PROBS.values(), ids=list(BAD_PROBS))
def test_bad_probabilities_raise(bad, dtype):
    with pytest.raises(ValueError, match="probs"):
        gengs.Finite(ATOMS, probs=torch.tensor(bad, dtype=dtype))


@types
@pytest.mark.parametrize("bad", BAD_LOGITS.values(), ids=list(BAD_LOGITS))
def test_bad_logits_raise(bad, dtype):
    with pytest.raises(ValueError, match="logits"):
        gengs.Finite(ATOMS, logits=torch.tensor(bad, dtype=dtype))


@pytest.mark.parametrize("how", ["probs", "logits"])
def test_without_validation_nan_spreads(how):
    bad = torch.tensor([[nan, 2.0, 1.0], [0.2, 0.3, 0.5]])
    law = gengs.Finite(ATOMS, **{how: bad}, validate_args=False)
    assert law.probs[0].isnan().all()
    assert law.mean[0].isnan() and law.mean[1].isfinite()
    assert law.entropy()[0].isnan()


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda x: Poisson(x, validate_args=False), "rate"),
        (lambda x: Geometric(x, validate_args=False), "probs"),
        (lambda x: Binomial(3, x, validate_args=False), "probs"),
        (lambda x: NegativeBinomial(2.0, x, validate_args=False), "probs"),
        (lambda x: NegativeBinomial(x, torch.full_like(x, 0.3), validate_args=False), "total"),
        (lambda x: gengs.Skellam(x, torch.ones_like(x), validate_args=False), "rate_up"),
    ],
    ids=[
        "poisson",
        "geometric",
        "binomial",
        "negative binomial p",
        "negative binomial r",
        "skellam",
    ],
)
@pytest.mark.parametrize("bad", [nan, inf, -1.0])
def test_a_law_with_bad_parameters_is_not_cut(build, name, bad):
    with pytest.raises(ValueError, match=name):
        gengs.truncate(build(torch.tensor([0.4, bad])), low=0, high=4)


def test_bad_parameters_reach_no_estimate():
    rate = torch.tensor([1.0, nan], requires_grad=True)
    for kind in (gengs.Exact, gengs.GenGS, gengs.UnOrd):
        with pytest.raises(ValueError, match="rate"):
            kind().expect(lambda z: z.square(), Poisson(rate, validate_args=False))


def test_a_mixture_with_bad_weights_is_not_cut():
    weights = Categorical(torch.tensor([0.5, 0.5]))
    mixture = torch.distributions.MixtureSameFamily(
        weights, Poisson(torch.tensor([1.0, nan]), validate_args=False), validate_args=False
    )
    with pytest.raises(ValueError, match=r"MixtureSameFamily|rate|NaN|finite"):
        gengs.truncate(mixture, 6)


def test_draws_with_a_bad_number_of_trials_raise():
    r = torch.tensor(nan, requires_grad=True)
    for total in (r, r.detach()):
        with pytest.raises(RuntimeError, match="Poisson rate"):
            gengs.rsample(NegativeBinomial(total, torch.tensor(0.5), validate_args=False))
