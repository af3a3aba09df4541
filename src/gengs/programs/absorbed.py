"""Absorbing states: a count stays put where earlier draws have ended what it counts.

Where draws have brought a rate to 0 (nobody is infected any more), one more would start everything
anew, and the linear path would let that grow without bound from step to step. There the slope is
left out. Where nothing is absorbing (somebody comes in from outside, and the rate does not stay 0)
that is an error, which the path cannot tell from the other case while the program runs. So it is
said how often it was done.
"""

from __future__ import annotations

__all__ = ["hold_at_zero", "say_what_was_held"]

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Independent, Poisson

from ..draws.own_laws import is_the_law
from .cut_report import CutGradientWarning
from .site import Site

_SHARE = 0.01
"""Below this share of the counts at a line, their slope is left out without a word."""


def hold_at_zero(law: Any, comes_from_a_draw: Callable[[Tensor], bool], site: Site) -> Any:
    """The law of a count that does not move where earlier draws have ended what it counts.

    Args:
        law: Any law; only Poisson and Binomial ones with a rate or ``probs`` are changed.
        comes_from_a_draw: Whether an earlier draw takes part in a tensor's value.
        site: The draw, which keeps how many counts were held.
    """
    while isinstance(law, Independent):
        law = law.base_dist
    if is_the_law(law, Poisson) and comes_from_a_draw(law.rate):
        return Poisson(_held(law.rate, law.rate == 0, site), validate_args=False)
    if is_the_law(law, Binomial) and "probs" in vars(law) and comes_from_a_draw(law.probs):
        p = law.probs
        return Binomial(law.total_count, _held(p, (p == 0) | (p == 1), site), validate_args=False)
    return law


def _held(parameter: Tensor, ended: Tensor, site: Site) -> Tensor:
    site.held = ended.float().mean()  # looked at when the loss is asked for
    return torch.where(ended, parameter.detach(), parameter)


def say_what_was_held(sites: Sequence[Site]) -> None:
    """Warn of lines where more than a few counts were held."""
    shares: dict[tuple[str, int, str], list[Tensor]] = {}
    for site in sites:
        if site.held is not None:
            shares.setdefault((site.file, site.line, site.law), []).append(site.held)
    for (file, line, law), held in shares.items():
        share = torch.stack(held).mean().item()
        if share >= _SHARE:
            warnings.warn_explicit(
                f"{Site(law, file, line, '').place}: {share:.0%} of the counts of {law} stood at a "
                "rate of 0 (or a probability of 0 or 1) to which earlier draws had brought them, "
                "and their slope is left out, as for a population that has died out; where nothing "
                "dies out for good, gengs.differentiable(absorbing=False) keeps it.",
                CutGradientWarning,
                file,
                line,
            )
