r"""From topics to words: shares of the vocabulary, and the law by which words are drawn from them.

The shares are a multinomial logistic regression on the topics' intensities,

.. math:: \pi = \mathrm{softmax}(R\,(z - c) + b),

with the bias at the corpus's log-frequencies to begin with, so that a model without topics is the
unigram model. The constant :math:`c` is the prior's mean: it moves into the bias, and changes how
fast the bias and the weights are learned but not what they can say.

**Multinomial**: all words of a document are drawn independently,
:math:`\log p(x \mid z) = \sum_w x_w \log \pi_w`.

**Pólya urn**: a word that has occurred is likely to occur again. Words come out of an urn with
:math:`\alpha_w = s\, \pi_w` balls of word w, and each goes back together with another one of its
kind; the document's probability is that of a Dirichlet-multinomial,

.. math::
    \log p(x \mid z) = \log \frac{\Gamma(s)}{\Gamma(s + N)}
    + \sum_{w:\, x_w > 0} \log \frac{\Gamma(\alpha_w + x_w)}{\Gamma(\alpha_w)} .

The concentration s is learned, one number for the corpus; :math:`s \to \infty` is the multinomial.
Both are probabilities of the *sequence* of words, without the multinomial coefficient, so that
perplexities can be compared.

**Numerics.** With the excess over independent draws,

.. math:: e(a, n) = \log \frac{\Gamma(a + n)}{\Gamma(a)\, a^n}
    = \log \Gamma(a + n) - \log \Gamma(a + 1) - (n - 1) \log a,

the powers of s cancel and the urn is the multinomial with two corrections,
:math:`\log p = \sum_w x_w \log \pi_w + \sum_w e(\alpha_w, x_w) - e(s, N)`. As :math:`e(a, 1) = 0`,
only words that occur more than once need a gamma function; those are few, and are evaluated in
double precision, because for large a the difference is far smaller than its terms. Where
:math:`\alpha_w` underflows, its logarithm is still there.

References:
    | Neural Variational Inference for Text Processing (Miao et al., 2016),
    | https://arxiv.org/abs/1511.06038
    | Modeling Word Burstiness Using the Dirichlet Distribution (Madsen et al., 2005)
    | Accounting for Burstiness in Topic Models (Doyle & Elkan, 2009)
"""

__all__ = ["WordDecoder", "WordLaw"]

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

WordLaw = Literal["urn", "multinomial"]
"""How words are drawn from their shares."""

_LOG_CONCENTRATIONS = math.log(1e-2), math.log(1e6)
"""Below the first, documents have one word each; above the second, the urn is a multinomial."""


class WordDecoder(nn.Module):
    """Topic intensities ``(*, D)`` to the words' logits ``(*, V)``, and to the cost of documents.

    Args:
        topics: The number D of topics.
        words: The size V of the vocabulary.
        unigram: The words' probabilities without any topic, ``(V,)``; uniform by default.
        centre: The intensity that changes nothing.
        scale: The typical distance from it.
        law: How words are drawn.
    """

    def __init__(
        self,
        topics: int,
        words: int,
        unigram: Tensor | None = None,
        centre: float = 0.0,
        scale: float = 1.0,
        law: WordLaw = "multinomial",
    ) -> None:
        super().__init__()
        if unigram is None:
            unigram = torch.full((words,), 1 / words)
        if unigram.shape != (words,) or not bool((unigram > 0).all()):
            raise ValueError(
                f"expected positive probabilities of shape ({words},) as `unigram`, but got shape "
                f"{tuple(unigram.shape)} with least value {float(unigram.min()):.3g}."
            )
        if law not in get_args(WordLaw):
            raise ValueError(
                f"expected `words` to be {' or '.join(get_args(WordLaw))}, but got {law!r}."
            )
        self.centre, self.scale, self.law = centre, scale, law
        self.weight = nn.Parameter(torch.randn(topics, words) * (0.1 / scale))
        self.bias = nn.Parameter(unigram.log().to(self.weight.dtype))
        if law == "urn":  # a sigmoid between the bounds, so that no step gets it stuck at one
            self.raw_concentration = nn.Parameter(torch.zeros(()))

    @property
    def log_concentration(self) -> Tensor:
        """The logarithm of s; infinite for independent draws."""
        if self.law == "multinomial":
            return torch.full((), math.inf)
        low, high = _LOG_CONCENTRATIONS
        return low + (high - low) * self.raw_concentration.sigmoid()

    def forward(self, z: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, (z - self.centre).flatten(0, -2), self.weight)
        return flat.unflatten(0, z.shape[:-1])

    def cost(self, counts: Tensor, z: Tensor) -> Tensor:
        """Minus the log-likelihood of counts ``(B, V)`` given z ``(*, B, D)``: ``(*, B)``."""
        row, column = counts.nonzero(as_tuple=True)  # (R,): the words that there are
        n = counts[row, column]
        place = row * counts.shape[-1] + column
        scale, found = _Entries.apply(self(z), place)
        share = found - scale.index_select(-1, row)  # (*, R): log π
        gain = share * n
        if self.law == "urn":
            log_s, again = self.log_concentration, (n != 1).nonzero().squeeze(-1)
            excess = _excess(log_s + share.index_select(-1, again), n[again])
            gain = gain.index_add(-1, again, excess.to(gain.dtype))
        cost = -torch.zeros_like(scale).index_add(-1, row, gain)
        if self.law == "urn":
            cost = cost + _excess(log_s, counts.sum(-1)).to(cost.dtype)
        return cost


class _Entries(torch.autograd.Function):
    """The normalisers of logits ``(*, B, V)``, and few of the entries, at flat ``(B * V)`` places.

    Autograd's own way takes a dozen passes over the logits, this one four: they are large, and the
    entries are few.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        top = logits.amax(-1, keepdim=True)
        weights = (logits - top).exp_()
        total = weights.sum(-1)
        scale = total.log() + top.squeeze(-1)
        ctx.save_for_backward(logits, weights, total, scale, place)
        return scale, logits.flatten(-2).index_select(-1, place)

    @staticmethod
    def backward(ctx: Any, of_scale: Tensor, of_entries: Tensor) -> tuple[Tensor, None]:
        logits, weights, total, scale, place = ctx.saved_tensors
        if torch.is_grad_enabled():  # an estimator differentiates once more
            grad = (logits - scale.unsqueeze(-1)).exp() * of_scale.unsqueeze(-1)
        else:
            grad = weights * (of_scale / total).unsqueeze(-1)
        grad.flatten(-2).index_add_(-1, place, of_entries)
        return grad, None


def _excess(log_a: Tensor, n: Tensor) -> Tensor:
    """The logarithm of Γ(a + n) / (Γ(a) aⁿ), in double precision where the device has it."""
    wide = torch.float32 if log_a.device.type == "mps" else torch.float64
    log_a, n = log_a.to(wide), n.to(wide)
    a = log_a.exp()
    return torch.lgamma(a + n) - torch.lgamma(a + 1) - (n - 1) * log_a
