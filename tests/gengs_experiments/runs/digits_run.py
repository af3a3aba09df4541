"""A small real training, as a module and as a program that can kill itself at any point.

Dropout, batch normalisation, a Gumbel-softmax layer with a falling temperature, Adam, a schedule of
the learning rate, shuffled handwritten digits: everything that a checkpoint has to bring back.
"""

import argparse
import gc
import importlib.util
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from gengs.estimators.temperature import Exponential
from gengs_experiments.runs.random_state import seed_everything
from gengs_experiments.runs.training import Machine, Task, Training, train


class Batches:
    """Rows of tensors, shuffled anew in each epoch, as a function of the step."""

    def __init__(self, *tensors, batch_size, seed=0):
        self.tensors, self.batch_size, self.seed = tensors, batch_size, seed

    def batch(self, step, rank=0, world=1):
        items = len(self.tensors[0])
        epoch, place = divmod(step, items // self.batch_size)
        generator = torch.Generator().manual_seed(1000 * self.seed + epoch)
        rows = torch.randperm(items, generator=generator)[place * self.batch_size :]
        rows = rows[: self.batch_size][rank::world]
        return tuple(tensor[rows] for tensor in self.tensors)


@dataclass(frozen=True)
class Digits:
    """Classify digits through a discrete layer."""

    hidden: int = 16
    rate: float = 0.01
    batch_size: int = 50
    seed: int = 0
    training: Training = field(
        default=Training(steps=60, clip=1.0, record_every=7, evaluate_every=25)
    )


class Network(nn.Module):
    def __init__(self, hidden, tau):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, hidden), nn.BatchNorm1d(hidden), nn.Dropout(0.3))
        self.decode = nn.Linear(hidden, 10)
        self.tau = tau

    def forward(self, x):
        logits = self.encode(x)
        return self.decode(F.gumbel_softmax(logits, tau=self.tau.value))


def load_digits():
    """scikit-learn's digits; importing it, for a file, would take half of a short run."""
    (folder,) = importlib.util.find_spec("sklearn").submodule_search_locations
    rows = torch.tensor(np.loadtxt(Path(folder, "datasets/data/digits.csv.gz"), delimiter=","))
    return rows[:, :-1].float() / 16, rows[:, -1].long()


def make_task(config, before_step=lambda step: None):
    """The task; ``before_step`` may do anything, such as end the process."""
    seed_everything(config.seed)
    images, labels = load_digits()
    tau = Exponential(1.0, 0.1, steps=config.training.steps)
    network = Network(config.hidden, tau)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.rate)

    class Watched(Batches):
        def batch(self, step, rank=0, world=1):
            before_step(step)
            return super().batch(step, rank, world)

    def step(batch):
        x, y = batch
        scores = network(x)
        right = (scores.argmax(-1) == y).float().mean()
        return {"loss": F.cross_entropy(scores, y), "accuracy": right}

    def evaluate():
        return {"accuracy": (network(images).argmax(-1) == labels).float().mean()}

    return Task(
        modules={"network": network},
        step=step,
        data=Watched(images, labels, batch_size=config.batch_size, seed=config.seed),
        optimizers=[optimizer],
        schedules={
            "temperature": tau,
            "learning_rate": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60),
        },
        evaluate=evaluate,
    )


def leave_without_ddp(leave):
    """Leave the process group as usual; where DDP is still there, that may be a deadlock."""
    if any(isinstance(one, nn.parallel.DistributedDataParallel) for one in gc.get_objects()):
        raise RuntimeError("DDP holds the process group when it is left")
    leave()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--kill-at", type=int, help="SIGKILL before this step")
    parser.add_argument("--kill-in-save", type=int, help="SIGKILL inside this save, counted from 1")
    parser.add_argument("--signal-at", type=int, help="SIGINT before this step")
    parser.add_argument("--terminate", action="store_true", help="SIGTERM instead")
    options = parser.parse_args()
    torch.set_num_threads(1)

    def before_step(step):
        if step == options.kill_at:
            die()
        if step == options.signal_at:
            number = signal.SIGTERM if options.terminate else signal.SIGINT
            os.kill(os.getpid(), number)

    replace, saves = Path.replace, 0

    def replace_or_die(source, target):
        nonlocal saves
        saves += Path(target).name == "checkpoint.pt"
        if saves == options.kill_in_save:
            source.write_bytes(source.read_bytes()[:100])  # half a file, as a slow disk leaves it
            die()
        return replace(source, target)

    Path.replace = replace_or_die
    leave = torch.distributed.destroy_process_group
    torch.distributed.destroy_process_group = lambda: leave_without_ddp(leave)
    config = Digits()
    machine = Machine(resume=options.resume, accelerator="cpu", checkpoint_steps=10)
    train(
        make_task(config, before_step),
        options.folder,
        config,
        config.training,
        machine,
        seed=config.seed,
    )


if __name__ == "__main__":
    main()
