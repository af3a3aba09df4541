"""One step of a training, whoever makes it: the engine (:mod:`.loop`), or a fit in memory."""

__all__ = ["make_step"]

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor


def _nothing(outputs: Mapping[str, Tensor]) -> None:
    pass


def make_step(
    forward: Callable[[], Mapping[str, Tensor]],
    optimizers: Sequence[Any],
    schedules: Iterable[Any],
    *,
    backward: Callable[[Tensor], object] = Tensor.backward,
    inspect: Callable[[Mapping[str, Tensor]], object] = _nothing,
) -> Mapping[str, Tensor]:
    """Loss, gradient, optimisers, schedules; what ``forward`` returned, ``loss`` among it.

    ``inspect`` sees that and the gradients before they are used: it may clip them, or raise.
    """
    for optimizer in optimizers:
        optimizer.zero_grad()
    outputs = forward()
    backward(outputs["loss"])
    inspect(outputs)
    for part in (*optimizers, *schedules):
        part.step()
    return outputs
