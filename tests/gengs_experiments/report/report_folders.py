"""Small run folders with known numbers, written as the experiments write them."""

import json
import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from gengs_experiments.runs.records import RunFolder, checksums

HOSTILE = "<script>window.hacked=1</script>\"'&{{7*7}}<img src=x onerror=window.hacked=1>%{y}"


@dataclass(frozen=True)
class Config:
    """Enough of an experiment's configuration."""

    data: str = "mnist"
    prior: str = "poisson(2)"
    estimator: str = "GenGS"
    posterior: str = "explicit"
    seed: int = 0


@dataclass(frozen=True)
class Bench:
    law: str = "poisson(3)"
    window: int = 2
    seeds: int = 4
    seed: int = 0


def png(width=4, height=3):
    def chunk(kind, data):
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(range(width)) for _ in range(height)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def finish(folder):
    """Mark a run as complete, with its files as they are now."""
    (folder / "complete.json").write_text(json.dumps({"sha256": checksums(folder)}))


def vae_run(folder, value=100.0, config=None, *, done=True, steps=5, experiment="vae"):
    with RunFolder.open(folder, config or Config(), experiment=experiment) as run:
        for step in range(10, 10 * steps + 1, 10):
            now = value + 50 / step
            run.records.append({"kind": "train", "step": step, "loss": now, "gradient_norm": 1.0})
            run.timings.append({"kind": "train", "step": step, "seconds": step / 10})
            numbers = {"nelbo_train": now, "nelbo_test": now + 1, "relaxed_train": now - 2}
            run.records.append({"kind": "evaluation", "step": step, **numbers})
        last = {"nelbo_train": value, "nelbo_test": value + 1, "relaxed_train": value - 2}
        run.records.append({"kind": "evaluation", "step": 10 * steps + 10, **last})
    if done:
        (folder / "weights.safetensors").write_bytes(b"weights")
        finish(folder)
    return folder


def synthetic_run(folder, labels=("RF", "mid-CDF"), law="poisson"):
    with RunFolder.open(folder, Bench(law), experiment="synthetic") as run:
        for rank, label in enumerate(labels, 1):
            for step in range(21):
                record = {"estimator": label, "step": step, "loss": 9.0 / rank + 1, "loss_se": 0.1}
                if step % 5 == 0:
                    record |= {"variance": 4.0 * rank, "variance_se": 0.2, "error": 2.0}
                    record |= {"error_se": 0.1, "bias": [0.3, -0.4], "bias_se": 0.01}
                if step == 20:
                    record |= {"excess": 0.5 / rank, "excess_se": 0.05, "minimum": 0.5}
                    record |= {"group": "steps", "evaluations": rank, "last": True}
                run.records.append(record)
            run.timings.append({"estimator": label, "milliseconds": 1.5 * rank})
    finish(folder)
    return folder


def measure_run(folder, labels=("RLOO(4)", "MidCDF"), law="poisson(3)"):
    with RunFolder.open(folder, Bench(law), experiment="measure") as run:
        for rank, label in enumerate(labels, 1):
            row = {
                "estimator": label,
                "bias": -0.1 * rank,
                "bias_error": 0.01,
                "variance": rank * 2.0,
            }
            row |= {"error": 1.0, "cosine": 0.9, "evaluations": 4, "gradients": 500}
            run.records.append({"kind": "measurement", "step": 0, "exact": [1.8], **row})
            run.timings.append({"estimator": label, "milliseconds": 0.5})
    finish(folder)
    return folder


def topics_run(folder, words=("gene", "cell"), estimator="MidCDF"):
    config = replace(Config(), data="20news", prior="", estimator=estimator)
    with RunFolder.open(folder, config, experiment="nvpdef") as run:
        for step in (10, 20):
            numbers = {"perplexity_test": 900.0 + step, "perplexity_relaxed": 880.0, "npmi": 0.1}
            run.records.append({"kind": "evaluation", "step": step, **numbers})
    (folder / "weights.safetensors").write_bytes(b"weights")
    topics = [{"words": list(words), "weights": [2.0, 1.0]}, {"words": ["x"], "weights": []}]
    children = [{"topic": 0}, {"topic": 1}]
    hierarchy = [{"title": words[0], "words": list(words), "children": children}]
    (folder / "topics.json").write_text(json.dumps({"topics": topics, "hierarchy": hierarchy}))
    finish(folder)
    return folder


def study(folder, runs, name="table1", budget="small"):
    """``runs``: id → (config, labels)."""
    entries = [
        {"id": key, "experiment": "vae", "config": vars(config), "labels": labels}
        for key, (config, labels) in runs.items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    content = {"name": name, "budget": budget, "runs": entries}
    (folder / "plan.json").write_text(json.dumps(content))
    return folder


def labels(column="GenGS", row="Pois(2)", data="mnist", table="table1"):
    return {"table": table, "row": row, "column": column, "data": data}


def partial_study(folder, hostile=False):
    """Three seeds of GenGS, one of RF*, a failed, a begun and a waiting run."""
    runs = {}
    values = {"GenGS": (103.0, 104.0, 105.0), "RF*": (120.0,), "GenGS Imp": (90.0, 90.1)}
    for column, found in values.items():
        for seed, value in enumerate(found):
            config = Config(estimator=column, seed=seed)
            name = f"run-{len(runs)}"
            runs[name] = (config, labels(column))
            run = vae_run(Path(folder) / "runs" / name, value, config)
            (run / "samples.png").write_bytes(png())
    text = HOSTILE if hostile else "NVIL"
    for seed, state in enumerate(("failed", "begun", "waiting")):
        config = Config(estimator=text, seed=seed)
        name = f"run-{state}"
        runs[name] = (config, labels(text, row=HOSTILE if hostile else "Pois(2)"))
        if state != "waiting":
            run = vae_run(Path(folder) / "runs" / name, 130.0, config, done=False, steps=3)
        if state == "failed":
            (run / "error.txt").write_text(f"Traceback:\n  x\nNonFiniteError: {text} is NaN\n")
    return study(Path(folder), runs, name="hostile" if hostile else "table1")
