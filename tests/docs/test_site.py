"""The site builds without a warning, needs no network, and its reference has every public name."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import gengs

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "gengs": "gengs",
    "gengs.lab": "gengs.lab",
    "gengs.nn": "gengs.nn",
    "gengs_experiments.models": "gengs_experiments.models",
    "gengs_topics": "gengs_topics",
    "gengs.pyro": "gengs.integrations.pyro",
    "gengs.testing": "gengs.lab.testing",
    "gengs.temperature": "gengs.estimators.temperature",
}


@pytest.mark.slow
def test_the_site(tmp_path):
    """One test, as the site is built once."""
    site = build(tmp_path)
    every_public_name_is_in_the_reference(site)
    pages_need_no_network(site)
    assert "<math" in (site / "docs" / "estimators" / "midcdf.html").read_text(encoding="utf-8")


def build(out):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    done = subprocess.run([*command, ".", out], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def public_names():
    for shown, module in PUBLIC.items():
        for name in importlib.import_module(module).__all__:
            yield shown, module, name


def every_public_name_is_in_the_reference(site):
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind, names in inventory.data.items() if kind[:3] == "py:" for name in names}
    missing = [
        f"{shown}.{name}"
        for shown, _, name in public_names()
        if f"{shown}.{name}" not in known and name != "__version__"
    ]
    assert not missing, missing


def pages_need_no_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text):
            assert "://" not in tag, f"{page.name} loads {tag}"
        for source in re.findall(r'<img[^>]* src="([^"]+)"', text):
            assert (page.parent / source).exists(), f"{page.name} lacks {source}"
    style = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?https?:", style)


def test_every_public_name_has_a_docstring():
    for shown, module, name in public_names():
        thing = getattr(importlib.import_module(module), name)
        if callable(thing) and getattr(thing, "__module__", "").startswith("gengs"):
            assert (thing.__doc__ or "").strip(), f"{shown}.{name} has no docstring"


def test_every_estimator_has_a_page():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "estimators").glob("*.rst"))
    for kind in gengs.estimators.ALL:
        assert f".. facts:: {kind.__name__}\n" in pages
        assert f".. automodule:: {kind.__module__}\n" in pages


def test_every_command_is_in_the_reference():
    command = [sys.executable, "-m", "gengs", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True)
    commands = re.findall(r"• ((?:[a-z]+ ?)+?)(?:  |$)", shown.stdout, re.M)
    assert len(commands) >= 10, shown
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    for command in map(str.strip, commands):
        assert f"| `gengs {command}` |" in page, command


def test_the_figures_are_what_their_script_draws(tmp_path):
    """The names, and the strokes of one picture (the others take many gradients)."""
    sys.path.insert(0, str(ROOT / "docs" / "figures"))
    try:
        draw = importlib.import_module("draw")
    finally:
        sys.path.pop(0)
    committed = {path.name for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert committed == {f"{n}-{p}.svg" for n in draw.FIGURES for p in ("light", "dark")}
    import matplotlib as mpl

    with mpl.rc_context(draw.style(draw.LIGHT)):
        figure = draw.midcdf(draw.LIGHT)
        figure.savefig(tmp_path / "midcdf.svg", metadata={"Date": None})
    kept = ROOT / "docs" / "figures" / "midcdf-light.svg"
    assert strokes(tmp_path / "midcdf.svg") == strokes(kept), "run: python docs/figures/draw.py"


def strokes(path):
    """A picture without its coordinates, whose last digits depend on the machine.

    So do the numbers of glyphs, which differ between versions of a font.
    """
    return re.sub(r"DejaVuSans-[0-9a-f]+|[\d.]+", "", path.read_text(encoding="utf-8"))
