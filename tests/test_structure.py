"""The house keeps its shape: layers are folders, imports go down, names are used once.

The rules are in ``structure.py``; each is seen here to find a planted violation. The packages
may break them only where ``known_violations.txt`` says so, and that list only becomes shorter.
"""

from pathlib import Path

import pytest
import structure
from structure import RULES, known_violations

import gengs

SOURCE = Path(gengs.__file__).parents[1]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_rule_is_broken_but_where_it_is_known(rule):
    new = [sentence for sentence in rule(SOURCE) if sentence not in known_violations()]
    assert not new, f"{rule.__doc__} But: {'; '.join(new)}"


def test_the_known_violations_are_still_there():
    wrong = {sentence for rule in RULES for sentence in rule(SOURCE)}
    gone = [line for line in known_violations() if line not in wrong]
    assert not gone, (
        f"well done: {len(gone)} known violations are gone ({'; '.join(gone)}); "
        "take them off the list with `python tests/structure.py`"
    )


# ------------------------------------------------------------------------- planted violations

FILE = '"""A file."""\n\n__all__ = ["name"]\n\nname = 1\n'
SOUND = {
    "gengs/__init__.py": "from .estimators import *\nfrom .estimators import __all__\n"
    "_LAZY = '.lab.kit'",
    "gengs/__main__.py": "from importlib import import_module\n\n"
    "import_module('gengs_experiments.cli').main()",
    "gengs/tables/__init__.py": "__all__ = ['name']\n\nfrom .finite import name",
    "gengs/tables/finite.py": FILE + "class Finite: ...\n",
    "gengs/numerics/tracing.py": FILE + "def f():\n    import torch\n\n    torch._C.f()\n",
    "gengs/numerics/__init__.py": "",
    "gengs/laws/__init__.py": "",
    "gengs/laws/law.py": FILE + "from ..tables.finite import name",
    "gengs/estimators/__init__.py": "__all__ = ['name']\n\nfrom .base import name",
    "gengs/estimators/base.py": FILE
    + "from ..laws.law import name\nfrom ..tables import finite\n"
    + "from ..numerics import tracing\nfinite.name\ntracing.name",
    "gengs/lab/__init__.py": "",
    "gengs/lab/kit.py": FILE,
    "gengs_experiments/__init__.py": "",
    "gengs_experiments/cli.py": "__all__ = ['main']\nfrom gengs import __version__\n"
    "FIT = 'gengs_topics.commands.fit.Fit'\n"
    "def main():\n    from .experiments.vae import name\n",
    "gengs_experiments/demo.py": "import gengs\nfrom .study.plan import name\n"
    "PAGE = f'{__package__}.report.page.Page'",
    "gengs_experiments/experiments/__init__.py": "",
    "gengs_experiments/experiments/vae.py": FILE
    + "from gengs import __version__\nfrom gengs.estimators.base import name",
    "gengs_experiments/study/__init__.py": "",
    "gengs_experiments/study/plan.py": FILE + "from ..experiments import vae\nvae.name",
    "gengs_experiments/report/__init__.py": "",
    "gengs_experiments/report/page.py": FILE + "from ..study.plan import name",
    "gengs_topics/__init__.py": "",
    "gengs_topics/commands/__init__.py": "",
    "gengs_topics/commands/fit.py": FILE
    + "import gengs\nfrom gengs_experiments.experiments.vae import name",
}
"""Three small packages that break no rule."""


