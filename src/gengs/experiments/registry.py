"""The experiments by name: what a study can repeat.

An experiment is a frozen configuration and a function that fills a run folder with its results. It
can be called again on a folder it left half done, and then goes on from there.
"""

__all__ = ["EXPERIMENTS", "Experiment"]

import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..runs.machine import Machine
from ..runs.training import rehearse
from .descent import descend
from .laboratory import Measure
from .synthetic import Synthetic
from .train_commands import NvpdefConfig, TrainCommand, VaeConfig


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run from its configuration alone."""

    config_class: type[Any]
    """A frozen dataclass with a ``seed``."""
    named_by: tuple[str, ...]
    """The fields of the configuration that tell runs apart for a reader."""
    run: Callable[[Any, Path, Path | None, Machine], object]
    """``run(config, folder, data_dir, machine)``: do what is left to do."""
    rehearse: Callable[[Any, Path | None], float] | None = None
    """``rehearse(config, data_dir)``: about how many seconds a run takes, found in few of them."""


def _train(config: Any, folder: Path, data_dir: Path | None, machine: Machine) -> object:
    return TrainCommand(config, folder, data_dir, machine).run()


def _compare(config: Any, folder: Path, data_dir: Path | None, machine: Machine) -> object:
    if isinstance(config, Synthetic):
        config = replace(config, workers=1)  # the study decides how many processes there are
    return replace(config, out=folder, resume=machine.resume).run()


@lru_cache(maxsize=1)
def _data(only_the_data: VaeConfig | NvpdefConfig, data_dir: Path | None) -> tuple[Any, float]:
    """The data, and the seconds that loading them takes each run."""
    begin = time.perf_counter()
    return only_the_data.load(data_dir), time.perf_counter() - begin


def _rehearse_training(config: VaeConfig | NvpdefConfig, data_dir: Path | None) -> float:
    config.check()
    if isinstance(config, VaeConfig):
        data, seconds = _data(VaeConfig(config.data), data_dir)
    else:
        data, seconds = _data(NvpdefConfig(config.corpus), data_dir)
    begin = time.perf_counter()
    task, training = config.build(data)
    return seconds + time.perf_counter() - begin + rehearse(task, training)


def _rehearse_synthetic(config: Synthetic, data_dir: Path | None) -> float:
    steps, begin = min(config.steps, config.every), time.perf_counter()
    short = replace(config, steps=steps, final_gradients=2)
    with redirect_stderr(io.StringIO()):  # who is left out
        chosen = short._check()
    for label in chosen:
        descend(short, label)
    return (time.perf_counter() - begin) * config.steps / steps


_VAE_NAMES = ("data", "prior", "posterior", "estimator")
_TOPIC_NAMES = ("corpus", "model", "super_topics", "posterior", "estimator")

EXPERIMENTS = {
    "synthetic": Experiment(Synthetic, ("law",), _compare, _rehearse_synthetic),
    "vae": Experiment(VaeConfig, _VAE_NAMES, _train, _rehearse_training),
    "nvpdef": Experiment(NvpdefConfig, _TOPIC_NAMES, _train, _rehearse_training),
    "measure": Experiment(Measure, ("law", "cost"), _compare),
}
"""All experiments, by name."""
