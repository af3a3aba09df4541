"""Programs that used to get a wrong gradient without a word: now right, refused or warned of.

Statistical checks are at 5 standard errors, of replicate gradients: 6e-7 false alarms each.
"""

import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    constraints,
)
from torch.nn.functional import one_hot

import gengs
from gengs import CutGradientWarning, ProgramWarning, differentiable

R = 40_000
BOTH = pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "RLOO"])


def gradients(simulate, by=None, at=0.3, n=R, **settings):
    """One gradient for each replicate: the parameter is repeated for all of them."""
    torch.manual_seed(0)
    t = torch.full((n,), at, dtype=torch.float64, requires_grad=True)
    with differentiable(by=by, **settings) as program:
        cost = simulate(t)
    return torch.autograd.grad(program.loss(cost).sum(), t)[0]


def is_right(found, exact):
    return bool((found.mean() - exact).abs() < 5 * found.std() / len(found) ** 0.5 + 1e-9)


def said(simulate, by=None, at=0.3, n=50, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients(simulate, by, at, n, **settings)
    return "\n".join(str(w.message) for w in caught if issubclass(w.category, ProgramWarning))


# ------------------------------------------------------- 1. one uniform number, several thresholds


def broadcast(t):
    """One uniform for two thresholds: both or none, E (sum)² = 4 t."""
    return (torch.rand(len(t), 1) < t.unsqueeze(-1) * torch.ones(2)).double().sum(-1).square()


def by_the_cdf(t):
    """Three categories by the inverse of the CDF, E k² = t + 4 (1 - 2 t)."""
    cdf = torch.stack([t, 2 * t], -1)
    u = torch.rand(len(t))
    return (u.unsqueeze(-1) > cdf).sum(-1).double().square()


def twice(t):
    """E (low + high)² = 3 t + 2 t, one uniform in two comparisons."""
    u = torch.rand(len(t))
    low, high = u < t, u < 2 * t
    return (low.double() + high.double()).square()


def nested(t):
    """The second threshold depends on the first outcome: E of both is t/2."""
    u = torch.rand(len(t))
    low = (u < t).double()
    return low * (u < t * (1 - low / 2)).double()


def after_a_constant(t):
    u = torch.rand(len(t))
    return (u < 0.5).double() * (u < t).double() + (u < t)


def columns(t):
    u = torch.rand(len(t), 2)
    return ((u[:, 0] < t).double() + (u[:, 1] < t)).square()


def transposed(t):
    return (torch.rand(len(t), 1).mT[0] < t).double() * 3


def rows(t):
    """All numbers at once, a row for each step: E x (1 + x) steps."""
    x = 0
    for u in torch.rand(3, len(t)):
        x = x + (u < t) * (1.0 + x)
    return x


def row_of_thresholds(t):
    """A row of numbers, each for two thresholds."""
    u = torch.rand(2, len(t))[1]
    return (u.unsqueeze(-1) < torch.stack([t, 2 * t], -1)).sum(-1).double().square()


def in_place(t):
    return torch.rand(len(t), dtype=torch.float64).lt_(t) * 3


UNIFORMS = {
    broadcast: 4.0,
    by_the_cdf: -7.0,
    twice: 5.0,
    after_a_constant: 2.0,
    columns: 2 + 4 * 0.3,
    rows: 3 * 1.3**2,
    row_of_thresholds: 5.0,
    in_place: 3.0,
    transposed: 3.0,
}


@BOTH
@pytest.mark.parametrize("simulate", UNIFORMS, ids=lambda f: f.__name__)
def test_a_uniform_number_may_meet_several_thresholds(simulate, by):
    assert is_right(gradients(simulate, by), UNIFORMS[simulate])


@pytest.mark.parametrize("by", [gengs.RLOO(), gengs.FittedScore()], ids=["RLOO", "fitted"])
def test_a_threshold_may_depend_on_the_one_before_by_the_score(by):
    assert is_right(gradients(nested, by), 0.5)
    assert "sets the parameters of later draws" in said(nested)


# ------------------------------------------------------------ 2. a gradient that is there already


@BOTH
def test_a_laws_own_rsample_is_left_alone(by):
    weights = torch.tensor([0.0, 1.0], dtype=torch.float64)

    def simulate(t):
        law = OneHotCategoricalStraightThrough(torch.stack([1 - t, t], -1))
        return law.rsample() @ weights

    assert is_right(gradients(simulate, by), 1.0)


STRAIGHT_THROUGH = {
    "z + p - sg(p)": lambda p: torch.bernoulli(p) + p - p.detach(),
    "z - sg(p) + p": lambda p: torch.bernoulli(p) - p.detach() + p,
    "z + (p - sg(p))": lambda p: torch.bernoulli(p) + (p - p.detach()),
    "Law": lambda p: Bernoulli(p).sample() + p - p.detach(),
}


@BOTH
@pytest.mark.parametrize("name", STRAIGHT_THROUGH)
def test_straight_through_by_hand_is_named(name, by):
    message = said(STRAIGHT_THROUGH[name], by)
    assert "test_never_silent.py:" in message and "straight-through" in message


def test_straight_through_by_hand_of_a_plain_draw_is_named():
    message = said(lambda p: (torch.bernoulli(p) - p).detach() + p, gengs.RLOO())
    assert "straight-through" in message


def test_a_detached_baseline_is_no_news():
    def simulate(p):
        baseline = 3 * p
        return torch.bernoulli(p) - baseline.detach()

    assert said(simulate, gengs.RLOO()) == ""


def reinforce(p):
    law = Bernoulli(p)
    z = law.sample()
    return law.log_prob(z) * (z.detach() - 0.5)


def elbo(p):
    law = Bernoulli(p)
    z = law.sample()
    return law.log_prob(z) - 2.0 * Bernoulli(torch.tensor(0.4).double()).log_prob(z)


def test_reinforce_by_hand_is_named_and_an_elbo_is_not():
    message = said(reinforce, gengs.RLOO())
    assert "by hand" in message and "test_never_silent.py:" in message
    assert said(elbo, gengs.RLOO()) == ""


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        return torch.bernoulli(p)

    @staticmethod
    def backward(ctx, grad):
        return grad


@BOTH
def test_a_draw_in_an_autograd_function_is_named(by):
    message = said(lambda p: Straight.apply(p) + torch.poisson(p), by)
    assert "autograd.Function" in message and "test_never_silent.py:" in message


# ------------------------------------------------------------------ 3. log_prob of what was drawn


@BOTH
def test_log_prob_of_a_drawn_index_keeps_the_gradient(by):
    """E[k - log q(k)] with k ~ (1 - t, t): 1 - log .9 + log .1."""
    prior = torch.tensor([0.1, 0.9], dtype=torch.float64)

    def simulate(t):
        k = Categorical(torch.stack([1 - t, t], -1)).sample()
        return k.double() - Categorical(prior).log_prob(k)

    assert is_right(gradients(simulate, by), 1 - np.log(0.9) + np.log(0.1))


@BOTH
def test_log_prob_of_a_drawn_vector_keeps_the_gradient(by):
    prior = torch.tensor([0.1, 0.9], dtype=torch.float64)

    def simulate(t):
        k = OneHotCategorical(torch.stack([1 - t, t], -1)).sample()
        return -OneHotCategorical(prior).log_prob(k)

    assert is_right(gradients(simulate, by), -np.log(0.9) + np.log(0.1))


def test_log_prob_of_a_drawn_index_as_a_count_keeps_the_gradient():
    def simulate(t):
        k = Categorical(torch.stack([1 - t, t], -1)).sample()
        return Geometric(torch.tensor(0.25).double()).log_prob(k)

    assert is_right(gradients(simulate), np.log(0.75))


def test_what_a_log_prob_looks_up_is_named():
    table = gengs.Finite(torch.arange(3.0).double(), logits=torch.zeros(3).double())
    message = said(lambda t: table.log_prob(torch.bernoulli(t)) + torch.bernoulli(t))
    assert "test_never_silent.py:" in message and "looked up" in message


# ---------------------------------------------------------------------- 4. which dimension counts


def time_first(n):
    return lambda t: Bernoulli(t[0].expand(n)).sample((50,)).sum(0).square()


def test_a_square_of_draws_asks_which_dimension_counts_replicates():
    with pytest.raises(ValueError, match=r"test_never_silent.py:\d+.*dim=0.*dim=1"):
        gradients(time_first(50), gengs.RLOO(), n=50)


@pytest.mark.parametrize("by", [gengs.RLOO(), None], ids=["RLOO", "path"])
@pytest.mark.parametrize("n", [50, 70])
def test_any_dimension_may_count_replicates(by, n):
    """E (Σ of 50)² = 50 p (1 - p) + (50 p)²: 50 (1 - 2 p) + 5000 p, of 150 blocks.

    What goes wrong here is wrong by a factor: the replicates' dimension is summed, or the other.
    """
    found = []
    for seed in range(150):
        torch.manual_seed(seed)
        t = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
        with differentiable(by=by, dim=1) as program:
            cost = time_first(n)(t)
        found += torch.autograd.grad(program.loss(cost).mean(), t)
    assert is_right(torch.cat(found), 20 + 1500)


def test_the_path_needs_no_replicates():
    assert said(lambda t: torch.bernoulli(t.expand(7, len(t))).sum(0)) == ""


def test_a_dimension_that_does_not_count_replicates_is_refused():
    with pytest.raises(ValueError, match=r"test_never_silent.py:\d+: .*dim=1.*50"):
        gradients(
            lambda t: torch.bernoulli(t.expand(3, 7, 50)).sum((0, 1)), gengs.RLOO(), n=50, dim=1
        )


# --------------------------------------------------------------------------------- 5. moving atoms


@BOTH
def test_atoms_that_move(by):
    def simulate(t):
        atoms = t.unsqueeze(-1) * torch.arange(2.0)
        return gengs.Finite(atoms, logits=torch.zeros(len(t), 2, dtype=torch.float64)).sample()

    assert is_right(gradients(simulate, by), 0.5)


# -------------------------------------------------------------------------------- 6. missed draws


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")
@BOTH
def test_draws_in_a_script_or_a_thread_are_noticed(by):
    script = torch.jit.script(_scripted)
    for missed in (script, _in_a_pool):
        message = said(
            lambda t, missed=missed: torch.bernoulli(t) + missed(t) + torch.bernoulli(t), by
        )
        assert "did not see" in message and "test_never_silent.py:" in message
        message = said(lambda t, missed=missed: torch.bernoulli(t) + missed(t), by)  # at the end
        assert "did not see" in message


def _scripted(p: torch.Tensor) -> torch.Tensor:
    return torch.bernoulli(p)


def _in_a_pool(p):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.bernoulli, p.detach()).result()


