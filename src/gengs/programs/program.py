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
from typing import Any

import torch
from torch import Tensor

from .auto import decide, is_due, is_first_call
from .block import Block
from .block_stack import quiet
from .check import Check, check_path, is_freed
from .credit import Credit
from .fitted_score import FittedScore
from .forgotten_score import warn_if_forgotten
from .program_warnings import require_draws, warn_of
from .replicate_dims import require_replicates
from .rules import Rules
from .sample_site import ProgramWarning, warn_once, where


class Program(Block):
    """What happened in a block: made by :func:`differentiable`."""

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
        super().__init__(Rules(by, absorbing), validate)
        if check and any(rule.scored or not rule.exact for rule in self.rules):
            raise TypeError("differentiable(check=True) checks the path: leave `by` out.")
        self.dim = dim
        self._said = self._asked = False
        self._credits: dict[Any, Credit] = {}
        self._forgotten: weakref.finalize[Any, Any] | None = None

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if error[0] is None and not self._around and not self._asked:
            self._forgotten = warn_if_forgotten(self)

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
        self._ask("loss")
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
        self._ask("mean")
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
        self._ask("check")
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

    def _ask(self, name: str) -> None:
        """The gradient of the draws is asked for, by the method of this name."""
        self._require_outermost(name)
        self._asked = True
        if self._forgotten is not None:
            self._forgotten.detach()
        require_draws(self, name)

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
