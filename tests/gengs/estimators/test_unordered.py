from itertools import permutations

import pytest
import torch
from mean_gradient import FEW, TWO_LAYERS, assert_same_mean, assert_unbiased, two_layers
from torch.distributions import Categorical, Independent, OneHotCategorical

from gengs import Finite
from gengs.estimators import Exact, UnOrd
from gengs.estimators.unordered import unordered_weights

DOUBLE = torch.float64


@pytest.mark.parametrize("factors", [1, 3])
@pytest.mark.parametrize("law", FEW)
def test_unbiased(law, factors):
    assert_unbiased(UnOrd(3), law, factors)


@pytest.mark.parametrize("law", ["poisson", "implicit"])
@pytest.mark.parametrize("estimator", [UnOrd(2), UnOrd(3, baseline=False), UnOrd(1, False)])
def test_other_forms_are_unbiased(estimator, law):
    assert_unbiased(estimator, law, 3)


def test_two_layers_and_a_learned_cost():
    assert_same_mean(UnOrd(3), two_layers, TWO_LAYERS)


def set_probability(q, total):
    """Of drawing this set without replacement from a law with this total mass, by its orders."""
    whole = 0.0
    for order in permutations(q):
        left, p = total, 1.0
        for x in order:
            p, left = p * x / left, left - x
        whole += p
    return whole


@pytest.mark.parametrize("k", [2, 3, 5])
def test_weights_are_the_ratios_of_their_definition(k):
    q = (torch.rand(k, dtype=DOUBLE) * 0.15).tolist()
    weight, others = unordered_weights(torch.tensor(q).double().log(), torch.tensor(False))
    everything = set_probability(q, 1.0)
    for s in range(k):
        without = [x for i, x in enumerate(q) if i != s]
        mass = set_probability(without, 1 - q[s])
        assert weight[s].item() == pytest.approx(q[s] * mass / everything, rel=1e-6)
        for t in range(k):
            if t == s:
                assert others[s, s].item() == pytest.approx(q[s], rel=1e-6)
                continue
            left = [x for i, x in enumerate(q) if i not in (s, t)]
            ratio = set_probability(left, 1 - q[s] - q[t]) / mass
            assert others[s, t].item() == pytest.approx(q[t] * ratio, rel=1e-6)


@pytest.mark.parametrize("k", [2, 4, 7, 10, 30, 100])
@pytest.mark.parametrize("level", [0.0, -5.0, -100.0, -1500.0])
def test_weights_sum_to_one(k, level):
    log_q = torch.randn(20, k, dtype=DOUBLE) * 3
    log_q = log_q.log_softmax(-1) + level
    weight, others = unordered_weights(log_q, torch.full((20,), level == 0.0))
    torch.testing.assert_close(weight.sum(-1), torch.ones(20, dtype=DOUBLE), rtol=0, atol=1e-9)
    torch.testing.assert_close(others.sum(-1), torch.ones(20, k, dtype=DOUBLE), rtol=0, atol=1e-9)


def test_exact_once_every_outcome_is_in_the_set():
    logits = torch.randn(5, 2, 3, dtype=DOUBLE, requires_grad=True)
    q = Independent(Categorical(logits=logits), 1)

    def cost(z):
        return torch.sin(z.sum(-1) + z[..., 0])

    wanted = Exact().expect(cost, q)
    for estimator in (UnOrd(9), UnOrd(20), UnOrd(9, baseline=False)):
        found = estimator.expect(cost, q)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(
            *(torch.autograd.grad(x.sum(), logits, retain_graph=True)[0] for x in (found, wanted))
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vector_atoms_shapes_and_a_cost_without_gradient(dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)
    q = Independent(OneHotCategorical(logits=logits), 1)
    value = UnOrd(4).expect(lambda z: (z.argmax(-1) > 1).sum(-1).to(dtype), q)
    assert value.shape == (2, 3)
    assert value.dtype == dtype
    value.sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_point_masses_and_long_vectors_give_no_nan():
    sure = torch.tensor([[0.0, -200.0, -300.0]] * 2, requires_grad=True)
    UnOrd(5).expect(lambda z: z.sum(-1), Independent(Categorical(logits=sure), 1)).backward()
    assert torch.isfinite(sure.grad).all()
    long = torch.randn(3, 200, 12, requires_grad=True)
    UnOrd(5).expect(lambda z: z.sum(-1), Independent(Categorical(logits=long), 1)).sum().backward()
    assert torch.isfinite(long.grad).all()
    one = torch.zeros(1, requires_grad=True)  # a single outcome: nothing to estimate
    UnOrd(2).expect(torch.square, Finite(torch.ones(1), one)).backward()
    assert one.grad == 0


def test_a_baseline_needs_two():
    with pytest.raises(ValueError, match=r"UnOrd.* at least 2.* `samples`.* 1"):
        UnOrd(1)
    assert UnOrd(6).evaluations == 6
