"""The experiments by name: what a study can repeat.

An experiment is a frozen configuration and a function that fills a run folder with its results. It
can be called again on a folder it left half done, and then goes on from there.
"""

from __future__ import annotations

__all__ = ["EXPERIMENTS", "Experiment"]

import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from ..data import ImageSet, load_images
from ..data.corpus import Corpus
from ..data.text import load_corpus
from ..study.atomic import write_atomically
from ..study.nonfinite import dumps
from ..study.records import RunFolder
from .machine import Machine
from .measure import Measure, write_measurement
from .rehearsal import rehearse
from .synthetic import Synthetic
from .topics import Topics, TopicsConfig, build_topics
from .vae import Vae, VaeConfig, build

T = TypeVar("T")

Records = list[dict[str, Any]]

# Experiments without weights leave this file when they are done.
_MARK = "complete.json"


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run from its configuration alone."""

    name: str
    config_class: type[Any]
    """A frozen dataclass with a ``seed``."""
    run: Callable[[Any, Path, Path | None, Machine], Records]
    """``run(config, folder, data_dir, machine)``: do what is left to do; all records."""
    named_by: tuple[str, ...]
    """The fields of the configuration that tell runs apart for a reader."""
    last_file: str = "weights.safetensors"
    """What a run writes last: by default, its trained weights."""
    rehearse: Callable[[Any, Path | None], float] | None = None
    """``rehearse(config, data_dir)``: about how many seconds a run takes, found in few of them."""

    def has_ended(self, folder: Path) -> bool:
        """Whether a run came to its end in a folder."""
        return (folder / self.last_file).exists()

    def is_complete(self, folder: Path) -> bool:
        """Whether nothing is left to do: a run came to its end, and its records are there."""
        records = folder / "records.jsonl"
        return self.has_ended(folder) and records.is_file() and records.stat().st_size > 0


def _vae(config: VaeConfig, folder: Path, data_dir: Path | None, machine: Machine) -> Records:
    return Vae(config, folder, data_dir, machine).run()


def _topics(config: TopicsConfig, folder: Path, data_dir: Path | None, machine: Machine) -> Records:
    return Topics(config, folder, data_dir, machine).run()


def _synthetic(config: Synthetic, folder: Path, data_dir: Path | None, machine: Machine) -> Records:
    # One process: the study decides how many there are.
    replace(config, out=folder, resume=machine.resume, workers=1).run()
    records = RunFolder.load_records(folder)
    _mark(folder, len(records))
    return records


def _measure(config: Measure, folder: Path, data_dir: Path | None, machine: Machine) -> Records:
    with RunFolder.open(folder, config, resume=machine.resume) as run:
        run.rewind(0)
        write_measurement(run, replace(config, plot=None, out=None).run())
        records = run.records()
    _mark(folder, len(records))
    return records


def _mark(folder: Path, records: int) -> None:
    write_atomically(folder / _MARK, (dumps({"records": records}) + "\n").encode())


def _timed(make: Callable[[], T]) -> tuple[T, float]:
    """What is made before the first step, and the seconds that it takes each run.

    The first time also imports packages, once for all runs of a worker. So what is quick is made
    again; where it is not, they are a small part of it.
    """
    begin = time.perf_counter()
    made = make()
    seconds = time.perf_counter() - begin
    if seconds < 5:
        begin = time.perf_counter()
        made = make()
        seconds = time.perf_counter() - begin
    return made, seconds


@lru_cache(maxsize=1)
def _images(name: str, data_dir: Path | None) -> tuple[ImageSet, float]:
    return _timed(lambda: load_images(name, data_dir))


def _rehearse_vae(config: VaeConfig, data_dir: Path | None) -> float:
    config.check()
    images, loading = _images(config.data, data_dir)
    (task, training), building = _timed(lambda: build(config, images))
    return loading + building + rehearse(task, training)


@lru_cache(maxsize=1)
def _corpora(name: str, data_dir: Path | None) -> tuple[tuple[Corpus, Corpus], float]:
    return _timed(lambda: load_corpus(name, data_dir))


def _rehearse_topics(config: TopicsConfig, data_dir: Path | None) -> float:
    corpora, loading = _corpora(config.corpus, data_dir)
    (task, training), building = _timed(lambda: build_topics(config, *corpora))
    return loading + building + rehearse(task, training)


def _rehearse_synthetic(config: Synthetic, data_dir: Path | None) -> float:
    steps, begin = min(config.steps, config.every), time.perf_counter()
    short = replace(config, steps=steps, final_gradients=2)
    with redirect_stderr(io.StringIO()):  # who is left out
        problem, chosen = short._check()
    for contender in chosen:
        short._descend(problem, contender)
    return (time.perf_counter() - begin) * config.steps / steps


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("synthetic", Synthetic, _synthetic, ("law",), _MARK, _rehearse_synthetic),
        Experiment(
            "vae",
            VaeConfig,
            _vae,
            ("data", "prior", "posterior", "estimator"),
            rehearse=_rehearse_vae,
        ),
        Experiment(
            "topics",
            TopicsConfig,
            _topics,
            ("corpus", "model", "super_topics", "posterior", "estimator"),
            rehearse=_rehearse_topics,
        ),
        Experiment("measure", Measure, _measure, ("law", "cost"), _MARK),
    )
}
"""All experiments, by name."""
