"""Twenty-five programs in the manner of public ones: right within their error, or said.

By the fitted score and by RLOO every program must be right: the two means agree within 5 standard
errors of their difference. By the path it must agree with the fitted score within 5 standard errors
and 3 % of the gradient, or something must have been said about it (or raised, with a line).
"""

import warnings

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch.distributions import Bernoulli, Binomial, Categorical, OneHotCategorical, Poisson
from torch.nn.functional import one_hot

import gengs
from gengs import differentiable

pytestmark = pytest.mark.slow
N, BLOCKS = 500, 12
_RING = torch.eye(10, dtype=torch.float64).roll(1, 0) + torch.eye(10, dtype=torch.float64).roll(
    -1, 0
)


def full(n, x):
    return torch.full((n,), x, dtype=torch.float64)


# ---------------------------------------------------------------------------------------- counts


def epidemic(theta, n):
    s, i = full(n, 950.0), full(n, 50.0)
    for _ in range(15):
        new = Binomial(s, 1 - torch.exp(-theta[0] * i / 1000)).sample()
        gone = torch.binomial(i, (1 - torch.exp(-theta[1])).expand(n))
        s, i = s - new, i + new - gone
    return 1 - s / 1000


def immigration(theta, n):
    x = full(n, 40.0)
    for _ in range(20):
        x = (
            x
            - torch.binomial(x, (theta[1] / 4).expand(n))
            + torch.poisson((20 * theta[0]).expand(n))
        )
    return (x - 100).square() / 1000


def predators(theta, n):
    prey, hunters = full(n, 200.0), full(n, 60.0)
    for _ in range(8):
        born = torch.poisson(0.3 * theta[0] * prey)
        eaten = torch.poisson((theta[1] * 0.01 * prey * hunters).clamp(max=150))
        died = torch.poisson(0.1 * hunters)
        prey = (prey + born - eaten).clamp(min=1)
        hunters = (hunters + 0.2 * eaten - died).clamp(min=1)
    return prey.log()


def queue(theta, n):
    waiting, lost = full(n, 5.0), 0.0
    for _ in range(12):
        waiting = waiting + Poisson(20 * theta[0].expand(n)).sample()
        served = torch.binomial(waiting, theta[1].expand(n))
        waiting = torch.minimum(waiting - served, full(n, 25.0))
        lost = lost + waiting
    return lost / 100


def branching(theta, n):
    alive = full(n, 30.0)
    for _ in range(5):
        alive *= 1.0  # in place, as people write it
        alive += torch.poisson(theta[0] * alive) - torch.binomial(alive.clone(), theta[1].expand(n))
    return alive / 30


# ---------------------------------------------------------------------------------- zeros and ones


def rumour(theta, n):
    x = torch.zeros(n, 10, dtype=torch.float64)
    x[:, 0] = 1
    for _ in range(10):
        p = (1 - torch.exp(-theta[0] * (x @ _RING))) * (1 - x) + x * (1 - theta[1])
        x = torch.bernoulli(p.clamp(1e-6, 1 - 1e-6))
    return x.mean(-1)


def spins(theta, n):
    x = torch.ones(n, 10, dtype=torch.float64)
    for _ in range(6):
        x = 2 * Bernoulli(torch.sigmoid(2 * theta[0] * (x @ _RING) + theta[1])).sample() - 1
    return x.mean(-1).square()


def neurons(theta, n):
    voltage, spikes = torch.zeros(n, 10, dtype=torch.float64), 0.0
    fired = torch.zeros(n, 10, dtype=torch.float64)
    for _ in range(8):
        voltage = 0.8 * voltage * (1 - fired) + theta[0] + theta[1] * (fired @ _RING)
        fired = torch.bernoulli(torch.sigmoid(4 * (voltage - 1)))
        spikes = spikes + fired.mean(-1)
    return spikes


def forest(theta, n):
    tree = torch.bernoulli((0.5 + theta[1]).expand(n, 10))
    burning = torch.zeros(n, 10, dtype=torch.float64)
    burning[:, 0] = 1
    for _ in range(6):
        catches = torch.bernoulli((theta[0] * (burning @ _RING)).clamp(0, 1)) * tree
        tree, burning = tree * (1 - catches), catches
    return tree.mean(-1)


