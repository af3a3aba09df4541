r"""A variational autoencoder whose latent variables are counts, trained by any estimator.

.. math::
    \text{loss}(x) = \widehat{E}_{q(z|x)}[-\log p(x \mid z)]
    + \beta\, \mathrm{KL}(q(z \mid x) \,\|\, p(z))

The hat is the estimator: the value and the gradient of the first term are its own. The divergence
is analytic. The model works with any encoder and decoder:

    >>> import torch, gengs
    >>> from torch.distributions import Poisson
    >>> encoder = torch.nn.Linear(64, 10 * 2)              # 10 latents, two numbers each
    >>> decoder = torch.nn.Linear(10, 64)                  # logits of 64 pixels
    >>> pair = gengs.MidCDF(2, antithetic=True)
    >>> model = VAE(encoder, decoder, Poisson(2.0), pair, "tilted", level=12)
    >>> x = torch.bernoulli(torch.full((5, 64), 0.3))
    >>> loss = model.loss(x)                               # one number per image
    >>> loss.mean().backward()
    >>> model.negative_elbo(x, samples=10).shape, model.log_likelihood(x, samples=100).shape
    (torch.Size([5]), torch.Size([5]))

**Two numbers.** A relaxation (GenGS) trains on relaxed draws, and the value of its loss, which
:meth:`~.Autoencoder.training_value` gives and papers print, is no bound on anything. Compare models
by :meth:`~.Autoencoder.negative_elbo`, which uses exact draws. VIMCO's value is a tighter bound
than the others'; its cost is the negative log-weight :math:`-\log p(x \mid z) - \log p(z) + \log
q(z \mid x)`, without a separate divergence.

**Subsets.** With a :class:`gengs.Subset` as prior, each latent is a group of k-of-n elements:
the encoder writes n logits for each group, and the decoder sees all elements in a row
(:mod:`gengs.nn.subset_latents`).

References:
    | Generalized Gumbel-Softmax Gradient Estimator for Generic Discrete Random Variables
    | (Joo et al., 2020), https://arxiv.org/abs/2003.01847
"""

__all__ = ["VAE"]

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from gengs import Subset
from gengs.estimators.base import Estimator
from gengs.estimators.temperature import Schedule
from gengs.nn.count_latents import CountLatents, PosteriorKind
from gengs.nn.fixed_prior import Standardise
from gengs.nn.latent_model import exact_draws, expected_cost
from gengs.nn.subset_latents import SubsetLatents

from .autoencoder import Autoencoder, floating


class VAE(Autoencoder):
    """A count-latent variational autoencoder.

    Args:
        encoder: Images ``(B, *pixels)`` to raw parameters: ``(B, 2 * D)`` for a tilted posterior,
            ``(B, D)`` for an explicit one, ``(B, D * n)`` for an implicit one on n atoms.
        decoder: Standardised latents ``(B, D)`` to the logits of Bernoulli pixels
            ``(B, *pixels)``.
        prior: The prior law of one latent, such as ``Poisson(2.0)``, or of each, ``(D,)``; or, for
            a prior that is learned, a module whose ``forward()`` gives it; or the ``Subset`` of one
            group of elements.
        estimator: Differentiates the reconstruction term; the number of draws is its ``samples``.
            Its own parameters are among ``model.parameters()``. To NVIL's baseline the model shows
            the images.
        posterior: ``"explicit"`` (a law of the prior's family), ``"implicit"`` (any PMF on the
            prior's atoms), ``"tilted"`` (the prior, moved and narrowed), or a function from the
            encoder's output to the factors' law ``(B, D)``; without a ``level``, the divergence of
            that law and the prior must be known to torch. Of subsets it is always the ``Subset`` of
            the encoder's logits, and this is left out.
        level: Truncate both laws to this many atoms.
        mass: Truncate while training to a window that holds this mass of every posterior of the
            batch; evaluation takes the whole laws.
        latents: The number D of latents; needed by :meth:`sample_prior` where the prior is scalar.
        standardise: Show the decoder each count less the prior's mean, in units of its standard
            deviation (of a learned prior as it is at first); else the counts as they are.
        kl_weight: The weight of the divergence while training: a number, or a schedule that is
            read at each call (step it yourself).
        validate_args: Whether to look at pixels and parameters; on by default.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        prior: Distribution | nn.Module,
        estimator: Estimator,
        posterior: PosteriorKind = "explicit",
        *,
        level: int | None = None,
        mass: float | None = None,
        latents: int | None = None,
        standardise: bool = True,
        kl_weight: float | Schedule = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(encoder, decoder, kl_weight, validate_args)
        if not isinstance(estimator, Estimator):
            raise TypeError(
                f"VAE expects a gengs estimator as `estimator`, got {type(estimator).__name__}."
            )
        self.estimator = estimator
        self.latents: CountLatents | SubsetLatents
        if isinstance(prior, Subset):
            if level is not None or mass is not None or posterior != "explicit":
                raise ValueError(
                    "the posterior of a Subset prior is the Subset of the encoder's logits: leave "
                    "out `posterior`, `level` and `mass`."
                )
            self.latents = SubsetLatents(prior, latents, validate_args)
        else:
            rules = {"level": level, "mass": mass, "latents": latents}
            self.latents = CountLatents(prior, posterior, **rules, validate_args=validate_args)  # type: ignore[arg-type]
        self.standardise = Standardise(self.latents.prior) if standardise else nn.Identity()

    def decode(self, z: Tensor) -> Tensor:
        """The pixels' logits, ``(S, B, *pixels)``, of counts ``(S, B, D)`` or subsets."""
        z = self.standardise(z)
        return super().decode(z.flatten(-2) if isinstance(self.latents, SubsetLatents) else z)

    def laws(self, x: Tensor) -> tuple[Distribution, Distribution]:
        """The factors' posterior ``(B, D)`` and prior, as evaluation takes them."""
        return self.latents(self.encoder(x), whole=True)

    def loss(self, x: Tensor, kl_weight: float | None = None) -> Tensor:
        """What training minimises, one number per example, with the estimator's gradient.

        In ``eval()`` mode, and without gradients, the estimator uses exact draws.
        """
        weight = self._weight(kl_weight)
        if torch.compiler.is_compiling():  # which has no numbers to look at
            return self._loss(floating(x), weight)
        try:
            # wrong pixels become NaN, noticed where the loss is looked at: no look of their own
            wrong = torch.where(self._outside(x), torch.nan, 0.0)
            return self._loss(floating(x) + wrong, weight)
        except (ValueError, FloatingPointError):
            self._pixels(x)  # if it is the images' fault, that is what to say
            raise

    def _loss(self, x: Tensor, weight: float) -> Tensor:
        q, p = self.latents(self.encoder(x))
        context = x.detach().flatten(1)  # for a baseline that is learned
        cost = partial(self.reconstruction_cost, x)
        return expected_cost(self.estimator, cost, q, p, weight, context)

    def draw_prior(self, n: int) -> Tensor:
        """Exact draws from the prior, ``(n, D)``."""
        if self.latents.count is None:
            raise ValueError(
                "the prior is that of one latent and their number is not known; "
                "pass latents= to VAE."
            )
        return exact_draws(self.latents.prior.expand(torch.Size([self.latents.count])), n)
