"""Topics of a few hundred texts whose themes are known, beside NMF.

    python -m benchmarks.topics_planted > results/topics/planted.md

Themes are docstrings and licences of installed packages, 50 texts each
(``tests/gengs_topics/planted_themes.py``): they depend on the versions that are installed. Three
tables:

- *as many topics as themes*: whether each theme leads a topic, and the share of texts whose
  strongest topic is that of their theme (topics are matched one to one with themes);
- *as many topics as by default*: how many are active, how many of them say that they are uncertain
  or incoherent, and the share of texts whose strongest topic is led by their theme; NMF has as many
  factors;
- *texts of other themes*: every sixth text is left out of the fit. The median strength of the
  texts, of those left out, and of texts of four other themes; and how often a text that was left
  out is stronger than one of other themes (the area under the ROC curve).

NMF is that of tf-idf; a text's strongest factor is the one with the largest part of it.
"""

from __future__ import annotations

import platform
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfTransformer

import gengs
from gengs_topics import TopicModel
from gengs_topics.text.counting import count_words, matrix
from gengs_topics.text.stop_words import read_stop_words
from gengs_topics.text.vocabulary import choose_vocabulary
from gengs_topics.text.word_splitting import Words

from .timing import machine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "gengs_topics"))
themes_module = import_module("planted_themes")

NAMES: list[str] = list(themes_module.THEMES)
SETS = (
    ("licences", "plots"),
    ("graphs", "statistics"),
    ("algebra", "layers"),
    ("licences", "plots", "graphs"),
    ("tables", "signals", "sockets"),
    tuple(NAMES[:6]),
    tuple(NAMES[4:]),
    tuple(NAMES),
)


class Counted:
    """Texts as counts of the words that would be kept."""

    def __init__(self, texts: list[str]) -> None:
        self.vocabulary = choose_vocabulary(map(Words(), texts), read_stop_words("english"))
        self.counts = self.of(texts)

    def of(self, texts: list[str]) -> Any:
        counted = list(count_words(map(Words(), texts), self.vocabulary))
        return matrix(counted, len(self.vocabulary))


def factors(counts: Any, topics: int) -> Any:
    """The strongest factor of each text, by NMF; none (-1) where all are zero."""
    model = NMF(topics, random_state=0, max_iter=400)
    parts = model.fit_transform(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    parts = parts * np.linalg.norm(model.components_, axis=1)
    return np.where(parts.max(1) > 0, parts.argmax(1), -1)


def timed(run: Any) -> tuple[Any, float]:
    begin = time.process_time()
    found = run()
    return found, time.process_time() - begin


def first(model: TopicModel, counts: Any) -> Any:
    """The strongest topic of each text, or -1."""
    return np.array([rows[0][0] if rows else -1 for rows in model.strongest(counts)])


def crossed(found: Any, themes: Any, topics: int) -> Any:
    """How many texts of each theme have each topic, ``(topics, themes)``."""
    table = np.zeros((topics, int(max(themes)) + 1), int)
    np.add.at(table, (found[found >= 0], np.asarray(themes)[found >= 0]), 1)
    return table


def matched(table: Any, found: Any, themes: Any) -> Any:
    """Whether each text has its theme's topic; themes and topics are matched one to one."""
    rows, columns = linear_sum_assignment(-table)
    theme_of = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    return np.array([theme_of.get(k, -1) == theme for k, theme in zip(found, themes, strict=True)])


def head(title: str, *columns: str) -> None:
    print(f"\n## {title}\n\n| themes | {' | '.join(columns)} |\n| --- |" + " ---: |" * len(columns))


def row(names: tuple[str, ...], *cells: object) -> None:
    """A line of a table; shares and seconds have two digits."""
    shown = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells]
    title = ", ".join(names) if len(names) < 6 else str(len(names))
    print(f"| {title} | {' | '.join(shown)} |", flush=True)


def as_many_as_themes() -> None:
    head("As many topics as themes", "texts", "each theme leads a topic", "placed right",
         "NMF", "no topic, and NMF is right", "fit, s", "NMF, s")  # fmt: skip
    for names in SETS:
        texts, themes = themes_module.planted(*names)
        counts, k = Counted(texts).counts, len(names)
        model, seconds = timed(partial(TopicModel(k, random_state=0).fit, counts))
        found = first(model, counts)
        table = crossed(found, themes, k)
        right = matched(table, found, themes)
        other, others_seconds = timed(partial(factors, counts, k))
        theirs = matched(crossed(other, themes, k), other, themes)
        leads = "yes" if len({*table.argmax(1).tolist()}) == k else "no"
        left = int(((found < 0) & theirs).sum())
        shares = float(right.mean()), float(theirs.mean())
        row(names, len(texts), leads, *shares, left, seconds, others_seconds)


def by_default() -> None:
    head("As many topics as by default", "texts", "topics", "active", "flagged",
         "each theme leads a topic", "placed right", "NMF", "fit, s", "NMF, s")  # fmt: skip
    for names in SETS:
        texts, themes = themes_module.planted(*names)
        counts = Counted(texts).counts
        model, seconds = timed(partial(TopicModel(random_state=0).fit, counts))
        notes = [topic.note for topic in model.topics()]
        active = sum(note != "inactive" for note in notes)
        flagged = sum(note in ("uncertain", "incoherent") for note in notes)
        table = crossed(first(model, counts), themes, len(notes))
        other, others_seconds = timed(partial(factors, counts, len(notes)))
        theirs = crossed(other, themes, len(notes))
        leads = "yes" if {*table.argmax(1)[table.any(1)].tolist()} == {*themes} else "no"
        shares = [float(found.max(1).sum() / len(texts)) for found in (table, theirs)]
        facts = len(texts), len(notes), active, flagged, leads
        row(names, *facts, *shares, seconds, others_seconds)


def others() -> None:
    head("Texts of other themes", "topics", "strength", "left out of the fit", "of other themes",
         "left out > other")  # fmt: skip
    for names in (SETS[0], SETS[1], SETS[3], SETS[5]):
        texts = {name: themes_module.texts_of(name, 60) for name in (*names, *NAMES[6:])}
        seen = [text for name in names for k, text in enumerate(texts[name]) if k % 6]
        new = [text for name in names for text in texts[name][::6]]
        foreign = [text for name in NAMES[6:] for text in texts[name][:20]]
        counted = Counted(seen)
        for topics in (len(names), None):
            model = TopicModel(topics, random_state=0).fit(counted.counts)
            found = [model.strongest(counted.of(part)) for part in (seen, new, foreign)]
            strength = [
                np.array([risen[0][1] if risen else 0.0 for risen in rows]) for rows in found
            ]
            above = float((strength[1][:, None] > strength[2]).mean())
            row(names, len(model.topics()), *(float(np.median(part)) for part in strength), above)


def main() -> None:
    torch.set_num_threads(1)
    print("# Planted themes\n\n`python -m benchmarks.topics_planted`, seed 0\n")
    print(f"{machine()}, gengs {gengs.__version__}, scikit-learn {sklearn.__version__}, Python "
          f"{platform.python_version()}. Seconds are of the processor, one thread.")  # fmt: skip
    TopicModel(2, random_state=0, max_iter=1).fit(np.eye(20, dtype=int))  # torch's first steps
    as_many_as_themes()
    by_default()
    others()


if __name__ == "__main__":
    main()
