"""``gengs topics fit`` from the first line of the file to the page."""

from __future__ import annotations

__all__ = ["fit"]

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.words import Words
from ..experiments.training import Machine, train
from ..metrics import npmi
from ..models.topic_words import topics_as_json
from ..study.atomic import write_atomically
from ..study.lock import take_lock
from ..study.manifest import command as command_line
from ..study.nonfinite import dumps
from ..study.random_state import seed_everything
from ..subnormals import without_subnormals
from .fitting import build, finish
from .ingest import Ingested, ingest
from .mixtures import Mixtures, counted_rows, write_mixtures
from .page import render_page
from .saved import save_model
from .source import Source, TextSource, open_source

if TYPE_CHECKING:
    from .command import TopicsFit

_WORDS = 15  # of a topic, in the files


@without_subnormals()
def fit(command: TopicsFit) -> None:
    """Do what is left to do, and say where the results are."""
    config, out = command.config, command.out
    config.check()
    say = _speaker(command.progress)
    source = open_source(command.corpus, config.reading)
    _check_folder(out, command.resume)
    with _folder(out), take_lock(out):
        ingested = ingest(source, config, out, say)
        kind = "words" if isinstance(source, TextSource) else "counts"
        say(f"{ingested.tally}" if kind == "words" else f"{ingested.corpus}")
        seed_everything(config.seed)
        model, task, training = build(config, ingested.corpus)
        machine = Machine(
            resume=True,  # the folder is new, or its settings were compared
            accelerator="auto",
            checkpoint_seconds=command.checkpoint_seconds,
            progress=command.progress,
        )
        records = train(
            task,
            out / "run",
            config,
            training,
            machine,
            seed=config.seed,
            experiment="topics fit",
        )
        finish(model, records)
        words = Words(config.least_letters) if isinstance(source, TextSource) else None
        say("writing the documents' topics")
        seen = write_mixtures(
            model,
            zip(source.labels(), counted_rows(ingested.corpus), strict=True),
            out / "document_topics.csv",
            out / "document_topics.npy",
        )
        write_results(out, source, ingested, model, records, seen)
        save_model(out / "model", model, words)
    last = [record for record in records if record["kind"] == "evaluation"][-1]
    shown = {
        "perplexity_test": "held-out perplexity",
        "npmi": "NPMI",
        "diversity": "diversity",
    }
    print(", ".join(f"{name} {last[key]:.4g}" for key, name in shown.items() if key in last))
    print(f"page: {(out / 'index.html').resolve()}")


def write_results(
    out: Path,
    source: Source,
    ingested: Ingested,
    model: Any,
    records: list[dict[str, Any]],
    seen: Mixtures,
) -> None:
    """Write the topics as text, as JSON and as a page."""
    vocabulary = list(ingested.corpus.vocabulary)
    found = topics_as_json(model.network_, vocabulary, _WORDS)
    lines = [
        f"{number}\t{' '.join(topic['words'])}\n" for number, topic in enumerate(found["topics"])
    ]
    write_atomically(out / "topics.txt", "".join(lines).encode("utf-8", "replace"))
    write_atomically(out / "topics.json", (dumps(found, indent=2) + "\n").encode())
    coherence = npmi([topic["words"][:10] for topic in found["topics"]], ingested.corpus)
    page = render_page(
        title=source.path.name if source.path else "Descriptions of Debian packages",
        ingested=ingested,
        found=found,
        coherence=coherence,
        records=records,
        seen=seen,
        prior=(model.network_.decoder.centre, model.network_.decoder.scale),
        command=command_line(),
    )
    write_atomically(out / "index.html", page.encode("utf-8", "replace"))


def _check_folder(out: Path, resume: bool) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"expected a folder to write, but {out} is a file.")
    there = sorted(item.name for item in out.iterdir()) if out.exists() else []
    # what a command that was killed early leaves, and what is made anew
    ours = {".lock", ".corpus.partial", ".corpus.json.partial"}
    if (out / "corpus" / "corpus.json").exists():
        ours.add("corpus")
    begun = (out / "corpus.json").exists()
    foreign = [name for name in there if name not in ours]
    if foreign and not begun:
        raise ValueError(f"expected a new or empty folder, but {out} holds {foreign[0]!r}.")
    if begun and not resume:
        raise ValueError(f"{out} already holds topics: add --resume, or choose another folder.")


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder; where nothing was written to a new one, nothing is left of it."""
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new and {item.name for item in out.iterdir()} <= {".lock"}:
            (out / ".lock").unlink(missing_ok=True)
            out.rmdir()
        raise


def _speaker(shown: bool) -> Any:
    return (lambda text: print(text, flush=True)) if shown else (lambda text: None)
