"""The path rule: each draw moves with its parameters, and the chain rule does the rest.

A count stays put in an absorbing state (see :mod:`.program`): where draws have brought its
rate to 0, the slope is left out. Where somebody may come in from outside, and the rate does not
stay 0, that is an error, which the path cannot tell from the other case while the program runs. So
it is said how often it was done.
"""

__all__ = ["PathRule", "say_what_was_held"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Categorical, OneHotCategorical, Poisson

from ..estimators import MidCDF
from ..gradients import rsample
from ..laws.binomial import BinomialLaw
from ..laws.boxes import attach_counts
from ..laws.categorical import CategoricalLaw
from ..laws.law import law_of
from ..laws.poisson import PoissonLaw
from .block_stack import outermost
from .cut_report import CutGradientWarning
from .law_checks import base_of, is_continuous
from .sample_site import Plain, Site, by_line, warn_at

_SHARE = 0.01
"""Below this share of the counts at a line, their slope is left out without a word."""


class PathRule:
    """Draws by an estimator that :func:`gengs.rsample` takes; by ``None`` it is MidCDF."""

    def __init__(self, by: Any, absorbing: bool) -> None:
        self.by, self.absorbing = by, absorbing
        self.name = "MidCDF" if by is None else type(by).__name__
        self.exact = by is None or isinstance(by, MidCDF)  # it keeps the draws of the program

    @staticmethod
    def looks_into(law: Any) -> bool:
        """Whether draws inside ``law.sample()`` carry the gradient."""
        return law_of(law).traces_sample

    def draw(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        """A draw that carries a gradient; ``plain`` makes it as it would be made elsewhere."""
        if isinstance(base := base_of(law), Categorical):
            return self._index(site, _as_categorical(base, site), plain)
        z = self._moved(site, law, plain, shape)
        outermost().report.follow(site, z)
        return z.clone()  # which may be changed in place: its slope needs the draw as it was

    def _moved(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        if is_continuous(law):
            drawn: Tensor = law.rsample(shape)
            return drawn
        if self.absorbing:
            law = _hold_at_zero(law, site)
        try:
            record = law_of(law)
            if record.compound or not self.exact:
                return rsample(law, shape, self.by)
            with torch.no_grad():
                z = plain()
            return record.attach(z)
        except TypeError as error:
            raise TypeError(f"{site.place}: {error}") from None

    def _index(self, site: Site, law: Categorical, plain: Plain) -> Tensor:
        """An integer index, beside which goes a one-hot vector that moves."""
        with torch.no_grad():
            index = plain()
            still = torch.nn.functional.one_hot(index, law.logits.shape[-1])
        if self.exact:
            one_hot = attach_counts(
                still.to(law.logits.dtype), law.logits.new_ones(()), logits=law.logits
            )
        else:
            kept = law.expand(index.shape)
            one_hot = rsample(OneHotCategorical(logits=kept.logits), by=self.by)
            index = one_hot.detach().argmax(-1)
        outermost().report.follow(site, one_hot)
        outermost().mode.surrogates.index(index, one_hot)
        return index


def _as_categorical(law: Categorical, site: Site) -> Categorical:
    """A law of indices, as torch's: of a subclass with its own ``log_prob``, what that says."""
    if type(law_of(law)) is CategoricalLaw:
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
    if type(law_of(law)) is PoissonLaw and comes_from_a_draw(law.rate):
        return Poisson(_held(law.rate, law.rate == 0, site), validate_args=False)
    if type(law_of(law)) is BinomialLaw and "probs" in vars(law) and comes_from_a_draw(law.probs):
        p = law.probs
        return Binomial(law.total_count, _held(p, (p == 0) | (p == 1), site), validate_args=False)
    return law


def _held(parameter: Tensor, ended: Tensor, site: Site) -> Tensor:
    site.held = ended.float().mean()  # looked at when the loss is asked for
    return torch.where(ended, parameter.detach(), parameter)


def say_what_was_held(sites: Sequence[Site]) -> None:
    """Warn of lines where more than a few counts stayed put."""
    for group in by_line(site for site in sites if site.held is not None):
        share = torch.stack([site.held for site in group if site.held is not None]).mean().item()
        if share >= _SHARE:
            warn_at(
                group[0],
                f"{share:.0%} of the counts of {group[0].law} stood at a rate of 0 (or a "
                "probability of 0 or 1) to which earlier draws had brought them, and their slope "
                "is left out, as for a population that has died out; where nothing dies out for "
                "good, gengs.differentiable(absorbing=False) keeps it.",
                CutGradientWarning,
            )
