"""How long a report on many records takes, and how much memory: ``python -m benchmarks.report``.

The records are those of four long VAE runs, a million lines in all. Times depend on the machine, so
that of the report stands beside that of parsing the same lines with ``json.loads`` alone, in the
same process; memory beside the size of the files.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gengs_experiments.runs.records import checksums

RUNS, LINES = 4, 250_000

_MEASURED = """
import resource, sys, time
from pathlib import Path
from gengs_experiments.report.contents import make_contents
from gengs_experiments.report.rendering import render_page
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
page = render_page(make_contents([Path(sys.argv[1])]))
seconds = time.process_time() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(seconds, before / 1024, after / 1024)
"""


def make_runs(folder: Path, lines: int = LINES) -> int:
    """Write finished runs; the bytes of their records."""
    size = 0
    for seed in range(RUNS):
        run = folder / f"seed{seed}"
        run.mkdir(parents=True)
        config = {"data": "mnist", "prior": "poisson(2)", "estimator": "MidCDF", "seed": seed}
        manifest = {"experiment": "vae", "config": config, "command": "gengs vae"}
        (run / "config.json").write_text(json.dumps(manifest))
        with (run / "records.jsonl").open("w") as file:
            for step in range(1, lines + 1):
                loss = 100 + 100 / step + seed / 7
                record = {"kind": "train", "step": step, "loss": loss, "gradient_norm": loss / 3}
                file.write(json.dumps(record) + "\n")
            end = {"kind": "evaluation", "step": lines, "nelbo_test": loss, "nelbo_train": loss}
            file.write(json.dumps(end) + "\n")
        mark = {"records": lines + 1, "sha256": checksums(run)}
        (run / "complete.json").write_text(json.dumps(mark))
        size += (run / "records.jsonl").stat().st_size
    return size


def measure(folder: Path) -> tuple[float, float, float]:
    """Seconds of the report, and MiB of the process before and at most."""
    command = [sys.executable, "-c", _MEASURED, str(folder)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, before, after = map(float, out.split())
    return seconds, before, after


def parse_alone(folder: Path) -> float:
    """Seconds of ``json.loads`` on every line."""
    start = time.process_time()
    for path in folder.glob("*/records.jsonl"):
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return time.process_time() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = make_runs(folder) / 2**20
        best = min(measure(folder) for _ in range(3))
        alone = min(parse_alone(folder) for _ in range(3))
    seconds, before, after = best
    print(f"{RUNS * LINES:,} records, {size:.0f} MiB")
    print(f"report {seconds:.1f} s, json.loads alone {alone:.1f} s, ratio {seconds / alone:.2f}")
    print(f"memory {after:.0f} MiB, {after - before:.0f} above the imports: "
          f"{(after - before) / size:.2f} of the files")  # fmt: skip


if __name__ == "__main__":
    main()
