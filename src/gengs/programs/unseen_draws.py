"""Draws that a block does not see: in ``torch.jit.script``, in another thread, by numpy.

They are noticed by what they leave behind: random generators that have moved between one function
that the block saw and the next. Generators that are not global (``torch.Generator``,
``numpy.random.default_rng()``) cannot be watched.
"""

__all__ = ["RANDOM", "UnseenDraws"]

import random
import sys
from typing import Any

import torch

from .sample_site import Site, place_of, where

RANDOM = frozenset(
    {
        *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
        *("normal", "normal_", "uniform_", "exponential_", "log_normal_", "cauchy_", "random_"),
        *("poisson", "binomial", "bernoulli", "bernoulli_", "multinomial", "geometric_"),
        *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"),
        *("alpha_dropout_", "feature_alpha_dropout", "feature_dropout", "feature_dropout_"),
        *("rrelu", "rrelu_", "gumbel_softmax", "_standard_gamma", "_sample_dirichlet"),
        *("scaled_dot_product_attention", "multi_head_attention_forward", "lstm", "gru"),
        *("rnn_tanh", "rnn_relu", "embedding_bag", "seed", "manual_seed", "set_rng_state"),
    }
)
"""Functions of torch's that move its generator, and are seen when they do."""


def _others() -> dict[str, Any]:
    states: dict[str, Any] = {"random": random.getstate()}
    if "numpy.random" in sys.modules:
        state = sys.modules["numpy.random"].get_state()
        states["numpy.random"] = state[2], int(state[1][0])
    return states


class UnseenDraws:
    """Watches the global generators while a block is open."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._others = _others()
        self._state = torch.get_rng_state()
        self._last: Site | None = None

    def before(self) -> None:
        """A function that draws is about to run."""
        if self._has_moved():
            self._missed(place_of(*where()))

    def after(self) -> None:
        """A function that draws has run."""
        self._state = torch.get_rng_state()

    def at(self, site: Site) -> None:
        """A draw was seen here."""
        self._last = site

    def end(self) -> None:
        """The block ends."""
        if self._has_moved():
            self._missed("the end of the block")
        for name, state in _others().items():
            if self._others.get(name, state) != state:
                self.found.append(f"by `{name}`")

    def _has_moved(self) -> bool:
        return not torch.equal(torch.get_rng_state(), self._state)

    def _missed(self, before: str) -> None:
        last = self._last.place if self._last is not None else "the beginning of the block"
        note = f"between {last} and {before}"
        if note not in self.found and len(self.found) < 5:
            self.found.append(note)

    def sentence(self) -> str | None:
        """What is to be said of it, if anything."""
        if not self.found:
            return None
        return (
            f"random numbers were drawn that the block did not see: {'; '.join(self.found)} (in "
            "torch.jit.script, in another thread, by numpy or random?); if they depend on "
            "parameters, that part of the gradient is missing: draw in the block, by torch."
        )
