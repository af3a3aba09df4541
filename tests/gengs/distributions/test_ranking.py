"""Plackett-Luce against enumeration: log-probabilities, draws, and the swap rule of each face.

Where orders are summed with their probabilities nothing is random, and errors are rounding.
"""

import pytest
import torch
from frequencies import assert_frequencies
from torch.distributions import Independent

import gengs
from gengs.laws.law import law_of
from gengs.laws.ranking_law import swaps
from gengs.laws.ranking_members import members_of

SIZES = [(1, 1), (2, 2), (4, 4), (5, 1), (5, 3), (5, 4)]
sizes = pytest.mark.parametrize(("n", "k"), SIZES)
VALUES = torch.arange(10.0).reshape(5, 2).double().sin()
FACES = {
    "matrix": lambda q, order: q.matrix(order),
    "ranks": lambda q, order: q.ranks(order),
    "payload": lambda q, order: q.arrange(order, VALUES[: q.items].expand(*q.batch_shape, -1, -1)),
}


def scores(n, seed=0):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def quadratic(size):
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(s, generator=generator).double() for s in ((size, size), (size,)))
    return lambda x: ((x.flatten(1) @ a) * x.flatten(1)).sum(-1) / 2 + x.flatten(1) @ b


def exact_gradient(theta, k, costs):
    theta = theta.clone().requires_grad_()
    q = gengs.PlackettLuce(logits=theta, k=k)
    p = q.log_prob(q.enumerate_support()).exp()
    return torch.autograd.grad((p * costs.detach()).sum(), theta)[0]


@sizes
def test_log_probabilities_are_those_of_drawing_one_after_the_other(n, k):
    theta = scores(n)
    q = gengs.PlackettLuce(logits=theta, k=k)
    orders, w = q.outcomes(), theta.exp()
    for order, found in zip(orders, q.log_prob_order(orders), strict=True):
        left, wanted = w.sum(), torch.zeros(()).double()
        for item in order:
            wanted, left = wanted + (w[item] / left).log(), left - w[item]
        torch.testing.assert_close(found, wanted)
    p = q.log_prob(q.enumerate_support()).exp()
    torch.testing.assert_close(p.sum(), torch.ones(()).double())
    assert torch.equal(q.mode, q.enumerate_support()[p.argmax()])


@sizes
@pytest.mark.parametrize("face", FACES)
def test_the_swap_rule_of_each_face_is_exact_for_quadratic_costs(n, k, face):
    theta = scores(n)
    q = gengs.PlackettLuce(logits=theta, k=k)
    orders, p = q.outcomes(), q.log_prob(q.enumerate_support()).exp()
    each = theta.expand(len(orders), n).clone().requires_grad_()
    value = FACES[face](gengs.PlackettLuce(logits=each, k=k), orders)
    f = quadratic(value[0].numel())
    (gradients,) = torch.autograd.grad(f(value).sum(), each)
    torch.testing.assert_close(p @ gradients, exact_gradient(theta, k, f(value)))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_membership_is_averaged_over_orders_without_bias(k):
    # arrival times are drawn: false-alarm rate about 1e-6 (5.5 standard errors)
    torch.manual_seed(0)
    theta, repeats = scores(5), 400
    q = gengs.PlackettLuce(logits=theta, k=k)
    orders, p = q.outcomes(), q.log_prob(q.enumerate_support()).exp()
    each = theta.expand(repeats, len(orders), 5).clone().requires_grad_()
    members = members_of(each, orders.expand(repeats, -1, -1), times=40)
    assert torch.equal(members[0], q.one_hot(orders).sum(-2))
    f = quadratic(5)
    (gradients,) = torch.autograd.grad(f(members.reshape(-1, 5)).sum(), each)
    found = (p[:, None] * gradients).sum(1)
    error = found.std(0) / repeats**0.5
    wanted = exact_gradient(theta, k, f(members[0]))
    assert ((found.mean(0) - wanted).abs() < 5.5 * error + 1e-12).all()


