"""The command line: ``gengs measure``, ``gengs vae``, ``gengs topics fit`` and the others.

Commands are dataclasses with a ``run`` method; their field docs are the help. Errors are one
sentence on standard error; exit code 2 for bad usage, 1 for anything else that went wrong.
"""

from __future__ import annotations

__all__ = ["main"]

import json
import sys
from dataclasses import dataclass
from typing import Annotated

from . import __version__

_TWO_WORDS = {"study merge", "topics fit", "topics apply", "topics show"}


@dataclass(frozen=True)
class Estimators:
    """List the estimators and their facts."""

    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the catalogue."""
        from .estimators.catalogue import catalogue

        if self.json:
            print(json.dumps(catalogue(), indent=2))
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        heads = ["estimator", "unbiased", "needs df/dz", "learns", "works on", "year"]
        for head in heads:
            table.add_column(head, no_wrap=head == "estimator")
        columns = ["estimator", "unbiased", "needs cost gradient", "learns", "needs", "year"]
        for facts in catalogue():
            cells = ["yes" if facts[c] is True else facts[c] or "" for c in columns]
            if facts["objective"] != "expectation":
                cells[1] = "of a bound"
            table.add_row(*map(str, cells))
        Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # also while the packages are being imported
        print("gengs: interrupted", file=sys.stderr)
        return 130


def _run(arguments: list[str] | None) -> int:
    try:
        import tyro
    except ImportError:
        print(
            "gengs: the command line needs more packages: pip install 'gengs[apps]'",
            file=sys.stderr,
        )
        return 1
    from .experiments.measure import Measure
    from .experiments.synthetic import Synthetic
    from .experiments.topics import Topics
    from .experiments.vae import Vae
    from .report.command import Report
    from .study.command import MergeStudies, Study
    from .topics.command import TopicsApply, TopicsFit, TopicsShow

    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"gengs {__version__}")
        return 0
    if " ".join(arguments[:2]) in _TWO_WORDS:
        arguments = [" ".join(arguments[:2]), *arguments[2:]]
    commands = (
        Annotated[Measure, tyro.conf.subcommand("measure", description=Measure.__doc__)]
        | Annotated[Synthetic, tyro.conf.subcommand("synthetic", description=Synthetic.__doc__)]
        | Annotated[Vae, tyro.conf.subcommand("vae", description=Vae.__doc__)]
        | Annotated[Topics, tyro.conf.subcommand("topics", description=Topics.__doc__)]
        | Annotated[TopicsFit, tyro.conf.subcommand("topics fit", description=TopicsFit.__doc__)]
        | Annotated[
            TopicsApply, tyro.conf.subcommand("topics apply", description=TopicsApply.__doc__)
        ]
        | Annotated[TopicsShow, tyro.conf.subcommand("topics show", description=TopicsShow.__doc__)]
        | Annotated[Report, tyro.conf.subcommand("report", description=Report.__doc__)]
        | Annotated[Study, tyro.conf.subcommand("study", description=Study.__doc__)]
        | Annotated[
            MergeStudies, tyro.conf.subcommand("study merge", description=MergeStudies.__doc__)
        ]
        | Annotated[Estimators, tyro.conf.subcommand("estimators", description=Estimators.__doc__)]
    )
    command = tyro.cli(
        commands,
        prog="gengs",
        description="Backpropagate through any discrete distribution.",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
    )
    try:
        command.run()
    except (ValueError, TypeError) as error:
        print(f"gengs: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        plain = error.filename is None or error.strerror is None  # else "[Errno 13] Permission..."
        shown = error if plain else f"{error.filename}: {error.strerror}."
        print(f"gengs: {shown}", file=sys.stderr)
        return 1
    except FloatingPointError as error:
        print(f"gengs: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        if "allocate" not in str(error):
            raise
        print("gengs: these settings need more memory than there is.", file=sys.stderr)
        return 1
    return 0
