"""The settings of ``gengs topics fit`` and ``apply``: how documents are read, what is fitted."""

__all__ = ["FitConfig", "Reading"]

from dataclasses import dataclass, field
from typing import Literal

from gengs_experiments.runs.config import check_least, check_positive, option

from ..model.topic_defaults import DEFAULTS


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
    """The most characters of a line, or of a file in a folder: a longer one is an error."""
    vocabulary: str | None = None
    """The words of the columns, a line each: for .npz and .feat files."""
    tokenizer: str | None = None
    """A function, package.module:function, that splits a text into words, in place of ours; for
    scripts without spaces. (A .jsonl file may also have a list of words in its field.)"""


@dataclass(frozen=True)
class FitConfig:
    """What is fitted: everything here changes the result, and nothing else does."""

    reading: Reading = field(default_factory=Reading)
    stop_words: str = "auto"
    """Words to leave out: of the languages that the texts are in (auto), of one language (en, de,
    ...), none, or those in a file."""
    least_letters: int = 3
    """Leave out shorter words, but in scripts without spaces."""
    min_df: float | None = None
    """Keep words of at least this many documents; below 1, of this share of them. By default 5; of
    fewer than 100 documents, a twentieth of them, but at least 2."""
    max_df: float | None = None
    """Keep words of at most this many documents; up to 1, of this share of them. By default half of
    them, and of more if the word is not spread evenly."""
    size: int = 10_000
    """Keep at most this many words: those of the most documents."""
    topics: int | None = None
    """The number of topics; those that are hardly used say so. By default three quarters of the
    root of the number of documents, at most 50."""
    super_topics: tuple[int, ...] = ()
    """The sizes of the layers above the topics, the uppermost first."""
    epochs: int | None = None
    """How often to go through the documents; by default 4 to 10 times, as a rule."""
    batch_size: int = DEFAULTS.batch_size
    """Documents in a step."""
    learning_rate: float = DEFAULTS.learning_rate
    """Of Adam; it falls to zero along a cosine."""
    topic_penalty: float = DEFAULTS.topic_penalty
    """The weight of the Gaussian prior on the topics' entries."""
    weight_decay: float | None = DEFAULTS.weight_decay
    """Of the encoder's matrices (AdamW); by default 3, or 10 where texts have a dozen words."""
    hidden: tuple[int, ...] = DEFAULTS.hidden
    """The widths of the encoder's layers."""
    turn: bool = True
    """Rotate the topics of more than a thousand documents by varimax: each has few words, and each
    document few topics."""
    words: Literal["urn", "multinomial"] = DEFAULTS.words
    """A Pólya urn, from which a word that has occurred is likelier to come again; or independent
    draws."""
    estimator: str = DEFAULTS.gradient
    """The gradient estimator with its settings: MidCDF(2), "GenGS(0.5)", "RLOO(4)" ..."""
    held_out: float = 0.05
    """Measure the perplexity on this share of the documents, at most 2,000 of them, which are then
    not trained on; 0 for none."""
    seed: int = 0
    """Of weights, order of the documents, and draws."""

    def check(self) -> None:
        """Say what is out of range by the names of the options, before any document is read."""
        from gengs.estimators.spec import parse_estimator

        least = {"topics": 1, "batch_size": 1, "epochs": 1, "least_letters": 1, "size": 1}
        check_least(self, least | {"topic_penalty": 0, "weight_decay": 0, "seed": 0})
        check_positive(self, "learning_rate")
        for name, numbers in (("super_topics", self.super_topics), ("hidden", self.hidden)):
            if numbers and min(numbers) < 1:
                raise ValueError(f"expected at least 1 for {option(name)}, but got {min(numbers)}.")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"expected --held-out in [0, 1), but got {self.held_out}.")
        parse_estimator(self.estimator)
