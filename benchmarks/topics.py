"""The topic model beside scikit-learn's LDA, and on a corpus that stays on disk.

Time: LDA (50 topics, its defaults, 10 passes) is fitted to 20 Newsgroups; then
``gengs_topics.TopicModel`` with its defaults, until its test perplexity is below LDA's final one,
per document and of the corpus. Its own evaluations do not count. One thread each, and the
processor's time of this process: a busy machine then slows both alike.

Step: a training step with the urn as the law of the words beside one with the multinomial; and
2,500 documents of twelve words from a vocabulary of 5,000, refined.

Memory: a million synthetic documents of 50 words each are written to a folder and read from there,
one pass, in a process of its own; its largest resident set is measured, mapped pages included.

    GENGS_DATA=... python -m benchmarks.topics [lda] [step] [memory] > results/topics/benchmarks.md

LDA's bound on a document, with topics at their mean beta and q(theta) = Dir(gamma), is

    sum_w n_w log sum_k exp(E log theta_k) beta_kw - KL(Dir(gamma) || Dir(alpha)),

larger than the one that scikit-learn's ``perplexity`` uses, which charges for the topics too.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
import torch
from scipy.special import digamma, gammaln
from sklearn.decomposition import LatentDirichletAllocation

import gengs
import gengs_topics
from gengs_experiments.data.batches import Batches
from gengs_topics.model.topic_training import topic_optimizer, topic_task
from gengs_topics.text.corpus import Corpus, write_folder
from gengs_topics.text.text_sets import load_corpus

from .timing import aim, machine, medians

TOPICS = 50
DOCUMENTS, LENGTH, WORDS = 1_000_000, 50, 2_000


def lda_perplexity(lda: Any, corpus: Corpus) -> tuple[float, float]:
    """LDA's perplexity, per document and of the corpus, from its bound."""
    alpha, topics = lda.doc_topic_prior_, len(lda.components_)
    beta = lda.components_ / lda.components_.sum(1, keepdims=True)
    lengths = corpus.lengths
    gamma = lda.transform(corpus.counts) * (topics * alpha + lengths)[:, None]
    log_theta = digamma(gamma) - digamma(gamma.sum(1))[:, None]
    bounds = np.empty(len(corpus))
    for d in range(len(corpus)):
        part = slice(int(corpus.indptr[d]), int(corpus.indptr[d + 1]))
        mixed = np.exp(log_theta[d]) @ beta[:, corpus.indices[part]]
        bounds[d] = corpus.data[part] @ np.log(mixed)
    divergence = (
        gammaln(gamma.sum(1)) - gammaln(gamma).sum(1) - gammaln(topics * alpha)
        + topics * gammaln(alpha) + ((gamma - alpha) * log_theta).sum(1)
    )  # fmt: skip
    bounds -= divergence
    return float(np.exp(-(bounds / lengths).mean())), float(np.exp(-bounds.sum() / lengths.sum()))


class Below(Exception):
    """The model is below the perplexity that was to be reached."""


def time_to_reach(goal: tuple[float, float], train: Corpus, test: Corpus) -> tuple[float, str]:
    """Seconds of training until both perplexities are below ``goal``, and a word on the way."""
    spent, begin = 0.0, time.process_time()
    facts = ""

    def evaluate(epoch: dict[str, float]) -> None:
        nonlocal spent, begin, facts
        spent += time.process_time() - begin
        found = model.perplexity(test), model.perplexity(test, per="corpus")
        passes = int(epoch["epoch"])
        facts = f"{found[0]:.0f} per document, {found[1]:.0f} of the corpus, {passes} passes"
        if found[0] < goal[0] and found[1] < goal[1]:
            raise Below
        begin = time.process_time()

    model = gengs_topics.TopicModel(TOPICS, n_draws=1, random_state=0, on_epoch=evaluate)
    try:
        model.fit(train)
    except Below:
        return spent, facts
    return float("inf"), facts


def lda_table() -> Iterator[str]:
    train, test = load_corpus("20news")
    begin = time.process_time()
    lda = LatentDirichletAllocation(TOPICS, random_state=0).fit(train.counts)
    lda_seconds = time.process_time() - begin
    goal = lda_perplexity(lda, test)
    seconds, facts = time_to_reach(goal, train, test)
    yield "## Time to LDA's perplexity, 20 Newsgroups, 50 topics\n"
    yield "| model | training, CPU time | test perplexity |"
    yield "| --- | ---: | --- |"
    own = float(lda.perplexity(test.counts))
    yield (
        f"| scikit-learn LDA, 10 passes | {lda_seconds:.1f} s | {goal[0]:.0f} per document, "
        f"{goal[1]:.0f} of the corpus ({own:.0f} as scikit-learn counts) |"
    )
    yield f"| gengs_topics.TopicModel, until below | {seconds:.1f} s | {facts} |"
    yield f"\nratio {seconds / lda_seconds:.3f}: {aim(1 / 3, False)}\n"


