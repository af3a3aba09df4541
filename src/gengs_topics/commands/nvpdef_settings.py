"""The settings of ``gengs nvpdef``: a topic model on a published corpus."""

from __future__ import annotations

__all__ = ["NvpdefConfig"]

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gengs_experiments.runs.config import check_least, check_positive

from ..model.topic_defaults import DEFAULTS

if TYPE_CHECKING:
    from ..text.corpus import Corpus


@dataclass(frozen=True)
class NvpdefConfig:
    """What is trained: everything here changes the numbers, and nothing else does."""

    corpus: Literal["sample", "20news", "reuters", "rcv1-sample", "rcv1", "imdb"] = "sample"
    """The documents: the sample needs no download."""
    model: Literal["nvpdef", "nvdm"] = "nvpdef"
    """Poisson topics, or Gaussian ones as a reference (of the estimator only its number of draws is
    used then)."""
    topics: int = 50
    """The number of topics."""
    super_topics: tuple[int, ...] = ()
    """The sizes of the layers above the topics, the uppermost first."""
    rates: tuple[float, ...] = (DEFAULTS.rate,)
    """The prior's rate in each layer, the uppermost first; one number for all."""
    level: int | None = DEFAULTS.level
    """Truncate the distributions to this many atoms; 0 for none (explicit posteriors only)."""
    posterior: Literal["explicit", "implicit", "tilted"] = DEFAULTS.posterior
    """Poisson; any PMF on the atoms; or the prior, moved and narrowed."""
    stack: Literal["chain", "mean-field", "generative"] = DEFAULTS.stack
    """With super-topics: samples feed rates, rates feed rates, or the upper layers are a prior."""
    words: Literal["urn", "multinomial"] = DEFAULTS.words
    """A Pólya urn, from which a word that has occurred is likelier to come again; or independent
    draws."""
    learn_rates: bool = False
    """Learn a rate of the uppermost prior for each latent."""
    estimator: str = DEFAULTS.gradient
    """The gradient estimator with its settings: MidCDF(2), "GenGS(samples=10)", "RLOO(4)" ..."""
    inner_estimator: str | None = None
    """That of the layers after the first; by default the same. Draws of layers multiply."""
    temperature: tuple[float, float] = (0.5, 0.5)
    """From where to where the temperature of GenGS falls, by the same factor in each step; a
    temperature among the estimator's own settings is left alone."""
    hidden: tuple[int, ...] = DEFAULTS.hidden
    """The widths of the encoder's layers."""
    activation: Literal["relu", "silu", "softplus", "tanh"] = "relu"
    """Between them."""
    dropout: float = 0.0
    """The share of the encoder's features that is dropped while training."""
    thinning: float = 0.0
    """The share of a document's tokens that is hidden from the encoder while training."""
    batch_norm: bool = False
    """Normalise the encoder's layers."""
    weight_decay: float | None = DEFAULTS.weight_decay
    """Of the encoder's matrices, decoupled from the gradient (AdamW); by default 3, or 10 where
    texts have a dozen words."""
    topic_penalty: float = DEFAULTS.topic_penalty
    """The weight of the Gaussian prior on the topics' entries."""
    weigh: Literal["documents", "tokens"] = "documents"
    """Whether all documents count the same in the training loss, or all tokens."""
    turn: bool = True
    """Rotate the topics by varimax after a third of the steps, so that each has few words."""
    batch_size: int = 64
    """Documents in a step."""
    learning_rate: float = 2e-3
    """Of Adam."""
    decay: Literal["cosine", "none"] = "cosine"
    """How the learning rate falls to zero."""
    epochs: int = DEFAULTS.epochs
    """How often to go through the documents."""
    kl_warm_up: int = 0
    """Let the weight of the divergence rise from 0 to 1 over this many steps."""
    clip: float | None = None
    """Scale the gradient down to at most this norm."""
    validation: float = 0.0
    """Hold out this share of the training documents; which ones depends on nothing else."""
    evaluate_every: int | None = None
    """Evaluate after each so many epochs; by default at the end alone."""
    draws: int = 10
    """Exact draws per document in an evaluation, averaged in the bound."""
    refine: int = 0
    """Steps that refine each test document's posterior, for a second perplexity; 0 for none."""
    importance_draws: int = 0
    """Draws for the importance-sampled likelihood; 0 for none."""
    test: bool = True
    """Whether to evaluate on the test documents: not while settings are being chosen."""
    seed: int = 0
    """Of weights, order of the documents, and draws."""

    def check(self) -> None:
        """Numbers out of range, by the names of their options: before the training, not after."""
        ones = ("topics", "super_topics", "hidden", "batch_size", "epochs", "evaluate_every")
        zeros = ("level", "refine", "importance_draws", "kl_warm_up", "seed")
        least = {"draws": 1, "weight_decay": 0, "topic_penalty": 0}
        check_least(self, least | dict.fromkeys(ones, 1) | dict.fromkeys(zeros, 0))
        check_positive(self, "learning_rate", "clip")
        if not 0 <= self.validation < 1:
            raise ValueError(f"expected a `validation` in [0, 1), but got {self.validation}.")

    def load(self, data_dir: Path | None) -> tuple[Corpus, Corpus]:
        """The documents to train on, and those to test on."""
        from ..text import load_corpus

        return load_corpus(self.corpus, data_dir)

    def remark(self, values: Mapping[str, Any]) -> str:
        """Nothing is wrong."""
        return ""
