"""Words of topics that are seen together in new documents: ours, NMF's and LDA's.

    GENGS_DATA=... python -m benchmarks.topics_coherence [--corpora 20news,rcv1-sample]
        [--topics 20,50] [--seeds 0] [--models nmf,lda,ours] --out runs/coherence

Four fifths of the training documents are fitted, one fifth (the same for all) is for choices, and
the test part is looked at when they are made. Fits are kept in the folder, so that another ranking
takes seconds. Of ours there are three rows: words ranked by what a strong topic adds to their
probabilities in the decoder; ranked by the topic's documents; and these after topics were turned to
the directions of the documents (the default). NPMI is of ten words, counted in whole documents; TD
is the share of different words among 25 of each topic.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

import gengs
from gengs.data.text.text_sets import load_corpus
from gengs.metrics import npmi, topic_diversity
from gengs.models.topics.topic_activity import measure_activity


def parts(corpus: str) -> tuple[Any, Any, Any]:
    """Documents to fit, to choose by, and to test on."""
    train, test = load_corpus(corpus)
    counts = scipy.sparse.csr_array(train.counts)
    order = np.random.default_rng(123).permutation(counts.shape[0])
    cut = int(0.8 * len(order))
    return counts[np.sort(order[:cut])], counts[np.sort(order[cut:])], test.counts


def components(kind: str, file: Path, topics: int, seed: int, fitted: Any) -> Any:
    """The topics of NMF or LDA, from the folder if they are there."""
    if not file.exists():
        if kind == "nmf":
            weights = TfidfTransformer(sublinear_tf=True).fit_transform(fitted)
            model: Any = NMF(topics, random_state=seed, max_iter=400).fit(weights)
        else:
            model = LatentDirichletAllocation(topics, random_state=seed).fit(fitted)
        np.save(file, model.components_)
    return np.load(file)


def ours(file: Path, topics: int, seed: int, fitted: Any) -> Iterator[tuple[str, Any]]:
    """The scores of words in topics, by three rankings of the same model."""
    if not file.exists():
        gengs.TopicModel(topics, random_state=seed).fit(fitted).save(file)
    network = gengs.TopicModel.load(file).network_
    network.reading.copy_(torch.eye(topics))
    yield "ours, by the decoder", network.decoder.gains().numpy()
    for title, turn in (("ours, by documents", False), ("ours, by documents, turned", True)):
        measure_activity(network, fitted, turn=turn)
        yield title, network.word_scores().numpy().copy()  # the next measurement overwrites it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", default="20news,reuters,rcv1-sample,imdb")
    parser.add_argument("--topics", default="20,50")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--models", default="nmf,lda,ours")
    parser.add_argument("--out", type=Path, default=Path("runs/coherence"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    head = "corpus | topics | seed | model | NPMI, fitted | NPMI, chosen by | NPMI, test | TD"
    print(f"| {head} | NPMI, test × TD |")
    print("| --- | ---: | ---: | --- |" + " ---: |" * 5)
    for corpus in given.corpora.split(","):
        fitted, chosen, test = parts(corpus)
        for topics in map(int, given.topics.split(",")):
            for seed in map(int, given.seeds.split(",")):
                name, rows = f"{corpus}.{topics}.{seed}", []
                for kind in given.models.split(","):
                    if kind == "ours":
                        rows += list(ours(given.out / f"{name}.st", topics, seed, fitted))
                    else:
                        file = given.out / f"{name}.{kind}.npy"
                        rows.append((kind.upper(), components(kind, file, topics, seed, fitted)))
                for title, scores in rows:
                    order = np.argsort(-scores, 1, kind="stable")
                    words, more = order[:, :10].tolist(), order[:, :25].tolist()
                    values = [npmi(words, part).mean() for part in (fitted, chosen, test)]
                    values += [topic_diversity(more)]
                    cells = [f"{value:.3f}" for value in (*values, values[2] * values[3])]
                    print(f"| {corpus} | {topics} | {seed} | {title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
