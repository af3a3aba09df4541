"""Which rule draws what: one for all, or one for each distribution or line of code."""

from __future__ import annotations

__all__ = ["Rule", "Rules"]

from typing import Any

from torch.distributions import Distribution

from ..estimators import REINFORCE, RLOO
from ..gradients.draws import refuse_settings_of_expect
from .fitted_score import FittedScore
from .path_rule import PathRule
from .sample_site import place_of, where
from .score_rule import ScoreRule

Rule = PathRule | ScoreRule


def _rule(by: Any, absorbing: bool) -> Rule:
    if isinstance(by, type):
        raise TypeError(f"differentiable expects an estimator: pass by={by.__name__}().")
    scored = isinstance(by, RLOO | REINFORCE | FittedScore)
    if by is not None and not scored:
        if not hasattr(by, "draw") and not hasattr(by, "expect"):
            raise TypeError(
                'differentiable expects an estimator, a dictionary of estimators or "auto" as '
                f"`by`, but got {by!r}."
            )
        if not hasattr(by, "draw"):
            raise TypeError(
                f"differentiable expects a rule for draws, but {type(by).__name__} needs the cost "
                "of each; use MidCDF(), another that rsample takes, RLOO(), FittedScore() or "
                "REINFORCE()."
            )
    refuse_settings_of_expect("differentiable", by)
    return ScoreRule(by) if scored else PathRule(by, absorbing)


class Rules:
    """The rules of a block.

    Args:
        by: A rule; or a dictionary from distributions (classes), lines (``"rumour.py:31"``) and
            ``"default"`` to rules. A line comes before a distribution.
        absorbing: See :func:`differentiable`.
    """

    def __init__(self, by: Any, absorbing: bool) -> None:
        self._laws: dict[type, Rule] = {}
        self._lines: dict[str, Rule] = {}
        self._used: set[Any] = set()
        default = None
        if isinstance(by, dict):
            default = by.get("default")
            for key, value in by.items():
                if isinstance(key, type) and issubclass(key, Distribution):
                    self._laws[key] = _rule(value, absorbing)
                elif isinstance(key, str) and key.rpartition(":")[2].isdigit():
                    self._lines[key] = _rule(value, absorbing)
                elif key != "default":
                    raise TypeError(
                        "differentiable expects distributions (classes), lines ('file.py:31') or "
                        f"'default' as keys of `by`, but got {key!r}."
                    )
        self.default = _rule(default if isinstance(by, dict) else by, absorbing)

    def __iter__(self) -> Any:
        return iter((self.default, *self._laws.values(), *self._lines.values()))

    def pick(self, kind: type) -> Rule:
        """The rule of a distribution at the line that is running."""
        if self._lines:
            place = place_of(*where())
            for line, rule in self._lines.items():
                if place == line or place.endswith(f"/{line}"):
                    self._used.add(line)
                    return rule
        for parent in kind.__mro__ if self._laws else ():
            if parent in self._laws:
                self._used.add(parent)
                return self._laws[parent]
        return self.default

    def unused(self) -> list[str]:
        """A sentence for each rule by which nothing was drawn."""
        laws = [f"no {law.__name__} was drawn" for law in self._laws if law not in self._used]
        lines = [f"nothing was drawn at {line}" for line in self._lines if line not in self._used]
        return [f"a rule in `by` was never used: {why}." for why in laws + lines]
