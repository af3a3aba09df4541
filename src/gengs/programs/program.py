r"""A block in which the draws of a program carry gradients.

.. code-block:: python

    with gengs.differentiable() as program:
        infected = simulate(theta, replicates=100)   # unmodified code
    loss = program.loss(cost(infected))              # one number per replicate
    loss.mean().backward()

Inside, ``torch.poisson``, ``torch.binomial``, ``torch.bernoulli``, ``torch.multinomial``,
``Tensor.bernoulli_``, ``Tensor.geometric_``, the comparison ``torch.rand(...) < p`` and ``sample``
of every law draw what they always draw, and the draw carries a gradient. Two kinds of rule:

- **Path** (:class:`~gengs.MidCDF` unless told otherwise, or any other estimator that
  :func:`gengs.rsample` takes): each draw moves with its parameters, the chain rule does the rest.
  Exact where the rest of the program is quadratic in each draw; the bias falls with the size of the
  counts. It sees nothing of comparisons, branches and indices, and says so after ``backward()``.
- **Score** (:class:`~gengs.RLOO`, :class:`~gengs.REINFORCE`): draws are plain numbers, and
  :meth:`Program.loss` adds :math:`\sum_t \nabla \log p(z_t \mid \text{past})` times the cost,
  less the mean cost of the other replicates. Unbiased whatever the program does with a draw; its
  variance is larger, often by orders of magnitude.

**Absorbing states.** Where earlier draws have brought the rate or the probability of a *count* to 0
(nobody is infected any more), one more would start everything anew, and the linear path would let
that grow without bound. There a count stays what it is, and :meth:`Program.loss` says how many did:
where nothing dies out for good, ``absorbing=False`` is right. A Bernoulli draw, which stands for
one individual among others, moves by the whole one-sided slope, as :func:`gengs.rsample` does.

Blocks nest, and an inner block chooses the rule for its own draws. The outermost one has the loss.

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572
    | Gradient Estimation Using Stochastic Computation Graphs (Schulman et al., 2015),
    | https://arxiv.org/abs/1506.05254
"""

__all__ = ["Program", "differentiable"]

import weakref
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..numerics.tracing import tensors_of
from .auto import decide, is_due, is_first_call
from .block_stack import BLOCKS, outermost, quiet
from .check import Check, check_path, is_freed
from .credit import Credit, require_replicates
from .cut_report import CutReport
from .fitted_score import FittedScore
from .law_checks import (
    base_of,
    depends_on_parameters,
    is_continuous,
    require_domain,
    require_reverse_mode,
)
from .remarks import require_draws, warn_of
from .rules import Rule, Rules
from .sample_patch import blocks_open, patch_laws, restore_laws
from .sample_site import Plain, ProgramWarning, Site, warn_once, where, where_exactly
from .torch_mode import ProgramMode
from .unseen import UnseenDraws

_WATCHED: weakref.WeakSet[ProgramMode] = weakref.WeakSet()


