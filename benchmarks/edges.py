"""Laws x parameters x estimators x (value, gradient) against enumeration written apart from us.

The laws, inside their parameters, on the boundary and far out, and the reference are those of
``tests/gengs/edges``. A cell is one estimator on one law, its value or its gradient in one
parameter. It

- *agrees* when the mean of many gradients is the reference's, by a z-test;
- is *refused* when the answer is an error or a warning with a sentence;
- is a *crash* when it is an error of torch's, from somewhere inside;
- is *rare* when no draw met the outcome that carries the gradient (probability 1e-6, say), which
  sampling cannot judge: then the estimator's formula is not wrong, its variance is infinite;
- is a *silent difference* otherwise. These and crashes are printed; there should be none.

    python -m benchmarks.edges                    # all
    python -m benchmarks.edges --regime boundary --estimator Exact --law poisson
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gengs" / "edges"))

from agreement import Answer, ask, complaint  # type: ignore[import-not-found]
from cases import CASES  # type: ignore[import-not-found]
from settings import SETTINGS, draw  # type: ignore[import-not-found]

REPLICATES = 4000
FAILURES = ("silent difference", "crash")


def answer_of(name: str, case: Any, cost: Any, replicates: int) -> tuple[Answer, bool]:
    """What an estimator (or the draw) says, and whether with a warning."""
    parameters = case.tensors(1 if name == "Exact" else replicates)

    def expectation() -> torch.Tensor:
        law = case.build(**parameters)
        if name == "draw":
            return cost(draw(law))
        return SETTINGS[name].make().expect(cost, law)

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            answer = ask(expectation, parameters)
        except FloatingPointError as error:  # no number, and a sentence, if not the best one
            answer = Answer(refusal=f"FloatingPointError: {error}")
        except (RuntimeError, IndexError, ArithmeticError) as error:
            answer = Answer(refusal=f"!{type(error).__name__}")  # a crash, not a sentence
    return answer, any(len(str(warning.message)) > 30 for warning in said)


def rare(case: Any, answer: Answer, truth: np.ndarray, found: np.ndarray | None) -> bool:
    """Whether what carries the gradient has a chance too small to be met."""
    if case.regime != "extreme" or found is None or not np.isfinite(found).all():
        return False
    table = case.reference()
    seen = len(found) * table.probs
    unseen = (seen < 20) & (table.probs > 0)
    carried = max(np.abs(slope[..., unseen]).sum() for slope in table.slopes.values())
    total = max(np.abs(slope).sum() for slope in table.slopes.values())
    return bool(carried > 0.005 * total)


def cells(name: str, case: Any, replicates: int) -> list[tuple[str, str, str | None]]:
    """For the value and every parameter: its name, the verdict, and what is wrong."""
    setting = SETTINGS["MidCDF" if name == "draw" else name]
    kind, bias = setting.cost, setting.bias
    if case.regime == "boundary" and name in ("MidCDF", "draw", "MuProp"):
        kind = "linear"  # what the one-sided slope is exact for
    cost, table = case.cost(kind), case.reference()
    value, gradients = table.bound_of_two(cost) if name == "VIMCO" else table.expectation(cost)
    parts = ["value", *gradients]
    replicates = min(replicates, max(100, 400_000 // len(table.probs)))  # tables of so many atoms
    answer, warned = answer_of(name, case, cost, replicates)
    if answer.refusal is not None:
        crash = answer.refusal.startswith("!")
        verdict = "crash" if crash else "refused"
        return [(part, verdict, answer.refusal if crash else None) for part in parts]
    relaxed = name in ("GenGS", "IGR", "ArrivalTimes")
    samples = Answer(gradients={"value": answer.values.reshape(-1)})
    wrong = complaint(samples, (0.0, {"value": np.array(value)}), 0.3 if relaxed else 0.0, 1e-3)
    out = [("value", *_verdict(wrong, False, False))]
    for part, truth in gradients.items():
        found = answer.gradients[part]
        wrong = complaint(answer, (value, {part: truth}), bias, 1e-5)
        out.append((part, *_verdict(wrong, warned, rare(case, answer, truth, found))))
    return out


def _verdict(wrong: str | None, warned: bool, unseen: bool) -> tuple[str, str | None]:
    if wrong is None:
        return "agrees", None
    if "too few replicates" in wrong:
        return "too noisy to judge", None
    if warned:
        return "refused", None
    return ("rare", None) if unseen else ("silent difference", wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--regime", choices=("interior", "boundary", "extreme"))
    parser.add_argument("--estimator", choices=[*SETTINGS, "draw"])
    parser.add_argument("--law", default="", help="a part of the law's name")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    options = parser.parse_args()
    torch.set_num_threads(1)
    start, counts = time.perf_counter(), Counter[str]()
    by_estimator: Counter[str] = Counter()
    for case in CASES:
        if options.law not in case.name or options.regime not in (None, case.regime):
            continue
        for name in [options.estimator] if options.estimator else [*SETTINGS, "draw"]:
            for part, verdict, wrong in cells(name, case, options.replicates):
                counts[verdict] += 1
                if verdict in FAILURES:
                    by_estimator[name] += 1
                    print(f"{case.regime:9} {name:20} {case.name}, {part}: {wrong}", flush=True)
    print(f"\n{sum(counts.values())} cells in {time.perf_counter() - start:.0f} s")
    for verdict, number in counts.most_common():
        print(f"{number:6} {verdict}")
    for name, number in by_estimator.most_common():
        print(f"{number:6} of {name}")
    return 1 if any(counts[verdict] for verdict in FAILURES) else 0


if __name__ == "__main__":
    raise SystemExit(main())
