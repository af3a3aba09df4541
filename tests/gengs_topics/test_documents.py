"""Documents from files, their words, the vocabulary and the counts; and all that may be wrong."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from gengs_topics.text.counting import Tally, count_words, write_corpus
from gengs_topics.text.documents import TextFile
from gengs_topics.text.stop_words import read_stop_words
from gengs_topics.text.text_sets import sample_documents
from gengs_topics.text.vocabulary import choose_vocabulary
from gengs_topics.text.word_splitting import Words


def texts(path, **settings):
    return [document.text for document in TextFile(path, **settings)]


# ----------------------------------------------------------------------------------------- files


def test_lines(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes("\ufeffone two\r\n\n drei Zoë \nlast".encode())
    assert texts(path) == ["one two", "", " drei Zoë ", "last"]
    assert [document.line for document in TextFile(path)] == [1, 2, 3, 4]
    source = TextFile(path)
    assert list(source) == list(source)  # it can be read again
    (tmp_path / "empty.txt").write_bytes(b"")
    assert texts(tmp_path / "empty.txt") == []


def test_json_lines(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"text": "a\nb", "id": 7}, {"id": None, "text": None}, {"text": "<b>", "id": "x"}]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert texts(path) == ["a\nb", "", "<b>"]
    assert [document.name for document in TextFile(path, name_field="id")] == ["7", "", "x"]
    for line, message in (
        ('{"text": ', "a JSON object in line 2 of .*, but it does not parse"),
        ("[" * 100_000, "line 2 of .* does not parse"),
        ("[1]", r"a JSON object in line 2 of .*, but got '\[1\]'"),
        ('{"txt": "a"}', "line 2 of .* has no field 'text'; did you mean 'txt'?"),
        ("{}", "line 2 of .* has no field 'text'; it has none"),
        ('{"text": 3}', "text or a list of words in the field 'text' in line 2 of .*, but got int"),
    ):
        path.write_text('{"text": "fine"}\n' + line + "\n")
        with pytest.raises(ValueError, match=message):
            texts(path)


def test_tables(tmp_path):
    path = tmp_path / "corpus.csv"
    path.write_text('id,text\n1,"two\nlines, and ""quotes"""\n\n2,plain\n')
    assert texts(path) == ['two\nlines, and "quotes"', "plain"]
    found = list(TextFile(path, name_field="id"))
    assert [(one.line, one.name) for one in found] == [(2, "1"), (5, "2")]
    path.write_text("id;text\n1;a, b\n")
    assert texts(path) == ["a, b"]
    (tmp_path / "corpus.tsv").write_text("text\tid\na, b\t1\n")
    assert texts(tmp_path / "corpus.tsv") == ["a, b"]
    for content, message in (
        ("id,body\n1,a\n", "has no column 'text'; expected one of body, id"),
        ("id,txt\n1,a\n", "has no column 'text'; did you mean 'txt'?"),
        ("id,text\n1,a\n2\n", "begins in line 3 does not parse: it has 1 columns instead of 2"),
        ('id,text\n1,a\n2,"open\nmore\n', "begins in line 3 does not parse: unexpected end"),
        ("", "a header in line 1 of .*, but it is empty"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            texts(path)


def test_compressed_files(tmp_path):
    path = tmp_path / "corpus.jsonl.gz"
    lines = "".join(json.dumps({"text": d.text}) + "\n" for d in sample_documents()[:300])
    path.write_bytes(gzip.compress(lines.encode()))
    assert len(texts(path)) == 300
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"damaged after line \d\d+"):
        texts(path)


def test_encodings(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2 of .*utf-8.* 0xf6, place 4"):
        texts(path)
    assert texts(path, encoding="latin-1") == ["gut", "schön"]
    assert texts(path, errors="replace") == ["gut", "sch�n"]
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        path.write_bytes("gut\nschön ਊ\n".encode(encoding))  # a letter with the byte 0x0a
        assert texts(path, encoding=encoding) == ["gut", "schön ਊ"]
    path.write_bytes("gut".encode("utf-16"))
    with pytest.raises(ValueError, match=r"line 1 of .*utf-8.* 0xff.* utf-16"):
        texts(path)
    path.write_bytes("gut\nx".encode("utf-16")[:-1])
    with pytest.raises(ValueError, match="is not utf-16"):
        texts(path, encoding="utf-16")
    with pytest.raises(ValueError, match=r"`encoding`.* 'utf-9'"):
        texts(path, encoding="utf-9")
    with pytest.raises(ValueError, match=r"`encoding`.* 'hex'"):  # not of text
        texts(path, encoding="hex")


def test_a_huge_line_is_an_error_not_a_crash(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("short\n" + "word " * 1000 + "\n")
    message = r"line 2 of .* is longer than 4,000 characters; if one document is that long, raise"
    for encoding in ("utf-8", "utf-16"):
        path.write_text("short\n" + "word " * 1000 + "\n", encoding=encoding)
        with pytest.raises(ValueError, match=message):
            texts(path, longest_line=4000, encoding=encoding)
    path.write_text("short\n" + "word " * 1000 + "\n")
    assert len(texts(path, longest_line=6000)[1]) == 5000
    path.write_text("word\n" * 1000)  # no line is long, but as a file of a folder it is
    with pytest.raises(ValueError, match=r"/corpus\.txt is longer than 4,000"):
        texts(tmp_path, longest_line=4000)
    table = tmp_path / "corpus.csv"
    table.write_text("text\n" + "w" * 200_000 + "\n")  # more than the csv module's own limit
    assert len(texts(table)[0]) == 200_000


def test_a_folder_of_text_files(tmp_path):
    """Each file is a document, in the order of names, whatever the order on the disk."""
    folder = tmp_path / "letters"
    (folder / "b").mkdir(parents=True)
    for name, content in (
        ("zoe.txt", "last"),
        ("b/2.txt", "two\r\nlines\n"),
        ("b/10.TXT", ""),
        ("a.txt.gz", gzip.compress("\ufeffZoë".encode())),
        ("B.text", "capitals first"),
        (".hidden.txt", b"\xff"),
        ("._a.txt", b"\x00\x05"),  # what some systems leave beside a file
        ("notes.md", "no text file"),
    ):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / ".git").mkdir()
    (folder / ".git" / "x.txt").write_text("hidden")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "gone.txt").symlink_to(folder / "none.txt")
    (folder / "folder.txt").mkdir()
    found = list(TextFile(folder))
    assert [document.name for document in found] == [
        "B.text", "a.txt.gz", "b/10.TXT", "b/2.txt", "zoe.txt"
    ]  # fmt: skip
    assert [document.text for document in found] == [
        "capitals first", "Zoë", "", "two\r\nlines\n", "last"
    ]  # fmt: skip
    assert [document.line for document in found] == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"B\.text is longer than 8"):
        list(TextFile(folder, longest_line=8, field="other", name_field="any", errors="replace"))
    (folder / "b" / "2.txt").write_bytes(b"gut\nsch\xf6n")
    with pytest.raises(ValueError, match=r"line 2 of .*2\.txt.* 0xf6, place 4"):
        list(TextFile(folder))
    assert TextFile(folder, encoding="latin-1") != TextFile(folder, errors="replace")
    assert "gut\nsch�n" in texts(folder, errors="replace")


