"""The house keeps its shape: layers are folders, imports go down, names are used once.

The rules are in ``structure.py``; each is seen here to find a planted violation. The package itself
may break them only where ``known_violations.txt`` says so, and that list only becomes shorter.
"""

from pathlib import Path

import pytest
import structure
from structure import RULES, known_violations

import gengs

SOURCE = Path(gengs.__file__).parent


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
    "__init__.py": "from .estimators import *\nfrom .estimators import __all__\n_LAZY = '.lab.kit'",
    "__main__.py": "from .cli import main\nmain()",
    "cli.py": "__all__ = ['main']\nfrom . import __version__\n"
    "def main():\n    from .experiments.vae import name\n",
    "demo.py": "import gengs\nfrom .study.plan import name\nPAGE = 'report.page.Page'",
    "distributions/__init__.py": "__all__ = ['name']\n\nfrom .finite import name",
    "distributions/finite.py": FILE + "class Finite: ...\n",
    "distributions/tracing.py": FILE + "def f():\n    import torch\n\n    torch._C.f()\n",
    "estimators/__init__.py": "__all__ = ['name']\n\nfrom .base import name",
    "estimators/base.py": FILE
    + "from ..distributions import finite, tracing\nfinite.name\ntracing.name",
    "lab/__init__.py": "",
    "lab/kit.py": FILE,
    "experiments/__init__.py": "",
    "experiments/vae.py": FILE + "from .. import __version__\nfrom ..estimators.base import name",
    "study/__init__.py": "",
    "study/plan.py": FILE + "from ..experiments import vae\nvae.name",
    "report/__init__.py": "",
    "report/page.py": FILE + "from ..study.plan import name",
}
"""A small package that breaks no rule."""


def laws(files, lines):
    return {f"distributions/law{i}.py": "x = 1\n" * lines for i in range(files)}


ROW = {f"distributions/law{i}.py": f"from . import law{i + 1}" for i in range(7)}
"""Eight in a row, with the last."""

# rule, files that are added or replaced, a part of the sentence that must come
PLANTED = [
    ("files_of_no_layer", {"helpers/x.py": FILE}, "helpers/x.py"),
    ("files_of_no_layer", {"extra.py": FILE}, "extra.py"),
    ("imports_that_go_up", {"distributions/finite.py": "from ..estimators import base"}, "base.py"),
    ("imports_that_go_up", {"estimators/base.py": "from ..lab.kit import name"}, "lab/kit.py"),
    (
        "imports_that_go_up",
        {"lab/kit.py": "def f():\n    from gengs.experiments.vae import name\n"},
        "experiments/vae.py",
    ),
    ("imports_that_go_up", {"study/plan.py": "import gengs.report.page"}, "report/page.py"),
    ("imports_that_go_up", {"experiments/vae.py": "import gengs"}, "__init__.py"),
    (
        "imports_that_go_up",
        {
            "integrations/__init__.py": "",
            "integrations/pyro.py": "from ..lab.kit import name",
        },
        "integrations/pyro.py imports lab/kit.py",
    ),
    (
        "imports_that_go_up",
        {"study/plan.py": "import importlib\nimportlib.import_module('gengs.report.page')"},
        "report/page.py",
    ),
    (
        "imports_that_go_up",
        {
            "study/plan.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from ..report.page import name\n"
        },
        "report/page.py",
    ),
    ("private_imports", {"lab/kit.py": "from ..tables.finite import Finite"}, "Finite"),
    ("private_imports", {"lab/kit.py": "from ..distributions import finite\nfinite.x()"}, "x of"),
    ("private_imports", {"distributions/finite.py": "name = 1"}, "name of distributions/finite"),
    ("uses_of_torch_c", {"lab/kit.py": "import torch\n\ntorch._C._f()"}, "lab/kit.py"),
    ("uses_of_torch_c", {"lab/kit.py": "from torch._C import _f"}, "lab/kit.py"),
    ("uses_of_torch_c", {"lab/kit.py": "from torch import _C"}, "lab/kit.py"),
    ("uses_of_torch_c", {"lab/kit.py": "import torch._C as c"}, "lab/kit.py"),
    ("names_used_twice", {"lab/kit.py": "class Finite: ..."}, "class Finite"),
    ("names_used_twice", {"lab/finite.py": ""}, "file name finite.py"),
    ("modules_nobody_imports", {"lab/alone.py": FILE}, "lab/alone.py"),
    (  # two that only import each other
        "modules_nobody_imports",
        {"lab/a.py": "from . import b", "lab/b.py": "from . import a"},
        "lab/a.py",
    ),
    ("imported_by_help", {"experiments/vae.py": FILE + "import gengs.study.plan"}, "study"),
    ("imported_by_help", {"estimators/base.py": FILE + "import gengs.report.page"}, "report"),
    ("sizes", laws(30, 3), "more than 20 files"),
    ("sizes", laws(11, 320), "more than 3200 lines"),
    ("sizes", {**ROW, "distributions/law7.py": "x = 1"}, "longer than 7"),
    ("sizes", {"lab/kit.py": "x = 1\n" * 331}, "lab/kit.py has more than 330 lines"),
    ("sizes", {f"lab/kit{i}.py": "x = 1\n" * 151 for i in range(40)}, "median"),
]


@pytest.fixture
def plant(tmp_path):
    def build(files):
        for path, text in {**SOUND, **files}.items():
            file = tmp_path / "gengs" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        version = (tmp_path / "gengs" / "__init__.py").read_text()
        (tmp_path / "gengs" / "__init__.py").write_text(f"__version__ = '1'\n{version}")
        return tmp_path / "gengs"

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


def test_a_circle_of_imports_has_no_longest_chain(plant):
    circle = {"distributions/a.py": "from . import b", "distributions/b.py": "from . import a"}
    with pytest.raises(ValueError, match="circle"):
        structure.sizes(plant(circle))


def test_what_is_gone_leaves_the_list_and_nothing_joins_it(plant, tmp_path, monkeypatch, capsys):
    root = plant({"lab/kit.py": "class Finite: ...", "extra.py": FILE})
    listed = tmp_path / "known.txt"
    listed.write_text("extra.py is in no layer\nlab/old.py is imported by no other\n")
    monkeypatch.setattr(structure, "KNOWN", listed)
    structure.shrink(root)
    assert listed.read_text() == "extra.py is in no layer\n"
    assert "new, to be mended: the class Finite" in capsys.readouterr().out
