"""Training steps of this checkout beside another's, interleaved in one run.

Two processes, one for each checkout, take turns: a few steps of one model here, the same there. The
medians of the ratios are steady also where the machine is not. Time is the processor's, one thread:
what others do on the machine counts for little.

    git worktree add /tmp/before HEAD~1
    python -m benchmarks.against /tmp/before
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
WORKER = """
import json, sys, time, warnings
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
warnings.simplefilter("ignore")
from benchmarks.vae import enlarged_digits, models, stepper, BATCH
try:
    from gengs_experiments.data import Batches
except ImportError:  # an older checkout, with one package
    from gengs.data import Batches
batches = Batches(enlarged_digits(), BATCH)
steps = {name: stepper(model, batches, True, True) for name, model in models("256-128").items()}
print(json.dumps(list(steps)), flush=True)
for line in sys.stdin:
    step, times = steps[json.loads(line)], []
    for _ in range(10):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    print(min(times), flush=True)
"""


class Side:
    """A process that steps the models of one checkout when it is asked to."""

    def __init__(self, root: Path) -> None:
        paths = os.pathsep.join([str(root / "src"), str(root)])
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )
        self.names: list[str] = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def milliseconds(self, name: str) -> float:
        """The quickest of ten steps."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        return 1e3 * float(self._answer())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="the root of the other checkout")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    before, now = Side(options.before.resolve()), Side(HERE)
    shared = [name for name in now.names if name in before.names]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in shared}
    for _ in range(options.rounds):
        for name in shared:
            times[name].append((before.milliseconds(name), now.milliseconds(name)))
    print(f"{'256-128, fused Adam':24s} before ms   now ms   ratio")
    for name, pairs in times.items():
        ratio = statistics.median(new / old for old, new in pairs)
        print(
            f"{name:24s} {min(o for o, _ in pairs):9.2f} {min(n for _, n in pairs):8.2f} "
            f"{ratio:7.2f}"
        )
    for side in (before, now):
        side.process.terminate()


if __name__ == "__main__":
    main()
