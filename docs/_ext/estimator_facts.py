"""The directive ``facts``: what an estimator says of itself."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import gengs


class Facts(SphinxDirective):
    """The facts of one estimator, as a table."""

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


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("facts", Facts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
