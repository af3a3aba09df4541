"""REBAR and RELAX: one control variate, with and without a network."""

import pytest
import torch
from exact_gradients import (
    COSTS,
    LAWS,
    assert_mean,
    assert_nests,
    assert_unbiased,
    gradient_variance,
)
from torch import nn
from torch.distributions import Categorical, Independent, OneHotCategorical, Poisson

import gengs
from gengs.estimators import REBAR, REINFORCE, RELAX, Exact
from gengs.estimators.gumbel_rao import conditional_gumbel
from gengs.numerics.gumbel import log_exponential
from gengs.numerics.gumbel_softmax import soften

BOTH = pytest.mark.parametrize("kind", [REBAR, RELAX])


def lively(kind, **kwargs):
    """An estimator whose network, if it has one, is not zero."""
    estimator = kind(**kwargs)
    if kind is RELAX:
        nn.init.normal_(estimator.last.weight)
    return estimator


@BOTH
@pytest.mark.parametrize("factors", [0, 3])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_gradient_is_exact(kind, law, cost, factors):
    assert_unbiased(lively(kind, temperature=0.7, eta=0.8), law, factors, cost)


@BOTH
def test_many_draws(kind):
    assert_unbiased(lively(kind, samples=4), "poisson", 3, "quadratic", 5000)


@BOTH
def test_stacked_layers_nest(kind):
    assert_nests(lambda: lively(kind))


@BOTH
@pytest.mark.parametrize("make", [Categorical, OneHotCategorical])
def test_categories_by_number_and_by_vector(kind, make):
    def cost(z):
        return z.square() if z.dim() == 2 else (z * torch.tensor([0.5, 2.0, -1.0])).sum(-1).exp()

    start = torch.tensor([0.5, 0.2, 0.3])
    one = start.unsqueeze(0).clone().requires_grad_()
    (wanted,) = torch.autograd.grad(Exact().expect(cost, make(one)).sum(), one)
    p = start.expand(20_000, 3).clone().requires_grad_()
    lively(kind).expect(cost, make(p)).sum().backward()
    assert_mean(p.grad, wanted[0])


def test_the_coupled_noise_gives_the_derivative_of_the_conditional_draw():
    """Where the two draws agree, their derivatives differ by exp(z_i - z_b)."""
    logits = torch.tensor([0.2, -0.5, 1.0, 0.0], dtype=torch.float64).log_softmax(-1)
    z = logits - log_exponential(torch.Size([4]), torch.float64)
    b = int(z.argmax())
    e_winner = (-z[b]).exp()
    e = ((-z).exp() - e_winner) * logits.exp()

    def conditional(table):
        others = -(e / table.exp() + e_winner).log()
        return torch.where(torch.arange(4) == b, -e_winner.log(), others)

    torch.testing.assert_close(conditional(logits), z)
    jacobian = torch.autograd.functional.jacobian(conditional, logits)
    torch.testing.assert_close(torch.eye(4) - jacobian, torch.diag((z - z[b]).exp()).to(jacobian))


def test_uncoupled_noise_has_the_same_mean():
    """The three-term formula with a fresh conditional draw, written out here."""
    logits = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64)
    atoms = torch.tensor([0.0, 1.0, 2.0, 4.0], dtype=torch.float64)

    def f(v):
        return (v - 1.3) ** 2

    table = logits.expand(50_000, 4).clone().requires_grad_()
    log_pi = table.log_softmax(-1)
    z = log_pi - log_exponential(table.shape, torch.float64)
    b = z.argmax(-1)
    tilde = conditional_gumbel(log_pi, b)
    soft, soft_tilde = (f(soften(x, 0.5) @ atoms) for x in (z, tilde))
    log_q = log_pi.gather(-1, b.unsqueeze(-1)).squeeze(-1)
    ((f(atoms[b]) - soft_tilde).detach() * log_q + soft - soft_tilde).sum().backward()
    written_out = table.grad

    table = logits.expand(50_000, 4).clone().requires_grad_()
    REBAR().expect(f, gengs.Finite(atoms, logits=table)).sum().backward()
    assert_mean(written_out - table.grad, torch.zeros(4))


@BOTH
@pytest.mark.parametrize("cost", ["quadratic", "steep sigmoid"])
def test_training_its_own_parts_cuts_the_variance(kind, cost):
    """Whether the model minimises or maximises; the optimiser is made before the first call."""
    start = torch.tensor([[0.3, -1.2, 0.8, 0.1], [-0.5, 0.2, 0.4, 0.0]])

    def build(theta):
        return Independent(gengs.Finite(torch.tensor([0.0, 1.0, 2.0, 4.0]), logits=theta), 1)

    def f(z):
        return COSTS[cost](z.sum(-1))

    def variance(estimator):
        return gradient_variance(estimator, f, build, start)

    estimator = kind()
    optimiser = torch.optim.Adam(estimator.parameters(), 0.02)
    before = variance(estimator)
    for sign in [1, -1] * 150:
        optimiser.zero_grad()
        (sign * estimator.expect(f, build(start.expand(100, 2, 4))).mean()).backward()
        optimiser.step()
    assert variance(estimator) < 0.92 * before  # the two differ by 2 % at most by chance
    assert variance(estimator) < 0.5 * variance(REINFORCE())


