"""An open block: what it does while the program runs.

It opens and closes the mode and the patches through which the program's draws come here, makes each
draw by its rule, and keeps the distribution and the value of those whose score may be asked for.
Blocks nest; the outermost one keeps the books.
"""

from __future__ import annotations

__all__ = ["Block"]

import weakref
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..numerics.tracing import tensors_of
from .block_stack import BLOCKS, outermost, quiet
from .cut_report import CutReport
from .law_checks import (
    base_of,
    depends_on_parameters,
    is_continuous,
    require_domain,
    require_reverse_mode,
)
from .rules import Rule, Rules
from .sample_patch import blocks_open, patch_laws, restore_laws
from .sample_site import Plain, Site, where_exactly
from .torch_mode import ProgramMode
from .unseen_draws import UnseenDraws

_WATCHED: weakref.WeakSet[ProgramMode] = weakref.WeakSet()


class Block:
    """The draws of a block, by its rules.

    Args:
        rules: Which rule draws what.
        validate: Whether to check the parameters at each draw, and to notice draws not seen.
    """

    mode: ProgramMode  # of the outermost block, from the beginning of the block on

    def __init__(self, rules: Rules, validate: bool) -> None:
        self.rules, self.validate, self.report = rules, validate, CutReport()
        self.costs: list[Tensor] = []
        self.gate = [True]
        """Whether the path is open; shut while the score is asked for on the same graph."""
        self._sites: list[Site] = []
        self._around: tuple[Block, ...] = ()
        self._used = False
        self._domains: dict[Any, bool] = {}

    def __enter__(self) -> Self:
        if self._used:
            raise RuntimeError("a program runs once; open a new block by gengs.differentiable().")
        require_reverse_mode()
        self._used = True
        self._around = BLOCKS.get()
        self.mode = self._around[0].mode if self._around else ProgramMode(self.report)
        BLOCKS.set((*self._around, self))
        patch_laws()
        if not self._around:
            self.mode.__enter__()
            weakref.finalize(self, self.mode.stop).atexit = False
            try:
                self._watch_generators()
            except BaseException:  # older versions of torch cannot, inside torch.func
                self.__exit__(None, None, None)
                raise
        return self

    def _watch_generators(self) -> None:
        """Notice draws that are not seen, unless other blocks draw from the same generators."""
        if blocks_open() > 1:
            for mode in _WATCHED:
                mode.unseen = None
        elif self.validate:
            self.mode.unseen = UnseenDraws()
            _WATCHED.add(self.mode)

    def __exit__(self, *error: Any) -> None:
        try:
            if not self._around:
                self.mode.__exit__(*error)
        finally:  # nothing of a block outlives it
            restore_laws()
            if self in (around := BLOCKS.get()):  # and what was started inside and never ended
                BLOCKS.set(around[: around.index(self)])

    @property
    def sites(self) -> tuple[Site, ...]:
        """All draws of the block, in their order."""
        return tuple(self._sites)

    # --------------------------------------------------------------------------------- draws

    def rule_for(self, kind: type) -> Rule:
        """The rule of a distribution at the line that is running."""
        return self.rules.pick(kind)

    def draw(
        self, law: Distribution, plain: Plain, shape: torch.Size = torch.Size(), name: str = ""
    ) -> Tensor:
        """One draw, by the block's rule; the program calls it ``name``, or as the law is called."""
        base = base_of(law)
        tensors = [t for _, _, t in tensors_of(base)]
        moves = any(t.requires_grad for t in tensors) or depends_on_parameters(law)
        require_reverse_mode()
        rule = self.rule_for(type(base))
        if moves and rule.sees_through(base):
            return self._inside(base, plain)
        site = self.site(name or type(base).__name__, rule=rule.name if moves else "none")
        with quiet():
            if self.validate:
                require_domain(base, site, not rule.exact, self._domains)
            z = rule.draw(site, law, plain, shape) if moves else plain()
            if not moves and (rule.fitted is not None or (rule.exact and not rule.scored)):
                site.fitted = rule.fitted  # it adds noise that a control variate takes away
                self.keep(site, law, z.clone())
            self.mode.lost.drawn(site, tensors, moves)
            if not moves and is_continuous(law):
                self.mode.noise.spoil(z)
            site.shape = tuple(z.shape)
        if self.mode.unseen is not None:
            self.mode.unseen.after()
        return z

    def keep(self, site: Site, law: Any, value: Tensor) -> None:
        """Keep what was drawn from which distribution, until it is asked how likely that was."""
        site.drawn_from, site.value = law, value
        tensors = [tensor for _, _, tensor in tensors_of(base_of(law))]
        if self.mode.saves:
            self.mode.saved.watch([*tensors, value], site.rescue)
        site.parameter_nodes = tuple(t.grad_fn for t in tensors if t.grad_fn is not None)

    def threshold(self, rule: Any, law: Any, p: Tensor, success: Tensor) -> Site:
        """Uniform numbers were compared with a threshold: a draw of 0 or 1."""
        site = self.site("torch.rand(...) < p", tuple(success.shape), rule.name)
        site.is_small = True
        if rule.scored:
            rule.mark(site)
        outermost().keep(site, law, success.to(p.dtype))
        site.parameter_nodes = (p.grad_fn,) if p.grad_fn is not None else ()
        return site

    def site(self, name: str, shape: tuple[int, ...] = (), rule: str = "none") -> Site:
        """A new site, at the line of the user's code that is running."""
        file, line, instruction = where_exactly()
        site = Site(name, file, line, rule, shape, instruction=instruction)
        site.epoch = len(outermost().costs)
        for block in (*self._around, self):
            block._sites.append(site)
        if (unseen := self.mode.unseen) is not None:
            unseen.at(site)
        return site

    def _inside(self, law: Distribution, plain: Plain) -> Tensor:
        """A draw that is a program itself: the draws inside carry the gradient."""
        before = len(self._sites)
        z = plain()
        if len(self._sites) == before:
            site = self.site(type(law).__name__)
            raise TypeError(
                f"{site.place}: {site.law} has a sample() of its own and no log_prob that belongs "
                "to it, and no draw was seen inside (is it under torch.no_grad?), so that its "
                "gradient would be lost; give it a log_prob."
            )
        return z
