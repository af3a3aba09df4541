r"""A block in which the draws of a program carry gradients.

.. code-block:: python

    with gengs.differentiable() as program:
        infected = simulate(theta, replicates=100)   # somebody's code, unchanged
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

from ..estimators import REINFORCE, RLOO
from ..gradients.draws import refuse_settings_of_expect
from .block_stack import BLOCKS, outermost, quiet
from .cut_report import CutReport
from .law_checks import (
    base_of,
    depends_on_parameters,
    is_continuous,
    require_domain,
    require_reverse_mode,
)
from .path_rule import PathRule, say_what_was_held
from .sample_patch import patch_laws, restore_laws
from .sample_site import Plain, Site, where
from .score_rule import ScoreRule, credited, require_replicates, say_what_never_leaves
from .torch_mode import ProgramMode


class Program:
    """What happened in a block: made by :func:`differentiable`."""

    mode: ProgramMode  # of the outermost block, from the beginning of the block on

    def __init__(self, by: Any, validate: bool, absorbing: bool) -> None:
        if isinstance(by, type):
            raise TypeError(f"differentiable expects an estimator: pass by={by.__name__}().")
        if by is not None and not hasattr(by, "draw") and not hasattr(by, "expect"):
            raise TypeError(f"differentiable expects an estimator as `by`, but got {by!r}.")
        scored = isinstance(by, RLOO | REINFORCE)
        if by is not None and not hasattr(by, "draw") and not scored:
            raise TypeError(
                f"differentiable expects a rule for draws, but {type(by).__name__} needs the cost "
                "of each; use MidCDF(), another that rsample takes, RLOO() or REINFORCE()."
            )
        refuse_settings_of_expect("differentiable", by)
        self.rule: PathRule | ScoreRule
        self.rule = ScoreRule(by, validate) if scored else PathRule(by, absorbing)
        self.validate, self.report = validate, CutReport()
        self.costs: list[Tensor] = []
        self._sites: list[Site] = []
        self._around: tuple[Program, ...] = ()
        self._used = False

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
        return self

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

    def draw(
        self, law: Distribution, plain: Plain, shape: torch.Size = torch.Size(), name: str = ""
    ) -> Tensor:
        """One draw, by the block's rule; the program calls it ``name``, or as the law is called."""
        base, moves = base_of(law), depends_on_parameters(law)
        require_reverse_mode()
        if moves and self.rule.looks_into(base):
            return self._inside(base, plain)
        site = self.site(name or type(base).__name__, rule=None if moves else "none")
        with quiet():
            if self.validate:
                require_domain(base, site, relaxed=not self.rule.exact)
            z = self.rule.draw(site, law, plain, shape) if moves else plain()
            if not moves and is_continuous(law):
                self.mode.noise.spoil(z)
            site.shape = tuple(z.shape)
        return z

    def site(self, name: str, shape: tuple[int, ...] = (), rule: str | None = None) -> Site:
        """A new site, at the line of the user's code that is running; the block's rule is its."""
        site = Site(name, *where(), rule or self.rule.name, shape, epoch=len(outermost().costs))
        for block in (*self._around, self):
            block._sites.append(site)
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
        require_replicates("cost", values, self.costs, self._sites)
        self.costs.append(values)

    def loss(self, cost: Tensor | None = None) -> Tensor:
        """The costs, one number per replicate, with the gradient of the block's rules.

        Args:
            cost: What the program cost in the end; may be left out where :meth:`cost` was called.
        """
        self._require_outermost("loss")
        if not self._sites:
            raise ValueError(
                "program.loss found no draw in the block: nothing called torch.poisson, "
                "torch.binomial, torch.bernoulli, torch.multinomial or Law.sample() with gradients "
                "enabled (draws by numpy or random are not seen)."
            )
        if cost is None and not self.costs:
            raise ValueError("program.loss expects a cost, as program.cost was never called.")
        if cost is not None:
            require_replicates("loss", cost, self.costs, self._sites)
        with quiet():
            value = credited(self.costs, cost, self._sites)
            self.mode.stop()
            if torch.is_grad_enabled():
                say_what_was_held(self._sites)
                say_what_never_leaves(self._sites)
            self.report.after_backward(value, self._sites)
        return value

    def _require_outermost(self, name: str) -> None:
        if self._around:
            raise RuntimeError(
                f"program.{name} belongs to the outermost block, which sees all draws; this one is "
                "inside another."
            )


def differentiable(
    by: Any = None, *, validate_args: bool | None = None, absorbing: bool = True
) -> Program:
    """A block whose discrete draws carry gradients.

    Args:
        by: The rule of its draws: an estimator that :func:`gengs.rsample` takes, ``MidCDF()`` by
            default; or ``RLOO()`` or ``REINFORCE()``, the score function.
        validate_args: Whether to check the parameters at each draw, at the price of one look at
            their values; on by default.
        absorbing: Whether a count stays put where earlier draws have ended what it counts; with
            ``False`` it moves by the whole one-sided slope, as :func:`gengs.rsample` does.

    Example:
        >>> import gengs
        >>> theta = torch.tensor(0.3, requires_grad=True)
        >>> with differentiable() as program:
        ...     infected = torch.full((1000,), 10.0)
        ...     for _ in range(5):
        ...         infected = infected + torch.poisson(theta * infected)
        >>> program.loss(infected).mean().backward()
        >>> bool((theta.grad / (50 * 1.3**4) - 1).abs() < 0.1), len(program.sites)
        (True, 5)
    """
    return Program(by, __debug__ if validate_args is None else validate_args, absorbing)
