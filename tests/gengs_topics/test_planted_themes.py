"""Corpora like those that people have: a few hundred texts of a few themes, with near-copies."""

import json
import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from planted_themes import THEMES, planted, texts_of

from gengs_experiments.cli import main
from gengs_topics import TopicModel
from gengs_topics.commands.topics_page import in_a_sentence
from gengs_topics.model.word_ranking import telling_words
from gengs_topics.text.counting import count_words, matrix
from gengs_topics.text.stop_words import languages_of, read_stop_words
from gengs_topics.text.vocabulary import choose_vocabulary
from gengs_topics.text.word_splitting import Words, is_unsplit, load_tokenizer

NAMES = list(THEMES)
GERMAN = (
    "Der Hund und die Katze sind nicht im Haus, weil es dort sehr warm ist.",
    "Wir haben den Zug nach Berlin genommen, aber er kam wie immer zu spät.",
    "Die Rechnung soll bis zum Ende des Monats bezahlt werden, falls das geht.",
)
CHINESE = ("今天天气很好我们一起去公园散步然后回家", "这家公司的新产品受到了许多用户的欢迎")


def counted(texts):
    split = Words()
    words = [split(text) for text in texts]
    vocabulary = choose_vocabulary(words, read_stop_words("english"))
    return matrix(list(count_words(words, vocabulary)), len(vocabulary)), vocabulary


def table_of(model, counts, themes):
    """How many texts of each theme have each topic as their strongest; all have one."""
    found = [rows[0][0] if rows else -1 for rows in model.strongest(counts)]
    assert min(found) >= 0
    table = np.zeros((len(model.topics()), max(themes) + 1), int)
    np.add.at(table, (found, themes), 1)
    return table


@cache
def three_hundred():
    """Six themes, and a model with as many topics as by default."""
    texts, themes = planted(*NAMES[:6])
    counts, vocabulary = counted(texts)
    return TopicModel(random_state=0).fit(counts), counts, vocabulary, themes


@pytest.mark.parametrize(
    "names",
    [("licences", "plots"), ("graphs", "statistics"), ("licences", "plots", "graphs"), NAMES[:6]],
    ids=lambda names: str(len(names)),
)
def test_each_theme_leads_a_topic(names):
    texts, themes = planted(*names)
    counts, _ = counted(texts)
    model = TopicModel(len(names), random_state=0).fit(counts)
    table = table_of(model, counts, themes)
    assert [topic.note for topic in model.topics()] == len(names) * [""]
    assert sorted(table.argmax(1)) == list(range(len(names)))
    assert table.max(1).sum() >= 0.9 * len(texts)


def test_three_hundred_texts_have_a_readable_number_of_topics():
    model, counts, vocabulary, themes = three_hundred()
    topics = model.topics(vocabulary=vocabulary)
    assert 6 <= model.n_topics_ <= 20
    assert sum(bool(topic.note) for topic in topics) <= len(topics) / 10
    table = table_of(model, counts, themes)
    assert {*table.argmax(1)} == set(range(6)) and table.max(1).sum() >= 0.9 * len(themes)
    graphs = topics[int(table[:, 2].argmax())]
    assert {"graph", "nodes", "edge", "node"} & {*graphs.label}  # not the boilerplate


def test_a_topic_is_called_after_words_of_its_list():
    model, _, vocabulary, _ = three_hundred()
    for topic in model.topics(top=10, vocabulary=vocabulary):
        listed = topic.words[: telling_words(topic.weights)]
        assert {*topic.label} <= {*listed} and len(topic.label) == min(3, len(listed))


def test_words_of_a_topic_are_those_of_its_documents():
    """Of eight topics of two themes; a licence's words do not tell of a topic of plots."""
    texts, themes = planted("graphs", "statistics")
    counts, _ = counted(texts)
    model = TopicModel(random_state=0).fit(counts)
    found = np.array([rows[0][0] for rows in model.strongest(counts)])
    assert {*table_of(model, counts, themes).argmax(1)} == {0, 1}
    present, topics = counts.toarray() > 0, model.topics()
    assert sum(topic.note == "uncertain" for topic in topics) <= 2
    for k, topic in enumerate(topics):
        columns = [int(word[1:]) for word in topic.words]
        own, others = (present[part][:, columns].mean(0) for part in (found == k, found != k))
        assert (own > others).all()


