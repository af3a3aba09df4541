"""A number that a page quotes stands, digit for digit, in a results file that its section links."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(((?:\.\./)*results/[^)#]+\.md)\)")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*\.\d+(?![\w.])")
# pages, and the sections of them that quote measurements
PAGES = {
    "docs/large-categories.md": ["The weight", "What we measured", "Time and memory"],
    "docs/which-estimator.md": [
        "Categories, by their number",
        "One gradient at four evaluations of the cost",
        "Sets and rankings",
        "In a VAE",
        "In time",
    ],
    "docs/midcdf.md": ["In a VAE"],
    "docs/paper.md": ["Figure 3: the synthetic example", "Table 1: VAEs", "Table 2: topic models"],
    "docs/tutorials/learn-a-ranking.md": ["What to expect"],
    "docs/tutorials/count-vae.md": ["Two numbers", "In time"],
    "README.md": ["Headline results"],
}
SETTINGS = {"0.5", "0.1", "0.001"}  # temperatures and step sizes


def section(page, title):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert found, f"{page} has no section {title!r}"
    return found.group(1)


@pytest.mark.parametrize(
    ("page", "title"), [(page, title) for page, titles in PAGES.items() for title in titles]
)
def test_every_number_is_in_a_linked_result(page, title):
    text = section(page, title)
    links = LINK.findall(text)
    assert links, f"{page}, {title}: quotes numbers without a link to results/"
    sources = [(ROOT / page).parent.joinpath(link).resolve() for link in links]
    known = {n for source in sources for n in NUMBER.findall(source.read_text(encoding="utf-8"))}
    quoted = set(NUMBER.findall(text)) - SETTINGS
    assert quoted, f"{page}, {title}: no number found; the pattern is broken"
    assert quoted <= known, f"{page}, {title}: {sorted(quoted - known)} are in none of {links}"
