"""Through which files a call goes: a reader who follows it opens them in this order.

Every call into the package is traced (``sys.setprofile``, also in the thread of the backward pass).
Counted are the files, and the returns: how often the way comes back to a file it had left.

    python -m benchmarks.walk            # numbers
    python -m benchmarks.walk --files    # and the files, in the order in which they are entered
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

import torch
from torch.distributions import Poisson

import gengs
from gengs_experiments.cli import main as cli

ROOT = str(Path(gengs.__file__).parent) + "/"

BEFORE = {
    "truncate(Poisson(rate), 12)": (9, 16, 5),
    "Relaxed(.5, q).rsample_value()": (15, 28, 6),
    "backward()": (4, 1, 2),
    "gengs vae, one step": (61, 546, 45),
    "gengs vae, with its imports": (112, 600, None),
}
"""Files and returns, by this script, before the core was made eager; files there may be at most."""


class Walk:
    """The files of the package in the order in which calls enter them."""

    def __init__(self) -> None:
        self.way: list[str] = []

    def enter(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            file = frame.f_code.co_filename.removeprefix(ROOT)
            if not self.way or self.way[-1] != file:
                self.way.append(file)

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(self.way))

    @property
    def returns(self) -> int:
        return len(self.way) - len(self.files)


@contextmanager
def traced() -> Iterator[Walk]:
    walk = Walk()
    threading.setprofile(walk.enter)  # autograd's threads, where they are Python's
    sys.setprofile(walk.enter)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def library() -> Iterator[tuple[str, Walk]]:
    """A law, a relaxed draw of it, and the way back; the second time, when torch is warm."""
    rate = torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        with traced() as truncation:
            q = gengs.truncate(Poisson(rate), 12)
        with traced() as draw:
            z = gengs.Relaxed(0.5, q).rsample_value()
        loss = z.sum()
        with traced() as back:
            loss.backward()
    yield from zip(BEFORE, (truncation, draw, back), strict=False)


def run_of_vae() -> Walk:
    """``gengs vae`` on one batch of digits, from the command line to the finished run."""
    options = ["--data", "digits", "--images", "100", "--epochs", "1", "--no-progress"]
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        traced() as walk,
    ):
        code = cli(["vae", *options, "--out", f"{folder}/run"])
    if code:
        raise RuntimeError(f"gengs vae ended with code {code}")
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="name the files in their order")
    show = parser.parse_args().files
    walks = dict(library())
    first, second = run_of_vae(), run_of_vae()  # the first one imports
    walks |= {"gengs vae, one step": second, "gengs vae, with its imports": first}
    print(f"{'':32s}  files: before, now, at most    returns: before, now")
    for name, walk in walks.items():
        files, returns, most = BEFORE[name]
        now = f"{files:14d} {len(walk.files):4d} {most or '-':>8}"
        print(f"{name:32s} {now} {returns:18d} {walk.returns:4d}")
        for number, file in enumerate(walk.files if show else (), 1):
            print(f"    {number:3d} {file}")


if __name__ == "__main__":
    main()
