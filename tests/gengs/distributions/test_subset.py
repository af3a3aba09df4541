"""k-subsets against enumeration: every number the distribution knows, and the swap rule's mean.

Where outcomes are summed with their probabilities nothing is random, and errors are rounding.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from frequencies import assert_frequencies
from torch.distributions import Independent, kl_divergence

import gengs
from gengs.laws.law import law_of
from gengs.laws.subset_law import swaps

SIZES = [(1, 0), (1, 1), (4, 1), (4, 3), (5, 0), (5, 5), (6, 3), (7, 2), (7, 5)]
sizes = pytest.mark.parametrize(("n", "k"), SIZES)


def scores(n, seed=0, scale=1.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=generator, dtype=torch.float64)


def every(n, k):
    """All subsets, by itertools."""
    return torch.tensor(
        [[float(i in chosen) for i in range(n)] for chosen in itertools.combinations(range(n), k)],
        dtype=torch.float64,
    )


def quadratic(n, seed=1):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(size, generator=generator).double() for size in ((n, n), (n,)))
    return lambda z: ((z @ a) * z).sum(-1) / 2 + z @ b


def exact_gradient(theta, z, f):
    theta = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(((z @ theta).softmax(0) * f(z)).sum(), theta)
    return gradient


@sizes
def test_what_is_known_agrees_with_enumeration(n, k):
    theta, z = scores(n).requires_grad_(), every(n, k)
    q = gengs.Subset(k, logits=theta)
    log_p = (z @ theta).log_softmax(0)
    p = log_p.exp()
    torch.testing.assert_close(q.enumerate_support(), z)
    torch.testing.assert_close(q.log_prob(z), log_p)
    torch.testing.assert_close(q.log_partition, (z @ theta).logsumexp(0))
    torch.testing.assert_close(q.mean, p @ z)
    torch.testing.assert_close(q.variance, p @ z * (1 - p @ z))
    torch.testing.assert_close(q.entropy(), -(p * log_p).sum())
    assert torch.equal(q.mode, z[p.argmax()])
    other = scores(n, seed=2)
    log_other = (z @ other).log_softmax(0)
    divergence = kl_divergence(q, gengs.Subset(k, logits=other))
    torch.testing.assert_close(divergence, (p * (log_p - log_other)).sum())
    uniform = kl_divergence(q, gengs.Subset(k, logits=torch.zeros(n).double()))
    torch.testing.assert_close(uniform, math.log(len(z)) - q.entropy())


@sizes
def test_first_and_second_derivatives(n, k):
    theta, z = scores(n), every(n, k)

    def summed(t):
        log_p = (z @ t).log_softmax(0)
        return log_p[0] - (log_p.exp() * log_p).sum()

    def ours(t):
        q = gengs.Subset(k, logits=t)
        return q.log_prob(z[0]) + q.entropy()

    torch.testing.assert_close(torch.func.grad(ours)(theta), torch.func.grad(summed)(theta))
    hessian = torch.autograd.functional.hessian(lambda t: gengs.Subset(k, t).log_partition, theta)
    wanted = torch.autograd.functional.hessian(lambda t: (z @ t).logsumexp(0), theta)
    torch.testing.assert_close(hessian, wanted)


@sizes
def test_the_swap_rule_is_exact_for_quadratic_costs(n, k):
    theta, z, f = scores(n), every(n, k), quadratic(n)
    p = (z @ theta).softmax(0)
    each = theta.expand(len(z), n).clone().requires_grad_()
    moved = law_of(gengs.Subset(k, logits=each)).attach(z)
    assert torch.equal(moved, z)
    (gradients,) = torch.autograd.grad(f(moved).sum(), each)
    torch.testing.assert_close(p @ gradients, exact_gradient(theta, z, f))


def test_the_swap_rule_keeps_masked_elements_out():
    theta = scores(6)
    theta[[1, 4]] = -torch.inf
    z = every(6, 3)[:, :]
    z = z[(z[:, 1] + z[:, 4]) == 0]
    f, possible = quadratic(6), theta > -torch.inf
    kept = torch.where(possible, theta, 0.0)
    p = (z @ kept).softmax(0)
    each = theta.expand(len(z), 6).clone().requires_grad_()
    q = gengs.Subset(3, logits=each)
    (gradients,) = torch.autograd.grad(f(law_of(q).attach(z)).sum(), each)
    torch.testing.assert_close(p @ gradients, exact_gradient(kept, z, f) * possible)
    assert (q.sample((50,))[..., [1, 4]] == 0).all()
    assert q.log_prob(every(6, 3)[0])[0] == -torch.inf
    torch.testing.assert_close(q.mean[0], p @ z)


@pytest.mark.parametrize("number", [None, 2])
def test_real_differences_are_unbiased_for_any_cost(number):
    # false-alarm rate about 1e-6: 5.5 standard errors, for each of 6 coordinates
    torch.manual_seed(0)
    theta, z = scores(6), every(6, 3)
    rough = lambda z: (7 * z @ torch.arange(1.0, 7).double()).sin()  # noqa: E731
    p, repeats = (z @ theta).softmax(0), 2_000
    each = theta.expand(repeats, len(z), 6).clone().requires_grad_()
    draws = z.expand(repeats, *z.shape)
    there, weight = swaps(gengs.Subset(3, logits=each), draws, number)
    changed = (there - draws).abs().sum(-1)  # a sure element has no swap
    assert ((changed == 2) | ((changed == 0) if number is None else False)).all()
    loss = (weight * (rough(there) - rough(draws))).sum()
    (gradients,) = torch.autograd.grad(loss, each)
    found = (p[:, None] * gradients).sum(1)
    error = found.std(0) / repeats**0.5
    wanted = exact_gradient(theta, z, rough)
    assert ((found.mean(0) - wanted).abs() < 5.5 * error + 1e-12).all()


@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 4)])
@pytest.mark.parametrize("how", ["sample", "relaxed", "hard"])
def test_draws_follow_the_distribution(n, k, how):
    # false-alarm rate 1e-6 each; see assert_frequencies for the power at 20 000 draws
    torch.manual_seed(0)
    q, z = gengs.Subset(k, logits=scores(n)), every(n, k)
    draws = q.sample((20_000,))
    if how != "sample":
        hard = how == "hard"
        draws = law_of(q).relax(0.5 if hard else 1e-3, torch.Size([20_000]), hard=hard)
        torch.testing.assert_close(draws.sum(-1), torch.full((20_000,), float(k)).double())
    hits = (draws.round().unsqueeze(1) == z).all(-1)
    assert_frequencies(hits.sum(0), q.log_prob(z).exp())


def test_a_relaxed_subset_has_the_gradient_of_the_mean_at_low_temperatures():
    # false-alarm rate about 1e-6; the bias at this temperature is well below the errors
    torch.manual_seed(0)
    theta = scores(5).expand(20_000, 5).clone().requires_grad_()
    cost = torch.arange(5.0).double()
    z = gengs.gumbel_relax(gengs.Subset(2, logits=theta), tau=0.05)
    (found,) = torch.autograd.grad((z @ cost).sum(), theta)
    wanted = exact_gradient(scores(5), every(5, 2), lambda z: z @ cost)
    error = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - wanted).abs() < 5.5 * error + 0.02).all()


def test_straight_through_on_the_mean_is_simple():
    theta = scores(6).requires_grad_()
    q, cost = gengs.Subset(3, logits=theta), torch.arange(6.0).double()
    z = gengs.rsample(q, by=gengs.StraightThroughMean())
    (found,) = torch.autograd.grad(z @ cost, theta)
    torch.testing.assert_close(found, torch.autograd.grad(q.mean @ cost, theta)[0])


def test_k_may_differ_over_the_batch():
    theta, k = torch.stack([scores(6, seed) for seed in range(4)]), torch.tensor([0, 2, 5, 6])
    q = gengs.Subset(k, logits=theta)
    for row in range(4):
        alone = gengs.Subset(int(k[row]), logits=theta[row])
        torch.testing.assert_close(q.mean[row], alone.mean)
        torch.testing.assert_close(q.log_partition[row], alone.log_partition)
        torch.testing.assert_close(q.entropy()[row], alone.entropy())
    assert (q.sample((7,)).sum(-1) == k).all()
    assert (law_of(q).relax(0.5, torch.Size([3])).sum(-1) - k).abs().max() < 1e-12


def test_long_lists_of_wild_logits():
    torch.manual_seed(0)
    theta = torch.empty(2_000).uniform_(-50, 50).requires_grad_()
    q = gengs.Subset(200, logits=theta)
    z = gengs.rsample(q)
    assert z.sum() == 200
    loss = q.log_prob(z.detach()) + q.entropy() + (z * theta.detach()).sum()
    (gradient,) = torch.autograd.grad(loss, theta)
    assert gradient.isfinite().all() and q.mean.sum().sub(200).abs() < 1e-2


def test_logits_beyond_any_weight():
    theta = torch.tensor([1e4, 500.0, 0.0, -500.0, -1e4, -torch.inf])
    for k in range(6):
        q = gengs.Subset(k, logits=theta)
        assert q.mean.tolist() == q.sample().tolist() == q.mode.tolist()
        assert q.log_partition == theta[:k].sum() and q.entropy() == 0


def test_nothing_to_choose_from_and_nothing_chosen():
    q = gengs.Subset(0, logits=torch.full((3,), -torch.inf))
    assert q.sample().tolist() == q.mean.tolist() == [0, 0, 0] and q.log_partition == 0


def test_transforms_shapes_and_types():
    theta = torch.randn(3, 5)

    def loss(t):
        z = gengs.rsample(gengs.Subset(2, logits=t, validate_args=False))
        return (z * torch.arange(5.0)).sum().square()

    found = torch.func.vmap(torch.func.grad(loss), randomness="different")(theta)
    assert found.shape == (3, 5)
    q = gengs.Subset(2, logits=theta).expand((4, 3))
    assert q.sample((2,)).shape == gengs.rsample(q, (2,)).shape == (2, 4, 3, 5)
    assert Independent(q, 1).log_prob(q.sample()).shape == (4,)
    assert gengs.Subset(2, logits=theta[:0]).sample((2,)).shape == (2, 0, 5)
    assert gengs.Subset(2, logits=theta.to("meta")).mean.shape == (3, 5)
    assert gengs.rsample(gengs.Subset(2, logits=theta.bfloat16())).dtype == torch.bfloat16


def test_a_gradient_of_a_draw_is_not_differentiated_again():
    theta = scores(5).requires_grad_()
    z = gengs.rsample(gengs.Subset(2, logits=theta))
    (slope,) = torch.autograd.grad(z.square().sum(), theta, create_graph=True)
    with pytest.raises(RuntimeError, match="no derivative of its own"):
        slope.sum().backward()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gengs.Subset(4, torch.zeros(3)), "between 0 and n = 3, but got 4"),
        (lambda: gengs.Subset(-1, torch.zeros(3)), "between 0 and n = 3, but got -1"),
        (lambda: gengs.Subset(1.5, torch.zeros(3)), "an integer `k` .* got 1.5"),
        (lambda: gengs.Subset(True, torch.zeros(3)), "an integer `k` .* got True"),
        (
            lambda: gengs.Subset(torch.tensor([1, 0.5]), torch.zeros(3)),
            "integers as `k`, but got 0.5",
        ),
        (
            lambda: gengs.Subset(torch.tensor(torch.nan), torch.zeros(3)),
            "integers as `k`, but got nan",
        ),
        (
            lambda: gengs.Subset(torch.tensor(True), torch.zeros(3)),
            "integers as `k`, but got torch.bool",
        ),
        (lambda: gengs.Subset(torch.tensor([1, 1, 2]), torch.zeros(2, 3)), "`k` that broadcasts"),
        (lambda: gengs.Subset(1, torch.zeros(3)).log_prob([1, 0, 0]), "a tensor, but got list"),
        (
            lambda: gengs.Subset(torch.tensor([1, 2]), torch.zeros(3)).enumerate_support(),
            "the same for the whole batch; gengs.rsample, MidCDF",
        ),
        (lambda: gengs.Subset(torch.tensor([1, 9]), torch.zeros(2, 3)), "between 0 .* got 9"),
        (lambda: gengs.Subset(1, torch.tensor([0.0, torch.nan])), "without NaN .* 1 of 2"),
        (lambda: gengs.Subset(1, torch.tensor([0.0, torch.inf])), r"without NaN or \+inf"),
        (lambda: gengs.Subset(1, torch.full((2,), -torch.inf)), "at least k = 1 .* but got 0"),
        (lambda: gengs.Subset(1, [0.0, 1.0]), "`logits` as a floating-point tensor .* list"),
        (lambda: gengs.Subset(1, torch.zeros(3, 0)), "at least one element"),
        (lambda: gengs.Subset(1, torch.zeros(3)).log_prob(torch.ones(3)), "k ones, but 1 of 1"),
        (lambda: gengs.Subset(1, torch.zeros(3)).log_prob(torch.ones(4)), "length n = 3"),
        (lambda: gengs.Subset(50, torch.zeros(100)).enumerate_support(), "about 1e29 outcomes"),
        (
            lambda: kl_divergence(gengs.Subset(1, torch.zeros(3)), gengs.Subset(2, torch.zeros(3))),
            "the same k",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=words):
        make()


def test_an_empty_batch_has_empty_draws():
    logits = torch.zeros(0, 5, requires_grad=True)
    z = gengs.rsample(gengs.Subset(2, logits=logits))
    assert z.shape == (0, 5)
    z.sum().backward()
    assert logits.grad.shape == (0, 5)


def test_k_may_be_an_integer_of_numpy():
    assert gengs.Subset(np.int64(2), torch.zeros(3)).sample().sum() == 2
    assert gengs.PlackettLuce(torch.zeros(3), np.int64(2)).sample().shape == (2, 3)


@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize("hard", [False, True])
def test_a_sure_relaxed_subset_has_a_gradient_of_zero(k, hard):
    theta = torch.randn(2, 3, requires_grad=True)
    gengs.rsample(gengs.Subset(k, theta), by=gengs.GenGS(0.5, hard=hard)).sum().backward()
    assert torch.equal(theta.grad, torch.zeros(2, 3))


def test_a_k_with_a_gradient_is_refused():
    with pytest.raises(TypeError, match="no gradient in `k`"):
        gengs.Subset(torch.tensor(2.0, requires_grad=True), torch.zeros(4))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_nan_logit_that_nobody_checks_makes_all_of_its_subset_nan(k):
    logits = torch.tensor([[math.nan, 0.0, 1.0, 2.0], [-math.inf, 0.0, 1.0, 2.0]])
    q = gengs.Subset(k, logits, validate_args=False)
    for numbers in (q.sample(), gengs.rsample(q), q.mean, q.entropy(), q.log_prob(torch.ones(4))):
        assert numbers[0].isnan().all() and not numbers[1].isnan().any()
