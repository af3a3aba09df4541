"""Text as counts of words: corpora, vocabularies, files of documents."""
