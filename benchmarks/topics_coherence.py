"""Words of topics that are seen together in new documents: ours, NMF's and LDA's.

    GENGS_DATA=... python -m benchmarks.topics_coherence [--corpora 20news,rcv1-sample]
        [--topics 20,50] [--seeds 0] [--models nmf,lda,ours] --out runs/coherence

Four fifths of the training documents are fitted, one fifth is for choices, and the test part is
looked at when they are made. A seed is that of the model and of the fifth: on few documents the
latter matters more. Numbers are means over seeds, ± one standard error. Fits are kept in the
folder, so that another ranking takes seconds. Of ours there are three rows: words ranked by what a
strong topic adds to their probabilities in the decoder; ranked by the topic's documents; and these
after topics were turned to the directions of the documents (the default). Of NMF and LDA there are
two: words by their weights, and of the first 25 those first that belong together, as in ours. NPMI
is of ten words, counted in whole documents; TD is the share of different words among 25 of each
topic.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

import gengs_topics
from gengs_topics.metrics import npmi, topic_diversity
from gengs_topics.model.topic_activity import measure_activity
from gengs_topics.model.word_ranking import coherent_first
from gengs_topics.text.text_sets import load_corpus


def parts(corpus: str, seed: int) -> tuple[Any, Any, Any]:
    """Documents to fit, to choose by, and to test on."""
    train, test = load_corpus(corpus)
    counts = scipy.sparse.csr_array(train.counts)
    order = np.random.default_rng(123 + seed).permutation(counts.shape[0])
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
        gengs_topics.TopicModel(topics, random_state=seed).fit(fitted).save(file)
    network = gengs_topics.TopicModel.load(file).network_
    network.reading.copy_(torch.eye(topics))
    yield "ours, by the decoder", network.gains().numpy()
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
    head = "corpus | topics | seeds | model | NPMI, fitted | NPMI, chosen by | NPMI, test | TD"
    print(f"| {head} | chosen by × TD | test × TD |")
    print("| --- | ---: | ---: | --- |" + " ---: |" * 6)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    for corpus in given.corpora.split(","):
        for topics in map(int, given.topics.split(",")):
            found: dict[str, list[list[float]]] = {}
            for seed in seeds:
                documents = parts(corpus, seed)
                name, rows = f"{corpus}.{topics}.{seed}", []
                for kind in given.models.split(","):
                    if kind == "ours":
                        rows += list(ours(given.out / f"{name}.st", topics, seed, documents[0]))
                    else:
                        file = given.out / f"{name}.{kind}.npy"
                        scores = components(kind, file, topics, seed, documents[0])
                        rows.append((kind.upper(), scores))
                        scores = coherent_first(scores, documents[0])
                        rows.append((f"{kind.upper()}, words in our order", scores))
                for title, scores in rows:
                    found.setdefault(title, []).append(measure(scores, documents))
            for title, values in found.items():
                cells = " | ".join(map(_cell, zip(*values, strict=True)))
                print(f"| {corpus} | {topics} | {len(seeds)} | {title} | {cells} |")


def measure(scores: Any, documents: tuple[Any, Any, Any]) -> list[float]:
    """NPMI in the three parts, TD, and the products of the last two parts with it."""
    order = np.argsort(-scores, 1, kind="stable")
    values = [float(npmi(order[:, :10].tolist(), part).mean()) for part in documents]
    diversity = topic_diversity(order[:, :25].tolist())
    return [*values, diversity, values[1] * diversity, values[2] * diversity]


def _cell(values: Sequence[float]) -> str:
    """The mean and its standard error."""
    error = f" ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{error}"


if __name__ == "__main__":
    main()
