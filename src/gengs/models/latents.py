r"""From an encoder's raw output to the two laws of a model: posterior and prior.

The prior :math:`p(z)` is a count law, such as Poisson(2), the same for each latent or one for each.
The posterior :math:`q(z \mid x)` is either

- *explicit*: a law of the prior's family, whose parameter is the raw output:

  ================  =====================================
  prior             raw output, one number per latent
  ================  =====================================
  Poisson           the logarithm of the rate
  Geometric         the logit of p
  NegativeBinomial  the logit of p; r is the prior's
  Bernoulli         the logit of p
  Binomial          the logit of p; N is the prior's
  ================  =====================================

- *implicit*: any PMF on the prior's atoms; the raw output holds n logits per latent.

Both laws are in ``float32`` or wider, whatever the networks are in.

**A prior that is learned** is a module whose ``forward()`` gives the law: a law keeps what its
parameters were when it was made, a module makes a new one at each step.

    >>> class LearnedPoisson(nn.Module):
    ...     def __init__(self) -> None:
    ...         super().__init__()
    ...         self.log_rate = nn.Parameter(torch.zeros(()))
    ...
    ...     def forward(self) -> Poisson:
    ...         return Poisson(self.log_rate.exp())
    >>> q, p = CountLatents(LearnedPoisson(), level=12)(torch.randn(5, 3))
    >>> torch.distributions.kl_divergence(q, p).sum().backward()

**Truncation.** With a ``level`` n both laws live on the atoms 0 ... n - 1 with the tails lumped,
and the divergence is the categorical one. With a ``mass`` (the paper's NP) the window follows the
posteriors of each batch while training; there is no one model on finitely many atoms behind that,
so evaluation takes the whole laws. With neither, both laws stay whole everywhere, and the
divergence is the family's closed form.
"""

from __future__ import annotations

__all__ = ["CountLatents", "PosteriorKind"]

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.distributions import (
    Bernoulli,
    Binomial,
    Distribution,
    Geometric,
    NegativeBinomial,
    Poisson,
)

from ..distributions.families import tensors_of
from ..distributions.finite import Finite
from ..distributions.given import widen
from ..distributions.scored import with_scores
from ..distributions.truncate import cut_to, truncate
from ..distributions.truncated import Truncated
from ..distributions.validation import ends_of, inspectable
from .moving import moved_like

PosteriorKind = Literal["explicit", "implicit"] | Callable[[Tensor], Distribution]
"""How raw outputs become a posterior; a function of your own gives the factors' law."""

# exp(-60) is a rate of zero for every purpose, and its logarithm is still finite
_LEAST_LOG_RATE = -60.0

_FAMILIES: dict[type[Distribution], Callable[[Any, Tensor, bool], Distribution]] = {
    Poisson: lambda _, raw, check: Poisson(_rates(raw), check),
    Geometric: lambda _, raw, check: Geometric(None, raw, check),
    NegativeBinomial: lambda p, raw, check: NegativeBinomial(p.total_count, None, raw, check),
    Bernoulli: lambda _, raw, check: Bernoulli(None, raw, check),
    Binomial: lambda p, raw, check: Binomial(p.total_count, None, raw, check),
}
"""The law of a prior's family with raw output as parameter, and whether to check that."""


def _rates(log_rates: Tensor) -> Tensor:
    # looked at first: a clamp that does nothing costs four operations on the way back
    if not inspectable(log_rates) or not log_rates.numel():
        return log_rates.clamp_min(_LEAST_LOG_RATE).exp()
    least, largest = ends_of(log_rates)
    if largest > math.log(torch.finfo(log_rates.dtype).max):
        raise ValueError(
            f"VAE: the encoder's logarithm of a rate is {largest:.4g}, and the rate overflows."
        )
    if least < _LEAST_LOG_RATE:
        log_rates = log_rates.clamp_min(_LEAST_LOG_RATE)
    return log_rates.exp()


