"""The settings of a topic model where nobody says otherwise, in one place.

``gengs_topics.TopicModel`` and ``gengs topics fit`` have the same defaults, which did best on
held-out documents (``results/topics``). ``gengs nvpdef``, which does not start from NMF, takes
smaller and more steps. The commands' help shows them without torch.
"""

from __future__ import annotations

__all__ = ["DEFAULTS", "TopicDefaults"]

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .layers import PosteriorFamily
    from .nvpdef import Stack
    from .word_decoder import WordLaw


@dataclass(frozen=True)
class TopicDefaults:
    """What a topic model is made and trained with where nobody says otherwise."""

    topics: int = 50
    rate: float = 10.0
    level: int = 30
    posterior: PosteriorFamily = "tilted"
    stack: Stack = "generative"
    words: WordLaw = "urn"
    gradient: str = "MidCDF(2, antithetic=True)"
    hidden: tuple[int, ...] = (500,)
    weight_decay: float | None = None  # by the length of the documents
    topic_penalty: float = 1.0
    batch_size: int = 128
    learning_rate: float = 4e-3
    epochs: int = 12  # of gengs nvpdef, which does not start from NMF


DEFAULTS = TopicDefaults()
