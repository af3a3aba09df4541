"""What became of each draw's gradient: the report after ``backward()``.

A comparison, a cast, an index or a ``detach`` ends a gradient silently. The mode notes where a
tensor that carries one meets such an operation; after ``backward()`` the graph of the loss tells
which draws it reached. What was cut off, wholly or in part, is said in one warning, with file, line
and advice.
"""

__all__ = ["CutReport"]

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ..estimators.checked_cost import nodes_behind
from .sample_site import (
    CutGradientWarning,
    Site,
    asked_by_library,
    by_line,
    place_of,
    warn_once,
    where,
)

_FEW = 3
_NODES_END = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)  # seen with 2.4
"""So many tensors are kept for each line that cuts gradients: in a loop they are alike."""

_ADVICE = {
    "compared": "a comparison has no slope: put a smooth function (a sigmoid) in its place",
    "cast to integers": "keep it a floating number",
    "rounded": "rounding has no slope: leave the number as it is",
    "taken modulo a number": "what starts anew jumps, which a slope does not see",
    "put through a function without a derivative": "torch knows no slope for it",
    "used as an index": (
        "what it is made of (a sum, a number, a mask) has no categories to be followed: index by "
        "the draw itself, or multiply by its one-hot vector"
    ),
    "a choice between infinite values": (
        "an infinite step has no slope: multiply probabilities by a mask, in place of logits of "
        "-inf"
    ),
    "looked up by a log_prob": "a table of probabilities has no slope in its values",
    "detached": "leave it attached",
    "taken out of torch": "stay with tensors",
}
_NOTHING = "no draw's parameters require a gradient, or the cost was made apart from the draws."
_SCORE = "or draw it under gengs.differentiable(by=gengs.RLOO()), which asks nothing of the program"


