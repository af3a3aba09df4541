"""``question``: one picture and one sentence, both made of a table in ``results/``.

    ```{question} midcdf/vae.md
    :value: test
    :command: python -m benchmarks.midcdf_vae runs/midcdf > results/midcdf/vae.md

    The mid-CDF has {mid-CDF, implicit}; the best is {best} with {best value}.
    ```

Words in braces are rows of the table, of which the number is shown, or ``best`` and ``best value``.
Nothing is typed twice, so nothing can go stale; a row that is not there is a warning. A question
whose file does not exist yet says so, and is answered when it does.

The picture is drawn here as SVG that takes the colours of the page, those of
:mod:`gengs.lab.palette` for estimators.
"""

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from gengs.lab.palette import HUES, kind_of

LOG = logging.getLogger(__name__)
NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?"
VALUE = re.compile(rf"({NUMBER})(?: ± ({NUMBER})| to ({NUMBER}))?")
PAPER = re.compile(rf"paper ({NUMBER})")
WIDTH, RIGHT, ROW, TOP = 760, 600, 23, 8


@dataclass(frozen=True)
class Row:
    """A line of the picture: a number, its error, from where to where it goes, the paper's."""

    label: str
    text: str
    value: float
    error: float
    low: float
    high: float
    paper: float | None


def tables(text: str) -> list[tuple[str, list[list[str]]]]:
    """The tables of a Markdown file, each with the heading above it; the first row is the head."""
    found: list[tuple[str, list[list[str]]]] = []
    heading, within = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
        if line.startswith("|"):
            cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not within:
                found.append((heading, []))
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                found[-1][1].append(cells)
        within = line.startswith("|")
    return found


def plain(cell: str) -> str:
    """A cell's text without Markdown's marks."""
    return re.sub(r"\\([*|_])", r"\1", re.sub(r"(?<!\\)(\*\*|`)", "", cell)).strip()


def read_rows(path: Path, column: str, heading: str = "", keep: str = "") -> list[Row]:
    """The numbers of a column, of the first table that has it below such a heading."""
    for title, (head, *body) in tables(path.read_text(encoding="utf-8")):
        if heading in title and column in head:
            place = head.index(column)
            rows = [_row(line[0], line[place]) for line in body if line[place]]
            kept = [row for row in rows if row and re.search(keep, row.label)]
            return sorted(kept, key=lambda row: row.value)
    raise ValueError(f"expected a column {column!r} below {heading!r} in {path}")


def _row(label: str, cell: str) -> Row | None:
    found = VALUE.match(cell)
    if not found:
        return None
    value, error, end = (None if part is None else _float(part) for part in found.groups())
    error = error or 0.0
    low, high = value - error, value + error
    if end is not None:
        low, high, value = value, end, (value + end) / 2
    paper = PAPER.search(cell)
    return Row(label, found[0], value, error, low, high, _float(paper[1]) if paper else None)


def _float(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def ties(rows: list[Row], more: bool = False) -> list[Row]:
    """The best, and those within two standard errors of the difference."""
    best = (max if more else min)(rows, key=lambda row: row.value)
    near = [r for r in rows if abs(r.value - best.value) <= 2 * math.hypot(r.error, best.error)]
    return [best, *(row for row in near if row != best)]


def picture(rows: list[Row], unit: str, log: bool = False, bold: list[Row] | None = None) -> str:
    """A line for each row: a point, a bar for its error, the paper's number as a ring."""
    left = 24 + 7.0 * max(len(shortened(row.label)) for row in rows)
    ends = [end for row in rows for end in (row.low, row.high, row.paper) if end is not None]
    low, high, ticks = decades(ends) if log else round_ticks(min(ends), max(ends))

    def x(value: float) -> float:
        at, a, b = (math.log10(max(v, low)) if log else v for v in (value, low, high))
        return round(left + (RIGHT - left) * (at - a) / (b - a), 1)

    bottom = TOP + ROW * len(rows)
    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{x(tick)} {TOP}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x(tick)}" y="{bottom + 16}">{tick:g}</text>')
    for number, row in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        best = " best" * (row in (bold or []))
        name = escape(shortened(row.label))
        parts.append(f'<text class="name{best}" x="{left - 12}" y="{y + 4.5}">{name}</text>')
        parts.append(f'<g class="{kind_of(row.label)}">')
        if row.high > row.low:
            parts.append(f'<path class="bar" d="M{x(row.low)} {y}H{x(row.high)}"/>')
        parts.append(f'<circle class="point" cx="{x(row.value)}" cy="{y}" r="5"/>')
        if row.paper is not None:
            parts.append(f'<circle class="ring" cx="{x(row.paper)}" cy="{y}" r="4.5"/>')
        value = f'<text class="value{best}" x="{RIGHT + 14}" y="{y + 4.5}">{row.text}</text>'
        parts.append(f"</g>{value}")
    middle = (left + RIGHT) / 2
    parts.append(f'<text class="tick" x="{middle}" y="{bottom + 36}">{escape(unit)}</text>')
    title = escape(f"{unit}: " + "; ".join(f"{row.label} {row.text}" for row in rows))
    size = f'viewBox="0 0 {WIDTH} {bottom + 44}"'
    inner = "".join(parts)
    drawn = f'<svg class="dashboard" {size} role="img" aria-label="{title}">{inner}</svg>'
    return f'<div class="dashboard">{drawn}</div>'


