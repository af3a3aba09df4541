"""The relaxation: a law on the simplex with a density, values T(y), and straight-through draws."""

import math

import numpy as np
import pytest
import scipy.integrate
import torch
from frequencies import assert_frequencies, assert_mean
from torch.distributions import Independent, Normal, Poisson, RelaxedOneHotCategorical

import gengs
from gengs.numerics.gumbel_softmax import relaxed_weights

LOGITS = torch.tensor([0.4, -1.0, 0.9])


def finite(logits=LOGITS, atoms=None):
    atoms = torch.arange(float(logits.shape[-1])) if atoms is None else atoms
    return gengs.Finite(atoms, logits=logits)


# ------------------------------------------------------------------------------------- density


@pytest.mark.parametrize("tau", [0.2, 0.7, 1.0, 3.0])
def test_density_is_torchs(tau):
    ours = gengs.Relaxed(tau, finite())
    theirs = RelaxedOneHotCategorical(torch.tensor(tau), logits=LOGITS)
    # y near a corner has few digits in float32: stay where torch's own formula is accurate
    y = torch.distributions.Dirichlet(torch.ones(3)).sample((100,))
    torch.testing.assert_close(ours.log_prob(y), theirs.log_prob(y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tau", [0.4, 1.0, 2.5])
def test_density_on_two_atoms_integrates_to_one_and_to_the_mean(tau):
    law = gengs.Relaxed(tau, finite(LOGITS[:2].double()))

    def at(logit):  # in the logit of y the density is smooth: dy = y (1 − y) dlogit
        y = torch.sigmoid(torch.tensor([-logit, logit], dtype=torch.float64))
        return y, (law.log_prob(y).exp() * y.prod()).item()

    total, _ = scipy.integrate.quad(lambda logit: at(logit)[1], -30 / tau, 30 / tau)
    assert total == pytest.approx(1, abs=1e-6)
    mean, _ = scipy.integrate.quad(lambda x: at(x)[0][1].item() * at(x)[1], -30 / tau, 30 / tau)
    assert_mean(law.rsample((100_000,))[:, 1], mean)  # 1e-6; a bias of .01 is found


def test_density_on_three_atoms_integrates_to_one():
    law = gengs.Relaxed(0.8, finite(LOGITS.double()))
    x, weight = np.polynomial.legendre.leggauss(200)
    x, weight = 14 * x, 14 * weight  # logits of y relative to the last atom
    a, b = np.meshgrid(x, x, indexing="ij")
    logits = torch.from_numpy(np.stack([a, b, np.zeros_like(a)], -1))
    density = law.log_prob_of_log(logits.log_softmax(-1)).exp()
    jacobian = logits.softmax(-1).prod(-1)  # dy = y_1 y_2 y_3 dlogits
    total = (density * jacobian * torch.from_numpy(weight[:, None] * weight)).sum().item()
    assert total == pytest.approx(1, abs=1e-3)


def test_density_of_logarithms_is_the_density():
    law = gengs.Relaxed(0.5, finite())
    y = law.rsample((20,))
    torch.testing.assert_close(law.log_prob_of_log(y.log()), law.log_prob(y))


def test_points_off_the_simplex_are_refused():
    with pytest.raises(ValueError, match="Simplex"):
        gengs.Relaxed(0.5, finite()).log_prob(torch.tensor([0.5, 0.2, 0.1]))


# --------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("tau", [1e-30, 1e-3, 0.5, 10.0])
def test_draws_lie_on_the_simplex(tau):
    y = gengs.Relaxed(tau, finite()).rsample((1000,))
    assert (y >= 0).all()
    torch.testing.assert_close(y.sum(-1), torch.ones(1000))


@pytest.mark.parametrize("tau", [1e-30, 1e-4])
def test_cold_values_are_exact_draws(tau):
    # chi-square at 1e-6; at τ = 1e-4 two atoms come within 1e-3 of each other in .1 % of the draws
    law = gengs.Relaxed(tau, finite())
    z = law.rsample_value((20_000,))
    near = (z - z.round()).abs() < 1e-3
    assert near.float().mean() > 0.998
    assert_frequencies(torch.bincount(z.round().long(), minlength=3), law.law.probs)


def test_value_is_the_weighted_sum_of_atoms():
    atoms = torch.tensor([[1.0, 2.0], [0.0, 5.0], [-1.0, 0.5]])
    law = gengs.Relaxed(0.5, gengs.Finite(atoms, logits=LOGITS, event_dim=1))
    y = law.rsample((4,))
    torch.testing.assert_close(law.value(y), y @ atoms)
    assert torch.equal(law.value(torch.eye(3)), atoms)


@pytest.mark.parametrize("temperature", [0.5, torch.tensor(0.5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_value_and_weights_come_from_the_same_noise(temperature, dtype):
    """The fast path (a plain number as temperature) and the general one agree."""
    law = gengs.Relaxed(temperature, finite(LOGITS.to(dtype), torch.arange(3).to(dtype)))
    noise = [torch.Generator().manual_seed(7) for _ in range(2)]
    value = law.rsample_value((50,), generator=noise[0])
    weights = relaxed_weights(law.logits, law.temperature, torch.Size([50]), noise[1])
    torch.testing.assert_close(value, weights @ law.atoms)


@pytest.mark.parametrize("atoms", [None, torch.tensor([0.1, 0.7, 1e3])])
def test_hard_values_are_exact_draws_with_the_relaxed_gradient(atoms):
    # chi-square at 1e-6 over 20 000 draws
    slopes = torch.randn(20_000)

    def draw(hard):
        logits = LOGITS.clone().requires_grad_()
        generator = torch.Generator().manual_seed(4)
        q = finite(logits, atoms)
        value = gengs.Relaxed(0.7, q).rsample_value((20_000,), hard=hard, generator=generator)
        (value * slopes).sum().backward()
        return q, value, logits.grad

    q, z, hard_gradient = draw(hard=True)
    index, found = q.index_of(z)
    assert found.all()  # the atom itself, to the last bit
    assert_frequencies(torch.bincount(index, minlength=3), q.probs)
    _, _, soft_gradient = draw(hard=False)
    torch.testing.assert_close(hard_gradient, soft_gradient, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("hard", [False, True])
def test_impossible_atoms_are_never_drawn_and_send_no_nan(hard):
    logits = torch.tensor([-torch.inf, 0.3, -torch.inf, -0.2], requires_grad=True)
    law = gengs.Relaxed(0.5, finite(logits, torch.tensor([1e6, 1.0, -1e6, 2.0])))
    z = law.rsample_value((1000,), hard=hard)
    assert ((z >= 1) & (z <= 2)).all()
    z.square().sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[1] != 0
    assert (logits.grad[[0, 2]] == 0).all()
    y = law.rsample((10,))
    assert torch.isfinite(law.log_prob(y)).all()


def test_density_skips_impossible_atoms():
    some = gengs.Relaxed(0.5, finite(torch.tensor([0.3, -torch.inf, -0.2])))
    only = gengs.Relaxed(0.5, finite(torch.tensor([0.3, -0.2])))
    y = torch.tensor([0.25, 0.0, 0.75])
    torch.testing.assert_close(some.log_prob(y), only.log_prob(y[[0, 2]]))


# --------------------------------------------------------------------------------- temperature


def test_batched_temperature_broadcasts_with_the_law():
    tau = torch.tensor([[1e-6], [0.5], [100.0]])  # (3, 1) beside a batch of 2
    law = gengs.Relaxed(tau, finite(LOGITS.expand(2, 3)))
    assert law.batch_shape == (3, 2)
    y = law.rsample((500,))
    assert y.shape == (500, 3, 2, 3)
    sharpest = y.amax(-1).mean((0, 2))
    assert sharpest[0] > 0.999
    assert sharpest[2] < 0.4
    assert law.log_prob(law.rsample((4,)).clamp_min(1e-30)).shape == (4, 3, 2)


def test_temperature_can_be_learned():
    def value(tau):
        generator = torch.Generator().manual_seed(11)
        q = finite(LOGITS.double(), torch.arange(3, dtype=torch.float64))
        return gengs.Relaxed(tau, q).rsample_value((5,), generator=generator)

    for tau in (torch.tensor(0.7).double(), torch.tensor([0.4, 1.3]).double()):
        assert torch.autograd.gradcheck(value, tau.requires_grad_())
        assert torch.autograd.gradgradcheck(value, tau)


def test_density_has_a_gradient_in_temperature_and_logits():
    y = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)

    def log_density(tau, logits):
        return gengs.Relaxed(tau, finite(logits)).log_prob(y)

    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_density, (tau, LOGITS.double().requires_grad_()))


# ------------------------------------------------------------------- a torch distribution like any


@pytest.mark.parametrize("sample", [(), (4,), (2, 3)])
@pytest.mark.parametrize("batch", [(), (5,), (1, 5)])
def test_shapes(sample, batch):
    law = gengs.Relaxed(0.5, finite(LOGITS.expand((*batch, 3))))
    assert law.event_shape == (3,)
    y = law.rsample(sample)
    assert y.shape == (*sample, *batch, 3)
    assert law.log_prob(y).shape == (*sample, *batch)
    assert law.rsample_value(sample).shape == (*sample, *batch)
    assert law.rsample_value(sample, hard=True).shape == (*sample, *batch)
    assert law.sample(sample).requires_grad is False
    wider = law.expand((2, *batch))
    assert wider.rsample(sample).shape == (*sample, 2, *batch, 3)
    if batch:
        assert Independent(law, len(batch)).log_prob(y).shape == sample


def test_raw_law_is_truncated_on_the_way():
    law = gengs.Relaxed(0.5, Poisson(torch.tensor([3.0, 400.0])))
    assert isinstance(law.law, gengs.Finite)
    assert (law.law.certificate.lost_mass <= 1e-6).all()
    z = law.rsample_value((2000,))
    assert (z.mean(0) - torch.tensor([3.0, 400.0])).abs().max() < 3


def test_sample_carries_no_gradient_and_rsample_does():
    law = gengs.Relaxed(0.5, finite(LOGITS.clone().requires_grad_()))
    assert law.rsample().requires_grad
    assert not law.sample().requires_grad


def test_value_of_a_law_in_half_precision_is_wide():
    law = gengs.Relaxed(0.5, finite(LOGITS.bfloat16()))
    assert law.rsample().dtype == torch.bfloat16
    assert law.rsample_value().dtype == torch.float32


def test_functional_form_is_the_class():
    q = finite()
    one, other = (torch.Generator().manual_seed(6) for _ in range(2))
    joint = Independent(gengs.Finite(q.atoms, logits=LOGITS.expand(4, 3)), 1)
    first = gengs.gumbel_relax(joint, tau=0.3, hard=True, generator=one)
    second = gengs.Relaxed(0.3, joint.base_dist).rsample_value(hard=True, generator=other)
    assert torch.equal(first, second)
    one, other = (torch.Generator().manual_seed(6) for _ in range(2))
    usual = gengs.Relaxed(1.0, q).rsample_value(generator=other)
    assert torch.equal(gengs.gumbel_relax(q, generator=one), usual)  # a temperature of 1


def test_warm_value_is_near_the_mean_of_the_atoms():
    z = gengs.Relaxed(1e4, finite()).rsample_value((10,))
    torch.testing.assert_close(z, torch.ones(10), rtol=1e-2, atol=1e-2)
    assert math.isfinite(z.sum())


def test_continuous_law_is_refused():
    with pytest.raises(TypeError, match="Normal is continuous"):
        gengs.Relaxed(0.5, Normal(0.0, 1.0))
