"""Topic models beside their peers, on corpora with labels: one command, resumable.

    GENGS_DATA=... python -m benchmarks.topics_peers [--corpora 20news,rcv1-sample] [--topics 20,50]
        [--seeds 0] [--models nmf,lda,urn] --out runs/peers > results/topics/peers.md

Each model on each corpus with each seed is one JSON file in the folder; what is there is not run
again, so that a killed command goes on, and the table is of what is there. Models are fitted to the
training part and measured on both parts:

- *completion*: perplexity per word of one half of each test document's tokens given the other half,
  averaged over documents; for NMF, whose factors are no probabilities, there is none;
- *topics*: how many are in use; those of ours that say of themselves that they are inactive count
  neither here nor in the next four columns;
- *NPMI in / out*: coherence of ten words of each topic, counted in whole documents of the training
  and of the test part; *TD*: the share of different words among 25 of each topic; *all topics*: the
  product of the last two with the inactive ones;
- *purity, NMI*: of the documents' strongest topics against their labels, test part;
- *accuracy*: of logistic regression on the topics, fitted to the training part, on the test part;
- time of the processor, one thread, for fitting and for transforming the test part, and how far the
  process's resident set has grown.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
import torch
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gengs
import gengs_topics
from gengs_experiments.runs.atomic import write_atomically
from gengs_topics import NVDM, BagEncoder
from gengs_topics.metrics import npmi, topic_diversity
from gengs_topics.model.word_ranking import coherent_first
from gengs_topics.text.corpus import Corpus
from gengs_topics.text.text_sets import load_corpus

from .timing import machine

COLUMNS = {
    "completion": "completion", "topics": "topics", "npmi_in": "NPMI in", "npmi_out": "NPMI out",
    "td": "TD", "product": "NPMI out × TD", "whole": "all topics", "purity": "purity", "nmi": "NMI",
    "accuracy": "accuracy", "fit": "fit, s", "transform": "transform, s", "memory": "MiB",
}  # fmt: skip


class Peer:
    """A model by its topics' words, its documents' topics, and how it completes documents.

    ``active`` says which topics are in use: all of them, where a model does not know.
    """

    def __init__(self, fit: Callable[[Any], object], transform: Callable[[Any], Any],
                 words: Callable[[int], Any], predict: Any = None,
                 active: Callable[[], Any] = lambda: slice(None)) -> None:  # fmt: skip
        self.fit, self.transform, self.words, self.predict = fit, transform, words, predict
        self.active = active


def nmf(topics: int, seed: int, corpus: Corpus, ordered: bool = False) -> Peer:
    """NMF of tf-idf; perhaps with coherent words first, as in ours."""
    weights, model = (
        TfidfTransformer(sublinear_tf=True),
        NMF(topics, random_state=seed, max_iter=400),
    )

    def words(top: int) -> Any:
        scores = model.components_
        scores = coherent_first(scores, corpus.counts) if ordered else scores
        return np.argsort(-scores, 1)[:, :top]

    return Peer(
        lambda x: model.fit(weights.fit_transform(x)),
        lambda x: model.transform(weights.transform(x)),
        words,
    )


def lda(topics: int, seed: int, corpus: Corpus) -> Peer:
    model = LatentDirichletAllocation(topics, random_state=seed)

    def shares() -> Any:
        return model.components_ / model.components_.sum(1, keepdims=True)

    return Peer(
        model.fit,
        model.transform,
        lambda top: np.argsort(-model.components_, 1)[:, :top],
        lambda given, rest: _mixture(model.transform(given), shares(), rest),
    )


def gensim_lda(topics: int, seed: int, corpus: Corpus) -> Peer:
    from gensim.matutils import Sparse2Corpus, corpus2dense  # type: ignore[import-untyped]
    from gensim.models import LdaModel  # type: ignore[import-untyped]

    held: dict[str, Any] = {}

    def rows(x: Any) -> Any:
        return Sparse2Corpus(scipy.sparse.csc_matrix(x), documents_columns=False)

    def fit(x: Any) -> None:
        held["model"] = LdaModel(
            rows(x), topics, id2word=dict(enumerate(corpus.vocabulary)), passes=10,
            random_state=seed, alpha="auto", eta="auto",
        )  # fmt: skip

    def transform(x: Any) -> Any:
        found = held["model"].get_document_topics(rows(x), minimum_probability=0)
        return corpus2dense(found, topics, x.shape[0]).T

    return Peer(
        fit,
        transform,
        lambda top: np.argsort(-held["model"].get_topics(), 1)[:, :top],
        lambda given, rest: _mixture(transform(given), held["model"].get_topics(), rest),
    )


def _mixture(theta: Any, beta: Any, rest: Any) -> Any:
    """The log-probability of each document's words, from its mixture of topics."""
    rest = rest.tocoo()
    logs = np.log(np.einsum("nk,kn->n", theta[rest.row], beta[:, rest.col]).clip(1e-12))
    return np.bincount(rest.row, rest.data * logs, rest.shape[0])