class Program:
    """What happened in a block: made by :func:`differentiable`."""

    mode: ProgramMode  # of the outermost block, from the beginning of the block on

    def __init__(
        self, by: Any, validate: bool, absorbing: bool, dim: int | None, check: bool
    ) -> None:
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"differentiable expects an int or None as `dim`, but got {dim!r}.")
        if not isinstance(check, bool):
            raise TypeError(f"differentiable expects True or False as `check`, but got {check!r}.")
        self.place = where()
        self._auto = isinstance(by, str) and by == "auto"
        self._check = check or self._auto
        if self._auto:
            by = decide(self.place)
            self._check = not isinstance(by, FittedScore)
        self.rules = Rules(by, absorbing)
        if check and any(rule.scored or not rule.exact for rule in self.rules):
            raise TypeError("differentiable(check=True) checks the path: leave `by` out.")
        self.validate, self.report, self.dim = validate, CutReport(), dim
        self.costs: list[Tensor] = []
        self.gate = [True]
        self._sites: list[Site] = []
        self._around: tuple[Program, ...] = ()
        self._used = self._said = False
        self._domains: dict[Any, bool] = {}
        self._credits: dict[Any, Credit] = {}

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

    # ------------------------------------------------------------------------- costs and loss

    def cost(self, values: Tensor) -> None:
        """A cost that arrives while the program runs: only later costs are put to a draw's credit.

        Args:
            values: One number per replicate. A reward is a negative cost.
        """
        self._require_outermost("cost")
        require_replicates("cost", values, self.costs, self._sites, self.dim)
        self.costs.append(values)

    def loss(self, cost: Tensor | None = None) -> Tensor:
        """The costs, one number per replicate, with the gradient of the block's rules.

        Args:
            cost: What the program cost in the end; may be left out where :meth:`cost` was called.
        """
        self._require_outermost("loss")
        require_draws(self, "loss")
        if cost is None and not self.costs:
            raise ValueError("program.loss expects a cost, as program.cost was never called.")
        if cost is not None:
            require_replicates("loss", cost, self.costs, self._sites, self.dim)
        parts = [*self.costs, *([cost] if cost is not None else [])]
        self._decide(sum(parts[1:], parts[0]))
        with quiet():
            self.mode.stop()  # nothing more is noted, and nothing of ours passes through it
            alone = parts[0].numel() == 1  # one run of the program: nothing to share or compare
            value = self._credit(None if alone else len(parts[0])).loss(parts)
            self._finish(value, parts[-1])
        return value

    def mean(self, x: Tensor) -> Tensor:
        """The mean over replicates of anything that the program made, with the rules' gradient.

        A function of expectations, such as ``(program.mean(x) - target) ** 2``, is right by every
        rule: the score of a cost needs the cost itself, not a function of its mean.

        Args:
            x: Replicates first (or in the dimension ``dim`` of the block), of any shape.
        """
        self._require_outermost("mean")
        require_draws(self, "mean")
        if not isinstance(x, Tensor) or not x.dim():
            raise ValueError("program.mean expects a tensor whose first dimension is replicates.")
        which = self.dim if self.dim is not None and -x.dim() <= self.dim < x.dim() else 0
        x = x.movedim(which, 0)
        self._decide(x if x.dim() == 1 else x.flatten(1).sum(1))
        with quiet():
            self.mode.stop()
            value = self._credit(len(x)).mean(x)
            self._finish(value, x)
        return value

    def check(self, cost: Tensor) -> Check:
        """Whether the path is right here: its gradient against the score's, on the same draws.

        Takes ten backward passes. Call it before ``backward()``, which frees the graph.

        Args:
            cost: One number per replicate, at least twenty of them.
        """
        self._require_outermost("check")
        require_draws(self, "check")
        if any(rule.scored or not rule.exact for rule in self.rules):
            raise TypeError(
                "program.check compares the path with the score: open the block without `by`."
            )
        try:
            found = check_path(self, cost)
        except (RuntimeError, TypeError) as error:
            if not is_freed(cost):
                raise
            raise RuntimeError(
                "program.check comes before backward(), which frees the graph."
            ) from error
        self._said = self._said or found.agrees is True
        return found

    # ------------------------------------------------------------------------- what follows

    def _credit(self, replicates: int | None) -> Credit:
        if replicates not in self._credits:
            self._credits[replicates] = Credit(
                self._sites, replicates, self.dim, self.mode.branched
            )
        return self._credits[replicates]

    def _decide(self, cost: Tensor) -> None:
        """Check the path where that is due, and take the fitted score where it is off (auto)."""
        if not self._check or cost.dim() != 1 or len(cost) < 2:
            return
        self._check = False
        draws = frozenset((site.place, site.law) for site in self._sites)
        if not (is_due(self.place, draws) if self._auto else is_first_call(self.place)):
            return
        found = self.check(cost)
        if self._auto:
            rule = decide(self.place, found, draws)
            if rule.scored:
                self.gate[0] = False
                for site in self._sites:
                    if site.node is not None:
                        rule.mark(site)
                    site.fitted = rule.fitted
        elif not found.agrees:
            warn_once(f"check: {found}", ProgramWarning, *self.place)

    def _finish(self, value: Tensor, cost: Tensor) -> None:
        """Say what is to be said."""
        if torch.is_grad_enabled() and not self._said:
            self._said = True
            warn_of(self, cost)
        self.report.after_backward(value, self._sites)

    def _require_outermost(self, name: str) -> None:
        if self._around:
            raise RuntimeError(
                f"program.{name} belongs to the outermost block, which sees all draws; this one is "
                "inside another."
            )


def differentiable(
    by: Any = None,
    *,
    validate_args: bool | None = None,
    absorbing: bool = True,
    dim: int | None = None,
    check: bool = False,
) -> Program:
    """A block whose discrete draws carry gradients.

    Args:
        by: The rule of its draws: an estimator that :func:`gengs.rsample` takes, ``MidCDF()`` by
            default; or ``FittedScore()``, ``RLOO()`` or ``REINFORCE()``, the score function; or a
            dictionary of rules, ``{Bernoulli: RLOO(), "rumour.py:31": RLOO(), "default": ...}``; or
            ``"auto"``: the path unless :meth:`Program.check` finds a bias, on the first call of
            this line or after 2, 4, 8, ... calls, and finds it again at the next call; then
            ``FittedScore()``, which is printed.
        validate_args: Whether to check the parameters at each draw, and to notice draws that are
            not seen; on by default.
        absorbing: Whether a count stays put where earlier draws have ended what it counts; with
            ``False`` it moves by the whole one-sided slope, as :func:`gengs.rsample` does.
        dim: The dimension of each draw that counts replicates; the first unless told otherwise.
        check: Whether to check the path on the first call of this line, and warn if it is off.

    Example:
        >>> import gengs
        >>> _ = torch.manual_seed(0)
        >>> theta = torch.tensor(0.3, requires_grad=True)
        >>> with differentiable() as program:
        ...     infected = torch.full((1000,), 10.0)
        ...     for _ in range(5):
        ...         infected = infected + torch.poisson(theta * infected)
        >>> program.loss(infected).mean().backward()
        >>> bool((theta.grad / (50 * 1.3**4) - 1).abs() < 0.1), len(program.sites)
        (True, 5)
    """
    validate = __debug__ if validate_args is None else validate_args
    return Program(by, validate, absorbing, dim, check)