class CountLatents(nn.Module):
    """The prior, and the posterior that belongs to a raw output.

    Args:
        prior: The prior law of one latent (scalar), or of each (batch shape ``(D,)``); or a module
            that gives it, for a prior that is learned.
        posterior: ``"explicit"``, ``"implicit"``, or a function from the raw output ``(B, ...)`` to
            the factors' law ``(B, D)``.
        level: Truncate both laws to this many atoms.
        mass: Truncate to the window that holds this mass, batch by batch.
        latents: The number D of latents; known anyway where the prior has shape ``(D,)``.
    """

    def __init__(
        self,
        prior: Distribution | nn.Module,
        posterior: PosteriorKind = "explicit",
        *,
        level: int | None = None,
        mass: float | None = None,
        latents: int | None = None,
    ) -> None:
        super().__init__()
        self.learned = prior if isinstance(prior, nn.Module) else None
        prior = prior() if isinstance(prior, nn.Module) else prior
        if not isinstance(prior, Distribution):
            raise TypeError(
                "VAE expects a torch distribution as `prior`, or a module that gives one, but got "
                f"{type(prior).__name__}."
            )
        if self.learned is None and any(t.requires_grad for _, _, t in tensors_of(prior)):
            raise ValueError(
                "VAE expects a `prior` without gradients: a law keeps what its parameters were "
                "when it was made. For a prior that is learned, pass a module whose forward() "
                "gives the law."
            )
        if prior.event_shape or len(prior.batch_shape) > 1:
            raise ValueError(
                "VAE expects the `prior` of one latent, or of each in a batch shape (D,), but got "
                f"batch shape {tuple(prior.batch_shape)}, event shape {tuple(prior.event_shape)}."
            )
        if not callable(posterior) and posterior not in ("explicit", "implicit"):
            raise ValueError(
                f"VAE expects `posterior` 'explicit', 'implicit' or a function, got {posterior!r}."
            )
        if level is not None and mass is not None:
            raise ValueError(f"VAE expects one of level={level} and mass={mass}, not both.")
        if mass is not None and not 0 < mass < 1:
            raise ValueError(f"VAE expects a `mass` between 0 and 1, but got {mass}.")
        shape = tuple(prior.batch_shape)
        if latents is not None and shape not in ((), (latents,)):
            raise ValueError(f"VAE got latents={latents} beside a prior of batch shape {shape}.")
        whole = isinstance(latents, int) and not isinstance(latents, bool)
        if latents is not None and not (whole and latents > 0):
            raise ValueError(f"VAE expects a positive integer `latents`, but got {latents!r}.")
        self.count = latents if latents is not None or not shape else shape[0]
        self.kind, self.level = posterior, level
        # with a mass, an implicit posterior takes the prior's window, an explicit one its own
        self.mass = None if posterior == "implicit" else mass
        if posterior == "explicit" and type(prior) not in _FAMILIES:
            raise TypeError(
                f"an explicit posterior exists for {', '.join(k.__name__ for k in _FAMILIES)}, but "
                f"the prior is {type(prior).__name__}; use posterior='implicit' or a function from "
                "the encoder's output to a law."
            )
        self._prior_mass = mass
        cut = self._cut(prior)
        if posterior == "implicit":
            self._require_mass_on_all_atoms(prior, cast(Finite, cut))
        self._fixed = (prior, cut) if self.learned is None else None

    @property
    def prior(self) -> Distribution:
        """The prior as the posteriors see it: on atoms, or whole."""
        return self._priors()[1]

    def _priors(self) -> tuple[Distribution, Distribution]:
        """The prior, whole and as the posteriors see it."""
        if self.learned is None:
            return cast(tuple[Distribution, Distribution], self._fixed)
        law = self.learned()
        return law, self._cut(law)

    def _require_mass_on_all_atoms(self, prior: Distribution, cut: Finite) -> None:
        logits = cut.logits
        if not inspectable(logits):
            return
        empty = (logits == -torch.inf).reshape(-1, logits.shape[-1]).any(0)
        if bool(empty.any()):
            raise ValueError(
                f"an implicit posterior may give mass to every atom, but the prior {prior} gives "
                f"none to {int(empty.sum())} of {len(empty)}: the divergence would be infinite; "
                "take fewer atoms, or a prior with mass on each."
            )

    def _cut(self, prior: Distribution) -> Distribution:
        """The prior as the posteriors see it: on atoms, or whole."""
        if self.level is not None:
            return truncate(prior, self.level)
        if self.kind != "implicit":
            return prior
        if self._prior_mass is not None:
            return truncate(prior, mass=self._prior_mass)
        if not getattr(prior, "has_enumerate_support", False):
            raise ValueError(
                f"an implicit posterior needs the prior's atoms, but {type(prior).__name__} has "
                "infinitely many values; pass level= or mass=."
            )
        return truncate(prior)

    @property
    def num_atoms(self) -> int | None:
        """How many atoms both laws have; ``None`` where they are whole."""
        return self.prior.num_atoms if isinstance(self.prior, Finite) else None

    def forward(self, raw: Tensor, whole: bool = False) -> tuple[Distribution, Distribution]:
        """The factors' posterior ``(B, D)`` and prior, for an encoder's raw output.

        Args:
            raw: What the encoder returned.
            whole: Leave out a truncation by ``mass``, which changes from batch to batch.
        """
        whole_prior, p = self._priors()
        if not isinstance(raw, Tensor) and not callable(self.kind):
            raise TypeError(
                f"VAE expects a tensor from the encoder, but got {type(raw).__name__}; give "
                "`posterior` a function that makes a law of it."
            )
        q = self._posterior(raw, whole_prior, p)
        if len(q.batch_shape) != 2 or (self.count or q.batch_shape[1]) != q.batch_shape[1]:
            shape = f" of shape {tuple(raw.shape)}" if isinstance(raw, Tensor) else ""
            raise ValueError(
                f"VAE expects a posterior of shape (batch, {self.count or 'latents'}), but the "
                f"encoder's output{shape} gives {tuple(q.batch_shape)}."
            )
        if isinstance(p, Truncated) and self.level is not None and not isinstance(q, Finite):
            q = cut_to(q, p)
        elif self.mass is not None and not whole:
            q = truncate(q, mass=self.mass)
            if q.certificate is not None:  # the window was chosen for q: p may have mass beyond
                p = truncate(p, window=replace(q.certificate.window, allowed=1.0))
        if isinstance(p, Bernoulli) and p.batch_shape:  # torch's divergence of these needs it
            p = p.expand(q.batch_shape)
        return q, p

    def _posterior(self, raw: Tensor, prior: Distribution, p: Distribution) -> Distribution:
        if callable(self.kind):
            q = self.kind(raw)
            if not isinstance(q, Distribution):
                raise TypeError(
                    "VAE expects a torch distribution from the function `posterior`, but got "
                    f"{type(q).__name__}."
                )
            return q
        if self.kind == "explicit" or not isinstance(p, Finite):
            # else the truncation does; a compiler cannot follow torch's checks
            check = self.level is None and not torch.compiler.is_compiling()
            return _FAMILIES[type(prior)](prior, widen(raw), check)
        n = p.num_atoms
        if raw.dim() != 2 or raw.shape[1] % n:
            raise ValueError(
                f"an implicit posterior on {n} atoms expects an encoder with {n} outputs for each "
                f"latent, shape (batch, latents * {n}), but got shape {tuple(raw.shape)}."
            )
        return with_scores(p, raw.reshape(len(raw), raw.shape[1] // n, n))

    def _apply(self, fn: Any, recurse: bool = True) -> CountLatents:
        """Laws are no modules: their tensors move with the model here."""
        super()._apply(fn, recurse)
        if self._fixed is not None:
            prior, cut = self._fixed
            self._fixed = moved_like(prior, fn), moved_like(cut, fn)
        return self

    def extra_repr(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else "function"
        rule = f", mass={self.mass}" if self.mass is not None else ""
        return f"{self.prior}, {kind} posterior{rule}"


def draws_of(law: Distribution, samples: int) -> Tensor:
    """Exact draws without gradient, as floating numbers: ``(S, *batch)``."""
    with torch.no_grad():
        z = law.sample(torch.Size([samples]))
    return z if z.is_floating_point() else z.to(torch.get_default_dtype())