def boltzmann(theta, n):
    weights = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    seen = torch.bernoulli(full(n, 0.5).unsqueeze(-1).expand(n, 4))
    for _ in range(4):
        hidden = torch.bernoulli(torch.sigmoid(3 * theta[0] * seen @ weights))
        seen = torch.bernoulli(torch.sigmoid(hidden @ weights.T + theta[1]))
    return seen.sum(-1)


# ------------------------------------------------------------------------------ tokens and indices

_TABLE = torch.linspace(-1, 1, 20, dtype=torch.float64).reshape(5, 4).sin()


def markov(theta, n):
    state, total = torch.zeros(n, dtype=torch.long), 0.0
    rewards = torch.tensor([0.0, 1.0, 3.0, 2.0, 5.0], dtype=torch.float64)
    logits = torch.outer(torch.arange(5.0).double(), torch.arange(5.0).double()) / 5
    for _ in range(5):
        state = Categorical(logits=theta[0] * logits[state] + theta[1]).sample()
        total = total + rewards[state]
    return total


def language(theta, n):
    hidden, length = torch.zeros(n, 4, dtype=torch.float64), 0.0
    for _ in range(5):
        token = torch.multinomial((theta[0] * hidden @ _TABLE.T + theta[1]).softmax(-1), 1)[:, 0]
        hidden = torch.tanh(0.5 * hidden + _TABLE[token])
        length = length + (token == 2)
    return length.double()


def hidden_markov(theta, n):
    state, score = torch.zeros(n, 3, dtype=torch.float64), 0.0
    state[:, 0] = 1
    move = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 2.0]]).double()
    for _ in range(4):
        k = Categorical(logits=theta[0] * state @ move).sample()
        state = one_hot(k, 3).double()
        score = score + Poisson(1 + 4 * theta[1] * state[:, 2]).sample()
    return score


def urn(theta, n):
    balls = torch.ones(n, 3, dtype=torch.float64)
    for _ in range(6):
        balls = balls + OneHotCategorical(logits=balls.log() + theta[0] * torch.arange(3)).sample()
    return (balls[:, 2] / balls.sum(-1)) ** 2 + theta[1] * 0


def bandit(theta, n):
    arms = torch.tensor([0.2, 0.5, 0.8], dtype=torch.float64)
    won = torch.zeros(n, dtype=torch.float64)
    for _ in range(5):
        arm = Categorical(
            logits=theta[0] * torch.arange(3.0).double() + theta[1] * won.unsqueeze(-1)
        )
        reward = torch.bernoulli(arms.expand(n, 3).gather(1, arm.sample().unsqueeze(-1)))[:, 0]
        won = won + reward
    return won


# ------------------------------------------------------------------------------- uniforms by hand


def inverse_cdf(theta, n):
    cdf = torch.stack([theta[0], theta[1], 1 - theta[0] - theta[1]]).cumsum(0)[:2]
    u = torch.rand(n, dtype=torch.float64)
    return (u.unsqueeze(-1) > cdf).sum(-1).double().square()


def metropolis(theta, n):
    x = torch.zeros(n, dtype=torch.float64)
    for _ in range(8):
        proposal = x + 2.0 * (torch.rand(n) < 0.5) - 1
        accept = torch.rand(n) < torch.exp(theta[0] * (x.abs() - proposal.abs())).clamp(max=1)
        x = torch.where(accept, proposal, x)
    return x.square() + 0 * theta[1]


def gillespie(theta, n):
    x = full(n, 20.0)
    for _ in range(10):
        rates = torch.stack([10 * theta[0] + 0 * x, theta[1] * x, 2 + 0 * x], -1)
        edges = rates.cumsum(-1) / rates.sum(-1, keepdim=True)
        which = (torch.rand(n, 1) > edges[:, :2]).sum(-1)
        x = x + (which == 0).double() - (which == 1).double()
    return x


