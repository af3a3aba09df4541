"""Escape sequences in words, names and folders never reach a terminal or a text file raw.

A corpus, a study file or a folder may come from anybody. What they hold could move the cursor, set
the window's title or hide a line of the output; a spreadsheet would run what begins like a formula.
"""

import csv
import json
import re

import numpy as np
import pytest
import scipy.sparse

from gengs_experiments.cli import main

TITLE = "\x1b]0;owned\x07"  # sets the title of a terminal's window
RED = "\x9b31m"  # the same control as "\x1b[31m" in one character
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def run(*arguments):
    try:
        return main([*map(str, arguments)])
    except SystemExit as end:
        return end.code


@pytest.fixture
def clean(capsys):
    """What was printed, which holds the name and none of its controls."""

    def check(*names):
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert not RAW.search(text), repr(text)
        for name in names:
            assert name in text, text
        return text

    return check


SMALL = ["--topics", "2", "--hidden", "4", "--epochs", "1", "--min-df", "1", "--max-df", "1.0"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / f"folder{TITLE}"
    folder.mkdir()
    return folder


def test_names_of_documents(folder, clean):
    names = ["=1+1", "+2", "-3", "@SUM(A1)", "\t=4", TITLE, "plain"]
    some = "network disk screen keyboard memory printer"
    texts = [f"mail {RED} server {some} ", f"apple {TITLE} pear "]
    rows = [{"text": texts[k % 2] * 20, "id": names[k % 7]} for k in range(56)]
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = folder / "out"
    assert run("topics", "fit", corpus, "-o", out, "--name-field", "id", *SMALL) == 0
    clean("\\x1b]0;owned")
    assert run("topics", "apply", out, corpus, "-o", folder / "new.csv", "--name-field", "id") == 0
    clean("\\x1b]0;owned")
    for table in (out / "document_topics.csv", folder / "new.csv"):
        with table.open(newline="") as file:
            found = {row["name"] for row in csv.DictReader(file)}
        shown = {"'=1+1", "'+2", "'-3", "'@SUM(A1)", "'\t=4", "\\x1b]0;owned\\x07", "plain"}
        assert found == shown
    page = (out / "index.html").read_text()
    assert not RAW.search(page) and "\\x9b31m" in page


def test_words(folder, clean):
    counts = scipy.sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (30, 4)))
    scipy.sparse.save_npz(folder / "counts.npz", counts)
    words = folder / "words.txt"
    words.write_text(f"mail{RED}\nserver{TITLE}\nplain\nturned\u202earound\n")
    out = folder / "out"
    fit = ["topics", "fit", folder / "counts.npz", "--vocabulary", words, "-o", out]
    assert run(*fit, "--super-topics", "2", *SMALL) == 0
    clean()
    for path in (*out.glob("*.txt"), *out.glob("*.json"), *out.glob("*.csv")):
        assert not RAW.search(path.read_text()), path.name
    assert json.loads((out / "topics.json").read_text())["topics"][0]["words"]
    assert run("topics", "show", out) == 0
    clean("mail\\x9b31m", "server\\x1b]0;owned\\x07", "turned\\u202earound")
    assert run("topics", "show", out, "--json") == 0
    clean()


@pytest.mark.parametrize(
    "command",
    [
        ("measure", "--gradients", "10"),
        ("synthetic", "--steps", "10", "--seeds", "2", "--estimators", "MidCDF"),
        ("vae", "--data", "digits", "--epochs", "1", "--network", "64-32", "--images", "100",
         "--evaluation-images", "20"),
        ("nvpdef", "--corpus", "sample", "--epochs", "1", "--topics", "3", "--hidden", "4"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_the_folders_of_runs(command, tmp_path, clean):
    out = tmp_path / f"run{TITLE}"
    assert run(*command, "--out", out) == 0
    clean()
    assert run(*command, "--out", out) == 2  # it is taken, and the sentence names it
    clean("\\x1b]0;owned")
    report = tmp_path / f"page{TITLE}.html"
    assert run("report", out, "-o", report) == 0
    clean("\\x1b]0;owned")
    assert TITLE not in report.read_text()


def test_studies(folder, clean):
    study = folder / "grid.toml"
    study.write_text(
        'experiment = "measure"\n[base]\nlaw = "poisson(3)"\ngradients = 10\n'
        '[grid]\nestimators = [["RLOO(4)"]]\nseed = [0, 1]\n'
    )
    out = folder / "out"
    assert run("study", study, "--out", out, "--dry-run") == 0
    clean("\\x1b]0;owned")
    assert run("study", study, "--out", out, "--workers", "1") == 0
    clean("\\x1b]0;owned")
    assert run("study", study, "--out", out, "--workers", "1") == 0
    clean("\\x1b]0;owned")


def test_what_a_failed_run_said(tmp_path, clean):
    study = tmp_path / "fails.toml"
    study.write_text(
        'experiment = "vae"\n[base]\ndata = "digits"\nepochs = 1\n'
        f'[grid]\nestimator = ["no{TITLE.encode("unicode_escape").decode()}"]\n'.replace(
            "\\x1b", "\\u001b"
        ).replace("\\x07", "\\u0007")
    )
    run("study", study, "--out", tmp_path / "out", "--workers", "1")
    clean("\\x1b]0;owned")


def test_a_file_that_is_not_there(tmp_path, clean):
    assert run("topics", "fit", tmp_path / f"no{TITLE}.txt", "-o", tmp_path / "out") in (1, 2)
    clean("\\x1b]0;owned")
    assert run("report", tmp_path / f"no{TITLE}") == 2
    clean("\\x1b]0;owned")
