"""``gengs topics fit`` from the first line of the file to the page.

A ``TopicModel`` is trained by the engine, with checkpoints, so that a killed command goes on.
Documents without words teach nothing and are left out of the training. The held-out ones measure
the perplexity, per document and from exact draws (:mod:`gengs_topics.model.topic_perplexity`).
"""

from __future__ import annotations

__all__ = ["fit"]

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gengs_experiments.data.batches import Batches
from gengs_experiments.runs.atomic import write_atomically
from gengs_experiments.runs.diagnosis import diverged
from gengs_experiments.runs.json_lines import dumps
from gengs_experiments.runs.machine import without_subnormals
from gengs_experiments.runs.manifest import command as command_line
from gengs_experiments.runs.random_state import seed_everything
from gengs_experiments.runs.records import folder_lock
from gengs_experiments.runs.sanitise import printable
from gengs_experiments.runs.training import Machine, Task, Training, train

from ..metrics import inverted_rbo, topic_diversity
from ..model.count_input import read_counts_of
from ..model.refinement import fold_rng
from ..model.topic_activity import measure_activity
from ..model.topic_model import TopicModel
from ..model.topic_perplexity import perplexity
from ..model.topic_settings import default_passes, default_topics
from ..model.topic_training import in_order
from ..model.topic_words import topics_as_json
from ..text.corpus import Corpus
from .apply import save_model, write_mixtures
from .document_share import percent
from .ingest import Say, ingest
from .option_names import by_option_names
from .source import Label, Source, label_of, open_source
from .topics_page import render_page

if TYPE_CHECKING:
    from .topics_command import TopicsFit
    from .topics_settings import FitConfig

_WORDS = 15  # of a topic, in the files
_HELD_OUT = 2000
_EVALUATIONS = 8
_RANKED_BY = 2_000
_LARGE = 50_000_000  # entries: from here on, rows are read in blocks
_BATCH = 512
_ABSURD = 100  # times the number of words: no held-out perplexity of a model that learned is there


@by_option_names()
@without_subnormals()
def fit(command: TopicsFit) -> None:
    """Do what is left to do, and say where the results are."""
    config, out = command.config, command.out
    config.check()
    say: Say = print if command.progress else lambda text: None
    source = open_source(command.corpus, config.reading)
    if command.corpus.is_dir() and command.corpus.resolve() in out.resolve().parents:
        raise ValueError(f"expected a folder to write outside of {command.corpus}, but got {out}.")
    with _folder(out, command.resume), folder_lock(out):
        corpus, tally = ingest(source, config, out, say)
        say(f"{tally if source.vocabulary is None else corpus}")
        seed_everything(config.seed)
        model, task, training = build(config, corpus)
        machine = Machine(
            resume=True,  # the folder is new, or its settings were compared
            accelerator="auto",
            checkpoint_seconds=command.checkpoint_seconds,
            progress=command.progress,
        )
        place, seed, kind = out / "run", config.seed, "topics fit"
        try:
            records = train(task, place, config, training, machine, seed=seed, experiment=kind)
        except FloatingPointError as error:
            raise FloatingPointError(diverged(config.learning_rate)) from error
        held_out = _split(config, corpus)[1]
        finish(model, records, corpus, held_out)
        say("writing the documents' topics")
        paths = [out / f"document_topics.{suffix}" for suffix in ("csv", "npy")]
        use = write_mixtures(model, _labelled(source, corpus), paths)
        found = topics_as_json(model.network_, corpus.vocabulary, _WORDS)
        found["topics"] = use.noted(found["topics"])
        write_atomically(out / "topics.txt", _listed(found["topics"]).encode("utf-8", "replace"))
        write_atomically(out / "topics.json", (dumps(found, indent=2) + "\n").encode())
        title = source.path.resolve().name if source.path else "Descriptions of Debian packages"
        facts = {"title": title, "corpus": corpus, "tally": tally, "held_out": len(held_out)}
        page = render_page(records, found, use, **facts, command=command_line())
        write_atomically(out / "index.html", page.encode("utf-8", "replace"))
        least = config.least_letters if source.vocabulary is None else None
        text = {"least_letters": least, "tokenizer": config.reading.tokenizer}
        save_model(out / "model", model, text)
    last = [record for record in records if record["kind"] == "evaluation"][-1]
    if not last.get("perplexity_test", 0) < _ABSURD * corpus.words:
        worse = "the model predicts held-out documents worse than chance"
        warnings.warn(f"{worse}; {diverged(config.learning_rate)}", stacklevel=2)
    said = f"NPMI {last['npmi']:.4g}, diversity {last['diversity']:.4g}"
    if "perplexity_test" in last:
        of_some = f"of {len(held_out):,} document{'s' * (len(held_out) != 1)}"
        said = f"held-out perplexity {last['perplexity_test']:.4g} ({of_some}), {said}"
    of = f"{model.n_topics_} active" if model.n_topics_ else "all"
    print(f"{said} (words of {of} topics{'' if model.n_topics_ else ', as none is active'})")
    print(printable(f"page: {(out / 'index.html').resolve()}"))


