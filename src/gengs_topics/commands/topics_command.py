"""``gengs topics fit`` and ``apply``."""

__all__ = ["TopicsApply", "TopicsFit"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gengs_experiments.runs.command_options import OUT

from .topics_settings import FitConfig, Reading

ModelArgument = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
CorpusArgument = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CORPUS")]
Out = Annotated[Path, OUT]


@dataclass(frozen=True)
class TopicsFit:
    """Find the topics of your own documents; leaves a page, the topics, and the model."""

    corpus: CorpusArgument
    """A folder of .txt (or .md, .rst) files, each a document; a file of documents: .txt (one a
    line), .jsonl, .csv, .tsv, each perhaps with .gz; counts: .npz (scipy.sparse) or .feat; or
    "sample", the embedded one."""
    out: Out = Path("runs/topics-fit")
    """The folder to write."""
    config: FitConfig = field(default_factory=FitConfig)
    resume: bool = False
    """Go on with the folder, where a command was interrupted."""
    checkpoint_seconds: float = 60.0
    """Save when this much time has passed."""
    progress: bool = True
    """Show the progress; --no-progress shows none."""

    def run(self) -> None:
        """Read, count, train, write."""
        from .fit import fit

        fit(self)


@dataclass(frozen=True)
class TopicsApply:
    """How much of each topic do these documents have?"""

    model: ModelArgument
    """The folder that gengs topics fit wrote, or a model in it."""
    corpus: CorpusArgument
    """A folder or a file of documents, as for gengs topics fit."""
    out: Out = Path("document_topics.csv")
    """The file to write: .csv or .npy."""
    values: Literal["intensities", "proportions"] = "intensities"
    """What to write: each topic's intensity, a count that is around 10 for every topic; or how much
    of the document is about each topic, which sums to one."""
    refine: int = 0
    """Steps that refine each document's posterior: slower and better, 10 are enough."""
    reading: Reading = field(default_factory=Reading)

    def run(self) -> None:
        """Read, count, write."""
        from .apply import apply

        apply(self)
