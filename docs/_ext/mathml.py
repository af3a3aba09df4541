"""Formulas as MathML, made when the site is built: no script, no font, no network.

A command that the converter does not know would be printed as it stands, backslash and all; that is
a warning here, and so an error in ``make docs``.
"""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
# what the converter lacks, in words it has
SYNONYMS = {
    r"\arg\max": r"\operatorname{argmax}",
    r"\setminus": r"\backslash",
    r"\textsc": r"\text",
    r"\tfrac": r"\frac",
}
# a named function keeps its distance from what stands beside it
FUNCTION = re.compile(r"<m[io]>(arg|argmax|cos|exp|log|max|min|sin)</m[io]>")
SPACED = r'<mo lspace="0.17em" rspace="0.17em">\1</mo>'


def mathml(node: nodes.Element, display: str) -> str:
    tex = node.astext().strip()
    for lacking, known in SYNONYMS.items():
        tex = tex.replace(lacking, known)
    if r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    result = convert(tex, display=display)
    if unknown := re.findall(r"\\\w+", result):
        logger.warning("no MathML for %s in %s", unknown, tex, location=node)
    return FUNCTION.sub(SPACED, result)


def visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<span class="math">{mathml(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