def _listed(topics: list[dict[str, Any]]) -> str:
    """A line for each topic: its number, its words, its share of documents, and its note."""
    lines = [
        f"{number}	{printable(' '.join(topic['words']))}	{percent(topic['document_share'])}"
        f"	{topic['note']}"
        for number, topic in enumerate(topics)
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


@contextmanager
def _folder(out: Path, resume: bool) -> Iterator[None]:
    """Make the folder, if it is ours to use; what was new and stays empty is removed again."""
    new = not out.exists()
    if not new and not out.is_dir():
        raise ValueError(f"expected a folder to write, but {out} is a file.")
    # what a command that was killed early leaves, and what is made anew
    ours = {".lock", ".corpus.partial", ".corpus.json.partial"}
    if (out / "corpus" / "corpus.json").exists():
        ours.add("corpus")
    begun = (out / "corpus.json").exists()
    foreign = [] if new else sorted({item.name for item in out.iterdir()} - ours)
    if foreign and not begun:
        raise ValueError(f"expected a new or empty folder, but {out} holds {foreign[0]!r}.")
    if begun and not resume:
        raise ValueError(f"{out} already holds topics: add --resume, or choose another folder.")
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new and {item.name for item in out.iterdir()} <= {".lock"}:
            (out / ".lock").unlink(missing_ok=True)
            out.rmdir()
        raise


def _labelled(source: Source, corpus: Corpus) -> Iterator[tuple[list[Label], Any]]:
    """The labels and counts of some documents at a time."""
    labels = map(label_of, source.documents)
    for start in range(0, len(corpus), _BATCH):
        yield list(islice(labels, _BATCH)), corpus.counts[start : start + _BATCH]


# ------------------------------------------------------------------------------------- training


def build(config: FitConfig, corpus: Corpus) -> tuple[TopicModel, Task, Training]:
    """The model, what to do with it, and for how long."""
    rows, held_out = _split(config, corpus)
    if config.topics is not None and config.topics > len(rows):
        usual = default_topics(len(corpus))
        warnings.warn(
            f"{config.topics:,} topics are more than the {len(rows):,} documents to train on, and "
            f"most will stay unused: without --topics there would be {usual}.",
            stacklevel=2,
        )
    size = min(config.batch_size, len(rows))
    block = 64 if len(corpus.data) > _LARGE else 1
    data = Batches(corpus, size, config.seed, rows=rows, block=block)
    epochs = config.epochs or default_passes(len(data))
    steps = epochs * len(data)
    model = TopicModel(
        config.topics,
        super_topics=config.super_topics,
        words=config.words,
        gradient=config.estimator,
        hidden=config.hidden,
        topic_penalty=config.topic_penalty,
        weight_decay=config.weight_decay,
        turn=config.turn,
        max_iter=epochs,
        batch_size=size,
        learning_rate=config.learning_rate,
        random_state=config.seed,
    )
    # as fit() does, but the loop is the engine's
    model._begin(read_counts_of(model, corpus, reset=True))
    task = model.trainer_.task(data, model, steps, _evaluation(model, corpus, held_out))
    every = max(1, epochs // _EVALUATIONS) * len(data)
    return model, task, Training(steps=steps, record_every=len(data), evaluate_every=every)


def finish(
    model: TopicModel, records: list[dict[str, Any]], corpus: Corpus, held_out: Any = ()
) -> TopicModel:
    """The model as ``fit`` would have left it, on the CPU and with its history.

    The last record is then of the topics as they are written, idle ones switched off.
    """
    model.network_.cpu().eval()
    passes = [record for record in records if record["kind"] == "train"]
    model.trainer_.history = [
        {"epoch": float(number), "loss": float(record["nats_per_word"])}
        for number, record in enumerate(passes, 1)
    ]
    model.trainer_.epochs = len(passes)
    measure_activity(model.network_, corpus, turn=bool(model.turn), settle=True)
    last = [record for record in records if record["kind"] == "evaluation"][-1]
    last.update(_perplexities(model, corpus, held_out) | _facts_of_words(model))
    return model


def _split(config: FitConfig, corpus: Corpus) -> tuple[Any, Any]:
    filled = np.flatnonzero(np.diff(corpus.indptr) > 0)
    held = min(int(len(filled) * config.held_out), _HELD_OUT)
    if len(filled) - held < 1:
        raise ValueError(f"expected documents to train on, but {len(filled)} have words.")
    order = np.random.default_rng(config.seed).permutation(filled)
    return np.sort(order[held:]), np.sort(order[:held])


def _evaluation(model: TopicModel, corpus: Corpus, held_out: Any) -> Callable[[], dict[str, float]]:
    def evaluate() -> dict[str, float]:
        values = _perplexities(model, corpus, held_out)
        # on the way a part of the documents is enough to rank words by
        some = np.arange(0, len(corpus), -(-len(corpus) // _RANKED_BY))
        measure_activity(model.network_, corpus, some, turn=bool(model.turn))
        return values | _facts_of_words(model)

    return evaluate


def _perplexities(model: TopicModel, corpus: Corpus, held_out: Any) -> dict[str, float]:
    if not len(held_out):
        return {}
    device = next(model.network_.parameters()).device
    batches = (batch.to(device) for batch in in_order(corpus, held_out))
    with fold_rng(model.trainer_.seed + 1):  # the same draws each time
        found = perplexity(model.network_, batches, model.n_draws)
    names = ("perplexity_test", "perplexity_test_corpus", "kl_test")
    return dict(zip(names, found, strict=True))


def _facts_of_words(model: TopicModel) -> dict[str, float]:
    topics = model.topics(10)
    shown = [topic for topic in topics if topic.note != "inactive"] or topics
    words = [topic.words for topic in shown]
    return {
        "npmi": float(np.mean([topic.coherence for topic in shown])),
        "diversity": topic_diversity(words),
        "inverted_rbo": inverted_rbo(words),
    }
