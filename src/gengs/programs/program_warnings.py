"""What a block has to say of its gradient: where it may be wrong, and why."""

from __future__ import annotations

__all__ = ["missing", "require_draws", "warn_of", "why_biased"]

from typing import TYPE_CHECKING

from torch import Tensor

from .path_rule import warn_held
from .sample_site import ProgramWarning, warn_once
from .score_rule import warn_boundary

if TYPE_CHECKING:
    from .program import Program


def warn_of(program: Program, cost: Tensor) -> None:
    """Warn of all that was noticed while the program ran, once its cost is known."""
    path = [site for site in program.sites if not site.scored]
    warn_held(path)
    warn_boundary(program.sites)
    said = missing(program, cost, report=False) + program.rules.unused()
    feeding = program.report.feeding(path)
    if feeding:
        places = ", ".join(sorted({f"{s.place} ({s.law})" for s in feeding})[:4])
        said.append(
            f"{places}: a draw of 0 or 1, or a category, sets the parameters of later draws. "
            "The path follows it along a straight line, which may be off by any amount; "
            "program.check(cost) measures it, by=gengs.FittedScore() and by=gengs.RLOO() are "
            "unbiased."
        )
    site = next(iter(program.sites), None)
    file, line = (site.file, site.line) if site is not None else program.place
    for sentence in said:
        warn_once(sentence, ProgramWarning, file, line)


def missing(program: Program, cost: Tensor, report: bool = True) -> list[str]:
    """What no rule knows of: parts of the gradient that are missing, or are there twice.

    Args:
        program: The program.
        cost: Its cost.
        report: Whether what the report says after ``backward()`` belongs to it.
    """
    mode = program.mode
    said = [*mode.lost.sentences(), *mode.by_hand.sentences(cost)]
    said += [f"{place}: {name} {why}" for (name, place), why in mode.ungraded.items() if why]
    if mode.unseen is not None and (sentence := mode.unseen.sentence()) is not None:
        said.append(sentence)
    return [*said, *program.report.about_uniforms()] if report else said


def why_biased(program: Program) -> str:
    """Where the path may have gone wrong, as the rest of a sentence."""
    feeding = sorted({site.place for site in program.report.feeding(program.sites)})
    held = sorted({site.place for site in program.sites if site.held is not None})
    cuts = program.report.places()
    parts = []
    if feeding:
        parts.append(f"draws of 0 or 1 at {', '.join(feeding[:3])} feed later draws")
    if held:
        parts.append(f"counts at {', '.join(held[:3])} stand at an absorbing state")
    if cuts:
        parts.append(f"draws are {', '.join(cuts[:3])}")
    return f": {'; '.join(parts)}" if parts else ""


def require_draws(program: Program, name: str) -> None:
    """Raise where a method needs draws, and the block had none, or none with its ``dim``."""
    if program.sites:
        dim, most = program.dim, max(len(site.shape) for site in program.sites)
        if dim is not None and not -max(most, 1) <= dim < max(most, 1):
            raise ValueError(
                f"program.{name} found no draw that has the dimension dim={dim} of "
                f"gengs.differentiable: its draws have at most {most}."
            )
        return
    mode = program.mode
    reasons = [
        *(f"{f} ran under torch.no_grad at {place}" for f, place in mode.ungraded),
        *(f"a tensor that carries a gradient is {where}" for where in program.report.places()),
        *(mode.unseen.found if mode.unseen is not None else []),
    ]
    why = f" ({'; '.join(reasons[:4])})" if reasons else ""
    raise ValueError(
        f"program.{name} found no draw in the block{why}: nothing called torch.poisson, "
        "torch.binomial, torch.bernoulli, torch.multinomial or sample() with gradients "
        "enabled (draws by numpy or random are not seen)."
    )
