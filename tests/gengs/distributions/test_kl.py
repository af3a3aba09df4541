"""Divergences: between laws on the same atoms, against infinite laws, and the pairs torch lacks."""

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Independent,
    Multinomial,
    NegativeBinomial,
    Normal,
    Poisson,
    kl_divergence,
)
from torch.distributions.kl import _kl_binomial_binomial

import gengs

Q, P = torch.tensor([0.2, 0.5, 0.3]).double(), torch.tensor([0.6, 0.1, 0.3]).double()
K = torch.arange(3)


def sum_over(q, p, last):
    """The divergence by its definition, over the integers 0 … last."""
    k = torch.arange(last + 1, dtype=torch.float64)
    k = k.reshape(-1, *(1 for _ in q.batch_shape))
    log_q = q.log_prob(k)
    return (log_q.exp() * (log_q - p.log_prob(k))).sum(0)


def test_same_atoms():
    q, p = gengs.Finite(K, probs=Q), gengs.Finite(K, probs=P)
    torch.testing.assert_close(kl_divergence(q, p), (Q * (Q / P).log()).sum())
    assert kl_divergence(q, q).abs() < 1e-15
    joint = kl_divergence(Independent(q.expand((4,)), 1), Independent(p.expand((4,)), 1))
    torch.testing.assert_close(joint, 4 * kl_divergence(q, p))


def test_batches_broadcast():
    q, p = gengs.Finite(K, probs=Q.expand(4, 1, 3)), gengs.Finite(K, probs=P.expand(2, 3))
    assert kl_divergence(q, p).shape == (4, 2)


def test_vector_atoms():
    atoms = torch.eye(3)
    q = gengs.Finite(atoms, probs=Q, event_dim=1)
    p = gengs.Finite(atoms.clone(), probs=P, event_dim=1)
    torch.testing.assert_close(kl_divergence(q, p), (Q * (Q / P).log()).sum())


def test_zero_log_zero_is_zero_and_impossible_is_infinite():
    some, all_ = torch.tensor([0.5, 0.5, 0.0]).double(), P
    q, p = gengs.Finite(K, probs=some), gengs.Finite(K, probs=all_)
    torch.testing.assert_close(kl_divergence(q, p), (some[:2] * (some[:2] / P[:2]).log()).sum())
    assert kl_divergence(p, q) == torch.inf
    assert kl_divergence(q, q) == 0


def test_gradient_has_no_nan_where_atoms_are_impossible():
    logits = torch.tensor([0.0, 1.0, -torch.inf], requires_grad=True)
    other = torch.tensor([0.5, 0.0, -torch.inf], requires_grad=True)
    kl_divergence(gengs.Finite(K, logits=logits), gengs.Finite(K, logits=other)).backward()
    assert torch.isfinite(logits.grad).all()
    assert torch.isfinite(other.grad).all()
    assert logits.grad[0] != 0


def test_gradient_by_differences():
    def divergence(q, p):
        return kl_divergence(gengs.Finite(K, logits=q), gengs.Finite(K, logits=p))

    inputs = (Q.log().requires_grad_(), P.log().requires_grad_())
    assert torch.autograd.gradcheck(divergence, inputs)
    assert torch.autograd.gradgradcheck(divergence, inputs)


def test_different_atoms_are_refused():
    with pytest.raises(ValueError, match="atoms differ"):
        kl_divergence(gengs.Finite(K, probs=Q), gengs.Finite(K + 1, probs=P))
    with pytest.raises(ValueError, match=r"3 atoms .* and 2"):
        kl_divergence(gengs.Finite(K, probs=Q), gengs.Finite(K[:2], probs=P[:2]))


def test_different_windows_are_refused():
    law = Poisson(torch.tensor([2.0, 2.5], dtype=torch.float64))
    cut, longer = gengs.truncate(law, 3), gengs.truncate(law, 4)
    later = gengs.truncate(law, low=1, high=3)
    by_hand = gengs.Finite(K + 1, probs=P)
    each = gengs.Window(torch.tensor([0, 1]), 3, allowed=0.5)
    for q, p in [(cut, later), (cut, by_hand), (cut, gengs.truncate(law, window=each))]:
        for pair in [(q, p), (p, q)]:
            with pytest.raises(ValueError, match="atoms differ"):
                kl_divergence(*pair)
    with pytest.raises(ValueError, match=r"3 atoms .* and 4"):
        kl_divergence(cut, longer)
    same = gengs.Finite(K, probs=cut.probs)
    for pair in [(cut, same), (same, cut), (cut, cut.expand((2,)))]:
        torch.testing.assert_close(kl_divergence(*pair), torch.zeros(2, dtype=torch.float64))