def ours(**settings: Any) -> Callable[[int, int, Corpus], Peer]:
    """``gengs_topics.TopicModel``, with these settings; ``gaussian`` for Gaussian topics."""

    def build(topics: int, seed: int, corpus: Corpus) -> Peer:
        given = dict(settings)
        gaussian = given.pop("gaussian", False)
        model = _Gaussian if gaussian else gengs_topics.TopicModel
        fitted = model(topics, random_state=seed, **given)

        def active() -> list[int]:
            found = enumerate(fitted.topics(1))
            return [number for number, topic in found if topic.note != "inactive"]

        def predict(given: Any, rest: Any) -> Any:
            network = fitted.network_
            parts = []
            for start in range(0, given.shape[0], 256):
                part = slice(start, start + 256)
                known, hidden = (torch.from_numpy(x[part].toarray()).float() for x in (given, rest))
                parts.append(network.predictive(known, hidden, 20).numpy())
            return np.concatenate(parts)

        return Peer(
            fitted.fit,
            fitted.transform,
            lambda top: fitted.network_.word_scores().topk(top, -1).indices.numpy(),
            predict,
            active,
        )

    return build


class _Gaussian(gengs_topics.TopicModel):
    """The Gaussian neighbour, trained as ours is."""

    def _build(self, words: int, unigram: Any = None, topics: int = 1) -> None:
        super()._build(words, unigram, topics)
        network = NVDM(BagEncoder(words, self.hidden), self.n_components, 2, words=self.words,
                       unigram=unigram)  # fmt: skip
        self.network_: Any = network


MODELS: dict[str, tuple[str, Callable[[int, int, Corpus], Peer]]] = {
    "nmf": ("NMF (tf-idf)", nmf),
    "ordered": ("NMF, words in our order", partial(nmf, ordered=True)),
    "lda": ("LDA (scikit-learn)", lda),
    "gensim": ("LDA (gensim, 10 passes)", gensim_lda),
    "gaussian": ("Gaussian topics, urn", ours(gaussian=True)),
    "urn": ("ours, urn", ours()),
    "multinomial": ("ours, multinomial", ours(words="multinomial")),
    "layers": ("ours, urn, 20 super-topics", ours(super_topics=(20,), rates=(3.0, 10.0))),
}
OURS = ("gaussian", "urn", "multinomial", "layers")


