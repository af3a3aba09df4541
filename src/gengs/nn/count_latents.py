r"""The latent counts of a model: their prior, and the posterior of an encoder's output.

**Posteriors.** The prior :math:`p` is a distribution of counts, such as Poisson(2). The
posterior :math:`q` is

- *explicit*: a distribution of the prior's family, whose parameter is the raw number:

  ================  =====================================
  prior             raw number, one per latent
  ================  =====================================
  Poisson           the logarithm of the rate
  Geometric         the logit of p
  NegativeBinomial  the logit of p; r is the prior's
  Bernoulli         the logit of p
  Binomial          the logit of p; N is the prior's
  ================  =====================================

- *implicit*: any PMF on the prior's atoms; the raw numbers are n logits per latent (Algorithm 3 of
  the GenGS paper).

- *tilted*: the prior, moved and narrowed (:func:`gengs.tilt`) by two raw numbers per latent. In
  units of the prior's own mean and standard deviation, :math:`t = (k - E_p) / \sigma_p`, they are a
  location :math:`\mu` and a precision :math:`c = e^{r - 2}`, little at r = 0,

  .. math:: q(k) \propto p(k)\, \exp\big( (1 + c)\, \mu\, t - \tfrac{c}{2} t^2 \big),

  which for a Gaussian prior would be the Gaussian of mean :math:`\mu` and variance 1 / (1 + c).
  Both are bounded smoothly: :math:`\mu` to half as much again as where the atoms are, c to where
  neighbours of the mode have probability e^-10.

An explicit Poisson is as wide as its mean: it can say "about nine", never "nine, surely". An
implicit posterior can say anything, and has n numbers to learn for it. The tilted one contains the
prior, single atoms, and what is between, and learns fastest.

All distributions are in ``float32`` or wider, whatever the networks are in.

**A prior that is learned** is a module whose ``forward()`` gives the distribution: a distribution
keeps what its parameters were when it was made, a module makes a new one at each step.

    >>> class LearnedPoisson(nn.Module):
    ...     def __init__(self) -> None:
    ...         super().__init__()
    ...         self.log_rate = nn.Parameter(torch.zeros(()))
    ...
    ...     def forward(self) -> torch.distributions.Poisson:
    ...         return torch.distributions.Poisson(self.log_rate.exp())
    >>> q, p = CountLatents(LearnedPoisson(), level=12)(torch.randn(5, 3).clamp(-1, 1))
    >>> torch.distributions.kl_divergence(q, p).sum().backward()

**Truncation.** With a ``level`` n both live on the atoms 0 ... n - 1 with the tails lumped,
and the divergence is the categorical one. With a ``mass`` (the paper's NP) the window follows the
posteriors of each batch while training; there is no one model on finitely many atoms behind that,
so evaluation takes them whole. With neither, both stay whole everywhere, and the
divergence is the family's closed form.
"""

__all__ = ["CountLatents", "PosteriorFamily", "PosteriorKind", "posterior_width"]

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from ..estimators.base import positive_integer
from ..laws.law import law_of
from ..tables.finite import Finite
from ..tables.tilting import standardised_atoms, tilt
from ..tables.truncation import truncate
from .fixed_prior import FixedPrior, has_explicit_posterior

PosteriorFamily = Literal["explicit", "implicit", "tilted"]
PosteriorKind = PosteriorFamily | Callable[[Tensor], Distribution]
"""How raw numbers become a posterior; a function of your own gives the factors' distribution."""

# near the prior at first: a latent that is not needed costs next to nothing from the beginning
_LOG_PRECISION = -2.0


def posterior_width(kind: PosteriorFamily, atoms: int) -> int:
    """How many raw numbers a posterior on so many atoms needs for each latent."""
    return {"explicit": 1, "implicit": atoms, "tilted": 2}[kind]