# rule, files that are added or replaced, a part of the sentence that must come
PLANTED = [
    ("files_of_no_layer", {"gengs/helpers/x.py": FILE}, "helpers/x.py"),
    ("files_of_no_layer", {"gengs/extra.py": FILE}, "extra.py"),
    (
        "imports_that_go_up",
        {"gengs/tables/finite.py": "from ..estimators import base"},
        "base.py",
    ),
    (
        "imports_that_go_up",
        {"gengs/estimators/base.py": "from ..lab.kit import name"},
        "gengs/lab/kit.py",
    ),
    (
        "imports_that_go_up",
        {"gengs/lab/kit.py": "def f():\n    from gengs_experiments.experiments.vae import name\n"},
        "gengs_experiments/experiments/vae.py",
    ),
    (
        "imports_that_go_up",
        {"gengs_experiments/study/plan.py": "import gengs_experiments.report.page"},
        "gengs_experiments/report/page.py",
    ),
    ("imports_that_go_up", {"gengs/lab/kit.py": "import gengs"}, "__init__.py"),
    (
        "imports_that_go_up",
        {
            "gengs/integrations/__init__.py": "",
            "gengs/integrations/pyro.py": "from ..lab.kit import name",
        },
        "gengs/integrations/pyro.py imports gengs/lab/kit.py",
    ),
    (
        "imports_that_go_up",
        {
            "gengs_experiments/study/plan.py": "import importlib\n"
            "importlib.import_module('gengs_experiments.report.page')"
        },
        "gengs_experiments/report/page.py",
    ),
    (
        "imports_that_go_up",
        {
            "gengs_experiments/study/plan.py": "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n"
            "    from ..report.page import name\n"
        },
        "gengs_experiments/report/page.py",
    ),
    # the order of the packages: gengs alone, then the experiments, then the topics
    (
        "imports_that_go_up",
        {"gengs/lab/kit.py": "from gengs_experiments.experiments.vae import name"},
        "gengs/lab/kit.py imports gengs_experiments/experiments/vae.py",
    ),
    (
        "imports_that_go_up",
        {"gengs/lab/kit.py": FILE + "TOPICS = 'gengs_topics.commands.fit'"},
        "gengs/lab/kit.py imports gengs_topics/commands/fit.py",
    ),
    (
        "imports_that_go_up",
        {"gengs_experiments/study/plan.py": FILE + "from gengs_topics.commands.fit import name"},
        "study/plan.py imports gengs_topics/commands/fit.py",
    ),
    (
        "private_imports",
        {"gengs/lab/kit.py": "from ..tables.finite import Finite"},
        "Finite",
    ),
    (
        "private_imports",
        {"gengs/lab/kit.py": "from ..tables import finite\nfinite.x()"},
        "x of",
    ),
    (
        "private_imports",
        {"gengs/tables/finite.py": "name = 1"},
        "name of gengs/tables/finite",
    ),
    ("uses_of_torch_c", {"gengs/lab/kit.py": "import torch\n\ntorch._C._f()"}, "gengs/lab/kit.py"),
    ("uses_of_torch_c", {"gengs/lab/kit.py": "from torch._C import _f"}, "gengs/lab/kit.py"),
    ("uses_of_torch_c", {"gengs/lab/kit.py": "from torch import _C"}, "gengs/lab/kit.py"),
    ("uses_of_torch_c", {"gengs/lab/kit.py": "import torch._C as c"}, "gengs/lab/kit.py"),
    ("names_used_twice", {"gengs/lab/kit.py": "class Finite: ..."}, "class Finite"),
    ("names_used_twice", {"gengs/lab/finite.py": ""}, "file name finite.py"),
    ("modules_nobody_imports", {"gengs/lab/alone.py": FILE}, "gengs/lab/alone.py"),
    (  # two that only import each other
        "modules_nobody_imports",
        {"gengs/lab/a.py": "from . import b", "gengs/lab/b.py": "from . import a"},
        "gengs/lab/a.py",
    ),
    (
        "imported_by_help",
        {"gengs_experiments/experiments/vae.py": FILE + "import gengs_experiments.study.plan"},
        "study",
    ),
    (
        "imported_by_help",
        {"gengs/estimators/base.py": FILE + "import gengs_experiments.report.page"},
        "report",
    ),
    (
        "circles",
        {"gengs/tables/finite.py": FILE + "from ..laws.law import name"},
        "gengs.laws.law -> gengs.tables.finite",
    ),
    (
        "circles",
        {
            "gengs_experiments/experiments/vae.py": FILE + "from .command import name",
            "gengs_experiments/experiments/command.py": FILE
            + "def run():\n    from .vae import name\n",
        },
        "gengs_experiments.experiments.command -> gengs_experiments.experiments.vae",
    ),
    (
        "laws_outside_their_rooms",
        {"gengs/estimators/base.py": FILE + "x = isinstance(name, Poisson)"},
        "gengs/estimators/base.py names Poisson",
    ),
]


@pytest.fixture
def plant(tmp_path):
    def build(files):
        for path, text in {**SOUND, **files}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        version = (tmp_path / "gengs" / "__init__.py").read_text()
        (tmp_path / "gengs" / "__init__.py").write_text(f"__version__ = '1'\n{version}")
        return tmp_path

    return build


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_package_breaks_no_rule(rule, plant):
    assert rule(plant({})) == []


@pytest.mark.parametrize(
    ("rule", "files", "expected"),
    PLANTED,
    ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(PLANTED)],
)
def test_a_planted_violation_is_found(rule, files, expected, plant):
    found = getattr(structure, rule)(plant(files))
    assert any(expected in sentence for sentence in found), found


def test_every_rule_has_a_planted_violation():
    assert {rule.__name__ for rule in RULES} == {rule for rule, *_ in PLANTED}


def test_what_is_gone_leaves_the_list_and_nothing_joins_it(plant, tmp_path, monkeypatch, capsys):
    root = plant({"gengs/lab/kit.py": "class Finite: ...", "gengs/extra.py": FILE})
    listed = tmp_path / "known.txt"
    listed.write_text("gengs/extra.py is in no layer\nlab/old.py is imported by no other\n")
    monkeypatch.setattr(structure, "KNOWN", listed)
    structure.shrink(root)
    assert listed.read_text() == "gengs/extra.py is in no layer\n"
    assert "new, to be mended: the class Finite" in capsys.readouterr().out