def measure(model: str, name: str, topics: int, seed: int) -> dict[str, float]:
    """Everything about one fit."""
    torch.set_num_threads(1)
    train, test = load_corpus(name)
    peer = MODELS[model][1](topics, seed, train)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    peer.fit(train.counts)
    found = {"fit": time.process_time() - begin}
    begin = time.process_time()
    inside, outside = peer.transform(train.counts), None
    begin = time.process_time()
    outside = peer.transform(test.counts)
    found["transform"] = time.process_time() - begin
    found["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    lists, used = peer.words(25), peer.active()
    words = lists[used, :10].tolist()
    found["topics"] = len(words)
    found["npmi_in"] = float(npmi(words, train.counts).mean())
    found["npmi_out"] = float(npmi(words, test.counts).mean())
    found["td"] = topic_diversity(lists[used].tolist())
    found["product"] = found["npmi_out"] * found["td"]
    whole = float(npmi(lists[:, :10].tolist(), test.counts).mean())
    found["whole"] = whole * topic_diversity(lists.tolist())
    if train.labels is not None and test.labels is not None:
        usual = np.median(inside, 0) if model in OURS else 0.0
        strongest = np.argmax(outside - usual, 1)
        table = np.zeros((topics, int(test.labels.max()) + 1))
        np.add.at(table, (strongest, test.labels.astype(int)), 1)
        found["purity"] = table.max(1).sum() / table.sum()
        found["nmi"] = normalized_mutual_info_score(test.labels, strongest)
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        found["accuracy"] = classifier.fit(inside, train.labels).score(outside, test.labels)
    if peer.predict is not None:
        found["completion"] = completion(peer, test.counts)
    return {key: float(value) for key, value in found.items()}


def completion(peer: Peer, documents: Any) -> float:
    """The perplexity per word of one half of each document's tokens, given the other half."""
    counts = scipy.sparse.csr_array(documents).astype(np.int64)
    given = counts.copy()
    given.data = np.random.default_rng(0).binomial(counts.data, 0.5)
    rest = scipy.sparse.csr_array(counts - given)
    lengths = np.asarray(rest.sum(1)).ravel()
    logs = peer.predict(given, rest)[lengths > 0] / lengths[lengths > 0]
    return float(np.exp(-logs.mean()))


def table(folder: Path, name: str, topics: int) -> None:
    """Print the means over seeds of one corpus and number of topics."""
    head = ["model", "seeds", *COLUMNS.values()]
    lines = []
    for model, (title, _) in MODELS.items():
        files = sorted(folder.glob(f"{model}.{name}.{topics}.*.json"))
        runs = [json.loads(file.read_text()) for file in files]
        if runs:
            cells = [_cell(key, [run[key] for run in runs if key in run]) for key in COLUMNS]
            lines.append(f"| {' | '.join([title, str(len(runs)), *cells])} |")
    if lines:
        print(f"## {name}, {topics} topics\n\n| {' | '.join(head)} |")
        print("| --- |" + " ---: |" * (len(head) - 1))
        print("\n".join(lines), "\n")


def _cell(key: str, values: list[float]) -> str:
    """The mean over seeds, and its standard error; not that of times, nor of a count."""
    if not values:
        return ""
    large = ("completion", "fit", "transform", "memory")
    digits = ".0f" if key == "topics" else ".1f" if key in large else ".3f"
    error = ""
    if len(values) > 1 and key not in ("topics", "fit", "transform", "memory"):
        error = f" ± {np.std(values, ddof=1) / len(values) ** 0.5:{digits}}"
    return f"{np.mean(values):{digits}}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", default="20news,reuters,rcv1-sample,imdb")
    parser.add_argument("--topics", default="20,50")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--show", action="store_true", help="run nothing, print what is there")
    parser.add_argument("--one", help="measure this one, in a process of its own")
    given = parser.parse_args()
    if given.one:
        model, name, topics, seed = given.one.split(".")
        print(json.dumps(measure(model, name, int(topics), int(seed))))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    corpora, sizes = given.corpora.split(","), given.topics.split(",")
    jobs = [
        f"{model}.{name}.{topics}.{seed}"
        for seed in given.seeds.split(",")
        for topics in sizes
        for name in corpora
        for model in given.models.split(",")
    ]
    for job in jobs:
        file = given.out / f"{job}.json"
        if not file.exists() and not given.show:
            command = [sys.executable, "-m", "benchmarks.topics_peers", "--one", job]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{job} failed: {done.stderr.splitlines()[-1:]}", file=sys.stderr)
                continue
            write_atomically(file, done.stdout.splitlines()[-1].encode())
    print("# Topic models beside their peers\n")
    print(f"`GENGS_DATA=... python -m benchmarks.topics_peers {' '.join(sys.argv[1:])}`\n")
    print(
        f"{machine()}, gengs {gengs.__version__}, scikit-learn {sklearn.__version__}, Python "
        f"{platform.python_version()}. The columns are explained in `benchmarks/topics_peers.py`. "
        "Means over seeds, ± one standard error; one thread.\n"
    )
    for name in corpora:
        for topics in sizes:
            table(given.out, name, int(topics))


if __name__ == "__main__":
    main()
