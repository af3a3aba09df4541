"""The full tour on embedded data, a minute or three: ``python -m gengs_experiments.demo``.

    a law → a relaxed draw → the laboratory → three experiments, as a study → the report

Nothing is downloaded. What was done already is not done again, so the tour can be stopped (Ctrl-C)
and taken up where it was. A folder may be named; ``--brief`` trains for a few steps only, to see
that everything works.
"""

__all__ = ["main", "tour"]

import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.distributions import Poisson

from gengs import RLOO, GenGS, MidCDF, Relaxed, lab, truncate

from .report.report_command import MakeReport
from .report.truncation_grid import truncation_grid
from .runs.machine import Machine
from .study.backends import Loky
from .study.plan import Plan, PlannedRun
from .study.runner import run_study
from .study.status import Status


def main(folder: Path, brief: bool = False) -> Path:
    """Take the tour; the report it ends with."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    print("1. A Poisson with rate 7, cut to 12 atoms; the last one carries the tail:")
    rate = torch.tensor(7.0, requires_grad=True)
    q = truncate(Poisson(rate), 12)
    print(f"   {q}\n   {q.certificate}")

    print("\n2. A relaxed draw, differentiable in the rate:")
    z = Relaxed(0.5, q).rsample_value()
    z.backward()
    print(f"   z = {z.item():.3f}, dz/drate = {rate.grad.item():.3f}")  # type: ignore[union-attr]

    print("\n3. Which estimator? Poisson(3), cost (z - 2.6)²:")
    law = truncate(Poisson(torch.tensor(3.0, requires_grad=True)), 30)
    estimators = [RLOO(4), GenGS(0.5), GenGS(0.5, hard=True), MidCDF()]
    gradients = 1000 if brief else 50_000
    result = lab.measure(lambda z: (z - 2.6) ** 2, law, estimators, gradients=gradients)
    print("   " + str(result).replace("\n", "\n   "))

    print("\n4. Does it matter? A study of three experiments, on all cores:")
    print("   a descent with a known end; a VAE on 8×8 digits; topics of 1,600 short texts.")
    study, plan = folder / "study", tour(brief)
    before = Status(plan, study)
    left = [run for run in plan.runs if before.states[run.id] != "done"]
    machine = Machine(resume=True, accelerator="cpu", progress=False)
    status, interrupted = run_study(plan, study, Loky(), left, machine)
    if interrupted:
        raise KeyboardInterrupt
    failed = [run for run in plan.runs if status.states[run.id] != "done"]
    if failed:
        raise RuntimeError(f"{failed[0].id} failed: {status.errors.get(failed[0].id)}")

    print("\n5. The report")
    picture, page = folder / "truncation.png", folder / "report.html"
    truncation_grid().savefig(picture, dpi=150)
    MakeReport((study,), page, title="A tour of gengs").run()
    print(f"   What truncation and temperature do to a law: {picture.resolve()}")
    print(f"   {time.monotonic() - began:.0f} seconds. Open it in a browser:\n\n{page.resolve()}")
    return page


def tour(brief: bool = False) -> Plan:
    """The runs of the tour, the longest first; one of each kind and few steps, if it is brief."""

    def run(experiment: str, row: str, column: str, data: str, **settings: Any) -> PlannedRun:
        labels = {"table": "tour", "row": row, "column": column, "data": data}
        return PlannedRun(experiment, settings, labels)

    topics = {"topics": 12, "hidden": [100]}
    topics |= {"epochs": 2, "evaluate_every": 1} if brief else {"epochs": 10, "evaluate_every": 2}
    vae = {"latents": 16, "network": "64-32", "batch_size": 50, "learning_rate": 0.004}
    vae |= {"epochs": 2, "evaluate_every": 1} if brief else {"epochs": 60, "evaluate_every": 6}
    descent = {"estimators": ["RF*", "UnOrd", "REBAR", "GenGS", "mid-CDF"], "gradients": 100}
    descent |= {"steps": 20 if brief else 600, "final_gradients": 200 if brief else 10_000}
    bench = {"law": "poisson(3)", "level": 25, "estimators": _MEASURED}
    bench |= {"gradients": 500 if brief else 20_000}
    few = 1 if brief else 2
    runs = [
        run("nvpdef", "mid-CDF", "2 layers", "sample", super_topics=[4], **topics),
        run("nvpdef", "mid-CDF", "1 layer", "sample", super_topics=[], **topics),
    ]
    runs += [
        run("vae", "Pois(2)", name, "digits", estimator=estimator, seed=seed, **vae)
        for seed in (0, 1)[:few]
        for name, estimator in {"mid-CDF": "MidCDF", "GenGS": "GenGS", "RLOO(4)": "RLOO(4)"}.items()
    ]
    runs += [
        run("synthetic", law, "all estimators", "synthetic", law=law, **descent)
        for law in ("poisson", "negative-binomial")[:few]
    ]
    runs += [
        run("measure", f"Poisson(3), {cost}", "", "", cost=cost, **bench)
        for cost in ("sigmoid", "quadratic")[:few]
    ]
    return Plan("tour", "brief" if brief else "demo", tuple(runs))


_MEASURED = [
    *("REINFORCE", "RLOO(4)", "NVIL", "REBAR", "StoRB(4)", "UnOrd(4)"),
    *("GenGS(0.5)", "GenGS(1.0)", "ReinMax", "FiniteDifference", "MidCDF"),
]


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--brief"]
    try:
        main(Path(words[0] if words else "demo-output"), brief="--brief" in sys.argv)
    except KeyboardInterrupt:
        print("\nstopped; what is done is kept: take the tour again to go on", file=sys.stderr)
        sys.exit(130)
