"""``gengs report``: studies and runs as one page, or as tables in Markdown, CSV or LaTeX."""

__all__ = ["MakeReport"]

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ..runs.atomic import write_atomically
from ..runs.command_options import OUT
from ..runs.manifest import command
from ..runs.run_status import CONFLICTS
from ..runs.sanitise import say

Format = Literal["html", "markdown", "csv", "latex"]

SUFFIXES: dict[str, Format] = {".html": "html", ".htm": "html", ".md": "markdown"}
SUFFIXES |= {".csv": "csv", ".tex": "latex"}


@dataclass(frozen=True)
class MakeReport:
    """Make one page of studies and runs: tables next to the paper's, curves, samples, topics."""

    folders: tyro.conf.Positional[
        Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER [FOLDER ...]")]
    ]
    """Studies, runs, or folders of them; they may be half done."""
    out: Annotated[Path, OUT] = Path("report.html")
    """The file to write, which needs no other file and no network; "-" for standard output."""
    format: Format | None = None
    """What to write: a page, or its tables; by default by the file's suffix (.html, .md, .csv,
    .tex)."""
    title: str | None = None
    """The title of the page; by default the names of the studies."""

    def run(self) -> None:
        """Write the file and say where it is."""
        from .contents import make_contents
        from .rendering import render

        if not self.folders:
            raise ValueError("expected the folder of a study or of runs, but got none.")
        to_screen = self.out == Path("-")
        known = "markdown" if to_screen else SUFFIXES.get(self.out.suffix.lower())
        form = self.format or known
        if form is None:
            raise ValueError(
                f"expected a file that ends in {', '.join(SUFFIXES)}, or a --format, but got "
                f"{self.out}."
            )
        contents = make_contents(self.folders, self.title)
        # on standard error, for a CSV file has no place for what was left out of it
        for run in contents.runs:
            if run.state in CONFLICTS:
                say(f"left out: {run.id}: {run.error}", error=True)
        for section in contents.sections:
            for problem in section.problems:
                say(f"note: {problem}", error=True)
        text = render(contents, form, command())
        if to_screen:
            sys.stdout.write(text)
            return
        data = text.encode()
        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.out, data)
        done = sum(run.state == "done" for run in contents.runs)
        size = f"{len(data) / 1e6:.1f} MB" if len(data) > 1e5 else f"{len(data) / 1e3:.1f} kB"
        say(f"{done} of {len(contents.runs)} runs done: {self.out.resolve()} ({size})")
