"""Directives written from the estimators' own facts: ``facts`` for one, ``catalogue`` for all."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import gengs

PAGES = {
    kind.__name__: kind.__module__.rpartition(".")[2].replace("_", "-")
    for kind in gengs.estimators.ALL
}


class Facts(SphinxDirective):
    """What one estimator says of itself."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (facts,) = [f for f in gengs.catalogue() if f["estimator"] == self.arguments[0]]
        unbiased = "yes" if facts["unbiased"] else "no"
        if facts["objective"] != "expectation":
            unbiased += f", of a {facts['objective']}"
        lines = {
            "In papers": facts["paper name"],
            "Unbiased": unbiased,
            "Needs df/dz": "yes" if facts["needs cost gradient"] else "no",
            "Learns parts of its own": "yes" if facts["learns"] else "no",
            "Works on": facts["needs"],
            "In vmap(grad(...))": "yes" if facts["vmap"] else "no, it says why",
            "In torch.compile(fullgraph=True)": "yes" if facts["compile"] else "no, it says why",
            "At a boundary": "the one-sided derivative" if facts["boundary"] else "a warning",
            "Evaluations of the cost": f"{facts['evaluations']} with the default settings",
            "Reference": f"{facts['reference']} ({facts['year']})",
        }
        source = [".. list-table::", "   :class: facts", "   :widths: auto", ""]
        for name, value in lines.items():
            source += [f"   * - {name}", "     - " + str(value).replace("*", r"\*")]
        return self.parse_text_to_nodes("\n".join(source))


class Catalogue(SphinxDirective):
    """The facts of all, as a table."""

    def run(self) -> list[nodes.Node]:
        lines = [".. list-table::", "   :header-rows: 1", ""]
        head = ("estimator", "in papers", "unbiased", "needs df/dz", "learns", "works on")
        rows = [(*head, "vmap", "compile", "year")]
        for facts in gengs.catalogue():
            name = str(facts["estimator"])
            unbiased = "yes" if facts["unbiased"] else ""
            rows.append(
                (
                    f":doc:`{name} <{PAGES[name]}>`",
                    str(facts["paper name"]).replace("*", r"\*"),
                    unbiased if facts["objective"] == "expectation" else "yes, of a bound",
                    "yes" if facts["needs cost gradient"] else "",
                    "yes" if facts["learns"] else "",
                    str(facts["needs"]),
                    "yes" if facts["vmap"] else "",
                    "yes" if facts["compile"] else "",
                    str(facts["year"]),
                )
            )
        for row in rows:
            lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("facts", Facts)
    app.add_directive("catalogue", Catalogue)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
