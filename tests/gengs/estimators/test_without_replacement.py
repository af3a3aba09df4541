import itertools
import math

import numpy as np
import pytest
import torch
from frequencies import assert_frequencies

from gengs.estimators.without_replacement import (
    most_likely,
    sample_outside,
    sample_without_replacement,
)

DOUBLE = torch.float64


def joint(logits):
    """All joint log-probabilities, ``(*batch, n^F)``."""
    total = torch.zeros(*logits.shape[:-2], 1, dtype=logits.dtype)
    for factor in logits.unbind(-2):
        total = (total.unsqueeze(-1) + factor.unsqueeze(-2)).flatten(-2)
    return total


def code(index, n):
    """Joint outcomes ``(..., F)`` as positions in :func:`joint`."""
    base = n ** torch.arange(index.shape[-1] - 1, -1, -1)
    return (index * base).sum(-1)


@pytest.mark.parametrize(("factors", "n", "k"), [(3, 2, 3), (2, 3, 2), (1, 5, 3)])
def test_ordered_draws_follow_sequential_sampling(factors, n, k):
    replicates = 60_000
    table = (1.2 * torch.randn(factors, n, dtype=DOUBLE)).log_softmax(-1)
    drawn = sample_without_replacement(table.expand(replicates, factors, n), k)
    codes = code(drawn.index, n)  # (k, N)
    q, size = joint(table).exp().numpy(), n**factors
    sequences = list(itertools.permutations(range(size), k))
    probs = []
    for sequence in sequences:
        left, p = 1.0, 1.0
        for s in sequence:
            p, left = p * q[s] / left, left - q[s]
        probs.append(p)
    flat = sum(c * size ** (k - 1 - i) for i, c in enumerate(codes)).numpy()
    counts = np.bincount(flat, minlength=size**k)
    wanted = np.zeros(size**k)
    for sequence, p in zip(sequences, probs, strict=True):
        wanted[sum(s * size ** (k - 1 - i) for i, s in enumerate(sequence))] = p
    assert_frequencies(counts, wanted)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (6, 8)])
def test_perturbed_values_are_those_of_the_gumbel_top_k(n, k):
    """The largest is Gumbel(0), the next ones follow the race of what is left (all through u)."""
    table = torch.randn(2, n, dtype=DOUBLE).log_softmax(-1)
    drawn = sample_without_replacement(table.expand(40_000, 2, n), k)
    times, probs = (-drawn.perturbed).exp(), drawn.log_prob.exp()  # arrival times
    rest = 1 + probs - probs.cumsum(0)
    for waits in times.diff(dim=0, prepend=torch.zeros_like(times[:1])) * rest:
        u = torch.expm1(-waits).neg()  # standard exponentials become uniform
        counts = torch.histc(u, 20, 0, 1).numpy()
        assert_frequencies(counts, np.full(20, 0.05))


@pytest.mark.parametrize("factors", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_most_likely_is_the_sorted_list(factors, k):
    table = (2 * torch.randn(6, factors, 3, dtype=DOUBLE)).log_softmax(-1)
    found = most_likely(table, k)
    kept = min(k, 3**factors)
    wanted = joint(table).sort(-1, descending=True).values[:, :kept].T
    torch.testing.assert_close(found.log_prob, wanted)
    torch.testing.assert_close(
        joint(table).gather(-1, code(found.index, 3).T), found.log_prob.T.contiguous()
    )
    assert all(len(set(column)) == kept for column in code(found.index, 3).T.tolist())


@pytest.mark.parametrize("draw", [sample_without_replacement, most_likely])
def test_outcomes_are_distinct_and_log_probabilities_right(draw):
    table = torch.randn(4, 2, 3, 5).log_softmax(-1).requires_grad_()
    for k in (1, 10, 125, 300):
        found = draw(table, k)
        codes = code(found.index, 5)
        assert found.index.shape == (min(k, 125), 4, 2, 3)
        assert all(len(set(c)) == len(c) for c in codes.flatten(1).T.tolist())
        wanted = joint(table).gather(-1, codes.movedim(0, -1)).movedim(-1, 0)
        torch.testing.assert_close(found.log_prob, wanted)
        assert found.possible.all()
        assert (found.perturbed.diff(dim=0) <= 0).all()
    found.log_prob.sum().backward()
    assert torch.isfinite(table.grad).all()


@pytest.mark.parametrize("draw", [sample_without_replacement, most_likely])
def test_impossible_outcomes_repeat_the_first(draw):
    table = torch.tensor([[0.0, -math.inf, 0.0], [0.0, 0.0, -math.inf]]).log_softmax(-1)
    found = draw(table.expand(5, 2, 3), 6)
    assert (found.possible.sum(0) == 4).all()
    assert torch.isfinite(found.log_prob).all()
    assert (found.index[4:] == found.index[:1]).all()
    assert (found.perturbed[4:] == -math.inf).all()


@pytest.mark.parametrize("excluded", [1, 3, 7])
def test_draws_outside_a_set_follow_the_conditional_law(excluded):
    replicates = 40_000
    table = (1.5 * torch.randn(3, 2, dtype=DOUBLE)).log_softmax(-1)
    out = most_likely(table, excluded).index
    drawn, log_mass = sample_outside(
        table.expand(replicates, 3, 2), out.unsqueeze(1).expand(-1, replicates, -1)
    )
    wanted = joint(table).exp()
    wanted[code(out, 2)] = 0.0
    torch.testing.assert_close(log_mass[0].exp(), wanted.sum())
    assert_frequencies(np.bincount(code(drawn, 2).numpy(), minlength=8), wanted.numpy())


def test_a_tiny_rest_keeps_its_digits_and_an_empty_one_is_empty():
    table = torch.tensor([[0.0, -60.0], [0.0, -70.0]], dtype=DOUBLE).log_softmax(-1)
    drawn, log_mass = sample_outside(table, most_likely(table, 1).index)
    assert log_mass.item() == pytest.approx(math.log(math.exp(-60) + math.exp(-70)), abs=1e-9)
    assert drawn.sum() >= 1
    everything = most_likely(table, 4).index
    drawn, log_mass = sample_outside(table, everything)
    assert log_mass == -math.inf
    assert (drawn == everything[0]).all()


def test_log_probabilities_of_minus_thousands():
    table = (torch.randn(3, 400, 12) * 4).log_softmax(-1)
    for draw in (sample_without_replacement, most_likely):
        found = draw(table, 10)
        assert found.possible.all()
        assert torch.isfinite(found.log_prob).all()
        assert len({tuple(row.tolist()) for row in found.index[:, 0]}) == 10
