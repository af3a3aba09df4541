"""Every law of the list, once truncated, is a law: its table, its moments and its draws agree."""

import pytest
import torch
from frequencies import assert_frequencies
from laws import LAWS
from torch.distributions import Independent

import gengs

laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def scalar(law):
    return law.finite(*law.tensors()).event_dim == 0


scalar_laws = pytest.mark.parametrize(
    "law", [law for law in LAWS if scalar(law)], ids=lambda law: law.name
)

PRECISE = ("poisson", "geometric", "bernoulli", "binomial", "negative-binomial", "implicit")


def double(law, batch=()):
    return law.finite(*law.tensors(torch.float64, batch=batch))


@laws
def test_probabilities_sum_to_one(law):
    torch.testing.assert_close(double(law, (3,)).probs.sum(-1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law.scipy is not None], ids=lambda law: law.name
)
def test_table_is_the_clipped_scipy_law(law):
    q, scipy_law = double(law), law.reference
    inside = torch.from_numpy(scipy_law.pmf(q.atoms.numpy()))
    inside[0] = scipy_law.cdf(q.atoms[0].item())
    inside[-1] = scipy_law.sf(q.atoms[-1].item() - 1)
    torch.testing.assert_close(q.probs, inside, rtol=1e-9, atol=1e-12)


@laws
def test_moments_mode_and_entropy_follow_from_the_table(law):
    q = double(law, (2,))
    atoms = q.enumerate_support()  # (n, *batch, *event)
    probs = q.probs.movedim(-1, 0).reshape(atoms.shape[:2] + (1,) * q.event_dim)
    mean = (probs * atoms).sum(0)
    torch.testing.assert_close(q.mean, mean)
    torch.testing.assert_close(q.variance, (probs * (atoms - mean) ** 2).sum(0))
    torch.testing.assert_close(q.stddev, q.variance.sqrt())
    torch.testing.assert_close(q.entropy(), -torch.xlogy(q.probs, q.probs).sum(-1))
    winner = q.probs[0].argmax()
    assert torch.equal(q.mode[0], atoms[winner, 0])


@laws
def test_log_prob_of_the_support_is_the_table(law):
    q = double(law, (2,))
    torch.testing.assert_close(q.log_prob(q.enumerate_support()).movedim(0, -1), q.logits)
    unexpanded = q.enumerate_support(expand=False)
    torch.testing.assert_close(q.log_prob(unexpanded).movedim(0, -1), q.logits)
    assert q.support.check(q.enumerate_support()).all()


@scalar_laws
def test_cdf_and_quantile_invert_each_other(law):
    q = double(law, (2,))
    atoms = q.enumerate_support()
    cdf = q.cdf(atoms)
    torch.testing.assert_close(cdf, q.probs.movedim(-1, 0).cumsum(0))
    torch.testing.assert_close(q.cdf(atoms - 0.25)[0], torch.zeros(2, dtype=torch.float64))
    assert torch.equal(q.icdf(cdf - 1e-9), atoms)
    assert torch.equal(q.icdf(torch.ones(2, dtype=torch.float64)), atoms[-1])


@laws
def test_draws_follow_the_table(law):
    # false-alarm rate 1e-6 per law; see assert_frequencies for the power at 20 000 draws
    q = law.finite(*law.tensors())
    index, found = q.index_of(q.sample((20_000,)))
    assert found.all()
    assert_frequencies(torch.bincount(index, minlength=q.num_atoms), q.probs)


@laws
def test_relaxed_winner_follows_the_table(law):
    # same rate and power: the Gumbel-max draw that a hard relaxed value is
    q = law.finite(*law.tensors())
    value = gengs.Relaxed(0.5, q).rsample_value((20_000,), hard=True)
    index, found = q.index_of(value)
    assert found.all()
    assert_frequencies(torch.bincount(index, minlength=q.num_atoms), q.probs)


@laws
def test_shapes_of_expanded_and_independent_laws(law):
    q = law.finite(*law.tensors(batch=(3,))).expand((2, 3))
    assert q.batch_shape == (2, 3)
    event = q.event_shape
    assert q.sample((5,)).shape == (5, 2, 3, *event)
    assert q.mean.shape == q.variance.shape == q.mode.shape == (2, 3, *event)
    assert q.entropy().shape == (2, 3)
    relaxed = gengs.Relaxed(0.5, q)
    assert relaxed.rsample((5,)).shape == (5, 2, 3, q.num_atoms)
    assert relaxed.rsample_value((5,)).shape == (5, 2, 3, *event)
    joint = Independent(q, 1)
    assert joint.batch_shape == (2,)
    assert joint.log_prob(joint.sample((5,))).shape == (5, 2)


@laws
def test_empty_batch_keeps_its_shape(law, torch_validation_off):
    tensors = law.tensors(batch=(0,), requires_grad=True)
    q = law.finite(*tensors)
    assert q.sample((2,)).shape == (2, 0, *q.event_shape)
    z = gengs.Relaxed(0.5, q).rsample_value((2,))
    assert z.shape == (2, 0, *q.event_shape)
    z.sum().backward()
    assert all(tensor.grad.shape == tensor.shape for tensor in tensors)


@laws
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_other_precisions_agree_with_float32(law, dtype, torch_validation_off):
    tensors = law.tensors(dtype, requires_grad=True)
    q = law.finite(*tensors)
    wide = law.finite(*(tensor.detach().float() for tensor in tensors))
    # torch normalises categories, and other people's laws take logarithms, in half precision
    loose = dtype.itemsize < 4 and not law.name.startswith(PRECISE)
    torch.testing.assert_close(q.probs.float(), wide.probs, rtol=1e-4, atol=0.02 if loose else 1e-6)
    assert abs(q.probs.sum().item() - 1) < (1e-3 if loose else 1e-6)
    assert q.atoms.dtype.itemsize >= 4
    z = gengs.Relaxed(0.5, q).rsample_value((7,))
    assert z.dtype.itemsize >= 4
    z.sum().backward()
    for tensor in tensors:
        assert tensor.grad.dtype == dtype
        assert torch.isfinite(tensor.grad).all()


@laws
def test_meta_device_gives_shapes(law, torch_validation_off):
    q = law.finite(*law.tensors(device="meta", batch=(3,)))
    z = gengs.Relaxed(0.5, q).rsample_value((2,))
    assert z.is_meta
    assert z.shape == (2, 3, *q.event_shape)
    assert q.mean.shape == (3, *q.event_shape)