def test_faces_of_one_draw_agree_and_their_gradients_add_up():
    torch.manual_seed(0)
    theta = scores(5).requires_grad_()
    q = gengs.PlackettLuce(logits=theta, k=3)
    order = q.sample_order((4,))
    matrix, ranks, members = q.matrix(order), q.ranks(order), q.members(order)
    places = torch.arange(3.0).double()
    torch.testing.assert_close(places @ matrix + 3 * (1 - matrix.sum(-2)), ranks)
    assert torch.equal(matrix.sum(-2), members)
    values = torch.randn(5, 2).double().requires_grad_()
    arranged = q.arrange(order, values)
    torch.testing.assert_close(arranged, matrix @ values)
    assert torch.equal(q.arrange(order, values[:, 0]), arranged[..., 0])
    g = torch.randn_like(arranged)
    ours = torch.autograd.grad(arranged, (theta, values), g)
    theirs = torch.autograd.grad(matrix @ values, (theta, values), g)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("number", [None, 2])
@pytest.mark.parametrize("k", [4, 2])
def test_real_differences_are_unbiased_for_any_cost(number, k):
    # all swaps: exact; a few: false-alarm rate about 1e-6 (5.5 standard errors)
    torch.manual_seed(0)
    theta, repeats = scores(4), 1 if number is None else 2_000
    q = gengs.PlackettLuce(logits=theta, k=k)
    z, p = q.enumerate_support(), q.log_prob(q.enumerate_support()).exp()
    signs = torch.arange(1.0, 4 * k + 1).double()
    rough = lambda z: (3 * z.flatten(-2) @ signs + z.flatten(-2)[..., 0] * 5).sin()  # noqa: E731
    each = theta.expand(repeats, len(z), 4).clone().requires_grad_()
    draws = z.expand(repeats, *z.shape)
    there, weight = swaps(gengs.PlackettLuce(logits=each, k=k), draws, number)
    (gradients,) = torch.autograd.grad((weight * (rough(there) - rough(draws))).sum(), each)
    found = (p[:, None] * gradients).sum(1)
    error = found.std(0) / repeats**0.5 if number else torch.zeros(4)
    wanted = exact_gradient(theta, k, rough(z))
    assert ((found.mean(0) - wanted).abs() < 5.5 * error + 1e-12).all()


@pytest.mark.parametrize("k", [4, 2])
@pytest.mark.parametrize("how", ["sample", "relaxed", "hard"])
def test_draws_follow_the_distribution(k, how):
    # false-alarm rate 1e-6 each; see assert_frequencies for the power at 20 000 draws
    torch.manual_seed(0)
    q = gengs.PlackettLuce(logits=scores(4), k=k)
    draws = q.sample((20_000,))
    if how != "sample":
        draws = law_of(q).relax(1e-4, torch.Size([20_000]), hard=how == "hard").round()
    z = q.enumerate_support()
    hits = (draws.unsqueeze(1) == z).flatten(-2).all(-1)
    assert hits.any(-1).float().mean() > 0.999  # ties of float noise
    assert_frequencies(hits.sum(0), q.log_prob(z).exp())


@pytest.mark.parametrize("k", [None, 2, 4])
def test_padding_comes_last_and_gets_no_gradient(k):
    torch.manual_seed(0)
    short = scores(3)
    theta = torch.stack(
        [short[0], -short.new_tensor(torch.inf), short[1], short[2], -short.new_tensor(torch.inf)]
    )
    theta.requires_grad_()
    q = gengs.PlackettLuce(logits=theta, k=k)
    order = q.sample_order((30,))
    assert (order[:, 3:] == torch.tensor([1, 4])[: q.k - 3]).all() if q.k > 3 else True
    assert not ((order[:, : min(q.k, 3)] == 1) | (order[:, : min(q.k, 3)] == 4)).any()
    torch.testing.assert_close(q.log_prob(q.enumerate_support()).exp().sum().item(), 1.0)
    items = torch.tensor([0, 9, 1, 2, 9])[order][:, : min(q.k, 3)]
    alone = gengs.PlackettLuce(logits=short, k=min(q.k, 3))
    torch.testing.assert_close(q.log_prob_order(order), alone.log_prob_order(items))
    loss = q.ranks(order).square().sum() + q.log_prob_order(order).sum() + q.members(order)[0, 0]
    (gradient,) = torch.autograd.grad(loss + q.matrix(order)[:, 0, 0].sum(), theta)
    assert gradient.isfinite().all() and gradient[[1, 4]].tolist() == [0, 0]


