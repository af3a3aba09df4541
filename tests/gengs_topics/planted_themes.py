"""Corpora whose themes are known: docstrings of installed packages, and their licences.

Fifty texts a theme, each as somebody wrote it: of very different lengths, with the boilerplate of
their kind. All packages come with the extra ``dev``.
"""

import importlib
import inspect
from importlib.metadata import distributions

THEMES = {
    "licences": (),
    "plots": ("matplotlib.axes", "matplotlib.pyplot"),
    "graphs": ("networkx",),
    "statistics": ("scipy.stats",),
    "algebra": ("sympy",),
    "layers": ("torch.nn",),
    "tables": ("pandas.DataFrame",),
    "signals": ("scipy.signal",),
    "sockets": ("socket", "ssl", "http.client", "urllib.request", "asyncio", "email.message"),
    "arrays": ("numpy.ma", "numpy"),
}


def texts_of(theme, number=50):
    """So many texts of a theme, in the order of their names."""
    found = _licences() if theme == "licences" else _docstrings(THEMES[theme])
    long = sorted({text for text in found if len(text.split()) >= 25})
    assert len(long) >= number, f"{theme} has {len(long)} texts"
    return [long[(2 * k + 1) * len(long) // (2 * number)] for k in range(number)]


def planted(*themes, number=50):
    """The texts of these themes, and the number of each text's theme."""
    texts = [text for theme in themes for text in texts_of(theme, number)]
    return texts, [k for k in range(len(themes)) for _ in range(number)]


def _licences():
    """The paragraphs of licence files are texts of their own where a file is long."""
    for distribution in distributions():
        for file in distribution.files or ():
            if file.name.upper().startswith(("LICENSE", "COPYING", "LICENCE", "NOTICE")):
                path = file.locate()
                if path.is_file():
                    yield path.read_text(errors="replace")[:6000]


def _docstrings(names):
    for name in names:
        try:
            owner = importlib.import_module(name)
        except ModuleNotFoundError:
            module, _, attribute = name.rpartition(".")
            owner = getattr(importlib.import_module(module), attribute)
        for key in sorted(vars(owner)):
            value = inspect.getattr_static(owner, key)
            if not key.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value)):
                yield inspect.getdoc(getattr(owner, key)) or ""
