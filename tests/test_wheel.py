"""What people install: a wheel, built from the sdist, in an environment without this checkout."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import gengs

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
pytestmark = pytest.mark.slow

SMOKE = """
import sys, gengs, torch
from pathlib import Path
from torch.distributions import Poisson
assert Path(gengs.__file__).is_relative_to(sys.prefix), gengs.__file__
assert (Path(gengs.__file__).parent / "py.typed").exists()
rate = torch.tensor([0.5, 3.0], requires_grad=True)
for estimator in (gengs.GenGS(0.5), gengs.MidCDF(), gengs.RLOO(4)):
    estimator.expect(lambda z: (z - 2.6) ** 2, gengs.truncate(Poisson(rate), 12)).sum().backward()
assert torch.isfinite(rate.grad).all()
print(gengs.__version__)
"""


def run(*command, cwd):
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the sdist, so that the sdist is known to be complete."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (sdist,) = out.glob("*.tar.gz")
    assert sdist.stat().st_size < 5e6, "something large went into the sdist"
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """An environment with this wheel; torch and the rest are borrowed, the checkout is not."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    run(*pip, wheel, cwd=folder)
    # A path in a .pth file is searched, but the .pth files in it (the editable install) are not.
    (site_packages,) = folder.glob("lib/*/site-packages")
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_lowest_torch_that_is_allowed_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (lowest,) = (d.removeprefix("torch>=") for d in project["dependencies"])
    assert f" torch=={lowest}." in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    extra = project["optional-dependencies"]["apps"]
    (lowest,) = (d.removeprefix("torch>=") for d in extra if d.startswith("torch>="))
    assert f"\ntorch=={lowest}." in (ROOT / "constraints.txt").read_text()


def test_the_wheel_has_every_file(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = [
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    missing = {str(path.relative_to(SOURCE)) for path in ours} - inside
    assert not missing


def test_the_readme_has_no_link_that_only_works_in_the_repository(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
    metadata = archive.read(name).decode()
    assert "# gengs" in metadata and "Headline results" in metadata
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", metadata)
    targets = [markdown or html for markdown, html in links]
    assert all(target.startswith(("https://", "#")) for target in targets), targets
    assert "Project-URL" not in metadata  # no public address yet


def test_it_works_where_it_is_installed(python, tmp_path):
    assert run(python, "-c", SMOKE, cwd=tmp_path).strip() == gengs.__version__


def test_the_command_works(python, tmp_path):
    gengs_command = python.parent / "gengs"
    assert "usage: gengs" in run(gengs_command, "--help", cwd=tmp_path)
    assert "MidCDF" in run(gengs_command, "estimators", cwd=tmp_path)


def test_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M).group(1) == gengs.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[([\d.]+)\]", changelog, re.M).group(1) == gengs.__version__
