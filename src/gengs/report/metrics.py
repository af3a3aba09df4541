"""What is measured in each experiment, how it is called, and which way is better."""

from __future__ import annotations

__all__ = ["EXPERIMENT_TITLES", "METRICS", "REPEATS", "Metric", "metrics_of"]

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One number of an evaluation.

    Args:
        key: Its name in the records.
        title: Its name for people.
        better: Which way is better: -1 for less, 1 for more, 0 for neither.
        published: Whether the paper's tables can be compared with it.
        digits: Digits after the point where no error says how many.
        logarithmic: Whether a chart shows it on a log scale.
        tabulated: Whether it has a table of its own, estimators by conditions.
    """

    key: str
    title: str
    better: int = 0
    published: bool = False
    digits: int | None = None
    logarithmic: bool = False
    tabulated: bool = True


EXPERIMENT_TITLES = {
    "measure": "Laboratory",
    "synthetic": "A problem with a known answer",
    "vae": "Count-latent VAEs",
    "topics": "Topic models",
}
"""The experiments in the order of the page."""

REPEATS = {"synthetic": "seeds", "measure": "gradients"}
"""What a mean is over; runs, where nothing else is said."""

METRICS = {
    "vae": (
        Metric("nelbo_train", "−ELBO, train", -1, True, 2),
        Metric("nelbo_test", "−ELBO, test", -1, False, 2),
        Metric("relaxed_train", "as trained", -1, True, 2),
        Metric("kl_test", "KL", 0, False, 2, tabulated=False),
        Metric("active_units", "active latents", 0, False, 1, tabulated=False),
        Metric("nll_test", "−log p, test", -1, False, 2),
    ),
    "topics": (
        Metric("perplexity_test", "perplexity", -1, True, 0),
        Metric("perplexity_relaxed", "as trained", -1, True, 0),
        Metric("perplexity_test_corpus", "over the corpus", -1, False, 0),
        Metric("perplexity_refined", "refined", -1, False, 0),
        Metric("perplexity_validation", "validation", -1, False, 0),
        Metric("perplexity_importance", "importance-sampled", -1, False, 0),
        Metric("kl_test", "KL", 0, False, 2, tabulated=False),
        Metric("npmi", "coherence (NPMI)", 1, False, 3),
        Metric("diversity", "diversity", 1, False, 2),
    ),
    "synthetic": (
        Metric("excess", "loss − min", -1, logarithmic=True),
        Metric("variance", "variance", -1, logarithmic=True),
        Metric("bias", "|bias|", logarithmic=True),
        Metric("error", "error of one gradient", -1, logarithmic=True),
        Metric("evaluations", "evals", tabulated=False),
        Metric("milliseconds", "ms", -1, digits=2),
    ),
    "measure": (
        Metric("bias", "bias", 0),
        Metric("variance", "variance", -1, logarithmic=True),
        Metric("error", "error of one gradient", -1, logarithmic=True),
        Metric("cosine", "cosine", 1, digits=3),
        Metric("evaluations", "evals", tabulated=False),
        Metric("milliseconds", "ms", -1, digits=2),
    ),
}
"""The metrics by experiment, in the order of a table."""


def metrics_of(experiment: str, found: Iterable[str]) -> list[Metric]:
    """The metrics that were found, the known ones first and the rest under their own names."""
    keys = list(dict.fromkeys(found))
    known = [metric for metric in METRICS.get(experiment, ()) if metric.key in keys]
    named = {metric.key for metric in known}
    return known + [Metric(key, key.replace("_", " ")) for key in keys if key not in named]