def shortened(label: str, most: int = 50) -> str:
    """A label that fits."""
    return label if len(label) <= most else label[: most - 1] + "…"


def decades(ends: list[float]) -> tuple[float, float, list[float]]:
    """Full decades around positive numbers."""
    positive = [end for end in ends if end > 0]
    first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return 10.0**first, 10.0**last, [10.0**k for k in range(first, last + 1)]


def round_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Some four round numbers from below the lowest to above the highest."""
    rough = (high - low or abs(high) or 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda k: abs(k * power - rough))
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, last * step, [round(k * step, 10) for k in range(first, last + 1)]


def filled(sentence: str, rows: list[Row], more: bool) -> str:
    """The sentence with its numbers."""
    best, *others = ties(rows, more)
    words = {row.label: row.text for row in rows} | {"best": best.label, "best value": best.text}
    if others:
        words["best value"] += f" (a tie with {', '.join(row.label for row in others)})"

    def word(found: re.Match[str]) -> str:
        if found[1] not in words:
            raise ValueError(f"expected one of {sorted(words)}, but got {found[1]!r}")
        return words[found[1]].replace("*", r"\*")

    return re.sub(r"\{([^}]+)\}", word, sentence)


class Question(SphinxDirective):
    """The answer to one question."""

    required_arguments = 1
    has_content = True
    option_spec = {
        "value": directives.unchanged_required,
        "table": directives.unchanged,
        "rows": directives.unchanged,
        "unit": directives.unchanged,
        "note": directives.unchanged,
        "command": directives.unchanged_required,
        "log": directives.flag,
        "more": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, "results", self.arguments[0])
        command = escape(self.options["command"])
        shown = f'<details class="command"><summary>Command</summary><pre>{command}</pre></details>'
        if not path.exists():
            text = "*Not run yet.* When its table is there, the picture is, too."
            return [*self._parsed(text), nodes.raw("", shown, format="html")]
        self.env.note_dependency(str(path))
        try:
            rows = read_rows(path, *(self.options.get(k, "") for k in ("value", "table", "rows")))
            sentence = filled(" ".join(self.content), rows, "more" in self.options)
        except ValueError as problem:
            LOG.warning("question: %s", problem, location=self.get_location())
            return []
        unit = self.options.get("unit", self.options["value"])
        bold = ties(rows, "more" in self.options) if any(row.error for row in rows) else []
        drawn = picture(rows, unit, "log" in self.options, bold)
        note = self.options.get("note", "Bars: one standard error.")
        if bold:
            note += " Bold: the best, and all within two standard errors."
        link = f"{note} [Table](../results/{self.arguments[0]})"
        return [
            *self._parsed(sentence),
            nodes.raw("", drawn, format="html"),
            *self._parsed(link),
            nodes.raw("", shown, format="html"),
        ]

    def _parsed(self, text: str) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse([text], self.content_offset, holder)
        return list(holder.children)


def style(app: Sphinx, *_: object) -> None:
    """The palette as CSS, for both themes."""
    light, dark = (
        " ".join(f"--{kind}: {pair[mode]};" for kind, pair in HUES.items()) for mode in (0, 1)
    )
    kinds = "\n".join(f"svg.dashboard .{kind} {{ color: var(--{kind}); }}" for kind in HUES)
    text = (
        f"svg.dashboard {{ {light} }}\n"
        f'body[data-theme="dark"] svg.dashboard {{ {dark} }}\n'
        "@media (prefers-color-scheme: dark) {\n"
        f'body:not([data-theme="light"]) svg.dashboard {{ {dark} }}\n}}\n{kinds}\n'
    )
    if app.builder.format == "html":
        Path(app.outdir, "_static", "palette.css").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("question", Question)
    app.add_css_file("palette.css")
    app.connect("build-finished", style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
