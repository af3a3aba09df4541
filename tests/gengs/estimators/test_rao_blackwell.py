import pytest
import torch
from mean_gradient import FEW, TWO_LAYERS, assert_same_mean, assert_unbiased, two_layers
from torch.distributions import Categorical, Independent, OneHotCategorical, Poisson

from gengs import truncate
from gengs.estimators import REINFORCE, RLOO, DetRB, Exact, StoRB, UnOrd

BOTH = [DetRB, StoRB]


@pytest.mark.parametrize("factors", [1, 3])
@pytest.mark.parametrize("law", FEW)
@pytest.mark.parametrize("kind", BOTH)
def test_unbiased(kind, law, factors):
    assert_unbiased(kind(3), law, factors)


@pytest.mark.parametrize("law", ["poisson", "implicit"])
@pytest.mark.parametrize("estimator", [DetRB(2, baseline=True), StoRB(2, baseline=True), StoRB(1)])
def test_other_forms_are_unbiased(estimator, law):
    assert_unbiased(estimator, law, 3)


@pytest.mark.parametrize("estimator", [DetRB(3), StoRB(3, baseline=True)])
def test_two_layers_and_a_learned_cost(estimator):
    assert_same_mean(estimator, two_layers, TWO_LAYERS)


@pytest.mark.parametrize("kind", BOTH)
def test_exact_once_every_outcome_is_summed(kind):
    logits = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    q = Independent(Categorical(logits=logits), 1)

    def cost(z):
        return torch.sin(z.sum(-1) + z[..., 0])

    wanted = Exact().expect(cost, q)
    for k in (9, 10, 20):
        found = kind(k, baseline=True).expect(cost, q)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(
            *(torch.autograd.grad(x.sum(), logits, retain_graph=True)[0] for x in (found, wanted))
        )


@pytest.mark.parametrize("kind", BOTH)
def test_one_outcome_is_a_plain_draw(kind):
    """Its cost, and its cost times the gradient of its log-probability."""
    logits = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    q = Independent(Categorical(logits=logits), 1)
    drawn = []

    def cost(z):
        drawn.append(z)
        return torch.sin(z.sum(-1) + z[..., 0]).double()

    value = kind(1).expect(cost, q)
    z = drawn[0]  # (1, 5, 2)
    torch.testing.assert_close(value, cost(z)[0])
    torch.testing.assert_close(
        *torch.autograd.grad(value.sum(), logits, retain_graph=True),
        *torch.autograd.grad((cost(z) * q.log_prob(z)).sum(), logits),
    )


def test_known_order_of_variances():
    """Truncated Poisson(3), 12 atoms, (z - 2.6)².

    They are 30 % apart, and the error of a variance is about 2 %.
    """
    variances = []
    for estimator in (UnOrd(4), RLOO(4), DetRB(4), StoRB(4), REINFORCE()):
        rate = torch.full((20_000,), 3.0, requires_grad=True)
        estimator.expect(lambda z: (z - 2.6) ** 2, truncate(Poisson(rate), 12)).sum().backward()
        variances.append(rate.grad.var().item())
    assert variances == sorted(variances)
    assert variances[0] == pytest.approx(11.4, rel=0.1)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vector_atoms_shapes_and_a_cost_without_gradient(kind, dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)
    q = Independent(OneHotCategorical(logits=logits), 1)
    value = kind(4).expect(lambda z: (z.argmax(-1) > 1).sum(-1).to(dtype), q)
    assert value.shape == (2, 3)
    assert value.dtype == dtype
    value.sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert kind(4).eval().expect(lambda z: z.sum((-1, -2)), q).shape == (2, 3)


@pytest.mark.parametrize("kind", BOTH)
def test_point_masses_and_long_vectors_give_no_nan(kind):
    sure = torch.tensor([[0.0, -200.0, -300.0]] * 2, requires_grad=True)
    kind(5).expect(lambda z: z.sum(-1), Independent(Categorical(logits=sure), 1)).backward()
    assert torch.isfinite(sure.grad).all()
    long = torch.randn(3, 200, 12, requires_grad=True)
    q = Independent(Categorical(logits=long), 1)
    kind(5).expect(lambda z: z.sum(-1), q).sum().backward()
    assert torch.isfinite(long.grad).all()


@pytest.mark.parametrize("kind", BOTH)
def test_evaluations_are_counted(kind):
    seen = []

    def cost(z):
        seen.append(len(z))
        return z.sum(-1)

    q = Independent(Poisson(torch.ones(4, 3, requires_grad=True)), 1)
    for estimator in (kind(1), kind(5), kind(5, baseline=True)):
        seen.clear()
        estimator.expect(cost, q)
        assert sum(seen) == estimator.evaluations
    with pytest.raises(ValueError, match=f"{kind.__name__} expects a positive integer `samples`"):
        kind(0)
