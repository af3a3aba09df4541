r"""``gengs_topics.TopicModel``: deep Poisson topics with scikit-learn's interface.

.. code-block:: python

    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(stop_words="english", min_df=5)
    counts = vectorizer.fit_transform(texts)
    model = gengs_topics.TopicModel(n_components=20, random_state=0).fit(counts)
    model.topics(vocabulary=vectorizer.get_feature_names_out())
    model.transform(counts)  # documents by topic intensities

Underneath is :class:`gengs_topics.NVPDEF`: each topic is a Poisson count, a network writes its
posterior, and the gradient passes through exact draws by the mid-CDF estimator. It starts from an
NMF of the documents (:mod:`.topic_start`).
"""

__all__ = ["TopicModel"]

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import pad

from gengs.estimators.spec import parse_estimator
from gengs_experiments.data.sparse_rows import CompressedRows

from .bag_encoder import BagEncoder
from .count_input import column_words, read_counts_of
from .document_weights import TopicWeights, starting_shares
from .layers import PosteriorFamily
from .nvpdef import NVPDEF, Stack
from .refinement import fold_rng
from .topic_activity import measure_activity, notes, proportions_of, strongest_topics
from .topic_defaults import DEFAULTS
from .topic_perplexity import completion, perplexity
from .topic_settings import CONSTRAINTS, NETWORK, default_topics, settings_of
from .topic_start import start_topics
from .topic_training import TopicFit, in_order, unchanged_by_failure
from .topic_words import Branch, Topic, branches, top_words
from .word_decoder import WordLaw


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Topics of documents, from word counts.

    Args:
        n_components: The number of topics; those that are hardly used say so (``n_topics_``). By
            default three quarters of the root of the number of documents, at most 50.
        super_topics: The sizes of the layers above the topics, the uppermost first.
        rates: The prior's mean intensity, of all layers or of each; below the last atom.
        level: The number of atoms of an intensity: 0 ... level - 1.
        posterior: ``"tilted"``, ``"implicit"`` or ``"explicit"`` (:mod:`.layers`).
        stack: What feeds what where there are super-topics (:mod:`.nvpdef`).
        words: ``"urn"``, a Pólya urn, from which a word that has occurred is likelier to come
            again, or ``"multinomial"`` (:mod:`.word_decoder`).
        gradient: The gradient estimator with its settings, such as ``"MidCDF(2)"`` (two
            draws of opposite sides), ``"GenGS(0.5)"``.
        hidden: The widths of the encoder's layers.
        dropout: The share of the encoder's features that is dropped while training.
        thinning: The share of a document's tokens hidden from the encoder while training.
        weight_decay: Of the encoder's matrices, decoupled from the gradient (AdamW); by default 3,
            or 10 where texts have a dozen words: topics that these do not carry switch off.
        topic_penalty: The weight of the Gaussian prior on the topics' entries.
        weigh: Whether all documents count the same in training, or all tokens.
        turn: Whether ``fit`` rotates the topics by varimax: of more than a thousand documents after
            a third of its steps, to directions in which each has few words (not with implicit
            posteriors), and at its end, to directions in which each document has few of them, if
            their words are more coherent there (not below super-topics).
        max_iter: The number of passes over the documents; by default 4 to 10, as a rule.
        batch_size: Documents in a step.
        learning_rate: Of Adam; ``fit`` lets it fall to zero along a cosine.
        early_stopping: Hold documents out, and stop when their perplexity rises.
        validation_fraction: How many to hold out, as a share.
        patience: How many passes without progress to wait for.
        n_draws: Exact draws per document in ``perplexity`` and ``score``.
        n_refine: Steps that refine each document's posterior in ``transform``, ``perplexity`` and
            ``score`` (``refinement``): 10 are worth their time where documents are new.
        random_state: A seed, for the same topics again.
        verbose: Whether to print a line after each pass.
        on_epoch: Called with the facts of each pass, for a progress display of your own.

    Attributes:
        network_: The model itself.
        vocabulary_: The words, if the data brought them.

    Example:
        >>> counts = np.random.default_rng(0).poisson(0.3, (40, 12))
        >>> model = TopicModel(3, hidden=(16,), max_iter=2, random_state=0).fit(counts)
        >>> model.transform(counts).shape, model.components_.shape
        ((40, 3), (3, 12))
    """

    _parameter_constraints = CONSTRAINTS

    def __init__(
        self,
        n_components: int | None = None,
        *,
        super_topics: Sequence[int] = (),
        rates: float | Sequence[float] = DEFAULTS.rate,
        level: int = DEFAULTS.level,
        posterior: PosteriorFamily = DEFAULTS.posterior,
        stack: Stack = DEFAULTS.stack,
        words: WordLaw = DEFAULTS.words,
        gradient: str = DEFAULTS.gradient,
        hidden: Sequence[int] = DEFAULTS.hidden,
        dropout: float = 0.0,
        thinning: float = 0.0,
        weight_decay: float | None = DEFAULTS.weight_decay,
        topic_penalty: float = DEFAULTS.topic_penalty,
        weigh: TopicWeights = "documents",
        turn: bool = True,
        max_iter: int | None = None,
        batch_size: int = DEFAULTS.batch_size,
        learning_rate: float = DEFAULTS.learning_rate,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        n_draws: int = 4,
        n_refine: int = 0,
        random_state: Any = None,
        verbose: bool = False,
        on_epoch: Callable[[dict[str, float]], object] | None = None,
    ) -> None:
        given = locals()  # each setting under its own name, unchecked, as scikit-learn asks
        self.__dict__.update({name: given[name] for name in self._parameter_constraints})

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn topics from word counts, documents by words.

        If it fails or is interrupted, the model is what it was before.
        """
        with unchanged_by_failure(self):
            counts = read_counts_of(self, X, reset=True)
            self._begin(counts)
            self.trainer_.run(counts, settings_of(self))
            measure_activity(self.network_, counts, turn=self.turn, settle=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more documents, in one pass at a constant learning rate.

        Topics keep their numbers, whatever their shares become. The first call decides on the
        number of words, on their frequencies to begin with, and on the network; settings of the
        training, such as ``learning_rate``, are read at each call. If a later call is interrupted,
        what it has learned so far stays.
        """
        with unchanged_by_failure(self):
            first = not hasattr(self, "network_")
            counts = read_counts_of(self, X, reset=first)
            if first:
                self._begin(counts)
            self.trainer_.run(counts, settings_of(self, **self._built), epochs=1)
            measure_activity(self.network_, counts, sort=False)
        return self

    def _begin(self, counts: CompressedRows) -> None:
        """A new network, and what trains it."""
        seed = int(check_random_state(settings_of(self).random_state).randint(2**31 - 1))
        with fold_rng(seed):
            shares = starting_shares(counts, settings_of(self).weigh)
            self._build(counts.shape[1], shares, default_topics(counts.shape[0]))
            start_topics(self.network_, counts, seed)
        self.trainer_ = TopicFit(self.network_, seed)

    def _build(self, words: int, unigram: Tensor | None = None, topics: int = 1) -> None:
        """Make the network, of so many topics if no number is set, and note its settings."""
        of = settings_of(self)
        of.n_components = of.n_components or topics
        self._built = {name: getattr(of, name) for name in NETWORK}
        self.network_ = NVPDEF(
            BagEncoder(words, of.hidden, dropout=of.dropout, thinning=of.thinning),
            parse_estimator(of.gradient),
            (*of.super_topics, of.n_components),
            of.rates,
            of.level,
            of.posterior,
            of.stack,
            words=of.words,
            unigram=unigram,
        )
        self._n_features_out = of.n_components

    @property
    def components_(self) -> Any:
        """How much a unit of each topic raises each word's logit, ``(topics, words)``."""
        check_is_fitted(self, "network_")
        return self.network_.topics().numpy()

    @property
    def n_iter_(self) -> int:
        """The number of passes made."""
        return self.trainer_.epochs

    @property
    def n_topics_(self) -> int:
        """The number of topics that are not inactive."""
        check_is_fitted(self, "network_")
        return sum(note != "inactive" for note in notes(self.network_))

    @property
    def history_(self) -> list[dict[str, float]]:
        """The facts of each pass: ``epoch``, ``loss`` and, with early stopping, ``perplexity``."""
        return self.trainer_.history

    def topics(self, top: int = 10, vocabulary: Sequence[str] | None = None) -> list[Topic]:
        """The words that stand for each topic, with their weights; its share, coherence and note.

        They surely occur in its documents more than in others (:mod:`.word_ranking`). After ``fit``
        the largest shares come first. Topics that documents hardly use, or whose words do not
        belong together, say so in their ``note``.

        Args:
            top: How many words.
            vocabulary: The words of the columns, where the data did not bring them.
        """
        check_is_fitted(self, "network_")
        return top_words(self.network_, column_words(self, vocabulary), top)

    def hierarchy(self, top: int = 5) -> list[Branch]:
        """For each super-topic the sub-topics it raises most; empty without super-topics."""
        check_is_fitted(self, "network_")
        return branches(self.network_, top)

    def transform(self, X: Any) -> Any:
        """The posterior mean intensity of each topic in each document, ``(documents, topics)``.

        They are around the prior's mean, ``rates``: features for a classifier. To read, see
        :meth:`proportions` and :meth:`strongest`.
        """
        return self._read(X)[0].float().numpy()

    def proportions(self, X: Any) -> Any:
        """How much of each document is about each topic, ``(documents, topics)``; rows sum to one.

        By how much each rises above the others (:mod:`.topic_activity`); if none does, all are
        equal.
        """
        return proportions_of(self.network_, *self._read(X)).float().numpy()

    def strongest(self, X: Any, top: int = 3, least: float = 0.0) -> list[list[tuple[int, float]]]:
        """For each document the topics that rise above the others in it, and by how much.

        A text without a known word has none (:mod:`.topic_activity`).

        Args:
            X: Word counts.
            top: At most so many; inactive topics are never among them.
            least: By at least so many standard deviations of the prior.
        """
        return strongest_topics(self.network_, *self._read(X), top, least)

    @torch.no_grad()
    def _read(self, X: Any) -> tuple[Tensor, Tensor]:
        """The topics' intensities in documents, ``(B, D)``, and the documents' lengths."""
        check_is_fitted(self, "network_")
        counts = read_counts_of(self, X, reset=False)
        self.network_.eval()
        refine, found, lengths = settings_of(self, **self._built).n_refine, [], []
        for x in in_order(counts):
            lengths.append(x.sum(-1))
            # the last few of an array are rounded otherwise: no document's are among them
            whole = pad(x, (0, 0, 0, -len(x) % 16))
            found.append(self.network_.intensities(whole, refine=refine)[: len(x)])
        return torch.cat(found), torch.cat(lengths)

    def perplexity(
        self,
        X: Any,
        per: Literal["document", "corpus"] = "document",
        n_draws: int | None = None,
        given: Any = None,
    ) -> float:
        """The perplexity of documents: of the evidence lower bound, with exact draws.

        Args:
            X: Word counts.
            per: Average over documents (each counts the same), or over all words.
            n_draws: Draws per document, instead of the model's own number.
            given: Counts of other words of the same documents: how well do they predict the words
                of ``X``? (Document completion; the posterior is that of the given words alone.)
        """
        if per not in ("document", "corpus"):
            raise ValueError(f"expected `per` to be 'document' or 'corpus', but got {per!r}.")
        check_is_fitted(self, "network_")
        counts = read_counts_of(self, X, reset=False)
        self.network_.eval()
        of = settings_of(self, **self._built, **({} if n_draws is None else {"n_draws": n_draws}))
        with fold_rng(self.trainer_.seed + 1):  # the same draws each time
            if given is None:
                found = perplexity(self.network_, in_order(counts), of.n_draws, of.n_refine)
            else:
                seen = read_counts_of(self, given, reset=False)
                check_consistent_length(seen, counts)
                pairs = zip(in_order(seen), in_order(counts), strict=True)
                found = completion(self.network_, pairs, of.n_draws, of.n_refine)
        return found.document if per == "document" else found.corpus

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the logarithm of the per-document perplexity: larger is better."""
        return -float(np.log(self.perplexity(X)))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file: safetensors, with the settings as JSON inside.

        ``n_refine`` is one of them: a model that refines is slow after :meth:`load`, too, unless
        that is told otherwise. The optimiser's memory is not in it: ``partial_fit`` starts afresh.
        """
        from .topic_file import save_topic_model

        check_is_fitted(self, "network_")
        save_topic_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, **instead: Any) -> Self:
        """Read what :meth:`save` wrote; data only, nothing is executed.

        Args:
            path: The file.
            instead: Settings in place of those in the file, such as ``n_refine=0``; those that the
                network was made with cannot be replaced.
        """
        from .topic_file import load_topic_model

        return load_topic_model(cls, Path(path), instead)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
