"""The path rule: each draw moves with its parameters, and the chain rule does the rest.

A count stays put in an absorbing state (see :mod:`.program`): where draws have brought its
rate to 0, the slope is left out. Where somebody may come in from outside, and the rate does not
stay 0, that is an error, which the path cannot tell from the other case while the program runs. So
it is said how often it was done.
"""

__all__ = ["PathRule", "warn_held"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, OneHotCategorical, Poisson

from ..estimators import MidCDF
from .block_stack import outermost
from .known_laws import (
    is_binomial,
    is_categorical,
    is_poisson,
    move_one_hot,
    moved_by,
    rsample,
    sees_through,
)
from .law_checks import base_of, is_continuous
from .picks import Picks
from .sample_site import Plain, ProgramWarning, Site, by_line, warn_at

_SMALL = (Bernoulli, Categorical, OneHotCategorical)
_SHARE = 0.05
"""Below this share of the counts at a line, their slope is left out without a word."""


class PathRule:
    """Draws by an estimator that :func:`gengs.rsample` takes; by ``None`` it is MidCDF."""

    def __init__(self, by: Any, absorbing: bool) -> None:
        self.by, self.absorbing = by, absorbing
        self.name = "MidCDF" if by is None else type(by).__name__
        self.exact = by is None or isinstance(by, MidCDF)  # it keeps the draws of the program

    scored, fitted = False, None

    @staticmethod
    def sees_through(law: Any) -> bool:
        """Whether the draws inside ``law.sample()`` are to carry the gradient."""
        return sees_through(law, scored=False)

    def draw(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        """A draw that carries a gradient; ``plain`` makes it as it would be made elsewhere."""
        base = base_of(law)
        site.is_small = isinstance(base, _SMALL)
        if isinstance(base, Categorical):
            return self._index(site, _as_categorical(base, site), plain)
        z = self._moved(site, law, plain, shape)
        if self.exact:
            outermost().keep(site, law, z.detach())
        return self.let_through(site, z)

    def let_through(self, site: Site, z: Tensor) -> Tensor:
        """A draw behind the gate of the path, which the program may change in place."""
        if z.requires_grad:
            gate = outermost().gate
            # closed while the score is asked for on the same graph
            z.register_hook(lambda grad: None if gate[0] else torch.zeros_like(grad))
            outermost().report.follow(site, z)
        return z if outermost().mode.saves else z.clone()

    def _moved(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        if is_continuous(law):
            drawn: Tensor = law.rsample(shape)
            return drawn
        if self.absorbing and site.may_be_sure:
            law = _hold_at_zero(law, site)
        try:
            move = moved_by(law) if self.exact else None
            if move is None:
                return rsample(law, shape, self.by)
            with torch.no_grad():
                z = plain()
            return move(z)
        except TypeError as error:
            raise TypeError(f"{site.place}: {error}") from None

    def _index(self, site: Site, law: Categorical, plain: Plain) -> Tensor:
        """An integer index, beside which goes a one-hot vector that moves."""
        with torch.no_grad():
            index = plain()
        picks = law if isinstance(law, Picks) else None
        if self.exact:
            if picks is not None:
                one_hot = picks.matrix()
            else:
                with torch.no_grad():
                    still = torch.nn.functional.one_hot(index, law.logits.shape[-1])
                one_hot = move_one_hot(law, still)
            outermost().keep(site, law, index.clone())
        else:
            whole: Any = picks.ranking if picks is not None else None
            if whole is None:
                whole = OneHotCategorical(logits=law.expand(index.shape).logits)
            one_hot = rsample(whole, by=self.by)
            index = one_hot.detach().argmax(-1)
        surrogates = outermost().mode.surrogates
        surrogates.index(index, self.let_through(site, one_hot))
        if picks is not None:
            surrogates.distinct(
                index,
                lambda: self.let_through(site, picks.members()) if self.exact else None,
            )
        return index


def _as_categorical(law: Categorical, site: Site) -> Categorical:
    """A law of indices, as torch's: of a subclass with its own ``log_prob``, what that says."""
    if is_categorical(law):
        return law
    values = torch.arange(law.logits.shape[-1], device=law.logits.device)
    values = values.reshape(-1, *[1] * len(law.batch_shape)).expand(-1, *law.batch_shape)
    log_probs = law.log_prob(values).movedim(0, -1)
    total = log_probs.detach().exp().sum(-1)
    if not torch.allclose(total, torch.ones_like(total), atol=1e-3):
        raise ValueError(
            f"{site.place}: {site.law} has a log_prob of its own whose probabilities sum to "
            f"{total.flatten()[0].item():.4g} over its {log_probs.shape[-1]} values, not to 1."
        )
    return Categorical(logits=log_probs, validate_args=False)


def _hold_at_zero(law: Any, site: Site) -> Any:
    """A Poisson or Binomial law whose counts stay put where earlier draws ended what they count."""
    law, comes_from_a_draw = base_of(law), outermost().report.comes_from_a_draw
    if is_poisson(law) and comes_from_a_draw(law.rate):
        return Poisson(_held(law.rate, law.rate == 0, site), validate_args=False)
    if is_binomial(law) and "probs" in vars(law) and comes_from_a_draw(law.probs):
        p = law.probs
        return Binomial(law.total_count, _held(p, (p == 0) | (p == 1), site), validate_args=False)
    return law


def _held(parameter: Tensor, ended: Tensor, site: Site) -> Tensor:
    site.held = ended.float().mean()  # looked at when the loss is asked for
    return torch.where(ended, parameter.detach(), parameter)


def warn_held(sites: Sequence[Site]) -> None:
    """Warn of lines where more than a few counts stayed put."""
    for group in by_line(site for site in sites if site.drawn_from is not None):
        shares = [site.held for site in group if site.held is not None]
        if shares and torch.stack(shares).sum().item() / len(group) >= _SHARE:
            warn_at(
                group[0],
                f"counts of {group[0].law} stood at a rate of 0 (or a probability of 0 or 1) to "
                "which earlier draws had brought them, and the path leaves their slope out, as for "
                "a population that has died out; what that does here, program.check(cost) measures "
                "(absorbing=False keeps the slope, by=gengs.FittedScore() needs none).",
                ProgramWarning,
            )