def test_scores_far_apart():
    theta = torch.tensor([500.0, 300.0, 0.0, -100.0]).requires_grad_()
    q = gengs.PlackettLuce(logits=theta)
    order = q.sample_order((3,))
    assert order.tolist() == [[0, 1, 2, 3]] * 3 and q.log_prob_order(order).abs().max() < 1e-40
    (gradient,) = torch.autograd.grad(q.ranks(order).square().sum(), theta)
    assert gradient.isfinite().all()
    far = torch.tensor([0.0, -100.0, -100.0], dtype=torch.float64).requires_grad_()
    q = gengs.PlackettLuce(logits=far)  # the last two change places as two alone do
    (found,) = torch.autograd.grad(q.ranks(torch.tensor([0, 1, 2]))[1], far)
    torch.testing.assert_close(found, torch.tensor([0.0, -0.25, 0.25]).double())


def test_transforms_shapes_and_types():
    theta = torch.randn(3, 5)

    def loss(t):
        q = gengs.PlackettLuce(logits=t, k=3, validate_args=False)
        order = q.sample_order()
        return (q.ranks(order) * q.members(order)).square().sum() + gengs.rsample(q)[1, 1]

    found = torch.func.vmap(torch.func.grad(loss), randomness="different")(theta)
    assert found.shape == (3, 5)
    q = gengs.PlackettLuce(logits=theta, k=2).expand((4, 3))
    assert q.sample((2,)).shape == gengs.rsample(q, (2,)).shape == (2, 4, 3, 2, 5)
    assert Independent(q, 1).log_prob(q.sample()).shape == (4,)
    assert gengs.PlackettLuce(logits=theta[:0]).sample((2,)).shape == (2, 0, 5, 5)
    assert gengs.PlackettLuce(logits=theta.bfloat16()).sample().dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gengs.PlackettLuce(torch.zeros(3), k=4), "`k` between 1 and .* 3, but got 4"),
        (lambda: gengs.PlackettLuce(torch.zeros(3), k=0), "`k` between 1 and .* 3, but got 0"),
        (lambda: gengs.PlackettLuce(torch.zeros(3), k=1.0), "an integer `k` or None, .* 1.0"),
        (lambda: gengs.PlackettLuce([1.0]), "`logits` as a floating-point tensor .* list"),
        (lambda: gengs.PlackettLuce(torch.zeros(3, 0)), r"at least one item.* \(3, 0\)"),
        (lambda: gengs.PlackettLuce(torch.tensor([0.0, torch.nan])), r"without NaN or \+inf"),
        (lambda: gengs.PlackettLuce(torch.full((2, 2), -torch.inf)), "a row that is all -inf"),
        (lambda: gengs.PlackettLuce(torch.zeros(3)).log_prob(torch.ones(3, 3)), "one-hot vectors"),
        (lambda: gengs.PlackettLuce(torch.zeros(3)).log_prob(torch.eye(4)), r"shape \(3, 3\)"),
        (lambda: gengs.PlackettLuce(torch.zeros(100)).enumerate_support(), "about 1e158 outcomes"),
        (
            lambda: gengs.PlackettLuce(torch.zeros(3)).arrange(torch.arange(3), torch.zeros(4)),
            r"`values` of shape \(\*batch, n",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_no_closed_forms_are_claimed():
    q = gengs.PlackettLuce(logits=torch.zeros(4))
    with pytest.raises(NotImplementedError, match="unbiased estimate"):
        q.entropy()
    with pytest.raises(NotImplementedError, match="average draws"):
        _ = q.mean
    with pytest.raises(NotImplementedError, match="average draws"):
        _ = q.variance


def test_the_first_place_alone_is_a_category():
    theta = scores(4).index_fill(0, torch.tensor([2]), -torch.inf).requires_grad_()
    q, category = (
        gengs.PlackettLuce(theta, k=1),
        torch.distributions.OneHotCategorical(logits=theta),
    )
    torch.testing.assert_close(q.mean, category.mean.unsqueeze(-2))
    torch.testing.assert_close(q.variance, category.variance.unsqueeze(-2))
    torch.testing.assert_close(q.entropy(), category.entropy())
    q.entropy().backward()
    assert theta.grad.isfinite().all()


def test_one_order_for_a_whole_batch():
    q, order = gengs.PlackettLuce(scores(3).expand(2, 4, 3), k=2), torch.tensor([2, 0])
    wide = order.expand(4, 2)
    for face in (q.ranks, q.members, q.matrix, q.log_prob_order):
        assert torch.equal(face(order), face(wide.expand(2, 4, 2)))
    assert torch.equal(
        q.arrange(wide, torch.arange(24).view(2, 4, 3))[1, 2], torch.tensor([20, 18])
    )


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("k", [2, 4])
def test_jacobians_of_each_face(k, face):
    theta = scores(4)
    order = gengs.PlackettLuce(theta, k).sample_order()
    value = lambda x: FACES[face](gengs.PlackettLuce(x, k), order)  # noqa: E731
    rows = torch.func.jacrev(value)(theta)
    torch.testing.assert_close(rows, torch.autograd.functional.jacobian(value, theta))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q: q.log_prob_order(torch.tensor([0, 0, 2])), "at most once"),
        (lambda q: q.log_prob_order(torch.tensor([0, 1, 3])), "at most once"),
        (lambda q: q.ranks(torch.tensor([0, 1])), "the indices of 3 items"),
        (lambda q: q.ranks(torch.tensor([0.0, 1.0, 2.0])), "integer indices"),
        (lambda q: q.members([0, 1, 2]), "integer indices, but got list"),
        (lambda q: q.ranks(torch.tensor([0, 0, 2])), "at most once"),
        (lambda q: q.members(torch.tensor([0, 1, 3])), "at most once"),
        (lambda q: q.matrix(torch.tensor([0, 1, -1])), "at most once"),
        (lambda q: q.arrange(torch.tensor([0, 1, 3]), torch.zeros(3)), "at most once"),
        (
            lambda q: q.expand([2]).ranks(torch.arange(3).expand(4, 3)),
            "batch .2,., but got an order",
        ),
        (lambda q: q.arrange(torch.arange(3), [1, 2, 3]), "tensor of numbers, but got list"),
        (lambda q: q.arrange(torch.arange(3), torch.ones(3) > 0), "numbers, but got torch.bool"),
        (
            lambda q: q.expand([2]).arrange(torch.arange(3), torch.zeros(4, 3)),
            "of shape .*batch, n",
        ),
        (lambda q: q.log_prob([[1, 0, 0]]), "a tensor, but got list"),
    ],
)
def test_what_is_no_order_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(gengs.PlackettLuce(logits=torch.zeros(3)))


