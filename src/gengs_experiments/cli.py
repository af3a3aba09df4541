"""The command line: ``gengs measure``, ``gengs vae``, ``gengs topics fit`` and the others.

Commands are dataclasses with a ``run`` method; their field docs are the help. Errors are one
sentence on standard error; exit code 2 for bad usage, 1 for anything else that went wrong.
"""

__all__ = ["main"]

import atexit
import json
import os
import sys
import threading
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NoReturn

from gengs import __version__

from .runs.interruption import stoppable
from .runs.sanitise import ignore_closed_stdout, say

COMMANDS = {
    "measure": "gengs_experiments.experiments.laboratory.Measure",
    "synthetic": "gengs_experiments.experiments.synthetic.Synthetic",
    "vae": "gengs_experiments.experiments.train_command.Vae",
    "nvpdef": "gengs_topics.commands.nvpdef_command.Nvpdef",
    "topics fit": "gengs_topics.commands.topics_command.TopicsFit",
    "topics apply": "gengs_topics.commands.topics_command.TopicsApply",
    "topics show": "gengs_topics.commands.topics_show.TopicsShow",
    "report": "gengs_experiments.report.report_command.MakeReport",
    "study": "gengs_experiments.study.study_command.RunStudy",
    "estimators": "gengs_experiments.cli.Estimators",
}
"""Each command's class, imported when it is used; its docstring is the first line of its help."""


@dataclass(frozen=True)
class Estimators:
    """List the estimators and their facts."""

    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the catalogue."""
        # written from the estimators' classes, which need torch; a test compares them
        text = (files(__package__) / "estimators.json").read_text("utf-8")
        if self.json:
            print(text, end="")
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        heads = ["estimator", "unbiased", "uses df/dz", "learns", "distribution", "year"]
        table = Table(
            *heads, box=SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
        )
        table.columns[0].no_wrap = True
        columns = ["estimator", "unbiased", "needs cost gradient", "learns", "needs", "year"]
        for facts in json.loads(text):
            cells = ["yes" if facts[c] is True else facts[c] or "" for c in columns]
            # narrow enough for a terminal of 80 columns
            cells[4] = cells[4].removeprefix("any distribution").lstrip(", ") or "any"
            if facts["objective"] != "expectation":
                cells[1] = "of a bound"
            table.add_row(*map(str, cells))
        Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code."""
    with stoppable(), warnings.catch_warnings():
        # as sentences, each once; the file and line are no business of a user
        warn = cache(lambda text: say(f"gengs: warning: {text}", error=True))
        warnings.showwarning = lambda message, *place: warn(str(message))
        try:
            return _run(arguments)
        except KeyboardInterrupt:  # also while the packages are being imported
            return _say("interrupted", 130)
        except (ValueError, TypeError) as error:
            return _say(error, 2)
        except BrokenPipeError:  # nobody reads on, as in `gengs vae --help | head`
            with ignore_closed_stdout():
                raise
            return 1
        except OSError as error:
            shown = error.strerror or error  # without "[Errno 13]"
            return _say(shown if error.filename is None else f"{error.filename}: {shown}.", 1)
        except FloatingPointError as error:
            return _say(error, 1)
        except RuntimeError as error:
            if "allocate" not in str(error):
                raise
            return _say("these settings need more memory than there is.", 1)


def entry() -> NoReturn:
    """Run the command of the command line, and end with its code."""
    try:
        code: object = main()
    except SystemExit as end:
        code = end.code
    with ignore_closed_stdout():  # what is still to be written
        sys.stdout.flush()
    # Where the signal met an exec() of some import, python -m ends by SIGINT, not by a code; and
    # threads of gloo that outlive the interpreter abort it, where a run ended before its time.
    group = getattr(sys.modules.get("torch"), "distributed", None)
    if code == 130 or (group and group.is_available() and group.is_initialized()):
        # as the interpreter ends: loky's workers are told first, or multiprocessing waits for them
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else bool(code))
    sys.exit(code)  # type: ignore[arg-type]


def _say(what: object, code: int = 0) -> int:
    """Tell a user, on standard error; the exit code that goes with it."""
    say(f"gengs: {what}", error=True)
    return code


def _command(name: str) -> Any:
    module, _, kind = COMMANDS[name].rpartition(".")
    return getattr(import_module(module), kind)


def _run(arguments: list[str] | None) -> int:
    try:
        import tyro
    except ImportError:
        install = "pip install 'gengs[apps]' (in a clone: pip install '.[apps]')"
        return _say(f"the command line needs more packages: {install}", 1)
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"gengs {__version__}")
        return 0
    words = 2 if " ".join(arguments[:2]) in COMMANDS else 1
    name, rest = " ".join(arguments[:words]), arguments[words:]
    options = (tyro.conf.OmitArgPrefixes,)
    if name == "topics":
        if rest[:1] not in (["-h"], ["--help"]):
            return _say(
                "expected topics fit, topics apply or topics show; a Poisson topic model on a "
                "published corpus is trained by gengs nvpdef.",
                2,
            )
        parts = {word.partition(" ")[2]: word for word in COMMANDS if word.startswith("topics ")}
        tyro.extras.subcommand_cli_from_dict(
            {part: _command(word) for part, word in parts.items()},
            prog="gengs topics",
            description="Topics in your own text.",
            args=rest,
            config=options,
        )
    if name not in COMMANDS:  # help, or a mistake
        kinds = {name: _command(name) for name in COMMANDS}
        about = "Backpropagate through discrete random variables."
        tyro.extras.subcommand_cli_from_dict(
            kinds, prog="gengs", description=about, args=arguments, config=options
        )
        return 2
    kind = _command(name)
    command = tyro.cli(
        kind, prog=f"gengs {name}", description=kind.__doc__, args=rest, config=options
    )
    result = command.run()
    if name == "synthetic":
        from .report.figure3 import show_figure3

        show_figure3(result, command.json)
    return 0
