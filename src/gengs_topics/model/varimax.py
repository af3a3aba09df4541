r"""Varimax: topics rotated, while training, to directions in which each has few words.

A Poisson prior with a large rate is nearly Gaussian, and a Gaussian knows no directions: with
intensities :math:`z` rotated by any orthogonal A and the topics R with them, the words are the
same,

.. math::
    (z - c)\, R = \big((z - c) A\big) \big(A^\top R\big),

and so, nearly, is the prior. Training ends up in any of these directions, and a topic is then a
mixture of themes. Varimax takes the one with the most pronounced entries,

.. math:: \max_A \; \sum_k \operatorname{Var}_w \big[ (A^\top R)_{kw}^2 \big],

and signs are chosen such that each topic's large entries are positive. The encoder's last layer is
rotated, too, so that documents keep their words' probabilities as nearly as the family of
posteriors allows. This is done once on the way, and the rest of the training settles the model
there: the prior is not quite Gaussian, and the posterior's factors are independent, which is a
better fit in directions that few documents share.

**By documents, at the end.** Once training is done, topics are *read* in the directions in which
documents have few of them: varimax of the posterior means (Rohe & Zeng). Words depend on the
latents through :math:`(z - c) R` alone, so this is another basis of the same model: no probability
changes. There are two candidates for it:

- rows :math:`(m_d - \bar m) / \lVert m_d - \bar m \rVert`: every document counts the same (Kaiser's
  normalisation). Otherwise the fourth powers of a few that stand out decide, which are the ones
  that a model of few documents knows by heart;
- rows :math:`m_d - \bar m + \gamma v`, where v is the direction in which documents differ least.
  Themes that exclude each other are the corners of a simplex, and n of them take n - 1 directions:
  one theme is where no topic rises. Seen from a point beside their plane, at the distance
  :math:`\gamma^2 = \sum_j \lambda_j^2 / \sum_j \lambda_j` of the covariance's eigenvalues, corners
  are at right angles, and the spare direction makes each of them a topic of its own.

Topics are turned by the one that makes the words of those that matter most coherent, in other
documents than those by which the words were ranked, and not at all if neither does. A model with
super-topics is not turned then, because these raise latents.

**Many topics.** An iteration of varimax takes time like :math:`V D^2 + D^3`: at 50 topics all of
them together take a fifth of a second, at 2000 topics a single one takes seconds. Ten iterations
reach 97 % of the criterion and twenty 99 %, so models of more than some 200 topics get fewer of
them, by a count of the arithmetic (never by the clock: the same seed gives the same topics).

References:
    | The varimax criterion for analytic rotation in factor analysis (Kaiser, 1958)
    | Vintage Factor Analysis with Varimax Performs Statistical Inference (Rohe & Zeng, 2023),
    | https://arxiv.org/abs/2004.05387
"""

__all__ = ["VarimaxRotation", "document_rotations", "rotate_topics", "varimax"]

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .topic_network import TopicNetwork

_MOST_WORDS = 5000
"""Of a larger vocabulary, the most frequent ones decide."""

_MOST_WORK, _FEWEST, _MOST = 1e11, 10, 100
"""Multiplications in all iterations together (seconds), and how many there are in any case."""


def varimax(loadings: Tensor, iterations: int = 100, tolerance: float = 1e-6) -> Tensor:
    """The orthogonal ``A``, ``(D, D)``, that makes the columns of ``loadings @ A`` pronounced.

    Args:
        loadings: ``(V, D)``.
        iterations: At most so many; each is a singular value decomposition of ``(D, D)``.
        tolerance: Stop when the criterion grows by less than this, relatively.
    """
    wide = loadings.double()
    rotated, rotation, before = wide, torch.eye(wide.shape[1], dtype=wide.dtype), 0.0
    rotation = rotation.to(wide.device)
    for _ in range(iterations):
        slope = wide.t() @ (rotated**3 - rotated * rotated.square().mean(0))
        left, values, right = torch.linalg.svd(slope)
        rotation = left @ right
        rotated = wide @ rotation
        criterion = float(values.sum())
        if criterion <= before * (1 + tolerance):
            break
        before = criterion
    signs = torch.where((rotated**3).sum(0) < 0, -1.0, 1.0).to(wide.dtype)
    return rotation * signs


@torch.no_grad()
def rotate_topics(model: TopicNetwork, optimizer: torch.optim.Optimizer | None = None) -> Tensor:
    """Rotate the topics of a model and its encoder's last layer; the rotation, ``(D, D)``.

    A posterior whose means are not linear in the encoder's features (an implicit one) cannot be
    rotated; such a model is left alone, and so is one that has diverged.

    Args:
        model: With topics in any directions.
        optimizer: Adam, whose running means of the gradients are rotated, too.
    """
    weight, bias = model.decoder.weight, model.decoder.bias
    topics = weight - weight.mean(-1, keepdim=True)
    along = model.rows_of_means()
    if along is None or not bool(torch.isfinite(topics).all()):
        return torch.eye(len(topics), dtype=topics.dtype, device=topics.device)
    frequent = bias.topk(min(len(bias), _MOST_WORDS)).indices
    loadings = topics[:, frequent].t()
    rotation = varimax(loadings, _iterations(*loadings.shape)).to(topics.dtype)
    for parameter, rows in [(model.decoder.weight, lambda weight: weight), *along]:
        state = {} if optimizer is None else optimizer.state.get(parameter, {})
        for tensor in (parameter, state.get("exp_avg")):
            if tensor is not None:
                rows(tensor).copy_(rotation.t() @ rows(tensor))
    return rotation


def _iterations(words: int, topics: int) -> int:
    """How many iterations of varimax a model of this size is worth."""
    work = 4 * words * topics**2 + 25 * topics**3  # products, and a singular value decomposition
    return max(_FEWEST, min(_MOST, int(_MOST_WORK / work)))


def document_rotations(intensities: Tensor) -> Iterator[Tensor]:
    """Rotations ``(D, D)`` to directions in which documents have few topics.

    One counts all documents the same, one sees them from a point beside their plane.

    Args:
        intensities: Of each topic in each document, ``(M, D)``.
    """
    rises = (intensities - intensities.mean(0)).double()
    tiny = torch.finfo(rises.dtype).tiny
    spreads, axes = torch.linalg.eigh(rises.t() @ rises / len(rises))  # the smallest first
    aside = (spreads.square().sum() / spreads.sum().clamp_min(tiny)).sqrt() * axes[:, 0]
    for rows in (rises / rises.norm(dim=1, keepdim=True).clamp_min(tiny), rises + aside):
        yield varimax(rows, _iterations(*rows.shape)).to(intensities)


class VarimaxRotation:
    """Rotates the topics once, after a third of the training; a schedule, called at each step.

    Later, what stands above the topics (super-topics) would not have the time to learn anew.

    Args:
        model: The model.
        optimizer: Its optimiser.
        steps: The length of the training.
    """

    def __init__(self, model: TopicNetwork, optimizer: torch.optim.Optimizer, steps: int) -> None:
        self.model, self.optimizer = model, optimizer
        self.at, self.done = round(steps / 3), 0

    def step(self) -> None:
        """One training step is done."""
        self.done += 1
        if self.done == self.at:
            rotate_topics(self.model, self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """The number of steps done."""
        return {"done": self.done}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there."""
        self.done = int(state_dict["done"])