def cascade(relevance):
    """Expected reciprocal rank: a reader goes down the list until satisfied."""
    stop = relevance / 4
    before = torch.cat([torch.ones_like(stop[:, :1]), (1 - stop[:, :-1]).cumprod(-1)], -1)
    return (before * stop / torch.arange(1, 5)).sum(-1)


def discounted(face):
    """The gradient of a metric by a face, with all orders summed, and the exact one."""
    theta, gains = torch.tensor([0.3, -0.2, 1.0, 0.5]).double(), torch.tensor([0.0, 1, 3, 2])
    discounts = 1 / torch.log2(2 + torch.arange(4.0).double())
    q = gengs.PlackettLuce(logits=theta)
    orders, p = q.outcomes(), q.log_prob(q.enumerate_support()).exp()
    each = theta.expand(len(orders), 4).clone().requires_grad_()
    law = gengs.PlackettLuce(logits=each)
    metric = {
        "cascade": lambda: cascade(law.arrange(orders, gains.double().expand(24, 4))),
        "arrange": lambda: law.arrange(orders, gains.double().expand(24, 4)) @ discounts,
        "matrix": lambda: law.matrix(orders) @ gains.double() @ discounts,
        "ranks": lambda: (gains / torch.log2(2 + law.ranks(orders))).sum(-1),
    }[face]()
    (gradients,) = torch.autograd.grad(metric.sum(), each)
    return p @ gradients, exact_gradient(theta, 4, metric)


