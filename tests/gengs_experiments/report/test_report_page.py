"""The page as text: nothing in it is code but ours, and nothing in it asks for anything."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from report_folders import (
    HOSTILE,
    finish,
    measure_run,
    partial_study,
    png,
    synthetic_run,
    topics_run,
    vae_run,
)

from gengs_experiments.report.contents import make_contents
from gengs_experiments.report.rendering import render_page
from gengs_experiments.report.untrusted_files import LIMITS, Unreadable, read_picture


class Reader(HTMLParser):
    """All tags with their attributes, and the scripts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.text = [], [], []
        self._inside = None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)

    def handle_endtag(self, tag):
        self._inside = None


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of hostile studies and runs of all experiments, parsed."""
    folder = tmp_path_factory.mktemp("report")
    partial_study(folder / "study", hostile=True)
    synthetic_run(folder / "loose" / "a", labels=("RF", HOSTILE), law=HOSTILE)
    measure_run(folder / "loose" / "b", labels=("MidCDF", HOSTILE), law=HOSTILE)
    topics_run(folder / "loose" / "c", words=(HOSTILE, "cell"), estimator=HOSTILE)
    contents = make_contents([folder / "study", folder / "loose"], title=HOSTILE)
    text = render_page(contents, command=f"gengs report {HOSTILE}")
    reader = Reader()
    reader.feed(text)
    reader.source = text
    return reader


def test_hostile_strings_are_text(page):
    assert "".join(page.text).count("window.hacked") > 10
    assert not any("onerror" in name for _, attributes in page.tags for name in attributes)
    assert all(a["src"].startswith("data:image/png;base64,") for t, a in page.tags if t == "img")
    assert len(page.scripts) == 3  # the data, Plotly, ours
    assert not any("window.hacked=1" in script and "<" in script[:9] for script in page.scripts)
    assert "{{7*7}}" in "".join(page.text)  # no template in a template


def test_only_scripts_that_the_page_names_may_run(page):
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    codes = [script for script in page.scripts if not script.startswith("{")]
    found = {base64.b64encode(hashlib.sha256(c.encode()).digest()).decode() for c in codes}
    assert found == allowed and len(found) == 2
    assert not any(name.startswith("on") for _, a in page.tags for name in a)


def test_nothing_is_fetched(page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/png")), (tag, name, value[:80])


def test_the_data_block_is_json(page):
    (data,) = (script for script in page.scripts if script.startswith("{"))
    assert "<" not in data and ">" not in data and "&" not in data
    charts = json.loads(data)["charts"]
    assert {chart["type"] for chart in charts} == {"curves", "points"} and len(charts) == 4
    assert HOSTILE[:8] == "<script>" and r"\u003cscript\u003ewindow" in data


def test_all_runs_are_shown_as_what_they_are(page):
    text = " ".join("".join(page.text).split())
    for words in ("6 of 9 runs done", "1 failed", "1 unfinished", "1 waiting", "NonFiniteError:"):
        assert words in text, words


def test_pictures_are_checked(tmp_path):
    good = tmp_path / "good.png"
    good.write_bytes(png(4, 3))
    assert (read_picture(good).width, read_picture(good).height) == (4, 3)
    for name, content in {
        "script.png": b"<svg onload='alert(1)'>" + b" " * 60,
        "jpeg.png": b"\xff\xd8\xff" + b"\0" * 100,
        "half.png": png()[:20],
        "wide.png": png()[:16] + b"\x7f\xff\xff\xff" + png()[20:],
        "large.png": png() + b"\0" * LIMITS[".png"],
        "empty.png": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Unreadable, match=name):
            read_picture(tmp_path / name)


def test_a_false_picture_is_said_so(tmp_path):
    run = vae_run(tmp_path / "r" / "a")
    (run / "samples.png").write_bytes(b"<script>window.hacked=1</script>" * 10)
    text = render_page(make_contents([tmp_path / "r"]))
    assert "expected a PNG, but samples.png is something else" in text
    assert "window.hacked" not in text


def test_records_of_another_kind_do_not_stop_the_page(tmp_path):
    for name in ("synthetic", "measure", "vae", "nvpdef", "mine"):
        run = vae_run(tmp_path / "r" / name, experiment=name)
        lines = [{"estimator": 3, "last": True, "step": "x"}, {"kind": "evaluation", "step": None},
                 {"estimator": "a", "last": True, "step": 1, "loss": 2, "minimum": 10**400},
                 {"estimator": "b", "last": True, "step": 1, "loss": 2, "minimum": 1},
                 {"kind": "measurement", "estimator": None, "bias": "a", "variance": []},
                 {"kind": "evaluation", "step": 4, "nelbo_train": {"a": 1}, "x": 2}]  # fmt: skip
        with (run / "records.jsonl").open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        finish(run)
    text = render_page(make_contents([tmp_path / "r"]))
    assert "5 of 5 runs done" in text and "no chart" in text


def gengs(*arguments):
    command = [sys.executable, "-m", "gengs", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_the_command(tmp_path):
    study = partial_study(tmp_path / "s")
    out = tmp_path / "deep" / "report.html"
    done = gengs(study, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "6 of 9 runs done" in done.stdout and str(out) in done.stdout
    assert out.read_text().startswith("<!doctype html>")
    table = gengs(study, "-o", "-", "--format", "latex")
    assert table.returncode == 0 and r"\toprule" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "got none"),
        (("nowhere",), "but nowhere is none"),
        ((".", "-o", "report.pdf"), "ends in .html"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, sentence, capsys, tmp_path, monkeypatch):
    from gengs_experiments.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("suffix", "mark"), [("md", "| ---"), ("csv", "experiment,"), ("tex", "%")]
)
def test_the_suffix_chooses_the_format(suffix, mark, tmp_path):
    from gengs_experiments.cli import main

    out = tmp_path / f"table.{suffix}"
    assert main(["report", str(partial_study(tmp_path / "s")), "-o", str(out)]) == 0
    assert mark in out.read_text()
