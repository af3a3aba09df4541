"""The experiments by name: what a study can repeat.

An experiment is a frozen configuration and a function that fills a run folder with its results. It
can be called again on a folder it left half done, and then goes on from there.
"""

__all__ = ["EXPERIMENTS", "Experiment"]

import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..runs.machine import Machine
from ..runs.training import estimate_runtime
from .descent import descend
from .synthetic import Synthetic


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run from its configuration alone."""

    settings: str
    """Where its configuration is, a frozen dataclass with a ``seed``: imported when it is used."""
    named_by: tuple[str, ...]
    """The fields of the configuration that tell runs apart for a reader."""
    run: Callable[[Any, Path, Path | None, Machine], object]
    """``run(config, folder, data_dir, machine)``: do what is left to do."""
    estimate_runtime: Callable[[Any, Path | None], float] | None = None
    """``estimate_runtime(config, data_dir)``: about how many seconds a run takes."""

    @property
    def config_class(self) -> type[Any]:
        """The class of its configuration."""
        found: type[Any] = _named(self.settings)
        return found


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _train(
    command: str, config: Any, folder: Path, data_dir: Path | None, machine: Machine
) -> object:
    return _named(command)(config, folder, data_dir, machine).run()


def _compare(config: Any, folder: Path, data_dir: Path | None, machine: Machine) -> object:
    if isinstance(config, Synthetic):
        config = replace(config, workers=1)  # the study decides how many processes there are
    return replace(config, out=folder, resume=machine.resume).run()


@lru_cache(maxsize=1)
def _data(only_the_data: Any, data_dir: Path | None) -> tuple[Any, float]:
    """The data, and the seconds that loading them takes each run."""
    begin = time.perf_counter()
    return only_the_data.load(data_dir), time.perf_counter() - begin


def _estimate_training(command: str, config: Any, data_dir: Path | None) -> float:
    config.check()
    data_set = getattr(config, fields(config)[0].name)  # the first of its settings
    data, seconds = _data(type(config)(data_set), data_dir)
    begin = time.perf_counter()
    task, training = _named(command)(config).build(data)
    return seconds + time.perf_counter() - begin + estimate_runtime(task, training)


def _estimate_synthetic(config: Synthetic, data_dir: Path | None) -> float:
    steps, begin = min(config.steps, config.every), time.perf_counter()
    short = replace(config, steps=steps, final_gradients=2)
    with redirect_stderr(io.StringIO()):  # who is left out
        chosen = short._check()
    for label in chosen:
        descend(short, label)
    return (time.perf_counter() - begin) * config.steps / steps


def _trained(settings: str, command: str, named_by: tuple[str, ...]) -> Experiment:
    """An experiment that is the command's training."""
    estimated = partial(_estimate_training, command)
    return Experiment(settings, named_by, partial(_train, command), estimated)


EXPERIMENTS = {
    "synthetic": Experiment(
        f"{__package__}.synthetic.Synthetic", ("law",), _compare, _estimate_synthetic
    ),
    "vae": _trained(
        f"{__package__}.vae_settings.VaeConfig",
        f"{__package__}.train_command.Vae",
        ("data", "prior", "posterior", "estimator"),
    ),
    "nvpdef": _trained(
        "gengs_topics.commands.nvpdef_settings.NvpdefConfig",
        "gengs_topics.commands.nvpdef_command.Nvpdef",
        ("corpus", "model", "super_topics", "posterior", "estimator"),
    ),
    "measure": Experiment(f"{__package__}.laboratory.Measure", ("law", "cost"), _compare),
}
"""All experiments, by name."""
