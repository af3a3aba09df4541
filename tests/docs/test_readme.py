"""The README is short, its links lead somewhere, and the site starts with the same code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short():
    assert len(README.splitlines()) <= 180
    results = re.search(r"^## Headline results\n(.*?)^## ", README, re.S | re.M).group(1)
    assert 1 <= len(re.findall(r"^- ", results, re.M)) <= 6


def test_links_lead_somewhere():
    links = re.findall(r"\]\(((?!https?:)[^)\s#]+)\)|(?:src|srcset)=\"([^\"]+)\"", README)
    targets = [markdown or html for markdown, html in links]
    assert len(targets) > 15
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_the_site_starts_with_the_same_code():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for fence in ("python", "sh"):
        first = re.search(rf"```{fence}\n.*?```", README, re.S).group()
        assert first in page