def training_step(train: Corpus, words: Any) -> Callable[[], object]:
    """A step of the default model on one batch."""
    model = gengs_topics.TopicModel(TOPICS, words=words, max_iter=1, random_state=0)
    model.fit(train.take(range(64)))
    data = Batches(train, model.batch_size, 0)
    optimizer = topic_optimizer(model.network_, model.learning_rate)
    task = topic_task(model.network_, data, optimizer, steps=1000, topic_penalty=0.5)
    batch = data.at(0)
    model.network_.train()

    def step() -> None:
        optimizer.zero_grad()
        task.step(batch)["loss"].backward()  # type: ignore[index]
        optimizer.step()

    return step


def step_table() -> Iterator[str]:
    train, _ = load_corpus("20news")
    laws = ("urn", "multinomial")
    found = medians({words: training_step(train, words) for words in laws}, rounds=40)
    ratio = found["urn"] / found["multinomial"]
    yield "## The urn beside the multinomial\n"
    yield (
        f"A step on 64 documents of 20 Newsgroups, {TOPICS} topics, medians of 200: urn "
        f"{found['urn']:.1f} ms, multinomial {found['multinomial']:.1f} ms, ratio {ratio:.2f}: "
        f"{aim(1.3, False)}.\n"
    )
    shares = 1 / np.arange(1, 5001)
    short = np.random.default_rng(0).multinomial(12, shares / shares.sum(), 2500)
    model = gengs_topics.TopicModel(TOPICS, max_iter=1, random_state=0).fit(short[:600])
    parts = []
    for steps in (0, 10, 20):
        model.set_params(n_refine=steps)
        begin = time.process_time()
        model.transform(short)
        parts.append(f"{time.process_time() - begin:.1f} s with {steps} steps")
    yield f"2,500 short documents, 5,000 words, CPU time of `transform`: {', '.join(parts)}.\n"


def write_synthetic(folder: Path) -> None:
    """A million documents of words with Zipf frequencies, a chunk at a time."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, WORDS + 1)
    steps = np.cumsum(shares / shares.sum())

    def blocks() -> Iterator[Any]:
        for _ in range(0, DOCUMENTS, 10_000):
            tokens = np.sort(np.searchsorted(steps, rng.random((10_000, LENGTH))), 1)
            tokens = tokens.clip(max=WORDS - 1)
            new = np.diff(tokens, axis=1, prepend=-1) > 0
            starts = np.flatnonzero(new)
            counts = np.diff(np.append(starts, tokens.size))
            ends = np.cumsum([0, *new.sum(1)])
            yield scipy.sparse.csr_array(
                (counts, tokens.ravel()[starts], ends), shape=(10_000, WORDS)
            )

    write_folder(folder, blocks(), [f"word{k}" for k in range(WORDS)])


def stream(folder: Path) -> None:
    """One pass over a corpus on disk; prints what it took."""
    torch.set_num_threads(1)
    corpus = Corpus.open(folder)
    begin = time.perf_counter()
    model = gengs_topics.TopicModel(TOPICS, hidden=(100,), batch_size=256, random_state=0)
    model.partial_fit(corpus)
    seconds = time.perf_counter() - begin
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(f"{peak:.0f} {seconds:.0f} {len(corpus)} {corpus.tokens}")


def memory_table() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "corpus"
        write_synthetic(folder)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        command = [sys.executable, "-m", "benchmarks.topics", "--stream", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, seconds, documents, tokens = done.stdout.split()
    yield "## Memory while streaming\n"
    yield (
        f"{int(documents):,} documents, {int(tokens):,} tokens, {WORDS:,} words ({size:.0f} MiB on "
        f"disk), one pass of {TOPICS} topics in {seconds} s: largest resident set {peak} MiB, "
        f"{aim(2048, False)} MiB."
    )


def main() -> None:
    if "--stream" in sys.argv:
        stream(Path(sys.argv[-1]))
        return
    torch.set_num_threads(1)
    print("# Topic model benchmarks\n")
    print("`OMP_NUM_THREADS=1 GENGS_DATA=... python -m benchmarks.topics`\n")
    print(
        f"One run. {machine()}, gengs {gengs.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    tables = {"lda": lda_table, "step": step_table, "memory": memory_table}
    for table in [tables[name] for name in sys.argv[1:]] or tables.values():
        for line in table():
            print(line, flush=True)


if __name__ == "__main__":
    main()