@BOTH
@pytest.mark.parametrize("draw", [np.random.rand, random.random], ids=["numpy", "random"])
def test_draws_by_numpy_and_random_are_noticed(draw, by):
    assert "did not see" in said(lambda t: torch.bernoulli(t) + (draw() < 0.5), by)


def test_other_random_functions_are_no_news():
    def simulate(t):
        x = torch.bernoulli(t)[torch.randperm(len(t))]
        x = torch.nn.functional.dropout(x, 0.1) + torch.randint(3, (len(t),)) * 0
        for fill in ("bernoulli_", "geometric_", "exponential_"):
            x = x + getattr(torch.empty_like(t), fill)(0.3)
        return x + torch.distributions.Gamma(2.0, 1.0).sample((len(t),)) + torch.randn(len(t))

    assert said(simulate) == ""


@BOTH
def test_a_law_that_is_made_in_the_block(by):
    def simulate(t):
        class Own(Distribution):
            arg_constraints = {}
            support = constraints.boolean

            def __init__(self, p):
                self.p = p
                super().__init__(p.shape, validate_args=False)

            def sample(self, sample_shape=()):
                with torch.no_grad():
                    return torch.bernoulli(self.p)

            def log_prob(self, value):
                return Bernoulli(self.p, validate_args=False).log_prob(value)

        return Own(t).sample() * 2 + torch.bernoulli(t)

    assert is_right(gradients(simulate, by), 3.0)


