"""``gengs synthetic``: estimators side by side on a problem whose answer is known (Figure 3).

    for each estimator: descend with many seeds → compare its gradients with the exact one

The problem and its closed forms are in :mod:`.quadratic`, the estimators and the loop in
:mod:`.descent`. What is recorded at each step, over the seeds:

=============  ====================================================================================
loss           the exact expected loss at the parameters, and its standard error
variance       the trace of the covariance of a gradient (every so many steps, like all below)
bias           the mean gradient minus the exact one, averaged over the seeds, and its error
error          the mean distance of a single gradient from the exact one
=============  ====================================================================================
"""

__all__ = ["LawName", "Synthetic"]

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from ..runs.command_options import OUT, require_out
from ..runs.config import UNRECORDED, check_least, check_positive
from ..runs.interruption import Interrupted, end_with_parent
from ..runs.machine import require_semaphores
from ..runs.manifest import resume_command
from ..runs.records import RunFolder
from ..runs.sanitise import say

LawName = Literal["poisson", "binomial", "multinomial", "negative-binomial", "geometric"]


@dataclass(frozen=True)
class Synthetic:
    """Compare estimators on min E Σ (z - t)², whose loss and gradient have closed forms."""

    law: LawName = "poisson"
    """The distribution of z: Poisson(λ), Binomial(20, λ), Multinomial(3, λ),
    NegativeBinomial(3, λ) or Geometric(λ). What is trained is log λ, or logits."""
    estimators: tuple[str, ...] = ("all",)
    """Names such as RF*, "GenGS ST", mid-CDF, or with settings, "GenGS(0.1)"; or the word all."""
    seeds: int = 10
    """The number of independent repetitions, side by side."""
    steps: int = 2000
    """The number of Adam steps, each on a single gradient."""
    rate: float = 0.01
    """Adam's learning rate, for λ and for what an estimator learns itself."""
    start: tuple[float, ...] = ()
    """λ at the first step; by default 10, 0.6, (1/3, 1/3, 1/3), 0.6 and 0.1 for the five."""
    target: tuple[float, ...] = ()
    """The λ whose mean is the target t; by default 20, 0.3, (0.7, 0.2, 0.1), 0.4 and 0.25."""
    dimension: int = 1
    """The number of coordinates of z, each with a λ of its own."""
    temperature: float = 0.5
    """Of the Gumbel-softmax relaxations, and the first one of REBAR and RELAX."""
    k: int = 4
    """The evaluations of DetRB, StoRB, UnOrd and VIMCO."""
    level: int | None = None
    """Atoms after truncation; by default 50 (Poisson), 40 (negative binomial), 60 (geometric)."""
    mass: float = 0.999
    """What GenGS NP keeps of a distribution with infinitely many values."""
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
    out: Annotated[Path | None, OUT] = field(default=None, metadata=UNRECORDED)
    """The run's folder, for records, table and figures; by default a new one in runs/."""
    resume: bool = field(default=False, metadata=UNRECORDED)
    """Take up a run in its folder: estimators that are done are not run again."""
    json: bool = field(default=False, metadata=UNRECORDED)
    """Print JSON instead of a table."""

    def run(self) -> Path:
        """Run all estimators and write their records; the folder. The command line draws them."""
        chosen = self._check()
        new = (Path("runs") / f"synthetic-{self.law}-{number}" for number in count(1))
        out = self.out or next(path for path in new if not path.exists())
        with RunFolder.open(out, self, resume=self.resume) as folder:
            finished = _finished(folder)
            done, waiting = len(finished), [label for label in chosen if label not in finished]
            try:
                descents = zip(waiting, self._descents(waiting), strict=True)
                for label, (records, milliseconds) in descents:
                    for record in records:
                        folder.records.append(record)
                    folder.timings.append({"estimator": label, "milliseconds": milliseconds})
                    done += 1
                    say(f"{done}/{len(chosen)} {label}", error=True)
            except KeyboardInterrupt:
                again = resume_command(folder.path)
                say(f"{done} of {len(chosen)} estimators are kept; to go on: {again}")
                raise Interrupted from None
            folder.finish()
        return folder.path

    def _check(self) -> list[str]:
        """The names of the estimators that can serve the law."""
        from .descent import contenders
        from .quadratic import FAMILIES, Quadratic

        least = {"steps": 1, "every": 1, "window": 1, "seed": 0, "level": 1, "dimension": 1}
        least |= {"k": 2, "gradients": 2, "final_gradients": 2, "seeds": 2}  # for a spread
        check_least(self, least)
        check_positive(self, "rate", "temperature")
        require_out(self.out, self.resume)
        if self.workers < 1 and self.workers != -1:
            raise ValueError(f"expected --workers of at least 1, or -1, but got {self.workers}.")
        if not self.estimators:
            raise ValueError("expected estimators after --estimators, or the word all.")
        named = contenders(self, self.estimators)
        problem = Quadratic(FAMILIES[self.law], self.start, self.target, self.dimension)
        chosen = []
        for one in named:
            law = one.law(problem.law(problem.parameters(1).requires_grad_()))
            try:
                one.make().expect(problem.cost, law)
            except TypeError as error:
                say(f"{one.label} is left out: {error}", error=True)
            else:
                chosen.append(one)
        if not chosen:
            raise ValueError(f"none of these estimators can serve the {self.law} distribution.")
        # those with a copy for each seed take longest: first, so that no process ends alone
        return [one.label for one in sorted(chosen, key=lambda one: not one.make().learns)]

    def _descents(self, labels: Sequence[str]) -> Iterator[tuple[list[dict[str, Any]], float]]:
        """In the order of ``labels``, each as soon as it and those before it are done."""
        require_semaphores(self.workers)
        from joblib import Parallel, delayed

        from .descent import descend

        watched = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
        parallel = Parallel(self.workers, "loky", return_as="generator", **watched)
        yield from parallel(delayed(descend)(self, label) for label in labels)


def _finished(folder: RunFolder) -> set[str]:
    """The estimators that are done; the beginning of one that is not is forgotten."""
    records = list(folder.records)
    last = [number for number, record in enumerate(records, 1) if record.get("last")]
    folder.records.rewind(last[-1] if last else 0)
    return {records[number - 1]["estimator"] for number in last}
