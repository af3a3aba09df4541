"""The site, built by ``make docs``. Its source is the repository itself: results are pages too."""

import sys
from pathlib import Path

import gengs

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "gengs"
author = "The gengs authors"
copyright = "the gengs authors; MIT licence"
version = release = gengs.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinx_copybutton",
    "mathml",
    "notebooks",
    "dashboard",
    "doctest_fences",
    "estimator_facts",
    "plain_attributes",
    "results_pages",
    "short_names",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "results/**", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "benchmarks", "runs", "docs/_*"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "gengs"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["gengs.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
