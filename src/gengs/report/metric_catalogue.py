"""What the report knows of each experiment: its metrics, which way is better, and its words."""

__all__ = ["EXPERIMENT_VIEWS", "ExperimentView", "Metric", "metrics_of", "view_of"]

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One number of an evaluation."""

    key: str  # its name in the records
    title: str  # its name for people
    better: int = 0  # which way is better: -1 for less, 1 for more, 0 for neither
    published: bool = False  # whether the paper's tables can be compared with it
    digits: int | None = None  # after the point, where no error says how many
    tabulated: bool = True  # whether it has a table of its own, estimators by conditions
    ideal: float | None = None  # the best possible value, where there is one
    absent: str = ""  # why an estimator may not have it


@dataclass(frozen=True)
class ExperimentView:
    """How an experiment is shown."""

    title: str
    metrics: tuple[Metric, ...] = ()  # as in a table; the section opens on the first one
    intro: str = ""
    condition: str = "condition"  # what estimators are compared on
    row_setting: str = ""  # the setting that names a condition, where a run has no labels
    repeats: str = "runs"  # what a mean is over
    headline: str = ""  # what the first metric is called in a sentence about the best
    many_estimators: bool = False  # whether one run compares several


_OTHER = "another objective"
_EVALUATIONS = Metric("evaluations", "evals", tabulated=False)
_MILLISECONDS = Metric("milliseconds", "ms", -1, digits=2)

EXPERIMENT_VIEWS = {
    "measure": ExperimentView(
        "Laboratory",
        (
            Metric("bias", "bias", ideal=0.0, absent=_OTHER),
            Metric("variance", "variance", -1),
            Metric("error", "error of one gradient", -1),
            Metric("cosine", "cosine", 1, digits=3),
            _EVALUATIONS,
            _MILLISECONDS,
        ),
        "Independent gradients of each estimator against the exact one: how far off on average "
        "(bias), how spread (variance), at which price.",
        condition="law",
        row_setting="law",
        repeats="gradients",
        many_estimators=True,
    ),
    "synthetic": ExperimentView(
        "A problem with a known answer",
        (
            Metric("excess", "loss − min", -1),
            Metric("variance", "variance", -1),
            Metric("bias", "|bias|", ideal=0.0, absent=_OTHER),
            Metric("error", "error of one gradient", -1, absent=_OTHER),
            _EVALUATIONS,
            _MILLISECONDS,
        ),
        "Minimise E Σ (z − t)² over the parameter of a law, one gradient a step. Loss, gradient "
        "and minimum have closed forms, so every number is a distance from a known answer.",
        condition="law",
        row_setting="law",
        repeats="seeds",
        headline="loss above the minimum",
        many_estimators=True,
    ),
    "vae": ExperimentView(
        "Count-latent VAEs",
        (
            Metric("nelbo_test", "−ELBO, test", -1, digits=2),
            Metric("nelbo_train", "−ELBO, train", -1, published=True, digits=2),
            Metric("relaxed_train", "as trained", -1, published=True, digits=2),
            Metric("kl_test", "KL", digits=2, tabulated=False),
            Metric("active_units", "active latents", digits=1, tabulated=False),
            Metric("nll_test", "−log p, test", -1, digits=2),
        ),
        "The negative ELBO in nats for an image, less is better. −ELBO takes exact, discrete "
        "draws; “as trained” is the value that the estimator itself descends on, which is no bound "
        "where it is relaxed. The paper’s GenGS columns are most likely such values.",
        condition="prior",
        row_setting="prior",
        headline="discrete negative ELBO on test images",
    ),
    "nvpdef": ExperimentView(
        "Topic models",
        (
            Metric("perplexity_test", "perplexity", -1, published=True, digits=0),
            Metric("perplexity_relaxed", "as trained", -1, published=True, digits=0),
            Metric("perplexity_test_corpus", "over the corpus", -1, digits=0),
            Metric("perplexity_refined", "refined", -1, digits=0),
            Metric("perplexity_validation", "validation", -1, digits=0),
            Metric("perplexity_importance", "importance-sampled", -1, digits=0),
            Metric("kl_test", "KL", digits=2, tabulated=False),
            Metric("npmi", "coherence (NPMI)", 1, digits=3),
            Metric("diversity", "diversity", 1, digits=2),
        ),
        "Test perplexity, less is better. “as trained” is that of relaxed counts, which is no "
        "perplexity of the discrete model.",
        condition="layers",
        row_setting="super_topics",
        headline="discrete test perplexity",
    ),
}
"""The experiments in the order of the page."""


def view_of(experiment: str) -> ExperimentView:
    """How an experiment is shown, be it known or not."""
    return EXPERIMENT_VIEWS.get(experiment, ExperimentView(experiment))


def metrics_of(experiment: str, found: Iterable[str]) -> list[Metric]:
    """The metrics that were found, the known ones first and the rest under their own names."""
    keys = list(dict.fromkeys(found))
    known = [metric for metric in view_of(experiment).metrics if metric.key in keys]
    named = {metric.key for metric in known}
    return known + [Metric(key, key.replace("_", " ")) for key in keys if key not in named]
