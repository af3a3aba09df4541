"""What decides the result of ``gengs topics fit``."""

from __future__ import annotations

__all__ = ["FitConfig", "Reading"]

from dataclasses import dataclass, field
from typing import Literal

from ..experiments.options import check_least, check_positive, option
from ..spec import parse_estimator


@dataclass(frozen=True)
class Reading:
    """How documents are read."""

    field: str = "text"
    """The field or column with the text, in .jsonl and .csv files."""
    name_field: str | None = None
    """The field or column with a document's name or number."""
    encoding: str = "utf-8"
    """The encoding of the text."""
    errors: Literal["strict", "replace"] = "strict"
    """Whether bytes that are not in that encoding are an error, or replaced by a sign."""
    longest_line: int = 1 << 24
    """The most bytes of a line: a longer one is an error."""
    vocabulary: str | None = None
    """The words of the columns, a line each: for .npz and .feat files."""


@dataclass(frozen=True)
class FitConfig:
    """What is fitted: everything here changes the result, and nothing else does."""

    reading: Reading = field(default_factory=Reading)
    stop_words: str = "english"
    """Words to leave out: english, none, or a file of them."""
    least_letters: int = 3
    """Leave out shorter words."""
    min_df: float = 5
    """Keep words of at least this many documents; below 1, of this share of them."""
    max_df: float = 0.5
    """Keep words of at most this many documents; up to 1, of this share of them."""
    size: int = 10_000
    """Keep at most this many words: those of the most documents."""
    topics: int = 20
    """The number of topics."""
    super_topics: tuple[int, ...] = ()
    """The sizes of the layers above the topics, the uppermost first."""
    epochs: int | None = None
    """How often to go through the documents; by default for about 2,500 steps, at least 3 times
    and at most 100 times."""
    batch_size: int = 64
    """Documents in a step."""
    learning_rate: float = 2e-3
    """Of Adam; it falls to zero along a cosine."""
    topic_penalty: float = 1.0
    """The weight of the Gaussian prior on the topics' entries."""
    hidden: tuple[int, ...] = (500, 500)
    """The widths of the encoder's layers."""
    turn: bool = True
    """Whether to turn the topics, after a third of the steps, to where each has few words."""
    estimator: str = "MidCDF(2)"
    """The gradient estimator with its settings: MidCDF(2), "GenGS(0.5)", "RLOO(4)" ..."""
    held_out: float = 0.05
    """Measure the perplexity on this share of the documents, at most 2,000 of them, which are then
    not trained on; 0 for none."""
    seed: int = 0
    """Of weights, order of the documents, and draws."""

    def check(self) -> None:
        """Say what is out of range by the names of the options, before any document is read."""
        least = {"topics": 1, "batch_size": 1, "epochs": 1, "least_letters": 1, "size": 1}
        check_least(self, least | {"topic_penalty": 0, "seed": 0})
        check_positive(self, "learning_rate")
        for name, numbers in (("super_topics", self.super_topics), ("hidden", self.hidden)):
            if numbers and min(numbers) < 1:
                raise ValueError(f"expected at least 1 for {option(name)}, but got {min(numbers)}.")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"expected --held-out in [0, 1), but got {self.held_out}.")
        parse_estimator(self.estimator)
