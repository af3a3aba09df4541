"""Choose what to look at: patches of an image, one by one image; pixels once for all images.

- **patches**: a selector network sees the image and chooses 4 of 49 patches (4 × 4 pixels); a
  classifier sees these patches only ("learning to explain").
- **pixels**: 50 of 784 pixels, the same for all images, from which a network classifies the digit
  and reconstructs the image (the task of the concrete autoencoder). Each image of a batch has a
  draw of its own; at the end the 50 pixels with the largest logits are fixed.

Loss and accuracy are those of exact draws on test images. Runs that the file has are kept, so a run
that was stopped goes on with the same command. A table is written beside it and, of pixels, a
picture.

python -m benchmarks.sets_pixels --task patches --steps 1500 -o results/sets/patches.json
python -m benchmarks.sets_pixels --task pixels --steps 1500 -o results/sets/pixels.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

import gengs
from benchmarks.sets import relaxed_top_k

Draw = Callable[[Tensor, int, tuple[int, ...]], Tensor]
"""From logits, a number of elements and a sample shape to draws."""


def exactly(by: gengs.Estimator | None) -> Draw:
    return lambda logits, k, shape: gengs.rsample(gengs.Subset(k, logits), shape, by=by)


def relaxed(logits: Tensor, k: int, shape: tuple[int, ...]) -> Tensor:
    return relaxed_top_k(logits.expand(*shape, *logits.shape), k, 0.5)


def straight_through_top_k(logits: Tensor, k: int, shape: tuple[int, ...]) -> Tensor:
    soft = relaxed(logits, k, shape)
    hard = torch.zeros_like(soft).scatter(-1, soft.topk(k).indices, 1.0)
    return hard + soft - soft.detach()


DRAWS: dict[str, Draw] = {
    "swap rule": exactly(None),
    "SIMPLE": exactly(gengs.StraightThroughMean()),
    "GenGS(0.5)": exactly(gengs.GenGS(0.5)),
    "relaxed top-k": relaxed,
    "relaxed top-k, ST": straight_through_top_k,
}
METHODS = (*DRAWS, "RLOO(2)")


class Patches(nn.Module):
    """Which 4 of 49 patches of this image?"""

    k, n = 4, 49

    def __init__(self) -> None:
        super().__init__()
        self.selector = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 49))
        self.classifier = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))

    def logits(self, x: Tensor) -> Tensor:
        return self.selector(x)

    def cost(self, z: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        mask = z.reshape(*z.shape[:-1], 7, 7).repeat_interleave(4, -1).repeat_interleave(4, -2)
        answer = self.classifier(x * mask.flatten(-2))
        labels = y.expand(answer.shape[:-1])
        loss = cross_entropy(answer.flatten(0, -2), labels.flatten(), reduction="none")
        return loss.view(labels.shape), answer.argmax(-1) == labels


class Pixels(nn.Module):
    """Which 50 of 784 pixels, for all images?"""

    k, n = 50, 784

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(0.01 * torch.randn(784))
        self.trunk = nn.Sequential(nn.Linear(784, 256), nn.ReLU())
        self.classifier, self.decoder = nn.Linear(256, 10), nn.Linear(256, 784)

    def logits(self, x: Tensor) -> Tensor:
        return 10 * self.scores

    def cost(self, z: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(x * z)
        answer = self.classifier(hidden)
        labels = y.expand(answer.shape[:-1])
        loss = cross_entropy(answer.flatten(0, -2), labels.flatten(), reduction="none")
        images = x.expand(*answer.shape[:-1], -1)
        image = binary_cross_entropy_with_logits(self.decoder(hidden), images, reduction="none")
        return loss.view(labels.shape) + image.sum(-1) / 100, answer.argmax(-1) == labels


TASKS: dict[str, type[Patches] | type[Pixels]] = {"patches": Patches, "pixels": Pixels}


def train(task: str, method: str, seed: int, steps: int, data: dict[str, Tensor]) -> dict[str, Any]:
    torch.manual_seed(seed)
    model = TASKS[task]()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin = time.process_time()
    batch = 64 if task == "pixels" else 128
    for _ in range(steps):
        index = torch.randint(len(data["x"]), (batch,))
        x, y = data["x"][index], data["y"][index]
        logits = model.logits(x)
        each = (1, batch) if task == "pixels" else (1,)  # a draw for each image
        if method == "RLOO(2)":
            law = gengs.Subset(model.k, logits)
            z = law.sample(torch.Size([2, *each[1:]]))
            costs = model.cost(z, x, y)[0]  # (2, batch)
            better = costs.detach() - costs.detach().flip(0)  # than the other draw
            loss = (costs + better * law.log_prob(z)).mean()
        else:
            loss = model.cost(DRAWS[method](logits, model.k, each), x, y)[0].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    seconds = time.process_time() - begin
    with torch.no_grad():
        x, y = data["x_test"], data["y_test"]
        law = gengs.Subset(model.k, model.logits(x))
        z = law.mode if task == "pixels" else law.sample()
        loss, right = model.cost(z.expand(len(x), -1), x, y)
    row = {"method": method, "seed": seed, "loss": float(loss.mean()), "seconds": seconds}
    row["accuracy"] = float(right.float().mean())
    if task == "pixels":
        row["picked"] = z.nonzero().flatten().tolist()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=list(TASKS), default="patches")
    parser.add_argument("--methods", nargs="+", default=None, choices=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("-o", "--out", type=Path, required=True)
    config = parser.parse_args()
    torch.set_num_threads(1)
    # relaxed by k softmaxes over tables of 50 × 784: a minute for 20 steps
    usual = [name for name in METHODS if config.task == "patches" or not name.startswith("GenGS")]
    content: dict[str, Any] = {"task": config.task, "steps": config.steps}
    content["command"] = (
        f"python -m benchmarks.sets_pixels --task {config.task} --steps {config.steps}"
    )
    content["versions"] = {"torch": torch.__version__, "python": platform.python_version()}
    content["rows"] = []
    if config.out.exists():
        content = json.loads(config.out.read_text())
        if (content["task"], content["steps"]) != (config.task, config.steps):
            raise SystemExit(f"{config.out} has runs of another task or another number of steps.")
    data = load()
    for seed in config.seeds:
        for method in config.methods or usual:
            if any((row["method"], row["seed"]) == (method, seed) for row in content["rows"]):
                continue
            row = train(config.task, method, seed, config.steps, data)
            content["rows"].append(row)
            unfinished = config.out.with_suffix(".part")
            unfinished.write_text(json.dumps(content) + "\n")
            unfinished.replace(config.out)
            config.out.with_suffix(".md").write_text(page(content))
            print(
                f"{config.task} {method:18s} seed {seed}  loss {row['loss']:.3f}  accuracy "
                f"{row['accuracy']:.3f}  {row['seconds']:.0f} s",
                flush=True,
            )
    config.out.with_suffix(".md").write_text(page(content))
    if config.task == "pixels":
        draw(content["rows"], data["x"].mean(0), config.out.with_suffix(".png"))


WORDS = {
    "patches": (
        "# Choose the patches",
        "Per MNIST image a selector chooses 4 of 49 patches, and a classifier sees these only. "
        "Loss (cross-entropy) and accuracy of exact draws on 5,000 test images; seconds of one "
        "core.",
    ),
    "pixels": (
        "# Choose the pixels",
        "50 of 784 pixels, the same for all MNIST images, from which a network classifies the "
        "digit and reconstructs the image. Loss (cross-entropy, and a hundredth of the pixels' "
        "one) and accuracy on 5,000 test images with the 50 best pixels; seconds of one core.",
    ),
}


def page(content: dict[str, Any]) -> str:
    """A row for each method, a number for each seed."""
    title, words = WORDS[content["task"]]
    rows, versions = content["rows"], content["versions"]
    seeds = sorted({row["seed"] for row in rows})
    lines = [title, "", f"`{content['command']}` (torch {versions['torch']}, one thread).", ""]
    lines += [f"{words} Seeds {', '.join(map(str, seeds))}.", ""]
    lines += ["| method | loss | mean | accuracy | mean | seconds |"]
    lines += ["| --- | --- | ---: | --- | ---: | ---: |"]
    for method in METHODS:
        mine = sorted((r for r in rows if r["method"] == method), key=lambda row: row["seed"])
        if not mine:
            continue
        cells = []
        for key in ("loss", "accuracy"):
            values = [row[key] for row in mine]
            cells += [" / ".join(f"{x:.3f}" for x in values), f"{sum(values) / len(values):.3f}"]
        seconds = sum(row["seconds"] for row in mine) / len(mine)
        lines += [f"| {method} | {' | '.join(cells)} | {seconds:.0f} |"]
    if content["task"] == "pixels":
        lines += ["", "The pixels, on the mean image; below each the accuracy:", ""]
        lines += ["![Chosen pixels by method and seed](pixels.png)"]
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, Any]], mean: Tensor, path: Path) -> None:
    """The picked pixels on the mean image: a column for each method, a row for each seed."""
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(row["method"] for row in rows))
    seeds = sorted({row["seed"] for row in rows})
    figure = Figure((1.9 * len(methods), 2.15 * len(seeds)), layout="constrained")
    axes = figure.subplots(len(seeds), len(methods), squeeze=False)
    for row in rows:
        place = seeds.index(row["seed"]), methods.index(row["method"])
        axis = axes[place]
        axis.imshow(mean.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1.6)
        picked = torch.tensor(row["picked"])
        axis.plot(picked % 28, picked // 28, "s", markersize=3.4, color="#c0392b")
        axis.set(xticks=[], yticks=[], xlim=(2, 25), ylim=(26, 2))
        axis.spines[:].set_visible(False)
        axis.set_xlabel(f"{100 * row['accuracy']:.1f} %", fontsize=10)
        if place[0] == 0:
            axis.set_title(row["method"], fontsize=11)
        if place[1] == 0:
            axis.set_ylabel(f"seed {row['seed']}", fontsize=10)
    figure.savefig(path, dpi=110)


def load() -> dict[str, Tensor]:
    """20,000 training and 5,000 test images of MNIST, as numbers from 0 to 1."""
    folder = Path(os.environ.get("GENGS_DATA", "data")) / "mnist"

    def read(name: str, header: int, size: int) -> Tensor:
        content = gzip.decompress((folder / name).read_bytes())
        return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=header)[:size]

    return {
        "x": read("train-images-idx3-ubyte.gz", 16, 20_000 * 784).reshape(-1, 784) / 255,
        "y": read("train-labels-idx1-ubyte.gz", 8, 20_000).long(),
        "x_test": read("t10k-images-idx3-ubyte.gz", 16, 5_000 * 784).reshape(-1, 784) / 255,
        "y_test": read("t10k-labels-idx1-ubyte.gz", 8, 5_000).long(),
    }


if __name__ == "__main__":
    main()
