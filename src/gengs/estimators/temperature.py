r"""Temperatures that change while a model trains: schedules by global step.

==============  ====================================================================
schedule        temperature at step s of S, from a to b
==============  ====================================================================
Constant        a
Linear          a + (b - a) s/S
Exponential     a (b/a)^(s/S)
Cosine          b + (a - b) (1 + cos(π s/S)) / 2
==============  ====================================================================

After S steps the temperature stays at b. A schedule counts its own steps, like a learning-rate
scheduler, and saves the count in its ``state_dict``; called with a step, it is a plain function.
"""

__all__ = [
    "Constant",
    "Cosine",
    "Exponential",
    "Linear",
    "Schedule",
    "Temperature",
    "check_temperature",
    "temperature_now",
]

import math
from abc import ABC, abstractmethod

from ..numerics.gumbel_softmax import Temperature, check_temperature


class Schedule(ABC):
    """The temperature as a function of the global step.

    Args:
        start: The temperature at step 0.
        end: The temperature from step ``steps`` on.
        steps: How long it takes.

    Example:
        >>> tau = Exponential(1.0, 0.1, steps=100)
        >>> tau.value
        1.0
        >>> for _ in range(50):
        ...     tau.step()
        >>> round(tau.value, 4), round(tau(100), 4), tau.state_dict()
        (0.3162, 0.1, {'global_step': 50})
    """

    def __init__(self, start: float, end: float, steps: int) -> None:
        for name, temperature in (("start", start), ("end", end)):
            if not 0 < temperature < math.inf:
                raise ValueError(f"expected a positive, finite `{name}`, but got {temperature}.")
        if steps < 1:
            raise ValueError(f"expected at least one step in `steps`, but got {steps}.")
        self.start, self.end, self.steps = float(start), float(end), steps
        self.global_step = 0

    def __call__(self, step: int) -> float:
        """The temperature at a given step."""
        if step < 0:
            raise ValueError(f"expected a non-negative `step`, but got {step}.")
        return self._at(min(step / self.steps, 1.0))

    @property
    def value(self) -> float:
        """The temperature now."""
        return self(self.global_step)

    def step(self) -> None:
        """Go one step on."""
        self.global_step += 1

    def state_dict(self) -> dict[str, int]:
        """What a checkpoint needs."""
        return {"global_step": self.global_step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue where ``state`` was taken."""
        if set(state) != {"global_step"}:
            raise ValueError(f"expected the key 'global_step' alone, but got {sorted(state)}.")
        self.global_step = int(state["global_step"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.start}, {self.end}, steps={self.steps})"

    @abstractmethod
    def _at(self, fraction: float) -> float: ...


class Constant(Schedule):
    """The same temperature for ever."""

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature, temperature, 1)

    def _at(self, fraction: float) -> float:
        return self.start

    def __repr__(self) -> str:
        return f"Constant({self.start})"


class Linear(Schedule):
    """Straight from start to end."""

    def _at(self, fraction: float) -> float:
        return self.start + (self.end - self.start) * fraction


class Exponential(Schedule):
    """By the same factor in each step."""

    def _at(self, fraction: float) -> float:
        return self.start * (self.end / self.start) ** fraction


class Cosine(Schedule):
    """Along half a cosine: slow, fast, slow."""

    def _at(self, fraction: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * fraction)) / 2


def temperature_now(temperature: Temperature | Schedule) -> Temperature:
    """A schedule's temperature at its step; any other as it is."""
    return temperature.value if isinstance(temperature, Schedule) else temperature
