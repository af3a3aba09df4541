"""``gengs synthetic``: estimators side by side on a problem whose answer is known (Figure 3).

    for each estimator: descend with many seeds → compare its gradients with the exact one

The problem and its closed forms are in :mod:`.quadratic`, the estimators in :mod:`.contenders`,
the loop in :mod:`.descent`. What is recorded at each step, over the seeds:

=============  ====================================================================================
loss           the exact expected loss at the parameters, and its standard error
variance       the trace of the covariance of a gradient (every so many steps, like all below)
bias           the mean gradient minus the exact one, averaged over the seeds, and its error
error          the mean distance of a single gradient from the exact one
=============  ====================================================================================
"""

from __future__ import annotations

__all__ = ["Synthetic"]

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..study.config import UNRECORDED
from ..study.records import RunFolder
from .contenders import Contender, contenders
from .descent import Descent, descend
from .quadratic import FAMILIES, LawName, Quadratic


@dataclass(frozen=True)
class Synthetic:
    """Compare estimators on min E Σ (z - t)², whose loss and gradient have closed forms."""

    law: LawName = "poisson"
    """The law of z: Poisson(λ), Binomial(20, λ), Multinomial(3, λ), NegativeBinomial(3, λ) or
    Geometric(λ). What is trained is log λ, or logits."""
    estimators: tuple[str, ...] = ("all",)
    """Names such as RF*, "GenGS ST", mid-CDF, or with settings, "GenGS(0.1)"; or the word all."""
    seeds: int = 10
    """The number of independent repetitions, side by side."""
    steps: int = 2000
    """The number of Adam steps, each on a single gradient."""
    rate: float = 0.01
    """Adam's learning rate, for λ and for what an estimator learns itself."""
    start: tuple[float, ...] = ()
    """λ at the first step; by default 10, 0.6, (1/3, 1/3, 1/3), 0.6 and 0.1 for the five laws."""
    target: tuple[float, ...] = ()
    """The λ whose mean is the target t; by default 20, 0.3, (0.7, 0.2, 0.1), 0.4 and 0.25."""
    dimension: int = 1
    """The number of coordinates of z, each with a λ of its own."""
    temperature: float = 0.5
    """Of the Gumbel-softmax relaxations, and the first one of REBAR and RELAX."""
    k: int = 4
    """The evaluations of DetRB, StoRB, UnOrd and VIMCO."""
    level: int | None = None
    """Atoms of a truncated law; by default 50 (Poisson), 40 (negative binomial), 60 (geometric)."""
    mass: float = 0.999
    """What GenGS NP keeps of a law with infinitely many values."""
    every: int = 20
    """Steps between two measurements of gradients."""
    gradients: int = 200
    """Gradients in a measurement, for each seed."""
    final_gradients: int = 10_000
    """Gradients in the last measurement, which the table shows, for each seed."""
    window: int = 100
    """Curves are averages over so many steps; the table's loss is one over the last quarter."""
    seed: int = 0
    """The seed of the random generator."""
    workers: int = field(default=-1, metadata=UNRECORDED)
    """Processes, one estimator each at a time; -1 for one per core."""
    out: Path | None = field(default=None, metadata=UNRECORDED)
    """The run's folder, for records, table and figures; by default a new one in runs/."""
    resume: bool = field(default=False, metadata=UNRECORDED)
    """Take up a run in its folder: estimators that are done are not run again."""
    json: bool = field(default=False, metadata=UNRECORDED)
    """Print JSON instead of a table."""

    def run(self) -> Path:
        """Run all estimators, write records, table and figures, print the table; the folder."""
        problem, chosen = self._check()
        with RunFolder.open(self.out or _new_folder(self.law), self, resume=self.resume) as folder:
            done = _finished(folder)
            waiting = [one for one in chosen if one.label not in done]
            for number, (one, descent) in enumerate(
                self._descents(problem, waiting), len(done) + 1
            ):
                for record in self._records(problem, one, descent):
                    folder.append(record)
                times = {"estimator": one.label, "milliseconds": descent.milliseconds}
                folder.append_timing(times)
                print(f"{number}/{len(chosen)} {one.label}", file=sys.stderr)
            self._report(folder.path)
        return folder.path

    def _check(self) -> tuple[Quadratic, list[Contender]]:
        for name in ("seeds", "steps", "every", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected a positive {name}, but got {getattr(self, name)}.")
        for name in ("k", "gradients", "final_gradients"):
            if getattr(self, name) < 2:
                raise ValueError(f"expected {name} of at least 2, but got {getattr(self, name)}.")
        if self.seeds < 2:
            raise ValueError("expected at least 2 seeds: errors are taken from their spread.")
        if not self.rate > 0:
            raise ValueError(f"expected a positive rate, but got {self.rate}.")
        family = FAMILIES[self.law]
        problem = Quadratic(family, self.start, self.target, self.dimension)
        named = contenders(self.estimators, family, self.temperature, self.k, self.mass)
        chosen = []
        for one in named:
            law = one.law(problem.law(problem.parameters(1).requires_grad_()), self._level)
            try:
                one.make().expect(problem.cost, law)
            except TypeError as error:
                print(f"{one.label} is left out: {error}", file=sys.stderr)
            else:
                chosen.append(one)
        if not chosen:
            raise ValueError(f"none of these estimators can serve the {self.law} law.")
        # those with a copy for each seed take longest: first, so that no process ends alone
        return problem, sorted(chosen, key=lambda one: not one.make().learns)

    @property
    def _level(self) -> int | None:
        return self.level or FAMILIES[self.law].level

    def _descents(
        self, problem: Quadratic, chosen: Sequence[Contender]
    ) -> Iterator[tuple[Contender, Descent]]:
        """In the order of ``chosen``, each as soon as it and those before it are done."""
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.workers, return_as="generator")
        jobs = (delayed(_descend)(self, one.label) for one in chosen)
        yield from zip(chosen, parallel(jobs), strict=True)

    def _descend(self, problem: Quadratic, contender: Contender) -> Descent:
        return descend(
            problem,
            contender,
            level=self._level,
            seeds=self.seeds,
            steps=self.steps,
            rate=self.rate,
            every=self.every,
            gradients=self.gradients,
            final_gradients=self.final_gradients,
            seed=self.seed,
        )

    def _records(
        self, problem: Quadratic, contender: Contender, descent: Descent
    ) -> Iterator[dict[str, Any]]:
        comparable = contender.make().objective == "expectation"
        qualities = {quality.step: quality for quality in descent.qualities}
        for step, loss in enumerate(descent.loss):
            record: dict[str, Any] = {"estimator": contender.label, "step": step}
            record |= _mean("loss", loss)
            if (quality := qualities.get(step)) is not None:
                record |= _mean("variance", quality.variance)
                if comparable:  # another target: a distance would mislead
                    record |= _mean("error", quality.error)
                    noise = (quality.variance / quality.gradients).sum().sqrt() / self.seeds
                    record |= {"bias": quality.bias.mean(0).tolist(), "bias_se": float(noise)}
            if step == self.steps:
                excess = descent.loss[-(self.steps // 4) - 1 :].mean(0) - problem.minimum
                record |= _mean("excess", excess)
                record |= {"minimum": problem.minimum, "group": contender.group}
                record |= {"evaluations": descent.evaluations, "last": True}
            yield record

    def _report(self, folder: Path) -> None:
        from ..report.synthetic import write_report

        table = write_report(folder, self.window, self._title())
        if self.json:
            print(json.dumps({"folder": str(folder), "rows": table}, indent=2))
            return
        from ..report.synthetic_table import print_table

        print_table(table, self._title())
        print(f"Figures, table and records: {folder.resolve()}")

    def _title(self) -> str:
        law = self.law.replace("-", " ").capitalize()
        return f"{law} · {self.steps} steps · {self.seeds} seeds"


def _descend(config: Synthetic, label: str) -> Descent:
    """In a process of its own: rebuild the estimator and run it on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        family = FAMILIES[config.law]
        problem = Quadratic(family, config.start, config.target, config.dimension)
        named = contenders([label], family, config.temperature, config.k, config.mass)
        return config._descend(problem, named[0])
    finally:
        torch.set_num_threads(threads)


def _mean(name: str, values: torch.Tensor) -> dict[str, float]:
    return {name: float(values.mean()), f"{name}_se": float(values.std() / len(values) ** 0.5)}


def _finished(folder: RunFolder) -> set[str]:
    """The estimators that are done; the beginning of one that is not is forgotten."""
    records: Sequence[Mapping[str, Any]] = folder.records()
    last = [number for number, record in enumerate(records, 1) if record.get("last")]
    folder.rewind(last[-1] if last else 0)
    return {records[number - 1]["estimator"] for number in last}


def _new_folder(law: str) -> Path:
    number = 1
    while (path := Path("runs") / f"synthetic-{law}-{number}").exists():
        number += 1
    return path