class CountLatents(nn.Module):
    """The prior, and the posterior that belongs to a raw output.

    Args:
        kind: The family of the posterior, or a function from the raw output ``(B, ...)`` to the
            factors' distribution ``(B, D)``.
        prior: The distribution of one latent, or of each in a batch shape ``(D,)``; or a module
            whose ``forward()`` gives it.
        level: The number of atoms that both distributions are truncated to.
        mass: In the place of ``level``: the mass that a window of each batch keeps in training.
        latents: The number of latents, where the prior does not say it.
        validate_args: Whether to check parameters; on by default.
    """

    def __init__(
        self,
        prior: Distribution | nn.Module,
        kind: PosteriorKind = "explicit",
        *,
        level: int | None = None,
        mass: float | None = None,
        latents: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__()
        law = prior() if isinstance(prior, nn.Module) else prior
        self.count = _count(law, latents)
        if not callable(kind) and kind not in get_args(PosteriorFamily):
            options = ", ".join(map(repr, get_args(PosteriorFamily)))
            raise ValueError(f"VAE expects `posterior` {options} or a function, got {kind!r}.")
        if kind == "explicit" and not has_explicit_posterior(law):
            raise TypeError(
                "an explicit posterior exists for Poisson, Geometric, NegativeBinomial, Bernoulli "
                f"and Binomial, but the prior is {type(law).__name__}; use posterior='implicit' or "
                "a function from the encoder's output to a distribution."
            )
        if level is not None and mass is not None:
            raise ValueError(f"VAE expects one of level={level} and mass={mass}, not both.")
        if level is not None and level < 2:
            raise ValueError(f"VAE expects a `level` of at least 2 atoms, but got {level}.")
        if mass is not None and not 0 < mass < 1:
            raise ValueError(f"VAE expects a `mass` between 0 and 1, but got {mass}.")
        self.kind, self.level, self.mass, self.validate_args = kind, level, mass, validate_args
        cut = self._cut(law)
        if kind == "implicit":
            _require_mass_on_all_atoms(law, cut.logits)  # type: ignore[attr-defined]
        whole = kind == "explicit"  # else all is made from the prior on its atoms
        self.source = prior if isinstance(prior, nn.Module) else FixedPrior(law if whole else cut)
        apart = whole and cut is not law and isinstance(self.source, FixedPrior)
        self.fixed = FixedPrior(cut) if apart else None

    @property
    def prior(self) -> Distribution:
        """The prior as the posteriors see it: on atoms, or whole."""
        return self._priors()[1]

    def _priors(self) -> tuple[Distribution, Distribution]:
        """The prior as its module gives it, and as the posteriors see it."""
        law = self.source()
        return law, self._cut(law) if self.fixed is None else self.fixed()

    def _cut(self, prior: Distribution) -> Distribution:
        on_atoms = self.level is not None or self.kind in ("implicit", "tilted")
        if isinstance(prior, Finite) or not on_atoms:
            return prior
        if self.level is None and not (self.mass or prior.has_enumerate_support):
            raise ValueError(
                f"the {self.kind} posterior needs the prior's atoms, but {type(prior).__name__} "
                "has infinitely many values; pass level= or mass=."
            )
        return truncate(prior, self.level, mass=self.mass, validate_args=self.validate_args)

    def forward(self, raw: Tensor, whole: bool = False) -> tuple[Distribution, Distribution]:
        """The factors' posterior ``(*, D)`` and prior, for an encoder's raw output.

        Args:
            raw: What the encoder returned: ``(*, D * w)``, w numbers for each latent.
            whole: Leave out a truncation by ``mass``, which changes from batch to batch.
        """
        law, p = self._priors()
        q = self._posterior(raw, law if self.kind == "explicit" else p)
        if len(q.batch_shape) < 2 or (self.count or q.batch_shape[-1]) != q.batch_shape[-1]:
            shape = f" of shape {tuple(raw.shape)}" if isinstance(raw, Tensor) else ""
            raise ValueError(
                f"VAE expects a posterior of shape (batch, {self.count or 'latents'}), but the "
                f"encoder's output{shape} gives {tuple(q.batch_shape)}."
            )
        if self.level is not None and not isinstance(q, Finite):
            q = truncate(q, self.level, validate_args=self.validate_args)
        elif self.mass is not None and not isinstance(p, Finite) and not whole:
            q = truncate(q, mass=self.mass, validate_args=self.validate_args)
            if q.certificate is not None:  # the window was chosen for q: p may have mass beyond
                p = truncate(p, window=replace(q.certificate.window, allowed=1.0))
        if not isinstance(p, Finite) and p.batch_shape:  # torch's divergence of Bernoullis needs it
            p = p.expand(q.batch_shape)
        return q, p

    def _posterior(self, raw: Tensor, prior: Distribution) -> Distribution:
        if callable(self.kind):
            q = self.kind(raw)
            if not isinstance(q, Distribution):
                raise TypeError(
                    "VAE expects a torch distribution from the function `posterior`, but got "
                    f"{type(q).__name__}."
                )
            return q
        if not isinstance(raw, Tensor):
            raise TypeError(
                f"VAE expects a tensor from the encoder, but got {type(raw).__name__}; give "
                "`posterior` a function that makes a distribution of it."
            )
        atoms = prior.num_atoms if isinstance(prior, Finite) else 0
        width = posterior_width(self.kind, atoms)
        if raw.dim() < 2 or raw.shape[-1] % width:
            raise ValueError(
                f"the {self.kind} posterior expects an encoder with {width} outputs for each "
                f"latent, shape (batch, latents * {width}), but got shape {tuple(raw.shape)}."
            )
        # a truncation checks for itself, and a compiler cannot follow torch's own checks
        later = torch.compiler.is_compiling() or (self.level and not atoms)
        check = False if later else self.validate_args
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        raw = raw.unflatten(-1, (raw.shape[-1] // width, width))  # (*, D, w)
        if not isinstance(prior, Finite):
            explicit: Distribution = law_of(prior).explicit(prior, raw.squeeze(-1), check)
            return explicit
        if self.kind == "implicit":
            return Finite(prior.atoms, logits=raw, validate_args=check)
        location, precision = _bounded(raw[..., 0], raw[..., 1] + _LOG_PRECISION, prior)
        slope = (1 + precision) * location
        return tilt(prior, slope, precision / 2, validate_args=check)

    def extra_repr(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else "function"
        return f"{self.prior}, {kind} posterior" + (f", mass={self.mass}" if self.mass else "")


def _count(prior: object, latents: int | None) -> int | None:
    """The number of latents, if it is known."""
    if not isinstance(prior, Distribution):
        raise TypeError(
            "VAE expects a torch distribution as `prior`, or a module that gives one, but got "
            f"{type(prior).__name__}."
        )
    shape = tuple(prior.batch_shape)
    if prior.event_shape or len(shape) > 1:
        raise ValueError(
            "VAE expects the `prior` of one latent, or of each in a batch shape (D,), but got "
            f"batch shape {shape}, event shape {tuple(prior.event_shape)}."
        )
    if latents is None:
        return shape[0] if shape else None
    if shape not in ((), (positive_integer("VAE", "latents", latents),)):
        raise ValueError(f"VAE got latents={latents} and a prior of batch shape {shape}.")
    return latents


def _require_mass_on_all_atoms(prior: Distribution, logits: Tensor) -> None:
    empty = (logits == -torch.inf).reshape(-1, logits.shape[-1]).any(0)
    if not empty.is_meta and bool(empty.any()):
        raise ValueError(
            f"an implicit posterior may give mass to every atom, but the prior {prior} gives "
            f"none to {int(empty.sum())} of {len(empty)}: the divergence would be infinite; "
            "take fewer atoms, or a prior with mass on each."
        )


def _bounded(location: Tensor, log_precision: Tensor, prior: Finite) -> tuple[Tensor, Tensor]:
    """A location near the atoms and a precision that tells neighbours apart, but no more."""
    t = standardised_atoms(prior)  # (n,) or (D, n)
    most = 1.5 * t.abs().amax(-1)
    # all of its neighbours' e^-10 follow from the smallest gap
    gap = t.sort(-1).values.diff(dim=-1).amin(-1) if prior.num_atoms > 1 else t.new_ones(())
    sharpest = 20 / gap.square()
    location = location / (1 + (location / most).square()).sqrt()
    # exp(x) / (1 + exp(x) / sharpest), which overflows nowhere
    return location, sharpest * torch.sigmoid(log_precision - sharpest.log())
