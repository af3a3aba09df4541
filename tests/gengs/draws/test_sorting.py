"""Orders of scores by numpy, where it is there, are those of torch's stable sort."""

import pytest
import torch

from gengs.numerics import sorting
from gengs.numerics.sorting import highest_first


def stable(scores):
    return scores.sort(dim=-1, descending=True, stable=True).indices


@pytest.mark.parametrize("numpy", [True, False])
@pytest.mark.parametrize("shape", [(7,), (3, 1), (2, 3, 50), (0, 4), (5, 700)])
def test_equal_scores_keep_their_order(monkeypatch, numpy, shape):
    monkeypatch.setattr(sorting, "_HAS_NUMPY", numpy)
    torch.manual_seed(0)
    scores = torch.randint(-5, 5, shape).float()  # many are equal
    assert torch.equal(highest_first(scores), stable(scores))
    scores = torch.randn(shape) * 1e30
    scores = scores.where(torch.rand(shape) < 0.8, -torch.inf)
    assert torch.equal(highest_first(scores), stable(scores))
    assert torch.equal(highest_first(scores.double()), stable(scores))
    wide = scores.unsqueeze(0).expand(2, *shape)  # no memory of its own
    assert torch.equal(highest_first(wide), stable(wide))


def test_in_a_transform():
    scores = torch.randn(4, 9)
    assert torch.equal(torch.func.vmap(highest_first)(scores), stable(scores))