def test_a_folder_may_be_larger_than_memory(tmp_path):
    for number in range(100):
        (tmp_path / f"{number:02}.txt").write_text(f"some words of {number} " * 10_000)  # 17 MB
    tracemalloc.start()
    letters = sum(len(document.text) for document in TextFile(tmp_path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert letters > 16_000_000 and most < 3_000_000


def test_a_folder_is_read_a_file_at_a_time(tmp_path):
    for number in range(50):
        (tmp_path / f"{number:02}.txt").write_text(f"document {number}")
    (tmp_path / "20.txt").write_bytes(b"\xff")
    read = iter(TextFile(tmp_path))
    assert [next(read).text for _ in range(20)] == [f"document {k}" for k in range(20)]
    with pytest.raises(ValueError, match=r"line 1 of .*20\.txt.* utf-8"):
        next(read)


def test_files_of_another_kind(tmp_path):
    with pytest.raises(ValueError, match=r"a folder of text files, or a .* but got corpus\.pdf"):
        TextFile(tmp_path.__class__("corpus.pdf"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "corpus.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"expected \.txt, .*, but it has none but \.jsonl\."):
        TextFile(tmp_path / "folder")
    for name in ("one.md", "two.rst"):
        (tmp_path / "folder" / name).write_text(name)
    assert [document.text for document in TextFile(tmp_path / "folder")] == ["one.md", "two.rst"]
    with pytest.raises(FileNotFoundError):
        texts(tmp_path / "none.txt")


# ----------------------------------------------------------------------------------------- words


def test_words():
    split = Words()
    assert split("The model's 42 x-rays, it isn't MP3!") == ["the", "model", "rays", "mp3"]
    assert split("don’t l’homme we've ÉCOLE") == ["homme", "école"]
    assert split("cafe\u0301") == split("caf\u00e9")  # two ways to type it
    assert Words(least_letters=1)("a b_c 1d") == ["b_c"]
    assert split("\ud800 lone \x00 nul") == ["lone", "nul"]


def test_stop_words(tmp_path):
    assert "the" in read_stop_words("english") and not read_stop_words("none")
    path = tmp_path / "stop.txt"
    path.write_text("Und oder\nnicht")
    assert read_stop_words(str(path)) == {"und", "oder", "nicht"}
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"line 1 of .*stop\.txt.* utf-8"):
        read_stop_words(str(path))
    with pytest.raises(ValueError, match=r"`stop_words`.* 'englich'.* 'english'"):
        read_stop_words("englich")


@pytest.mark.parametrize(("least", "most", "size"), [(3, 0.2, 300), (0.01, 150, 10_000), (2, 1, 7)])
def test_the_vocabulary_is_scikit_learns(least, most, size):
    split, stop = Words(), read_stop_words("english")
    documents = [split(document.text) for document in sample_documents()[:600]]
    ours = choose_vocabulary(documents, stop, min_df=least, max_df=most, size=size)
    least = least if least < 1 else int(least)
    most = most if most > 1 else float(most)
    theirs = CountVectorizer(analyzer=lambda d: [w for w in d if w not in stop], min_df=least,
                             max_df=most).fit(documents)  # fmt: skip
    counts = theirs.transform(documents)
    names = theirs.get_feature_names_out()
    frequency = (counts > 0).sum(0).A1
    best = sorted(zip(-frequency, names, strict=True))[:size]
    assert ours == sorted(name for _, name in best)
    # and so are the counts
    tally = Tally()
    rows = list(count_words(documents, ours, tally))
    table = np.zeros((600, len(ours)))
    for row, document in zip(table, rows, strict=True):
        row[list(document)] = list(document.values())
    column = {name: i for i, name in enumerate(names)}
    expected = counts[:, [column[word] for word in ours]].toarray()
    np.testing.assert_array_equal(table, expected)
    assert tally.documents == 600 and tally.empty == (expected.sum(1) == 0).sum()
    assert tally.known == expected.sum()
    assert tally.unknown == sum(map(len, documents)) - expected.sum()


def test_memory_for_rare_words_is_bounded():
    documents = [split.split() for split in (f"common{i % 9} rare{i}" for i in range(2000))]
    settings = {"min_df": 50, "max_df": 1.0}
    whole = choose_vocabulary(documents, **settings)
    assert choose_vocabulary(documents, **settings, prune_at=60) == whole
    assert whole == [f"common{i}" for i in range(9)]


def test_an_empty_vocabulary_says_why():
    for documents, stop, message in (
        ([], set(), "expected documents, but there are none"),
        ([[], []], set(), "empty: the 2 documents have no words"),
        ([["a"], ["b"]], {"a", "b"}, "empty: all 2 words are stop words"),
        ([["a", "b"], ["a"], ["a"], ["a", "c"]], {"c"},
         "empty: of 2 words in 4 documents, 1 are in fewer than 2 and 1 in more than 2; lower"),
        ([["a"]] * 3, set(), "of 1 words in 3 documents, 0 are in fewer than 2 and 1 in more than"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            choose_vocabulary(documents, stop, min_df=2, max_df=0.5)
    for name, value in (("min_df", -1), ("max_df", float("nan")), ("size", 0)):
        with pytest.raises(ValueError, match=f"`{name}` of at least [01], but got {value}"):
            choose_vocabulary([["a"]], **{name: value})


def test_few_documents_keep_rarer_words():
    def least(documents, **settings):
        """The fewest documents of a word that is kept, where word k is in k of them."""
        words = [[f"w{k}" for k in range(1, 9) if d < k] for d in range(documents)]
        return int(min(choose_vocabulary(words, max_df=1.0, **settings))[1:])

    assert [least(n) for n in (8, 40, 60, 100, 1000)] == [2, 2, 3, 5, 5]
    assert least(8, min_df=4) == 4 and least(1, min_df=1) == 1
    with pytest.raises(ValueError, match="there is one document, and no other to tell it from"):
        choose_vocabulary([["a", "b"]])


def test_counts_go_to_disk_as_they_come(tmp_path):
    documents = [["b", "a", "b"], ["x"], [], ["c"]] * 700
    tally = Tally()
    corpus = write_corpus(count_words(documents, "abc", tally), "abc", tmp_path / "corpus")
    assert corpus.rows(range(4)).tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert len(corpus) == 2800 and isinstance(corpus.data, np.memmap)
    assert str(tally) == "2,800 documents, 1,400 of them without any; 2,800 words kept, 80% of all"
    with pytest.raises(ValueError, match=r"documents.* none"):
        write_corpus([], "abc", tmp_path / "other")
    assert not (tmp_path / "other").exists()
