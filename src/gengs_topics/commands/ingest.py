"""From documents to a corpus on disk, once: a resumed command finds it there.

``corpus/`` in the command's folder are the counts, and ``corpus.json`` beside it says what they
were made from and what was met on the way. The latter is written last: without it, the counts are
made anew.
"""

__all__ = ["ingest", "splitter"]

import json
import shutil
import warnings
from collections.abc import Callable, Set
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from gengs_experiments.runs.atomic import write_atomically
from gengs_experiments.runs.config import to_json

from ..text.corpus import Corpus
from ..text.counting import Tally, count_words, write_corpus
from ..text.documents import text_files
from ..text.stop_words import AUTO, languages_of, read_stop_words
from ..text.vocabulary import choose_vocabulary
from ..text.word_splitting import Split, Words, is_unsplit, load_tokenizer
from .source import Source, words_of
from .topics_settings import FitConfig

Say = Callable[[str], None]

_LISTED = 10
_SOME = 1_000  # documents, by which languages and scripts are told


def splitter(config: FitConfig) -> Split:
    """How texts are split into words: by the user's function, if there is one."""
    name = config.reading.tokenizer
    return Words(config.least_letters) if name is None else load_tokenizer(name)


def ingest(source: Source, config: FitConfig, folder: Path, say: Say) -> tuple[Corpus, Tally]:
    """The counts of all documents, from ``folder`` if they are there, and how they came to be.

    Raises:
        ValueError: If the folder's counts are of another file or of other settings, or if nothing
            is left to count.
    """
    facts_file, corpus_folder = folder / "corpus.json", folder / "corpus"
    facts = {"config": to_json(config), "source": _identity(source)}
    if facts_file.exists():
        try:
            known = json.loads(facts_file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{facts_file} is damaged: {error}") from error
        _compare(folder, known, facts)
        return Corpus.open(corpus_folder), Tally(**known["tally"])
    shutil.rmtree(corpus_folder, ignore_errors=True)
    split, vocabulary, tally = splitter(config), source.vocabulary, Tally()
    if vocabulary is None:
        stop = _stop_words(source, config, split, say)
        say("reading the documents for their vocabulary")
        vocabulary = choose_vocabulary(
            words_of(source.documents, split),
            stop,
            min_df=config.min_df,
            max_df=config.max_df,
            size=config.size,
        )
        say(f"{len(vocabulary):,} words; counting them")
        _warn_of_few(len(vocabulary), config.size)
    counts = count_words(words_of(source.documents, split), vocabulary, tally)
    corpus = write_corpus(counts, vocabulary, corpus_folder)
    if tally.documents == tally.empty:
        shutil.rmtree(corpus_folder)
        raise ValueError("expected documents with words in them, but all are empty.")
    text = json.dumps({**facts, "tally": asdict(tally)}, indent=2)
    write_atomically(facts_file, (text + "\n").encode())
    return corpus, tally


def _warn_of_few(words: int, size: int) -> None:
    """A topic is read by a list of ten words."""
    if words < _LISTED:
        remedy = "raise --size" if words == size else "lower --min-df or raise --max-df"
        warnings.warn(f"only {words} words are left to make topics of: {remedy}.", stacklevel=2)


def _stop_words(source: Source, config: FitConfig, split: Split, say: Say) -> Set[str]:
    """Words to leave out; on the way, texts that are not split into words are warned of."""
    some = list(islice(source.documents, _SOME))
    texts = (document.text for document in some if isinstance(document.text, str))
    if config.reading.tokenizer is None and is_unsplit(texts):
        warnings.warn(
            "many of these texts are in a script without spaces, and whole clauses are taken for "
            "words; put blanks between words, or a list of words into each field of a .jsonl file, "
            "or name a function that splits texts by --tokenizer.",
            stacklevel=2,
        )
    if config.stop_words != AUTO:
        return read_stop_words(config.stop_words)
    found = languages_of(words_of(some, split))
    say(f"stop words: {', '.join(found) or 'none, as no language was recognised'}")
    return frozenset().union(*map(read_stop_words, found))


def _identity(source: Source) -> dict[str, Any]:
    """What a file or a folder can be known again by, without reading it."""
    if source.path is None:
        return {"path": "sample", "bytes": 0, "changed": 0}
    places = {source.path}
    if source.path.is_dir():  # a file that is renamed, or gone, changes its folder
        for file in text_files(source.path):
            places |= {file, file.parent}
    facts = [place.stat() for place in places]
    return {
        "path": str(source.path.resolve()),
        "bytes": sum(fact.st_size for fact in facts),
        "changed": max(fact.st_mtime_ns for fact in facts),
    }


def _compare(folder: Path, known: dict[str, Any], facts: dict[str, Any]) -> None:
    if known["source"] != facts["source"]:
        raise ValueError(
            f"{folder} was begun with {known['source']['path']} as it was then, and that has "
            "changed or is another one; choose another folder."
        )
    before, now = known["config"], facts["config"]
    different = [f"{k}: {before.get(k)!r} -> {now[k]!r}" for k in now if before.get(k) != now[k]]
    if different:
        raise ValueError(
            f"{folder} was begun with other settings: {'; '.join(different)}; resume it as it was, "
            "or choose another folder."
        )
