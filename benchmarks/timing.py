"""Medians of interleaved runs, and peak memory in a process of its own.

The machine is noisy, so candidates take turns of five calls (a slow second hits them all), and only
ratios of medians within one run are worth quoting. Time is the processor's, of one thread: others
on the machine count for little.
"""

from __future__ import annotations

import gc
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path

import torch


def medians(candidates: Mapping[str, Callable[[], object]], rounds: int = 20) -> dict[str, float]:
    """Milliseconds per call of each candidate: the median over rounds in which all take a turn."""
    for run in candidates.values():
        for _ in range(5):
            run()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    gc.disable()
    for _ in range(rounds):
        for name, run in candidates.items():
            for _ in range(5):  # a turn is five calls: the others' data has left the cache
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
    gc.enable()
    return {name: 1e3 * statistics.median(values) for name, values in times.items()}


def peak_mebibytes(module: str, candidate: str) -> float:
    """How far ``python -m module --memory candidate`` grows its resident set, in MiB."""
    command = [sys.executable, "-m", module, "--memory", candidate]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def growth(run: Callable[[], object]) -> float:
    """How far the resident set of this process rises while ``run`` runs, in MiB (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    before = _resident("VmRSS")
    run()
    return _resident("VmHWM") - before


def most_held(step: Callable[[], None]) -> float:
    """How far a step raises what torch's allocator holds, in MiB.

    The second of two steps: the first one makes what is made once, and under the profiler too, as
    it must have seen a block arrive to count it when it goes.
    """
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        step()
        with torch.profiler.record_function("measured"):
            step()
    events = profile.profiler.kineto_results.events()
    start = next(event.start_ns() for event in events if event.name() == "measured")
    changes = sorted((e.start_ns() - start, e.nbytes()) for e in events if e.name() == "[memory]")
    before = sum(size for when, size in changes if when < 0)
    held = accumulate((size for when, size in changes if when >= 0), initial=before)
    return (max(held) - before) / 2**20


def _resident(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def machine() -> str:
    """What the numbers were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    return f"{cpu}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def aim(limit: float, at_least: bool) -> str:
    """What the number beside it was hoped to be: a benchmark informs, it does not judge."""
    return f"(aim: {'at least' if at_least else 'at most'} {limit:g})"
