"""``:class:`Relaxed``` in a docstring means ``gengs.Relaxed``, where the reference documents it."""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PREFIXES = (
    "gengs.",
    "gengs.distributions.",
    "gengs.estimators.",
    "gengs.temperature.",
    "gengs.nn.",
    "gengs_experiments.models.",
    "gengs_topics.",
)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> Any:
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    target = str(node["reftarget"])
    short = target.rpartition(".")[2]
    member = ".".join(target.split(".")[-2:])
    for name in [prefix + part for part in (member, short) for prefix in PREFIXES]:
        if name in domain.objects and name != target:
            new = node.copy()
            new["reftarget"] = name
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, node["reftype"], name, new, content
            )
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