def test_divergence_against_an_infinite_law():
    q = gengs.Finite(K, probs=Q)
    rate = torch.tensor(1.5, dtype=torch.float64)
    wanted = (Q * (Q.log() - Poisson(rate).log_prob(K))).sum()
    torch.testing.assert_close(kl_divergence(q, Poisson(rate)), wanted)
    assert kl_divergence(q, Bernoulli(torch.tensor(0.5))) == torch.inf
    halves = gengs.Finite(torch.tensor([0.0, 0.5]), probs=torch.ones(2))
    assert kl_divergence(halves, Bernoulli(torch.tensor(0.5))) == torch.inf
    assert kl_divergence(halves, Poisson(torch.tensor(2.0))) == torch.inf


def test_divergence_against_a_continuous_law_is_refused():
    with pytest.raises((TypeError, NotImplementedError), match="Normal"):
        kl_divergence(gengs.Finite(K, probs=Q), Normal(0.0, 1.0))


def test_truncated_divergence_tends_to_the_whole():
    q, p = Poisson(torch.tensor(3.0).double()), Poisson(torch.tensor(5.0).double())
    window = gengs.truncate(p, tolerance=1e-12).certificate.window
    cut = kl_divergence(gengs.truncate(q, window=window), gengs.truncate(p, window=window))
    torch.testing.assert_close(cut, kl_divergence(q, p), rtol=1e-7, atol=1e-9)


# --------------------------------------------------------------------------- pairs torch lacks


def test_negative_binomials():
    r = torch.tensor([0.5, 3.0]).double()
    q = NegativeBinomial(r, torch.tensor([0.3, 0.6]).double())
    p = NegativeBinomial(r, logits=torch.tensor([0.2, -1.0]).double())
    torch.testing.assert_close(kl_divergence(q, p), sum_over(q, p, 300))
    with pytest.raises(NotImplementedError, match="equal `total_count`"):
        kl_divergence(q, NegativeBinomial(r + 1, p.probs))


def test_multinomials():
    q, p = Multinomial(4, Q), Multinomial(4, P)
    cut = kl_divergence(gengs.truncate(q), gengs.truncate(p))
    torch.testing.assert_close(kl_divergence(q, p), cut)
    torch.testing.assert_close(cut, 4 * (Q * (Q / P).log()).sum())
    with pytest.raises(ValueError, match=r"total_count.* 4 and 5"):
        kl_divergence(q, Multinomial(5, P))


def test_binomials_with_different_counts():
    total = torch.tensor([3.0, 10.0, 5.0]).double()
    q = Binomial(total, torch.tensor([0.3, 0.6, 0.5]).double())
    p = Binomial(torch.tensor([7.0, 10.0, 4.0]).double(), torch.tensor([0.2, 0.5, 0.5]).double())
    divergence = kl_divergence(q, p)
    for element in range(3):
        k = torch.arange(int(total[element]) + 1, dtype=torch.float64)
        log_q = Binomial(total[element], q.probs[element]).log_prob(k)
        if k.max() > p.total_count[element]:
            assert divergence[element] == torch.inf
            continue
        log_p = Binomial(p.total_count[element], p.probs[element]).log_prob(k)
        torch.testing.assert_close(divergence[element], (log_q.exp() * (log_q - log_p)).sum())


def test_binomials_with_equal_counts_are_torchs():
    total = torch.tensor([1.0, 20.0, 300.0]).double()
    q = Binomial(total, torch.tensor([0.3, 0.6, 0.01]).double())
    p = Binomial(total, torch.tensor([0.2, 0.5, 0.02]).double())
    torch.testing.assert_close(kl_divergence(q, p), _kl_binomial_binomial(q, p))


def test_binomial_point_masses():
    n = torch.tensor(4.0)
    sure, fair = Binomial(n, torch.tensor(1.0)), Binomial(n, torch.tensor(0.5))
    torch.testing.assert_close(kl_divergence(sure, fair), 4 * torch.tensor(2.0).log())
    assert kl_divergence(fair, sure) == torch.inf
    assert kl_divergence(sure, sure) == 0


@pytest.mark.parametrize(
    ("q", "p"),
    [
        (Poisson(torch.tensor(2.0)), Poisson(torch.tensor(3.0))),
        (Bernoulli(torch.tensor(0.2)), Bernoulli(torch.tensor(0.6))),
        (Bernoulli(torch.tensor(0.2)), Poisson(torch.tensor(1.0))),
        (Categorical(Q), Categorical(P)),
        (Geometric(torch.tensor(0.2)), Geometric(torch.tensor(0.6))),
        (Normal(0.0, 1.0), Normal(1.0, 2.0)),
    ],
    ids=lambda law: type(law).__name__,
)
def test_torchs_own_pairs_are_torchs_own(q, p):
    from torch.distributions.kl import _dispatch_kl

    assert _dispatch_kl(type(q), type(p)).__module__ == "torch.distributions.kl"


@pytest.mark.parametrize("kind", [Binomial, NegativeBinomial])
def test_unequal_trials_that_nobody_looks_at_are_nan(kind):
    q, p = (
        kind(torch.tensor([3.0, n]), torch.tensor(0.4), validate_args=False) for n in (4.0, 5.0)
    )
    found = torch.distributions.kl_divergence(q, p)
    assert found[0] == 0 and found[1].isnan()
