"""Table 2 from a study's folder, as Markdown: ours beside the paper's, references measured here.

    GENGS_DATA=... gengs study table2 --budget small --workers 2 --out runs/table2
    GENGS_DATA=... python -m benchmarks.topics_table runs/table2 > results/topics/table2.md

The unigram model and scikit-learn's LDA are measured when the table is made; LDA's numbers are kept
in the study's folder. Runs that are not done yet are left out.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from safetensors.torch import load_file
from sklearn.decomposition import LatentDirichletAllocation

import gengs
from gengs_experiments.runs.atomic import write_atomically
from gengs_experiments.runs.records import RunFolder
from gengs_experiments.study.plan import Plan, PlannedRun, read_plan
from gengs_experiments.study.published import TABLE2, TABLE2_OTHERS
from gengs_topics.commands.nvpdef_experiment import build_nvpdef
from gengs_topics.metrics import npmi, topic_diversity
from gengs_topics.model.topic_words import top_words
from gengs_topics.text.corpus import Corpus
from gengs_topics.text.text_sets import load_corpus

from .timing import machine
from .topics import lda_perplexity

HEAD = (
    "| model | passes | discrete | refined | discrete, corpus | as trained | KL | NPMI | diversity "
    "| paper |"
)


def unigram(train: Corpus, test: Corpus) -> tuple[float, float]:
    """The unigram model's perplexity, per document and of the corpus."""
    shares = (train.totals() + 0.5).numpy()
    bounds = test.counts @ np.log(shares / shares.sum())
    lengths = test.lengths
    return float(np.exp(-(bounds / lengths).mean())), float(np.exp(-bounds.sum() / lengths.sum()))


def lda(folder: Path, name: str, train: Corpus, test: Corpus, topics: int) -> list[float]:
    """LDA's perplexities, coherence and diversity, measured once for a study."""
    file = folder / f"lda-{name}-{topics}.json"
    if not file.exists():
        model = LatentDirichletAllocation(topics, random_state=0).fit(train.counts)
        first = np.argsort(-model.components_, 1)[:, :10]
        words = [[train.vocabulary[k] for k in row] for row in first]
        facts = [float(npmi(words, train).mean()), topic_diversity(words)]
        write_atomically(file, json.dumps([*lda_perplexity(model, test), *facts]).encode())
    return [float(number) for number in json.loads(file.read_text())]


def last_evaluation(folder: Path) -> dict[str, Any] | None:
    """The last evaluation of a run that is done."""
    if not (folder / "weights.safetensors").exists():
        return None
    found = [r for r in RunFolder.load_records(folder) if r["kind"] == "evaluation"]
    return found[-1] if found else None


def published(run: PlannedRun) -> str:
    """The paper's number in the same place, "—" for its dash, nothing where there is none."""
    data, row, column = (run.labels[key] for key in ("data", "row", "column"))
    table = {**TABLE2.get(data, {}), **TABLE2_OTHERS.get(data, {})}
    if column not in table.get(row, {}):
        return ""
    value = table[row][column]
    return "—" if value is None else f"{value:.0f}"


def coherence(run: PlannedRun, folder: Path) -> tuple[float, float]:
    """NPMI and diversity of the topics' first words, from the weights: the same ranking for all."""
    train, test = load_corpus(run.config.corpus)
    model: Any = build_nvpdef(run.config, train, test)[0].modules["model"]
    weights = load_file(folder / "weights.safetensors")
    model.load_state_dict({name.removeprefix("model."): w for name, w in weights.items()})
    words = [topic.words for topic in top_words(model, train.vocabulary)]
    return float(npmi(words, train).mean()), topic_diversity(words)


def line(run: PlannedRun, found: dict[str, Any], folder: Path) -> str:
    coherent, diverse = coherence(run, folder)
    cells = [
        run.labels["row"],
        str(run.config.epochs),
        f"{found['perplexity_test']:.1f}",
        f"{found['perplexity_refined']:.1f}" if "perplexity_refined" in found else "",
        f"{found['perplexity_test_corpus']:.1f}",
        f"{found['perplexity_relaxed']:.1f}",
        f"{found['kl_test']:.1f}",
        f"{coherent:.3f}",
        f"{diverse:.2f}",
        published(run),
    ]
    return f"| {' | '.join(cells)} |"


def write_table(plan: Plan, folder: Path, data: str, column: str) -> int:
    """Print one table; how many of its runs are not done."""
    runs = [r for r in plan.runs if r.labels["data"] == data and r.labels["column"] == column]
    if not runs:
        return 0
    done = [(run, folder / "runs" / run.id) for run in runs]
    lines = [
        (found["perplexity_test"], line(run, found, place))
        for run, place in done
        if (found := last_evaluation(place))
    ]
    if not lines:
        return len(runs)
    print(f"## {data}, {column}, {runs[0].config.topics} topics\n")
    print(HEAD)
    print("| --- |" + " ---: |" * 9)
    if column == "1 layer":
        train, test = load_corpus(data)
        document, corpus = unigram(train, test)
        print(f"| unigram |  | {document:.1f} |  | {corpus:.1f} |  |  |  |  |  |")
        document, corpus, *facts = lda(folder, data, train, test, runs[0].config.topics)
        shown = f"{facts[0]:.3f} | {facts[1]:.2f} | {'1091' if data == '20news' else ''}"
        print(f"| scikit-learn LDA |  |  | {document:.1f} | {corpus:.1f} |  |  | {shown} |")
    for _, text in sorted(lines):
        print(text)
    print()
    return len(runs) - len(lines)


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/table2")
    plan = read_plan(folder)
    seeds = sorted({run.seed for run in plan.runs})
    print("# Table 2: Poisson topic models, test perplexity\n")
    print("```")
    print(f"GENGS_DATA=... gengs study table2 --budget {plan.budget} --workers 2 --out {folder}")
    print(f"GENGS_DATA=... python -m benchmarks.topics_table {folder} > results/topics/table2.md")
    print("```\n")
    print(
        f"Seeds {', '.join(map(str, seeds))}. {machine()}, gengs {gengs.__version__}, scikit-learn "
        f"{sklearn.__version__}, Python {platform.python_version()}.\n"
    )
    print(
        "Smaller is better. *Discrete* is the perplexity of the ELBO with ten exact draws per "
        "document, per document and of the corpus. *Refined* is the first of them after twenty "
        "steps of descent on each test document's own bound, from the encoder's posterior. *As "
        "trained* is the estimator's own value: for GenGS that of relaxed counts, which is no "
        "perplexity of the discrete model, and most likely what the paper prints; for VIMCO a "
        "multi-sample bound. KL is in nats per document. NPMI (coherence) and diversity are those "
        "of ten words of each topic. Paper: where it has a number for the same data; reuters "
        "stands in for RCV1 and has none. LDA's line is its own bound, with topics fixed; it looks "
        "for each document's best posterior, too.\n"
    )
    print(
        "The paper's models have the passes of the budget, so they are not at their best; those "
        "with our defaults (*ours*, *NVDM, by document*) have the default number. *Ours* weighs "
        "all documents the same in training, which is what the per-document perplexity measures; "
        "*NVDM, by document* does so too.\n"
    )
    missing = 0
    for data in dict.fromkeys(run.labels["data"] for run in plan.runs):
        for column in ("1 layer", "2 layers"):
            missing += write_table(plan, folder, data, column)
    if missing:
        print(f"{missing} of {len(plan.runs)} runs are not done; the first command goes on.")


if __name__ == "__main__":
    main()