def test_its_own_gradient_is_that_of_the_variance():
    """Against central differences of the mean square, the noise held fixed."""
    logits = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64).expand(300, 4)
    atoms = torch.tensor([0.0, 1.0, 2.0, 4.0], dtype=torch.float64)

    def mean_square(estimator):
        torch.manual_seed(1)
        theta = logits.clone().requires_grad_()
        result = estimator.expect(lambda z: (z - 1.3) ** 2, gengs.Finite(atoms, logits=theta))
        result.mean().backward()
        return (theta.grad * 300).square().sum(-1).mean().item()

    estimator = REBAR().double()
    mean_square(estimator)
    for name in ("eta", "log_temperature"):
        parameter = getattr(estimator, name)
        values = []
        for step in (1e-5, -1e-5):
            moved = REBAR().double()
            with torch.no_grad():
                getattr(moved, name).copy_(parameter + step)
            values.append(mean_square(moved))
        wanted = (values[0] - values[1]) / 2e-5
        assert parameter.grad.item() == pytest.approx(wanted, rel=1e-5)


@BOTH
def test_the_variance_objective_moves_nothing_else(kind):
    """Model and decoder get the same gradients, bit for bit, whether or not anything is learned."""
    grads = []
    for learned in (True, False):
        torch.manual_seed(3)
        estimator, decoder = lively(kind), nn.Linear(3, 1)
        theta = torch.zeros(6, 3, 5, requires_grad=True)

        def step(net=decoder, theta=theta, estimator=estimator):
            torch.manual_seed(4)
            q = Independent(gengs.Finite(torch.arange(5), logits=theta), 1)
            return estimator.expect(lambda z: net(z).tanh().sum(-1), q).sum()

        step()  # gives RELAX's network its width
        estimator.requires_grad_(learned)
        step().backward()
        grads.append((theta.grad, decoder.weight.grad))
        assert all((p.grad is not None) == learned for p in estimator.parameters())
    torch.testing.assert_close(*grads, rtol=0, atol=0)


@BOTH
def test_impossible_atoms_get_no_gradient_and_no_nan(kind):
    logits = torch.tensor([0.0, -torch.inf, 0.5, -200.0], requires_grad=True)
    estimator = lively(kind)
    q = gengs.Finite(torch.arange(4.0), logits=logits.expand(50, 4))
    estimator.expect(lambda z: (z - 1).square(), q).mean().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[1] == 0
    assert all(p.grad.isfinite().all() for p in estimator.parameters())


@BOTH
@pytest.mark.parametrize("batch", [(), (4,), (2, 0), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_batch_and_both_precisions(kind, batch, dtype):
    rate = torch.full((*batch, 5), 2.0, dtype=dtype, requires_grad=True)
    result = kind().expect(lambda z: z.square().sum(-1), Independent(Poisson(rate), 1))
    result.sum().backward()
    assert result.shape == batch
    assert result.dtype == dtype
    assert rate.grad is None or rate.grad.isfinite().all()


def test_relax_follows_a_law_whose_atoms_grow_and_shrink():
    estimator = lively(RELAX)
    for rate in (2.0, 6.0, 0.5):
        theta = torch.full((7, 3), rate, requires_grad=True)
        estimator.expect(lambda z: z.sum(-1), Independent(Poisson(theta), 1)).sum().backward()
        assert theta.grad.isfinite().all()


def test_relax_says_when_it_is_shared_between_layers():
    def layer(factors):
        return Independent(gengs.Finite(torch.arange(4), logits=torch.zeros(factors, 4)), 1)

    estimator = RELAX()
    estimator.expect(lambda z: z.sum(-1), layer(3))
    with pytest.raises(ValueError, match="one RELAX for each"):
        estimator.expect(lambda z: z.sum(-1), layer(5))


@BOTH
def test_a_step_function_is_refused(kind):
    q = Independent(Poisson(torch.ones(2, 3, requires_grad=True)), 1)
    scale = torch.ones((), requires_grad=True)  # something to differentiate, but not the values
    for cost in (
        lambda z: (z.detach() > 1).float().sum(-1),
        lambda z: scale * z.detach().sum(-1),
    ):
        with pytest.raises(TypeError, match=f"{kind.__name__} needs a cost that is differentiable"):
            kind().expect(cost, q)


@BOTH
def test_evaluations_are_counted(kind):
    calls = []

    def cost(z):
        calls.append(len(z))
        return z.square()

    kind(samples=3).expect(cost, Poisson(torch.ones(4)))
    assert sum(calls) == kind(samples=3).evaluations == 6


@BOTH
def test_a_checkpoint_restores_it(kind):
    trained = lively(kind)
    q = Poisson(torch.ones(4))
    trained.expect(lambda z: z.square(), q)
    restored = kind()
    restored.load_state_dict(trained.state_dict())
    results = []
    for estimator in (trained, restored):
        torch.manual_seed(0)
        rate = torch.ones(4, requires_grad=True)
        estimator.expect(lambda z: z.square(), Poisson(rate)).sum().backward()
        results.append(rate.grad)
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("kind", [gengs.REBAR, gengs.RELAX])
@pytest.mark.parametrize("name", ["temperature", "eta"])
def test_a_tensor_that_would_get_no_gradient_is_refused(kind, name):
    with pytest.raises(TypeError, match=f"learns `{name}` itself"):
        kind(**{name: torch.tensor(0.5, requires_grad=True)})