class CutReport:
    """Notes of a running program, and what they amount to."""

    def __init__(self) -> None:
        self._of_node: dict[Any, Site] = {}
        self._from_a_draw: dict[Any, bool] = {}  # of each node, once asked
        self._notes: dict[tuple[str, str, int], list[Any]] = {}
        self._uniforms: set[tuple[str, int]] = set()
        self._said = False
        self._alive: list[Tensor] = []

    # ------------------------------------------------------------------------- while it runs

    def follow(self, site: Site, z: Tensor) -> None:
        """Remember a draw that carries a gradient."""
        if z.grad_fn is not None:
            site.node = z.grad_fn
            self._of_node[z.grad_fn] = site
            self._keep(z)

    def cut(self, kind: str, tensor: Tensor, by_library: bool = False) -> None:
        """Note that a tensor which carries a gradient meets an operation that ends it.

        What a distribution's own code does is not the user's doing, unless told otherwise.
        """
        if not by_library and asked_by_library():
            return
        found = self._notes.setdefault((kind, *where()), [])
        if tensor.grad_fn is not None and len(found) < _FEW:
            found.append(tensor.grad_fn)
            self._keep(tensor)

    def _keep(self, tensor: Tensor) -> None:
        """In older versions of torch, a node of ours ends with the tensors that lead to it."""
        if _NODES_END:
            self._alive.append(tensor)

    def comes_from_a_draw(self, tensor: Tensor) -> bool:
        """Whether an earlier draw takes part in a tensor's value."""
        known, path = self._from_a_draw, [tensor.grad_fn]
        while path:  # each node is visited once, however long the program becomes
            node = path[-1]
            behind = [f for f, _ in node.next_functions if f is not None] if node else []
            if node in self._of_node or any(known.get(f) for f in behind):
                known[node] = True
            elif missing := [f for f in behind if f not in known]:
                path.extend(missing)
                continue
            else:
                known[node] = False
            path.pop()
        return known[tensor.grad_fn]

    def draws(self) -> dict[Any, Site]:
        """The draws in autograd's graph."""
        return self._of_node

    def places(self) -> list[str]:
        """Where gradients end, and where random numbers meet parameters."""
        cuts = [f"{kind} at {place_of(file, line)}" for kind, file, line in sorted(self._notes)]
        return [*(f"compared or rounded at {place_of(*u)}" for u in sorted(self._uniforms)), *cuts]

    def feeding(self, sites: Sequence[Site]) -> list[Site]:
        """Draws of 0 or 1, and of categories, that take part in the parameters of later draws."""
        wanted = set(sites)
        small = {n: s for n, s in self._of_node.items() if s.is_small and s in wanted}
        if not small:
            return []
        starts = [n for site in sites for n in site.parameter_nodes if n not in self._of_node]
        direct = [n for site in sites for n in site.parameter_nodes if n in small]
        found = {n for n in nodes_behind([*direct, *starts], self._of_node) if n in small}
        return list(dict.fromkeys(small[node] for node in small if node in found))

    def unrecognised(self) -> None:
        """Note uniform numbers whose comparison with a probability was not taken as a draw."""
        if not asked_by_library():
            self._uniforms.add(where())

    # ---------------------------------------------------------------------------- afterwards

    def after_backward(self, value: Tensor, sites: Sequence[Site]) -> None:
        """Say what was cut off once ``value`` has been differentiated."""
        if not value.requires_grad:
            if torch.is_grad_enabled():
                self._say(None, sites)
            return
        root = value.grad_fn

        def queue(_: Tensor) -> None:
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._say(root, sites))

        value.register_hook(queue)

    def _say(self, root: Any, sites: Sequence[Site]) -> None:
        if self._said:
            return
        self._said = True
        lines = list(self.lines(root, sites))
        self._of_node.clear()
        self._from_a_draw.clear()
        self._notes.clear()
        self._alive.clear()
        if lines:
            file, line = next(((s.file, s.line) for s in sites), ("<program>", 1))
            message = "draws that lost their gradient:\n  " + "\n  ".join(lines)
            warn_once(message, CutGradientWarning, file, line)

    def lines(self, root: Any, sites: Sequence[Site]) -> Iterator[str]:
        """One sentence for each line of the program that has something to be said about it."""
        if root is None:
            why = _reasons(sorted(self._notes)) if self._notes else _NOTHING
            told = any(site.node is not None for site in sites)  # below, with each draw
            end = "." if told else f"; {why}"
            yield f"the cost carries no gradient, and backward() will raise{end}"
        reached = set(self._draws_behind([root], through=True))
        blamed: dict[Site, list[tuple[str, str, int]]] = {}
        for note, nodes in self._notes.items():
            for site in self._draws_behind(nodes, through=False):
                blamed.setdefault(site, []).append(note)
        for group in by_line(sites):
            moving = [site for site in group if site.node is not None]
            notes = sorted({note for site in moving for note in blamed.get(site, ())})
            what = _described(group)
            # one of many may well be idle: the last step of a loop moves what nobody looks at
            if moving and not reached.intersection(moving):
                yield f"{what}: no gradient comes back; {_reasons(notes)}"
            elif notes:
                yield f"{what}: part of the gradient ends; {_reasons(notes)}"
            if shared := [site for site in group if site.shared and site.scored]:
                yield (
                    f"{_described(shared)}: shared by all replicates, so it has no baseline and "
                    "varies more; if one of its dimensions counts them, say "
                    "gengs.differentiable(..., dim=)."
                )
        yield from self.about_uniforms()

    def about_uniforms(self) -> list[str]:
        """One sentence for each line where random numbers meet a parameter in an unknown way."""
        return [
            f"{place_of(file, line)}: uniform numbers (or other continuous ones) meet a tensor "
            "that carries a gradient, and are compared or rounded in a way that is not taken "
            "as a draw, or were made outside of the block: the gradient ends there; draw by "
            "torch.bernoulli(p), torch.multinomial(p, 1) or Law.sample(), in the block."
            for file, line in sorted(self._uniforms)
        ]

    def _draws_behind(self, nodes: Sequence[Any], through: bool) -> Iterator[Site]:
        """Draws in the graph behind ``nodes``; the nearest only, unless ``through`` them."""
        known = self._of_node
        for node in nodes_behind(nodes, () if through else known):
            if node in known:
                yield known[node]


def _described(group: Sequence[Site]) -> str:
    """The same words for the same line, however often it ran: Python shows them once."""
    first = group[0]
    alike = all(site.shape == first.shape for site in group)
    return f"{first.place}: {first.law}, {f'shape {first.shape}' if alike else 'of several shapes'}"


def _reasons(notes: Sequence[tuple[str, str, int]]) -> str:
    if not notes:
        return (
            "it is not used in the cost, or where torch has no derivative, or it is a mask or an "
            "index that left the block before it became a floating number."
        )
    kinds: dict[str, list[str]] = {}
    for kind, file, line in notes:
        kinds.setdefault(kind, []).append(place_of(file, line))
    parts = [
        f"it is {kind} ({', '.join(places[:4])}): {_ADVICE[kind]}" for kind, places in kinds.items()
    ]
    return "; ".join([*parts, _SCORE]) + "."