# ---------------------------------------------------------------------------- 7. padding classes


@pytest.mark.parametrize("classes", [2, 3, -1])
def test_one_hot_vectors_with_padding(classes):
    def simulate(t):
        k = Categorical(torch.stack([1 - t, t], -1)).sample()
        return one_hot(k, classes).double()[:, :2] @ torch.tensor([1.0, 4.0]).double()

    assert is_right(gradients(simulate), 3.0)


# ------------------------------------------------- 8. a parameter that is lost before its draw

LOST = {
    "torch.tensor": lambda t: torch.bernoulli(torch.tensor([t[0], t[0]]).repeat(len(t) // 2)),
    "float": lambda t: torch.bernoulli(torch.full((len(t),), float(t[0]))),
    "item, derived": lambda t: Binomial(3, t[0].item() / 2).sample((len(t),)),
    "detach": lambda t: torch.poisson(2 * t.detach()),
    "numpy": lambda t: torch.poisson(torch.from_numpy(t.detach().numpy() * 2)),
    "linspace": lambda t: torch.bernoulli(torch.linspace(0, t[0].clone(), len(t)).double()),
    "out": lambda t: torch.bernoulli(t.detach(), out=torch.empty_like(t.detach())),
    "of one of two": lambda t: Binomial(torch.tensor(3.0), 1 - t.detach()).sample(),
}


@BOTH
@pytest.mark.parametrize("name", LOST)
@pytest.mark.filterwarnings("ignore:Converting a tensor:UserWarning")
def test_a_parameter_that_is_lost_before_its_draw_is_named(name, by):
    message = said(lambda t: LOST[name](t) + torch.bernoulli(t), by)
    assert "lost its gradient" in message and message.count("test_never_silent.py:") >= 2


# -------------------------------------------------------------- 9. a function of the loss


@pytest.mark.parametrize("by", [gengs.RLOO(), gengs.REINFORCE()])
def test_a_function_of_the_loss_is_noticed(by):
    t = torch.full((50,), 0.3, requires_grad=True)
    with differentiable(by=by) as program:
        z = torch.poisson(t)
    loss = program.loss(z).square().mean()
    with pytest.warns(ProgramWarning, match=r"program\.mean"):
        loss.backward()
    with differentiable(by=by) as program:
        z = torch.poisson(t)
    (3 * program.loss(z)).mean().backward()


# --------------------------------------------------- 11. 0/1 states that set later parameters


def rumour(t):
    x = torch.zeros(len(t), 5, dtype=torch.float64)
    x[:, 0] = 1
    for _ in range(3):
        x = torch.bernoulli((t.unsqueeze(-1) * (x.roll(1, -1) + x)).clamp(0.01, 0.99))
    return x.mean(-1)


def test_a_state_of_zeros_and_ones_that_sets_later_parameters_is_named():
    message = said(rumour)
    assert "test_never_silent.py:" in message and "sets the parameters of later draws" in message
    assert "program.check" in message and "RLOO" in message
    assert said(rumour, gengs.RLOO()) == ""
    assert said(lambda t: torch.poisson(torch.poisson(50 * t) + 1)) == ""


def tokens(t):
    state = torch.zeros(len(t), dtype=torch.float64)
    for _ in range(3):
        k = Categorical(torch.stack([1 - t + state, t], -1)).sample()
        state = one_hot(k, 2)[:, 1].double()
    return state


def test_indices_that_set_later_parameters_are_named():
    assert "sets the parameters of later draws" in said(tokens)


def test_a_warning_is_given_once_under_pythons_own_filter():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for seed in range(3):
            gradients(rumour, at=0.2 + 0.1 * seed, n=50)
    assert len(caught) == 1


# ------------------------------------------------------------------------ 12. absorbing states


def dying(t):
    alive = torch.full((len(t),), 2.0, dtype=torch.float64)
    for _ in range(8):
        alive = torch.poisson(alive * (0.5 + t))
    return alive


def test_absorbing_states_are_said_once_and_without_a_wrong_advice():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for seed in range(3):
            gradients(dying, at=0.2 + 0.1 * seed, n=200)
    assert len(caught) == 1 and "program.check" in str(caught[0].message)
    assert said(lambda t: dying(t + 2), n=200) == ""  # almost none dies out


# ---------------------------------------------------------------------- 13. updates in place


def with_updates_in_place(t):
    susceptible = torch.full((len(t),), 90.0, dtype=torch.float64)
    infected = torch.full((len(t),), 10.0, dtype=torch.float64)
    history = torch.zeros(3, len(t), dtype=torch.float64)
    for step in range(3):
        new = torch.binomial(susceptible, 1 - torch.exp(-t * infected / 100))
        susceptible -= new
        infected.add_(new)
        infected[: len(t) // 2] *= 1.0
        history[step] = new
    return history.sum(0)


def without(t):
    susceptible = torch.full((len(t),), 90.0, dtype=torch.float64)
    infected = torch.full((len(t),), 10.0, dtype=torch.float64)
    total = 0
    for _ in range(3):
        new = torch.binomial(susceptible, 1 - torch.exp(-t * infected / 100))
        susceptible, infected, total = susceptible - new, infected + new, total + new
    return total


@pytest.mark.parametrize(
    "by", [None, gengs.RLOO(), gengs.FittedScore()], ids=["path", "RLOO", "fitted"]
)
def test_updates_in_place_run_and_give_the_same_gradient(by):
    found, exact = (gradients(f, by, n=100) for f in (with_updates_in_place, without))
    torch.testing.assert_close(found, exact)


# ------------------------------------------------------------- 14. no draw was seen: which line

UNSEEN = {
    "sign": lambda p: torch.relu(torch.sign(p - torch.rand(50))),
    "long": lambda p: (p + torch.rand(50)).long(),
    "no_grad": lambda p: torch.no_grad()(torch.multinomial)(torch.stack([p, 1 - p], -1), 1)[:, 0],
    "numpy": lambda p: torch.from_numpy(np.random.rand(50)) < p.detach(),  # noqa: NPY002
}


@pytest.mark.parametrize("name", UNSEEN)
def test_where_no_draw_was_seen_the_lines_are_named(name):
    with pytest.raises(ValueError, match=r"no draw.*(test_never_silent.py:\d+|numpy)"):
        gradients(lambda p: UNSEEN[name](p) + p, n=50)


def test_a_gradient_that_is_cut_is_still_a_warning():
    assert issubclass(CutGradientWarning, ProgramWarning)


# ----------------------------------------------------------- what beginners and old hands write


def test_rows_of_numbers_are_replicates_each():
    with differentiable(by=gengs.RLOO()) as program:
        cost = rows(torch.full((50,), 0.3, requires_grad=True))
    program.loss(cost)
    assert not any(site.shared for site in program.sites)


OUTSIDE = torch.rand(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@BOTH
def test_uniform_numbers_from_outside_of_the_block_are_named(by):
    message = said(lambda t: torch.bernoulli(t) + (t > OUTSIDE), by)
    assert "outside of the block" in message and "test_never_silent.py:" in message
    levels = torch.linspace(0, 1, 50)
    assert said(lambda t: torch.bernoulli(t) + (t > levels), by) == ""


class Spikes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        return (torch.rand_like(p) < p).to(p.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad


@BOTH
def test_uniform_numbers_in_an_autograd_function_are_named(by):
    message = said(lambda p: Spikes.apply(p) + torch.bernoulli(p), by)
    assert "autograd.Function" in message and "test_never_silent.py:" in message


class Coin:
    def __init__(self, p):
        self.p = p

    @torch.no_grad()
    def toss(self):
        return torch.bernoulli(self.p)

    @torch.no_grad()
    def sample(self):
        return Bernoulli(self.p).sample()


@BOTH
def test_a_draw_under_no_grad_from_parameters_with_a_gradient_is_named(by):
    for coin in (Coin.toss, Coin.sample):
        message = said(lambda p, coin=coin: coin(Coin(p)) + torch.bernoulli(p), by)
        assert "under torch.no_grad" in message and "test_never_silent.py:" in message
    assert said(lambda p: Coin(p.detach()).toss() + torch.bernoulli(p), by) == ""


@BOTH
def test_a_ratio_by_hand_is_named(by):
    message = said(lambda p: torch.bernoulli(p) * p / p.detach(), by)
    assert "straight-through" in message and "test_never_silent.py:" in message
    assert said(lambda p: torch.bernoulli(p) * p / p.sum().detach(), by) == ""


@BOTH
def test_what_a_distribution_compares_is_no_draw_of_the_users(by):
    def simulate(t):
        x = torch.distributions.Normal(t, 1.0).rsample()
        u = torch.distributions.Uniform(0.0, t).rsample()
        weight = torch.distributions.Normal(x, 1.0).log_prob(torch.tensor(0.5).double())
        return weight + torch.distributions.Uniform(0.0, 2 * t).log_prob(u) + torch.bernoulli(t)

    assert said(simulate, by) == ""


def test_a_boundary_from_which_no_step_leads_is_no_news():
    """The probability is 1 where nobody is there to die, whatever the rates."""

    def simulate(t):
        dies = 0.7 * t * torch.zeros(len(t), dtype=torch.float64)
        return torch.bernoulli(3.1 * t / (3.1 * t + dies)) + torch.poisson(t)

    assert said(simulate, gengs.RLOO()) == ""
    assert "boundary" in said_of(lambda t: torch.bernoulli(1 - 0 * t + (t - t.detach())))


def said_of(simulate):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients(simulate, gengs.RLOO(), n=50)
    return "\n".join(str(w.message) for w in caught)


def test_a_loop_of_another_length_is_no_other_warning():
    def simulate(t):
        tries = torch.zeros(len(t), dtype=torch.float64)
        done = tries > 0
        while not done.all():
            tries = tries + ~done
            done = done | (torch.rand(len(t)) < t)
        return tries

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for seed in range(4):
            gradients(simulate, at=0.3 + 0.1 * seed)
    assert len(caught) <= 1
