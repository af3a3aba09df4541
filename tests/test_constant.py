"""Constants that are kept serve everyone who asks later, whoever asked first."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from gengs.distributions.constant import constant


def counting() -> tuple[list[int], object]:
    made: list[int] = []

    @constant
    def ones(n: int) -> Tensor:
        made.append(n)
        return torch.ones(n)

    return made, ones


def test_made_once() -> None:
    made, ones = counting()
    assert ones(3) is ones(3)
    assert ones(4).shape == (4,)
    assert made == [3, 4]


def test_first_asked_for_in_inference_mode_it_can_still_be_trained_with() -> None:
    _, ones = counting()
    with torch.inference_mode():
        ones(3)
    x = torch.zeros(3, requires_grad=True)
    (x * ones(3)).sum().backward()
    assert torch.equal(x.grad, torch.ones(3))


def test_a_fake_tensor_is_not_kept() -> None:
    _, ones = counting()
    with FakeTensorMode():
        ones(3)
    assert type(ones(3)) is Tensor


def test_what_a_transform_made_is_not_kept() -> None:
    @constant
    def doubled(n: int) -> Tensor:
        return held * n

    with torch.no_grad():

        def of_one(x: Tensor) -> Tensor:
            nonlocal held
            held = x
            return doubled(2)

        held = torch.zeros(())
        torch.vmap(of_one)(torch.arange(3.0))
        held = torch.tensor(5.0)
        assert doubled(2) == 10


def test_few_of_a_kind_are_kept() -> None:
    made, ones = counting()
    for n in range(100):
        ones(n)
    first = len(made)
    ones(99)
    assert len(made) == first  # the latest are there
    ones(0)
    assert len(made) == first + 1  # the earliest are not
