"""``gengs topics fit``, ``apply`` and ``show``, run as people run them."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from test_topic_activity import WORDS, themes

from gengs_experiments.cli import main
from gengs_topics import TopicModel
from gengs_topics.commands.document_share import percent
from gengs_topics.commands.fit import finish
from gengs_topics.commands.topic_use import passage
from gengs_topics.commands.topics_page import training_curve
from gengs_topics.text import Corpus
from gengs_topics.text.text_sets import sample_documents

SMALL = ["--topics", "4", "--hidden", "16", "--epochs", "3", "--min-df", "3", "--no-progress"]
HOSTILE = "<script>alert('x')</script> & <img src=x onerror=alert(1)> \"quoted\""


def documents():
    """Real documents, an empty one, one without a known word, and a hostile one."""
    rows = [{"text": d.text, "id": d.package} for d in sample_documents()[::12]]
    return [*rows, {"text": "", "id": "empty"}, {"text": "qqqq zzzz", "id": "strange"},
            {"text": f"{HOSTILE} mail server " * 3, "id": HOSTILE}]  # fmt: skip


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def gengs_topics(*arguments):
    command = [sys.executable, "-m", "gengs", "topics", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("topics")
    corpus = write_jsonl(folder / "corpus.jsonl", documents())
    done = gengs_topics("fit", corpus, "-o", folder / "out", "--name-field", "id",
                        "--super-topics", "2", *SMALL)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"held-out perplexity [\d.]+ \(of 8 documents\), NPMI", done.stdout)
    assert "index.html" in done.stdout
    assert "(words of all topics, as none is active)" in done.stdout  # three passes are too few
    return folder


def read_table(path):
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return head, rows


def test_the_folder_has_everything(fitted):
    out, rows = fitted / "out", documents()
    names = {path.name for path in out.iterdir()}
    assert {"index.html", "topics.txt", "topics.json", "document_topics.csv",
            "document_topics.npy", "model", "run", "corpus"} <= names  # fmt: skip
    assert not [name for name in names if name.endswith(".partial")]
    head, table = read_table(out / "document_topics.csv")
    assert head == [
        "document",
        "line",
        "name",
        "words",
        "strongest",
        "strength",
        *(f"topic{k}" for k in range(4)),
    ]
    assert [row[2] for row in table] == [row["id"] for row in rows]
    assert [int(row[1]) for row in table] == list(range(1, len(rows) + 1))
    assert [row[3] for row in table[-3:-1]] == ["0", "0"]  # kept, as documents without words
    values = np.load(out / "document_topics.npy", allow_pickle=False)
    assert values.shape == (len(rows), 4) and values.dtype == np.float32
    np.testing.assert_allclose([[float(x) for x in row[6:]] for row in table], values, rtol=1e-3)
    model = TopicModel.load(out / "model" / "model.safetensors")
    corpus = Corpus.open(out / "corpus")
    np.testing.assert_allclose(model.transform(corpus), values, rtol=1e-4)
    topics = json.loads((out / "topics.json").read_text())
    assert len(topics["topics"]) == 4 and len(topics["hierarchy"]) == 2
    lines = (out / "topics.txt").read_text().splitlines()
    for number, (line, topic) in enumerate(zip(lines, model.topics(15), strict=True)):
        leads = sum(row[4].split()[:1] == [str(number)] for row in table)
        assert topics["topics"][number]["documents"] == leads
        fields = [str(number), " ".join(topic.words), percent(leads / len(rows)), topic.note]
        assert line.split("\t") == fields[: None if topic.note else -1]
    found = [topic.share for topic in model.topics()]
    assert found == sorted(found, reverse=True)
    strongest = model.strongest(corpus)
    assert [row[4] for row in table] == [" ".join(str(k) for k, _ in one) for one in strongest]
    assert [row[5] for row in table] == [f"{one[0][1]:.3g}" if one else "" for one in strongest]
    assert all(row[4] == "" for row in table[-3:-1])  # no words, no theme
    records = map(json.loads, (out / "run" / "records.jsonl").read_text().splitlines())
    last = [record for record in records if record["kind"] == "evaluation"][-1]
    assert {"perplexity_test", "npmi", "diversity", "inverted_rbo"} <= set(last)


def test_the_page_is_self_contained_and_escaped(fitted):
    page = (fitted / "out" / "index.html").read_text()
    assert "<script" not in page and "<img" not in page and "onerror=alert(1)>" not in page
    assert "default-src 'none'" in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", page)  # links within it alone
    assert (
        len(re.findall('class="card[ "]', page)) == 4
        and "Hierarchy" in page
        and "<polyline" in page
    )
    assert "2 documents have no word of the vocabulary" in " ".join(page.split())
    assert "NPMI, counted in whole documents (gensim's c_npmi" in " ".join(page.split())
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{anchor}"' in page


def test_a_topic_has_one_percentage_wherever_a_reader_compares(fitted, capsys):
    """In the first sentence of the page, on its cards, in the list, and in the table."""
    out = fitted / "out"
    topics = json.loads((out / "topics.json").read_text())["topics"]
    shares = {k: percent(topic["document_share"]) for k, topic in enumerate(topics)}
    page = " ".join((out / "index.html").read_text().replace("\N{NO-BREAK SPACE}", " ").split())
    cards = re.findall(r"topic (\d+), ([\d,]+) documents \(([^)]*)\)", page)
    assert {int(k): share for k, _, share in cards} == shares
    counts = [int(count.replace(",", "")) for _, count, _ in cards]
    assert counts == sorted(counts, reverse=True)  # as in the sentence
    for k, topic in enumerate(topics):
        said = f"{', '.join(topic['label'])} ("
        about = page[page.index('class="about"') : page.index("</p>")]
        assert said not in about or f"{said}{shares[k]})" in about
    main(["topics", "show", str(out)])
    table = re.findall(r"^ +(\d+) +(\S+ %) ", capsys.readouterr().out, re.MULTILINE)
    assert {int(k): share for k, share in table} == shares
    assert [k for k, _ in table] == [k for k, _, _ in cards]
    assert {f"{100 * topic['share']:.1f} %" for topic in topics}.isdisjoint(page)


def test_the_page_says_how_many_documents_were_held_out(fitted):
    page = " ".join((fitted / "out" / "index.html").read_text().split())
    assert "<dt>perplexity of 8 held-out documents</dt>" in page


def test_a_model_alone_says_which_share_it_has(fitted, capsys):
    main(["topics", "show", str(fitted / "out" / "model")])
    said = " ".join(capsys.readouterr().out.split())
    assert "share: a topic's part of what tells documents apart" in said


def test_a_hostile_word_stays_a_word(tmp_path):
    words = ["<script>alert(1)</script>", "&amp;", '"><img', "plain"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    counts = scipy.sparse.csr_array(np.random.default_rng(0).poisson(1.0, (40, 4)))
    scipy.sparse.save_npz(tmp_path / "counts.npz", counts)
    code = main(["topics", "fit", str(tmp_path / "counts.npz"), "-o", str(tmp_path / "out"),
                 "--vocabulary", str(tmp_path / "vocab.txt"), *SMALL])  # fmt: skip
    assert code == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<script" not in page and '"><img' not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "&amp;amp;" in page
    # the same counts as text, and documents of another vocabulary with the same words
    lines = [" ".join(["1", *(f"{j + 1}:{n}" for j, n in enumerate(row) if n)])
             for row in counts.toarray()]  # fmt: skip
    (tmp_path / "counts.feat").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / name) for name in ("out", "counts.feat", "vocab.txt", "again.npy")]
    assert main(["topics", "apply", *files[:2], "--vocabulary", files[2], "-o", files[3]]) == 0
    first, again = np.load(tmp_path / "out/document_topics.npy"), np.load(tmp_path / "again.npy")
    np.testing.assert_allclose(first, again, rtol=1e-5)


def test_apply(fitted, tmp_path, capsys, monkeypatch):
    model = str(fitted / "out")
    assert main(["topics", "apply", model, str(fitted / "corpus.jsonl"), "-o",
                 str(tmp_path / "all.npy")]) == 0  # fmt: skip
    expected = np.load(fitted / "out" / "document_topics.npy")
    np.testing.assert_allclose(np.load(tmp_path / "all.npy"), expected, rtol=1e-4)
    assert main(["topics", "apply", model, str(fitted / "corpus.jsonl"), "--values", "proportions",
                 "-o", str(tmp_path / "shares.npy")]) == 0  # fmt: skip
    shares = np.load(tmp_path / "shares.npy")
    assert shares.shape == expected.shape and np.allclose(shares.sum(1), 1, atol=1e-5)
    refined = [str(tmp_path / name) for name in ("refined.npy", "again.npy")]
    for file in refined:
        main(["topics", "apply", model, str(fitted / "corpus.jsonl"), "--refine", "3", "-o", file])
    moved, again = (np.load(file) for file in refined)
    np.testing.assert_array_equal(moved, again)
    assert 0 < np.abs(moved - expected).mean() < 3
    capsys.readouterr()
    (tmp_path / "new.txt").write_text("mail server\n\nunknownword mail\n")
    table = tmp_path / "new.csv"
    assert main(["topics", "apply", model, str(tmp_path / "new.txt"), "-o", str(table)]) == 0
    said = capsys.readouterr().out
    assert "3 documents; words in the model's vocabulary: 3, 75% of all" in said
    assert "documents without any: 1\n" in said
    _, rows = read_table(table)
    assert [row[3] for row in rows] == ["2", "0", "1"]
    monkeypatch.chdir(tmp_path)
    assert main(["topics", "apply", model, str(tmp_path / "new.txt")]) == 0
    assert f"written: {tmp_path / 'document_topics.csv'}\n" in capsys.readouterr().out


def test_show(fitted, capsys):
    assert main(["topics", "show", str(fitted / "out"), "--json", "--top", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(topic["words"]) for topic in found["topics"]] == [3] * 4
    assert main(["topics", "show", str(fitted / "out" / "model"), "--top", "3"]) == 0
    shown = capsys.readouterr().out
    for topic in found["topics"]:
        assert ", ".join(topic["words"]) in shown
    assert "└──" in shown  # the hierarchy


@pytest.mark.slow
def test_killed_and_resumed_is_the_same(tmp_path):
    corpus = write_jsonl(tmp_path / "corpus.jsonl", documents())
    settings = [corpus, *SMALL, "--epochs", "15", "--checkpoint-seconds", "0"]
    settings = [*map(str, settings), "-o"]
    assert main(["topics", "fit", *settings, str(tmp_path / "whole")]) == 0
    command = [sys.executable, "-m", "gengs", "topics", "fit", *settings, tmp_path / "killed"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # as this process has
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=one_thread)
    end = time.monotonic() + 600
    records = tmp_path / "killed" / "run" / "records.jsonl"
    while not (records.exists() and records.read_text().count("\n") > 3):
        assert killed.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "index.html").exists()
    assert main(["topics", "fit", *settings, str(tmp_path / "killed"), "--resume"]) == 0
    for name in ("topics.txt", "document_topics.npy", "document_topics.csv", "run/records.jsonl",
                 "run/weights.safetensors", "model/model.safetensors"):  # fmt: skip
        first, second = ((tmp_path / run / name).read_bytes() for run in ("whole", "killed"))
        assert first == second, name


# ---------------------------------------------------------------------------------------- errors


def fails(capsys, *arguments):
    code = main(["topics", *map(str, arguments)])
    captured = capsys.readouterr()
    assert code in (1, 2) and captured.err.startswith("gengs: ")
    assert captured.err.count("\n") == 1  # one sentence, no traceback
    return captured.err


def test_files_that_cannot_be_read(tmp_path, capsys):
    path, out = tmp_path / "corpus.jsonl", tmp_path / "out"
    for content, message in (
        (b"", "expected documents, but there are none"),
        (b'{"text": "one"}\n{"text": \n', "line 2 of .* does not parse"),
        (b'{"text": "one"}\n{"body": "b"}\n', "line 2 of .* has no field 'text'"),
        (b'{"text": "one"}\n\xff\n', "line 2 of .* is not utf-8"),
        (b'{"text": "' + b"w" * 3000 + b'"}\n', "line 1 of .* is longer than 2,000 characters"),
        (b'{"text": "the and"}\n' * 9, "vocabulary is empty: all 2 words are stop words"),
        (b'{"text": "word"}\n' * 12, "empty: of 1 words in 12 documents, 0 are in fewer than 2"),
    ):
        path.write_bytes(content)
        said = fails(capsys, "fit", path, "-o", out, "--longest-line", 2000)
        assert re.search(message, said), said
        # nothing is left that would be in the way of another try
        assert not out.exists()
    out.mkdir()
    fails(capsys, "fit", path, "-o", out)
    assert out.is_dir()  # it was there before
    assert "there is no file" in fails(capsys, "fit", tmp_path / "none.txt", "-o", out)
    assert "a file that ends in .txt" in fails(capsys, "fit", sys.executable, "-o", out)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"files in the folder {empty}, but it has" in fails(capsys, "fit", empty, "-o", out)
    np.savez(tmp_path / "counts.npz", a=np.eye(2))
    assert "expected --vocabulary" in fails(capsys, "fit", tmp_path / "counts.npz", "-o", out)


def test_a_folder_of_text_files(tmp_path, capsys):
    letters, out = tmp_path / "letters", tmp_path / "out"
    for row in documents()[:60]:
        file = letters / row["id"][0] / f"{row['id']}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(row["text"])
    names = sorted(file.relative_to(letters).as_posix() for file in letters.rglob("*.txt"))
    assert "outside of" in fails(capsys, "fit", letters, "-o", letters / "out", *SMALL)
    settings = ["fit", str(letters), "-o", str(out), *SMALL]
    assert main(["topics", *settings]) == 0
    _, rows = read_table(out / "document_topics.csv")
    assert [row[2] for row in rows] == names and len(names) == 60
    assert [int(row[1]) for row in rows] == list(range(1, 61))
    page = (out / "index.html").read_text()
    assert "<h1>Topics: letters<" in page and sum(name in page for name in names) >= 5
    again = tmp_path / "again.npy"
    assert main(["topics", "apply", str(out), str(letters), "-o", str(again)]) == 0
    np.testing.assert_allclose(np.load(again), np.load(out / "document_topics.npy"), rtol=1e-4)
    assert main(["topics", *settings, "--resume"]) == 0
    moved = letters / names[3]  # neither a size nor a time of a file is another one afterwards
    moved.rename(moved.with_name("other.txt"))
    assert "changed or is another one" in fails(capsys, *settings, "--resume")
    moved.with_name("other.txt").write_bytes(b"sch\xf6n")
    for command in (["fit", letters, "-o", tmp_path / "new"], ["apply", out, letters]):
        said = fails(capsys, *command)
        assert "other.txt is not utf-8 (byte 0xf6, place 4); give its --encoding" in said


@pytest.mark.parametrize("form", ["npz", "feat"])
def test_only_counts_are_counts(tmp_path, capsys, form):
    """The same numbers are refused by fit and by apply, with the same sentence, and at once."""
    counts = np.random.default_rng(0).poisson(1.0, (40, 4)).astype(float)
    (tmp_path / "vocab.txt").write_text("one\ntwo\nthree\nfour\n")
    path, words = tmp_path / f"counts.{form}", ["--vocabulary", tmp_path / "vocab.txt"]

    def write(value):
        counts[7, 2] = value
        if form == "npz":
            return scipy.sparse.save_npz(path, scipy.sparse.csr_array(counts))
        rows = (" ".join(f"{k}:{n:.16g}" for k, n in enumerate(row, 1) if n) for row in counts)
        return path.write_text("".join(f"1 {row}\n" for row in rows))

    write(3)
    assert main(["topics", "fit", str(path), "-o", str(tmp_path / "out"), *map(str, words),
                 *SMALL]) == 0  # fmt: skip
    for value in (0.5, 0.37, -2, 1e20, 1e30, 2**24 + 1):
        write(value)
        said = [fails(capsys, "fit", path, "-o", tmp_path / "new", *words, *SMALL),
                fails(capsys, "apply", tmp_path / "out", path, "-o", tmp_path / "new.csv", *words)
                ]  # fmt: skip
        assert said[0] == said[1] and "count" in said[0], said
        assert not (tmp_path / "new").exists() and not (tmp_path / "new.csv").exists()


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--held-out", "1", "expected --held-out in [0, 1), but got 1.0"),
        ("--seed", "-1", "at least 0 for --seed, but got -1"),
        ("--epochs", "0", "at least 1 for --epochs"),
        ("--topics", "0", "at least 1 for --topics"),
        ("--super-topics", "0", "at least 1 for --super-topics"),
        ("--topic-penalty", "nan", "at least 0 for --topic-penalty, but got nan"),
        ("--learning-rate", "0", "positive, finite number for --learning-rate"),
        ("--estimator", "Magic", "there is no estimator"),
    ],
)
def test_options_out_of_range(tmp_path, capsys, option, value, sentence):
    out = tmp_path / "out"
    assert sentence in fails(capsys, "fit", "sample", "-o", out, option, value)
    assert not out.exists()


def test_a_diverged_training_names_the_learning_rate(tmp_path, capsys):
    corpus, out = write_jsonl(tmp_path / "corpus.jsonl", documents()[:60]), tmp_path / "out"
    settings = ["fit", corpus, "-o", out, *SMALL, "--epochs", 30, "--learning-rate", "1e6"]
    for more in ([], ["--resume"]):
        said = fails(capsys, *settings, *more)
        assert "training diverged" in said and "Finite" not in said, said
        assert "a smaller --learning-rate than 1e+06" in said and "another folder" in said
    said = fails(capsys, "show", out)
    assert "--resume" in said and "if its training diverged" in said


def test_settings_that_make_no_readable_topics_are_warned_of(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "corpus.jsonl", documents()[:60])

    def warned(*options):
        code = main(["topics", "fit", str(corpus), "-o", str(tmp_path / options[0]), *SMALL,
                     *options])  # fmt: skip
        said = capsys.readouterr().err
        assert code == 0 and said.count("\n") == 1 and said.startswith("gengs: warning: "), said
        return said

    with warnings.catch_warnings():
        warnings.simplefilter("always")  # the command says them in sentences
        said = warned("--topics", "70")
        assert "70 topics are more than the 57 documents to train on" in said
        assert "without --topics there would be 6" in said
        said = warned("--size", "2")
        assert "2 words are left to make topics of: raise --size" in said
        said = warned("--learning-rate", "1", "--epochs", "6")
        assert "predicts held-out documents worse than chance" in said
        assert "a smaller --learning-rate than 1" in said


def test_folders_that_are_not_free(fitted, tmp_path, capsys):
    corpus, out = fitted / "corpus.jsonl", fitted / "out"
    settings = ["--name-field", "id", "--super-topics", "2", *SMALL]
    said = fails(capsys, "fit", corpus, "-o", out, *settings)
    assert "already holds topics: add --resume" in said
    said = fails(capsys, "fit", corpus, "-o", out, *settings, "--resume", "--seed", 1)
    assert "other settings: seed: 0 -> 1" in said
    other = write_jsonl(tmp_path / "corpus.jsonl", documents()[:50])
    said = fails(capsys, "fit", other, "-o", out, *settings, "--resume")
    assert "changed or is another one" in said
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("precious")
    said = fails(capsys, "fit", corpus, "-o", tmp_path / "mine", *settings)
    assert "a new or empty folder" in said and "thesis.doc" in said
    for name in ("corpus", "run"):  # the same names as ours, with other things in them
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "thesis.doc").write_text("precious")
        assert f"holds '{name}'" in fails(capsys, "fit", corpus, "-o", tmp_path / name, *settings)
        assert (tmp_path / name / name / "thesis.doc").exists()


def test_a_folder_left_by_an_early_kill_is_taken_up(tmp_path):
    corpus = write_jsonl(tmp_path / "corpus.jsonl", documents()[::4])
    out = tmp_path / "out"
    (out / ".corpus.partial").mkdir(parents=True)
    (out / ".corpus.partial" / "data.npy").write_bytes(b"torn")
    (out / ".lock").write_bytes(b"")
    assert main(["topics", "fit", str(corpus), "-o", str(out), *SMALL]) == 0
    assert not (out / ".corpus.partial").exists() and (out / "index.html").exists()


def test_the_last_facts_are_of_the_topics_that_are_active():
    corpus = Corpus(scipy.sparse.csr_array(themes()), [f"w{k}" for k in range(WORDS)])
    model = TopicModel(6, hidden=(32,), max_iter=60, random_state=0).fit(corpus)
    records = [{"kind": "evaluation"}]
    found = finish(model, records, corpus).topics()
    active = [topic.coherence for topic in found if topic.note != "inactive"]
    assert 0 < len(active) <= 6
    np.testing.assert_allclose(records[-1]["npmi"], np.mean(active), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.* words are left to make topics of")
def test_a_few_short_lines_are_enough(tmp_path, capsys):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("red green\nblue\n\ngreen blue\n")
    settings = ["--topics", "1", "--hidden", "8", "--epochs", "1", "--min-df", "1", "--max-df", "1",
                "--super-topics", "1", "--no-progress"]  # fmt: skip
    assert main(["topics", "fit", str(corpus), "-o", str(tmp_path / "out"), *settings]) == 0
    said = capsys.readouterr().out
    assert "held-out" not in said and "NPMI" in said  # too few to hold any out
    assert (tmp_path / "out" / "topics.txt").read_text().count("\n") == 1
    assert np.load(tmp_path / "out" / "document_topics.npy").shape == (4, 1)


def test_models_that_cannot_be_applied(fitted, tmp_path, capsys):
    text = tmp_path / "new.txt"
    text.write_text("qqqq zzzz\n")
    out = tmp_path / "new.csv"
    said = fails(capsys, "apply", fitted / "out", text, "-o", out)
    assert "no word of" in said and "is in the model's vocabulary" in said and not out.exists()
    assert "no finished topic model" in fails(capsys, "apply", tmp_path, text, "-o", out)
    assert "there is no topic model" in fails(capsys, "show", tmp_path / "none.safetensors")
    said = fails(capsys, "show", text)
    assert "damaged, or not a topic model" in said and "header" not in said
    said = fails(capsys, "apply", fitted / "out" / "run", text, "-o", out)
    assert "gengs topics fit is the one that writes a model" in said
    assert "a .csv or .npy file" in fails(capsys, "apply", fitted / "out", text, "-o", "a.xls")
    said = fails(capsys, "apply", fitted / "out", text, "-o", out, "--refine", "-1")
    assert "a --refine of at least 0" in said
    text.write_text("")
    assert "there are none" in fails(capsys, "apply", fitted / "out", text, "-o", out)
    assert list(tmp_path.iterdir()) == [text]  # no partial files


def test_excerpts_and_curves():
    assert passage(" a\n b\t\ud800", ()) == [("a b ?", False)]
    ((long, _),) = passage("word " * 200, ("other",))
    assert long.endswith("word …") and len(long) <= 283
    pieces = passage(
        "filler " * 100 + "the Bread and the oven " + "filler " * 100, ("bread", "oven")
    )
    assert [piece for piece, telling in pieces if telling] == ["Bread", "oven"]
    assert len("".join(piece for piece, _ in pieces)) <= 286
    assert training_curve([{"kind": "train", "step": 5, "nats_per_word": 3.0}]) is None
    records = [{"kind": "train", "step": 10 * k, "nats_per_word": 8.0 - k} for k in (1, 2, 3)]
    curve = training_curve([*records, {"kind": "evaluation", "step": 30, "perplexity_test": 200.0}])
    assert len(curve.trained.split()) == 3 and len(curve.held_out) == 1
    assert [text for _, text in curve.across] == ["0", "1", "2", "3"]
    assert len(curve.up) >= 3 and "held-out documents ended at 200" in curve.last


def test_ticks_of_a_short_way_differ():
    records = [{"kind": "train", "step": k, "nats_per_word": 1.94 + 0.005 * k} for k in (1, 2, 3)]
    ticks = [text for _, text in training_curve(records).up]
    assert len(ticks) >= 2 and len(set(ticks)) == len(ticks)
