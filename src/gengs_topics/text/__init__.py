"""Text as counts of words: corpora, vocabularies, files of documents."""

from .corpus import Corpus
from .text_sets import CORPORA, load_corpus

__all__ = ["CORPORA", "Corpus", "load_corpus"]