def common_numbers(theta, n):
    u = torch.rand(n, 4)
    first, second = (u < theta[0]).double(), (u < 2 * theta[1]).double()
    return (first - second).sum(-1).square()


def walk(theta, n):
    x = torch.zeros(n, dtype=torch.float64)
    for step in range(10):
        right = torch.rand(n) < theta[0] + theta[1] * 0.02 * step
        x = x + torch.where(right, 1.0, -1.0)
    return x.square()


# ------------------------------------------------------------------------------------ Pyro models


def gamma_poisson(theta, n):
    rate = pyro.sample("rate", dist.Gamma(10 * theta[0].expand(n), torch.ones(n).double()))
    return pyro.sample("count", dist.Poisson(rate)).square()


def zero_inflated(theta, n):
    law = dist.ZeroInflatedPoisson(10 * theta[0].expand(n), gate=theta[1].expand(n))
    return pyro.sample("count", law).square()


def beta_binomial(theta, n):
    law = dist.BetaBinomial(4 * theta[0].expand(n), 3 * theta[1].expand(n), full(n, 12.0))
    return pyro.sample("count", law)


def compartments(theta, n):
    s, i = full(n, 190.0), full(n, 10.0)
    for t in range(8):
        new = pyro.sample(f"new_{t}", dist.Binomial(s, 1 - torch.exp(-2 * theta[0] * i / 200)))
        gone = pyro.sample(f"gone_{t}", dist.Binomial(i, theta[1].expand(n)))
        s, i = s - new, i + new - gone
    return i


def mixture(theta, n):
    with pyro.plate("replicates", n):
        k = pyro.sample("k", dist.Categorical(torch.stack([theta[0], 1 - theta[0]])))
        rate = torch.where(k == 0, 3.0, 10 * theta[1])
        return pyro.sample("count", dist.Poisson(rate))


PROGRAMS = {
    "counts": (epidemic, immigration, predators, queue, branching),
    "0/1 states": (rumour, spins, neurons, forest, boltzmann),
    "tokens and indices": (markov, language, hidden_markov, urn, bandit),
    "uniforms by hand": (inverse_cdf, metropolis, gillespie, common_numbers, walk),
    "Pyro models": (gamma_poisson, zero_inflated, beta_binomial, compartments, mixture),
}
CASES = [
    pytest.param(program, id=f"{kind}: {program.__name__}")
    for kind, programs in PROGRAMS.items()
    for program in programs
]


def gradients(simulate, by):
    """Gradients of several blocks, one a row, and what was said."""
    rows = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(BLOCKS):
            torch.manual_seed(seed)
            pyro.clear_param_store()
            theta = torch.tensor([0.4, 0.3], dtype=torch.float64, requires_grad=True)
            with differentiable(by=by, dim=0) as program:
                cost = simulate(theta, N)
            loss = program.loss(cost).mean()
            if loss.requires_grad:
                rows += torch.autograd.grad(loss, theta, materialize_grads=True)
            else:
                rows.append(torch.zeros_like(theta))
    return torch.stack(rows), {str(w.message) for w in caught}


@pytest.mark.parametrize("simulate", CASES)
def test_a_program_is_right_or_something_is_said(simulate):
    """5 standard errors of 12 blocks, t-distributed: 1 in 2,000 for each number."""
    fitted, _ = gradients(simulate, gengs.FittedScore(memory=0.0))
    plain, _ = gradients(simulate, gengs.RLOO())
    apart = fitted - plain
    assert (apart.mean(0).abs() < 5 * apart.std(0) / BLOCKS**0.5 + 1e-9).all()
    try:
        path, said = gradients(simulate, None)
    except (TypeError, ValueError) as error:
        assert "test_many_programs.py:" in str(error)  # noqa: PT017
        return
    apart = path - fitted
    off = (apart.mean(0).norm() - 5 * (apart.var(0).sum() / BLOCKS).sqrt()) / fitted.mean(0).norm()
    if off > 0.03:
        assert any("test_many_programs.py:" in sentence for sentence in said), f"{off:.0%} off"