def test_texts_of_other_themes_are_weak():
    """A text that is about none of the topics has the nearest one, with little strength.

    No threshold parts the two kinds; of pairs, the own text is the stronger in nine of ten.
    """
    model, counts, vocabulary, _ = three_hundred()
    other = matrix(
        list(count_words(map(Words(), texts_of("sockets", 20)), vocabulary)), len(vocabulary)
    )
    own, others = (
        np.array([rows[0][1] for rows in model.strongest(part)]) for part in (counts, other)
    )
    assert (own[:, None] > others).mean() > 0.9


def test_the_corpus_in_a_sentence():
    def said(*notes, documents=(5, 3, 2)):
        topics = [{"label": (f"word{k}",), "note": note} for k, note in enumerate(notes)]
        use = SimpleNamespace(documents=np.array(documents), done=10)
        return in_a_sentence(topics, use).replace("\N{NO-BREAK SPACE}", " ")

    assert said("", "", "") == (
        "These 10 documents are mostly about word0 (50 %); word1 (30 %); word2 (20 %)."
    )
    assert said("incoherent", "", "uncertain") == (
        "These 10 documents are about many things, most often word1 (30 %); "
        "and 2 other topics (70 %)."
    )
    assert said("uncertain", "uncertain", "incoherent") == (
        "These 10 documents are too few to be sure of their topics: perhaps word0 (50 %); "
        "word1 (30 %); and 1 other topic (20 %)."
    )
    assert said("incoherent", "incoherent", "inactive") == "No topic of these documents is clear."


def test_words_that_tell_texts_apart_stay():
    texts, _ = planted("graphs", "statistics")
    words = [Words()(text) for text in texts]
    share = sum("graph" in document for document in words) / len(words)
    kept = choose_vocabulary(words, read_stop_words("english"))
    assert share > 0.5 and "graph" in kept  # in half of them, many times in each
    assert not {"parameters", "returns"} & {*kept}  # once in nearly all
    assert "graph" not in choose_vocabulary(words, max_df=0.5)  # if somebody wants it so


def test_stop_words_are_those_of_the_texts():
    split = Words()
    assert languages_of(map(split, GERMAN)) == ["de"]
    texts, _ = planted("licences", number=10)
    assert languages_of(map(split, texts)) == ["en"]
    assert {*languages_of(map(split, [*GERMAN, *texts]))} == {"de", "en"}
    assert languages_of([["qqq", "zzz"], []]) == []
    assert {"soll", "wie", "als"} <= read_stop_words("de")


def test_scripts_without_spaces():
    assert is_unsplit(CHINESE) and not is_unsplit(GERMAN) and not is_unsplit([])
    assert Words()("今天 天气 很 好") == ["今天", "天气"]  # two letters are a word
    assert load_tokenizer("textwrap:wrap")("one") == ["one"]
    for wrong in ("json", "json:", ":wrap", ""):
        with pytest.raises(ValueError, match=rf"expected package.module:function .* '{wrong}'\.$"):
            load_tokenizer(wrong)
    for wrong in ("textwrap:nothing", "nothing_like_it:wrap", "string:digits"):
        with pytest.raises(ValueError, match="--tokenizer"):
            load_tokenizer(wrong)


def test_a_tokenizer_and_lists_of_words_from_the_shell(tmp_path, monkeypatch, capsys):
    def run(*arguments):
        code = main(["topics", *map(str, arguments)])
        return code, capsys.readouterr().err

    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.py").write_text("def split(t): return [t[k:k+2] for k in range(len(t))]")
    small = ["--topics", 2, "--hidden", 8, "--epochs", 2, "--min-df", 1, "--no-progress"]
    rows = [{"text": text} for text in CHINESE * 6]
    (tmp_path / "zh.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = run("fit", "zh.jsonl", "-o", "out", "--tokenizer", "pairs:split", *small)
    assert done[0] == 0 and "without spaces" not in done[1], done
    assert "天气" in (tmp_path / "out/topics.txt").read_text()
    code, said = run("apply", "out", "zh.jsonl")
    assert code == 2 and "--tokenizer that out was fitted with" in said
    lists = [{"text": [text[k : k + 2] for k in range(0, len(text), 2)]} for text in CHINESE * 6]
    (tmp_path / "lists.jsonl").write_text("\n".join(map(json.dumps, lists)))
    assert run("apply", "out", "lists.jsonl", "--tokenizer", "pairs:split")[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # the command says it in a sentence
        _, said = run("fit", "zh.jsonl", "-o", "other", *small[:-3], "--min-df", 99)
    assert "in a script without spaces" in said and "lower --min-df or raise --max-df" in said
