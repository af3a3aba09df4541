"""The full tour on embedded data, a minute or three: ``python -m gengs.demo [folder] [--brief]``.

    a law → a relaxed draw → the laboratory → three experiments, as a study → the report

Nothing is downloaded. What was done already is not done again, so the tour can be stopped (Ctrl-C)
and taken up where it was. ``--brief`` trains for a few steps only: to see that everything works.
"""

from __future__ import annotations

__all__ = ["main", "tour"]

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.distributions import Poisson

from . import RLOO, GenGS, MidCDF, Relaxed, lab, truncate

if TYPE_CHECKING:
    from .study.plan import Plan


def main(folder: Path, brief: bool = False) -> Path:
    """Take the tour; the report it ends with."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    _law_and_draw()
    _laboratory()

    print("\n4. Does it matter? A study of three experiments, on all cores:")
    print("   a descent with a known end; a VAE on 8×8 digits; topics of 1,600 short texts.")
    study = folder / "study"
    _experiments(study, tour(brief))

    print("\n5. The report")
    from .report.report_command import MakeReport
    from .report.truncation_grid import truncation_grid

    picture, page = folder / "truncation.png", folder / "report.html"
    truncation_grid().savefig(picture, dpi=150)
    MakeReport((study,), page, title="A tour of gengs").run()
    print(f"   What truncation and temperature do to a law: {picture.resolve()}")
    print(f"   {time.monotonic() - began:.0f} seconds. Open it in a browser:\n\n{page.resolve()}")
    return page


def _law_and_draw() -> None:
    torch.manual_seed(0)
    print("1. A Poisson with rate 7, cut to 12 atoms; the last one carries the tail:")
    rate = torch.tensor(7.0, requires_grad=True)
    q = truncate(Poisson(rate), 12)
    print(f"   {q}\n   {q.certificate}")

    print("\n2. A relaxed draw, differentiable in the rate:")
    z = Relaxed(0.5, q).rsample_value()
    z.backward()
    print(f"   z = {z.item():.3f}, dz/drate = {rate.grad.item():.3f}")  # type: ignore[union-attr]


def _laboratory() -> None:
    print("\n3. Which estimator? Poisson(3), cost (z - 2.6)²:")
    rate = torch.tensor(3.0, requires_grad=True)
    estimators = [RLOO(4), GenGS(0.5), GenGS(0.5, hard=True), MidCDF()]
    result = lab.measure(
        lambda z: (z - 2.6) ** 2, truncate(Poisson(rate), 30), estimators, replicates=50_000
    )
    print("   " + str(result).replace("\n", "\n   "))


def _experiments(folder: Path, plan: Plan) -> None:
    from .runs.machine import Machine
    from .study.backends import Loky
    from .study.runner import run_study
    from .study.status import Status

    before = Status(plan, folder)
    left = [run for run in plan.runs if before.states[run.id] != "done"]
    machine = Machine(resume=True, accelerator="cpu", progress=False)
    status, interrupted = run_study(plan, folder, Loky(), left, machine)
    if interrupted:
        raise KeyboardInterrupt
    failed = [run for run in plan.runs if status.states[run.id] != "done"]
    if failed:
        raise RuntimeError(f"{failed[0].id} failed: {status.errors.get(failed[0].id)}")


def tour(brief: bool = False) -> Plan:
    """The runs of the tour, the longest first; few steps of each, if it is to be brief."""
    from .experiments.laboratory import Measure
    from .experiments.nvpdef_command import NvpdefConfig
    from .experiments.synthetic import Synthetic
    from .experiments.vae import VaeConfig
    from .study.plan import Plan, PlannedRun

    runs = []
    for layers, above in {"2 layers": (4,), "1 layer": ()}.items():
        topics = NvpdefConfig(
            topics=12,
            super_topics=above,
            hidden=(100,),
            epochs=2 if brief else 10,
            evaluate_every=1 if brief else 2,
        )
        place = {"table": "tour", "row": "mid-CDF", "column": layers, "data": "sample"}
        runs.append(PlannedRun("nvpdef", topics, place))
    for seed in (0, 1):
        for name, estimator in {
            "mid-CDF": "MidCDF",
            "GenGS": "GenGS",
            "RLOO(4)": "RLOO(4)",
        }.items():
            vae = VaeConfig(
                estimator=estimator,
                latents=16,
                network="64-32",
                batch_size=50,
                learning_rate=0.004,
                kl_warm_up=400,
                epochs=2 if brief else 60,
                evaluate_every=1 if brief else 6,
                seed=seed,
            )
            place = {"table": "tour", "row": "Pois(2)", "column": name, "data": "digits"}
            runs.append(PlannedRun("vae", vae, place))
    estimators = ("RF*", "UnOrd", "REBAR", "GenGS", "mid-CDF")
    for law in ("poisson", "negative-binomial"):
        descent = Synthetic(
            law=law,
            estimators=estimators,
            steps=40 if brief else 600,
            gradients=100,
            final_gradients=200 if brief else 10_000,
        )
        place = {"table": "tour", "row": law, "column": "all estimators", "data": "synthetic"}
        runs.append(PlannedRun("synthetic", descent, place))
    for cost in ("sigmoid", "quadratic"):
        bench = Measure(
            law="poisson(3)",
            level=25,
            cost=cost,
            estimators=_MEASURED,
            replicates=500 if brief else 20_000,
        )
        place = {"table": "tour", "row": f"Poisson(3), {cost}", "column": "", "data": ""}
        runs.append(PlannedRun("measure", bench, place))
    return Plan("tour", "brief" if brief else "demo", tuple(runs))


_MEASURED = (
    *("REINFORCE", "RLOO(4)", "NVIL", "REBAR", "StoRB(4)", "UnOrd(4)"),
    *("GenGS(0.5)", "GenGS(1.0)", "ReinMax", "FiniteDifference", "MidCDF"),
)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--brief"]
    try:
        main(Path(words[0] if words else "demo-output"), brief="--brief" in sys.argv)
    except KeyboardInterrupt:
        print("\nstopped; what is done is kept: take the tour again to go on", file=sys.stderr)
        sys.exit(130)
