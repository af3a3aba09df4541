import pytest
import torch
from mean_gradient import assert_same_mean
from torch.distributions import Categorical, Independent, OneHotCategorical, Poisson

from gengs import Finite
from gengs.estimators import Exact, ReinMax

DOUBLE = torch.float64


def test_exact_for_quadratic_costs_of_one_hot_vectors():
    matrix = torch.randn(4, 4, dtype=DOUBLE)

    def expectation(estimator, p):
        return estimator.expect(lambda z: ((z @ matrix) * z).sum(-1), OneHotCategorical(logits=p))

    assert_same_mean(ReinMax(), expectation, torch.randn(4), 40_000)


def test_exact_for_costs_quadratic_along_each_factor():
    atoms = torch.tensor([0.0, 1.0, 2.5, 4.0], dtype=DOUBLE)

    def cost(z):
        return (z[..., 0] - 1) ** 2 * (1 + z[..., 1] ** 2) + z[..., 1] * z[..., 2]

    def expectation(estimator, p):
        return estimator.expect(cost, Independent(Finite(atoms, logits=p), 1))

    assert_same_mean(ReinMax(), expectation, torch.randn(3, 4), 40_000)


@pytest.mark.parametrize("tau", [1.0, 1.4])
def test_equals_the_published_formula(tau):
    """2 ∇π¹ - ½ ∇π on one-hot vectors, with π¹ = ½ (one-hot + softmax(θ/τ)), averaged exactly."""
    logits = torch.randn(5, dtype=DOUBLE)
    slopes = torch.randn(5, 5, dtype=DOUBLE)  # f'(e_j) for each atom j
    p, flat = logits.softmax(-1), (logits / tau).softmax(-1)

    def jacobian(w):
        return torch.diag(w) - torch.outer(w, w)

    wanted = sum(
        p[j]
        * (2 * jacobian((torch.eye(5, dtype=DOUBLE)[j] + flat) / 2) - jacobian(p) / 2)
        @ slopes[j]
        for j in range(5)
    )
    drawn = logits.expand(200_000, 5).clone().requires_grad_()

    def cost(z):  # its slope at the one-hot vector e_j is slopes[j]
        return (z * slopes[z.detach().argmax(-1)]).sum(-1)

    ReinMax(tau).expect(cost, OneHotCategorical(logits=drawn)).sum().backward()
    error = drawn.grad.std(0) / 200_000**0.5
    assert ((drawn.grad.mean(0) - wanted).abs() < 6 * error).all()


def test_one_draw_checked_by_finite_differences_of_its_surrogate():
    """With the draw fixed the gradient is that of ½ μ(θ) + ½ (z - μ) log π_z(θ)."""
    atoms = torch.tensor([0.0, 1.0, 3.0], dtype=DOUBLE)
    logits = torch.randn(3, dtype=DOUBLE, requires_grad=True)
    value = ReinMax().expect(lambda z: z**3, Finite(atoms, logits=logits))
    (found,) = torch.autograd.grad(value, logits)
    z = value.detach() ** (1 / 3)
    k = int((atoms - z).abs().argmin())
    mean = (logits.softmax(-1) @ atoms).detach()

    def surrogate(theta):
        log_pi = theta.log_softmax(-1)
        return 3 * z**2 * (log_pi.exp() @ atoms / 2 + (z - mean) * log_pi[k] / 2)

    assert torch.autograd.gradcheck(surrogate, logits)
    torch.testing.assert_close(found, torch.autograd.grad(surrogate(logits), logits)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_atoms_and_shapes_hold(dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)

    def cost(z):
        assert z.shape == (6, 2, 3, 4)
        assert (z == z.round()).all()
        return z.square().sum(-1)

    value = ReinMax(samples=6).expect(cost, Independent(Categorical(logits=logits), 1))
    assert value.shape == (2, 3)
    value.sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_raw_laws_forbidden_atoms_nesting_and_learned_costs():
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = torch.tensor(0.5, requires_grad=True)

    def cost(z1):
        inner = Categorical(logits=torch.stack([z1, -z1, 0 * z1 - torch.inf], -1))
        return ReinMax().expect(lambda z2: weight * z1 * z2 + z2**2, inner)

    ReinMax().expect(cost, Poisson(rate)).sum().backward()
    assert torch.isfinite(rate.grad).all()
    assert weight.grad is not None


def test_needs_a_gradient_and_a_good_temperature():
    q = Categorical(logits=torch.randn(3, requires_grad=True))
    with pytest.raises(TypeError, match=r"ReinMax.* differentiable"):
        ReinMax().expect(lambda z: (z.detach() > 1).float(), q)
    with pytest.raises(ValueError, match="temperature"):
        ReinMax(0.0)
    assert ReinMax(samples=3).evaluations == 3
    assert Exact().expect(torch.square, q).shape == ReinMax().expect(torch.square, q).shape
