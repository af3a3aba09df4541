"""How long a fit takes, beside NMF and LDA: 300 texts, and 10,000 short ones.

    GENGS_DATA=... python -m benchmarks.topics_speed > results/topics/speed.md

The 300 texts are six planted themes of 50 (``benchmarks/topics_planted.py``), every tenth held out;
the short ones are 11,000 of IMDB's reviews, cut to 20 tokens at random, 1,000 held out.
*Completion* is the perplexity per word of one half of each held-out document's tokens given the
other half, as in ``benchmarks/topics_peers.py``; NMF's factors are no probabilities. Times are of
the processor, one thread; models take turns, so that ratios within one run can be compared.
"""

from __future__ import annotations

import platform
import time

import numpy as np
import scipy.sparse
import sklearn
import torch

import gengs
from gengs_topics import TopicModel
from gengs_topics.model.topic_settings import default_topics
from gengs_topics.text.corpus import Corpus
from gengs_topics.text.text_sets import load_corpus

from . import topics_planted
from .timing import machine
from .topics_peers import MODELS, Peer, completion


def planted() -> tuple[Corpus, Corpus]:
    """Six themes; every tenth text is held out."""
    texts, _ = topics_planted.themes_module.planted(*topics_planted.NAMES[:6])
    counted = topics_planted.Counted(texts)
    corpus = Corpus(counted.counts, counted.vocabulary)
    held = np.arange(len(texts)) % 10 == 9
    return corpus.take(~held), corpus.take(held)


def short(documents: int, length: int = 20) -> tuple[Corpus, Corpus]:
    """Reviews cut to so many tokens, and 1,000 more of them."""
    train, _ = load_corpus("imdb")
    rng = np.random.default_rng(0)
    chosen = rng.permutation(train.counts.shape[0])[: documents + 1000]
    counts = scipy.sparse.csr_array(train.counts[chosen]).astype(np.int64)
    rows = []
    for row in range(counts.shape[0]):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        tokens = np.repeat(counts.indices[part], counts.data[part])
        kept = rng.permutation(tokens)[:length]
        rows.append(np.bincount(kept, minlength=counts.shape[1]).astype(np.float32))
    cut = scipy.sparse.csr_array(np.stack(rows))
    kept_words = np.flatnonzero(np.asarray((cut[:documents] > 0).sum(0)).ravel() >= 5)
    cut = scipy.sparse.csr_array(cut[:, kept_words])
    words = [train.vocabulary[k] for k in kept_words]
    return Corpus(cut[:documents], words), Corpus(cut[documents:], words)


def compare(title: str, train: Corpus, test: Corpus, rounds: int) -> None:
    topics = default_topics(len(train))
    times: dict[str, list[float]] = {name: [] for name in ("urn", "nmf", "lda")}
    peers: dict[str, Peer] = {}
    for _ in range(rounds):
        for name, seconds in times.items():
            peers[name] = MODELS[name][1](topics, 0, train)
            begin = time.process_time()
            peers[name].fit(train.counts)
            seconds.append(time.process_time() - begin)
    ours = float(np.median(times["urn"]))
    size = f"{len(train):,} documents, {len(train.vocabulary):,} words, {topics} topics"
    fits = f"medians of {rounds} fits" if rounds > 1 else "one fit each"
    print(f"## {title}\n\n{size}; {fits}\n")
    print("| model | fit, s | of ours | completion |\n| --- |" + 3 * " ---: |")
    for name, seconds in times.items():
        fit = float(np.median(seconds))
        known = peers[name].predict is not None
        found = f"{completion(peers[name], test.counts):.1f}" if known else ""
        print(f"| {MODELS[name][0]} | {fit:.2f} | {fit / ours:.2f} | {found} |")
    print(flush=True)


def main() -> None:
    torch.set_num_threads(1)
    print("# Time of a fit\n\n`GENGS_DATA=... python -m benchmarks.topics_speed`\n")
    print(f"{machine()}, gengs {gengs.__version__}, scikit-learn {sklearn.__version__}, Python "
          f"{platform.python_version()}; one thread, seed 0.\n")  # fmt: skip
    TopicModel(2, random_state=0, max_iter=1).fit(np.eye(20, dtype=int))  # torch's first steps
    compare("Six themes, 50 texts each", *planted(), rounds=3)
    compare("Short texts", *short(10_000), rounds=1)


if __name__ == "__main__":
    main()
