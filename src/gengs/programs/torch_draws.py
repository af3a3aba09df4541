"""torch's own draws, each with what makes it elsewhere and torch's own arguments."""

__all__ = ["DRAWS", "draw_geometric"]

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, Geometric, Normal, Poisson

from .block_stack import current, quiet
from .cut_operations import moving
from .picks import Picks
from .sample_site import Plain, place_of, where


def _poisson(plain: Plain, input: Tensor, *_: Any, **__: Any) -> Tensor:
    return current().draw(Poisson(input, validate_args=False), plain)


def _binomial(plain: Plain, count: Tensor, prob: Tensor, *_: Any, **__: Any) -> Tensor:
    return current().draw(Binomial(count, prob, validate_args=False), plain)


def _bernoulli(plain: Plain, input: Tensor, p: Any = None, **settings: Any) -> Tensor:
    if p is not None or "out" in settings:  # a number is no parameter
        return _without_slope("Bernoulli", plain(), input)
    return current().draw(Bernoulli(input, validate_args=False), plain)


def _bernoulli_in_place(plain: Plain, target: Tensor, p: Any = None, **_: Any) -> Tensor:
    if not isinstance(p, Tensor):
        return plain()
    return _fill(target, Bernoulli(p.expand(target.shape), validate_args=False), plain)


def draw_geometric(target: Tensor, p: Tensor, plain: Any) -> Tensor:
    """``target.geometric_(p)`` with a tensor for ``p``, which torch itself does not take."""
    law = Geometric(p.expand(target.shape), validate_args=False)
    number = float(p.detach())
    # torch counts the trials here, and the failures before a success in Geometric
    return _fill(target, law, lambda: plain(target, number) - 1, shift=1)


def _fill(target: Tensor, law: Any, plain: Plain, shift: int = 0) -> Tensor:
    drawn = current().draw(law, lambda: plain().clone())
    with quiet():
        return target.copy_(drawn + shift)


def _normal(plain: Plain, mean: Any = 0.0, std: Any = 1.0, *_: Any, **__: Any) -> Tensor:
    """``torch.normal``, whose gradient torch takes to be 0."""
    if next(moving((mean, std)), None) is None:
        return plain()
    return current().draw(Normal(mean, std, validate_args=False), plain, name="torch.normal")


def _multinomial(
    plain: Plain, input: Tensor, num_samples: int = 1, replacement: bool = False, **_: Any
) -> Tensor:
    """Indices of rows of weights: ``(*batch, num_samples)``."""
    program, weights, name = current(), input, "torch.multinomial"
    if replacement or num_samples <= 1:
        shape = (*weights.shape[:-1], num_samples, weights.shape[-1])
        law = Categorical(weights.unsqueeze(-2).expand(shape), validate_args=False)
        return program.draw(law, plain, name=name)
    with quiet(), torch.no_grad():
        order = plain()
        if program.validate and bool(((weights > 0).sum(-1) < num_samples).any()):
            raise ValueError(
                f"{place_of(*where())}: torch.multinomial expects at least {num_samples} weights "
                "above 0 in each row to draw that many without replacement, but some row has fewer."
            )
    with quiet():
        law = Picks(weights, order)
    return program.draw(law, lambda: order, name=name)


def _without_slope(name: str, drawn: Tensor, parameter: Tensor) -> Tensor:
    """A draw that torch has made, and that carries no gradient."""
    site = current().site(name, tuple(drawn.shape), rule="none")
    current().mode.lost.drawn(site, [parameter], moves=False)
    return drawn


DRAWS: dict[str, Callable[..., Tensor]] = {
    "poisson": _poisson,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli_in_place,
    "multinomial": _multinomial,
    "normal": _normal,
}
"""By the name of the function."""