@pytest.mark.parametrize("face", ["arrange", "matrix", "cascade"])
def test_a_discount_by_place_is_exact(face):
    torch.testing.assert_close(*discounted(face))


def test_a_discount_of_a_rank_is_biased():
    found, wanted = discounted("ranks")
    assert 0.1 < (found - wanted).norm() / wanted.norm() < 0.3


def test_padding_among_the_first_k_is_no_member():
    logits = torch.tensor([[1.0, 2.0, -torch.inf, -torch.inf], [0.0, 1.0, 2.0, 3.0]])
    logits = logits.requires_grad_()
    q = gengs.PlackettLuce(logits=logits, k=3)
    members = q.members(q.sample_order((50,)))
    assert (members[:, 0] == torch.tensor([1.0, 1.0, 0.0, 0.0])).all()
    assert (members[:, 1].sum(-1) == 3).all()
    worth = torch.tensor([1.0, 5.0, torch.inf, torch.nan]).expand(50, 4)
    (found,) = torch.autograd.grad(members[:, 0], logits, worth)
    assert (found[0] == 0).all()  # whoever is there is a member


@pytest.mark.parametrize("k", [4, 3, 2, 1])
def test_gains_of_padding_are_not_read(k):
    """What is NaN there stays in its own places, and changes no gradient."""
    theta, order = torch.tensor([0.3, -0.2, 1.0, -torch.inf]), torch.tensor([2, 0, 1, 3])[:k]
    gains = torch.tensor([[0.0, 0.0], [1.0, 2.0], [1.0, -1.0], [7.0, 7.0]])
    found = []
    for padding in (0.0, torch.nan, torch.inf):
        logits, values = theta.clone().requires_grad_(), gains.clone()
        values[3] = padding
        arranged = gengs.PlackettLuce(logits=logits, k=k).arrange(order, values)
        assert torch.equal(arranged.detach().nan_to_num(9), values[order].nan_to_num(9))
        cost = torch.nan_to_num(arranged)[:3].square().sum()
        found += torch.autograd.grad(cost, logits)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    assert found[0].isfinite().all() and found[0][3] == 0 and (found[0][:3] != 0).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_faces_have_the_type_of_the_logits_but_ranks_are_wide(dtype):
    torch.manual_seed(0)
    theta = scores(6).to(dtype).requires_grad_()
    wide = theta.detach().to(torch.promote_types(dtype, torch.float32)).requires_grad_()
    order = gengs.PlackettLuce(logits=theta, k=3).sample_order((200,))
    faces = {
        "matrix": lambda q: q.matrix(order) @ weights.to(q.logits.dtype),
        "members": lambda q: q.members(order) @ weights.to(q.logits.dtype),
        "ranks": lambda q: q.ranks(order) @ weights.to(wide.dtype),
        "arrange": lambda q: q.arrange(order, weights.to(q.logits.dtype)),
    }
    weights = torch.arange(6.0) / 4
    for name, face in faces.items():
        found = []
        for logits in (theta, wide):
            value = face(gengs.PlackettLuce(logits=logits, k=3))
            assert value.dtype == (wide.dtype if name == "ranks" else logits.dtype)
            torch.manual_seed(1)  # the arrival times of members
            found += torch.autograd.grad(value.square().float().mean(), logits)
        ours, theirs = (g.double() for g in found)
        assert found[0].dtype == dtype
        assert (ours - theirs).norm() < 0.03 * theirs.norm()
    q = gengs.PlackettLuce(logits=theta, k=3)
    assert q.sample().dtype == q.mode.dtype == q.enumerate_support().dtype == dtype
    assert q.log_prob(q.sample()).dtype == wide.dtype
