"""What is trained, and for how long: the words between an experiment and the training loop."""

from __future__ import annotations

__all__ = ["Data", "Stateful", "Task", "Training"]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer


class Data(Protocol):
    """Batches as a function of the step: a run that resumes asks for the ones it still needs."""

    def batch(self, step: int, rank: int, world: int) -> Any:
        """The share of process ``rank`` of ``world`` in the batch of a step; steps begin at 0."""


class Stateful(Protocol):
    """What moves on by one with each step: a temperature or a learning-rate schedule."""

    def step(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any: ...


@dataclass(frozen=True)
class Task:
    """A loss to be minimised, with everything that changes while it is."""

    modules: Mapping[str, nn.Module]
    """What is trained and saved, by name: the model, and the estimator with its own parameters."""
    step: Callable[[Any], Tensor | Mapping[str, Tensor]]
    """From a batch to the loss, a scalar; or to several scalars, one of them named ``loss``."""
    data: Data
    """The batches."""
    optimizers: Sequence[Optimizer]
    """They all make one step after each loss."""
    schedules: Mapping[str, Stateful] = field(default_factory=dict)
    """They all make one step after the optimisers; their values are recorded under these names."""
    evaluate: Callable[[], Mapping[str, Any]] | None = None
    """Called without gradients, in evaluation mode, with random numbers of its own: how often it
    is called does not change the training."""
    pictures: Callable[[], Mapping[str, Tensor]] | None = None
    """Called with each evaluation, in the same way: grey pictures, ``uint8 (height, width)``, by
    name. The folder of the run keeps the last ones as PNG files, TensorBoard all."""
    some_may_rest: bool = True
    """Whether a loss may leave out some parameters, as an estimator's own; with several processes,
    these then look in each step for those that it did."""


@dataclass(frozen=True)
class Training:
    """For how long to train, and what to note on the way."""

    steps: int = 1000
    """The number of optimisation steps."""
    clip: float | None = None
    """Scale each optimiser's gradient down to at most this norm."""
    record_every: int = 100
    """Record the mean loss of this many steps."""
    evaluate_every: int | None = None
    """Evaluate each time this many steps are done; by default at the end alone."""
    precision: Literal["32-true", "64-true", "bf16-mixed"] = "32-true"
    """The arithmetic, in the words of Lightning Fabric; 32-true leaves dtypes as they are."""

    def __post_init__(self) -> None:
        for name in ("steps", "record_every", "evaluate_every"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"expected at least 1 for `{name}`, but got {number}.")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"expected a positive `clip`, but got {self.clip}.")
