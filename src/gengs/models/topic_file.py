"""A fitted ``TopicModel`` as one file: tensors in safetensors, all else as JSON in its header.

One file is written in one step, so it is the old model or the new one, never half of each. It is
read as data: nothing in it is executed. The optimiser's memory is not kept; ``partial_fit`` after
``load`` starts it afresh.
"""

from __future__ import annotations

__all__ = ["load_topic_model", "save_topic_model"]

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..study.atomic import write_atomically
from ..study.config import nearest
from .topic_fit import TopicFit
from .topic_settings import NETWORK, settings_of

_FORMAT, _VERSION = "gengs topic model", 1
# settings that say how to run, or that cannot be written
_LEFT_OUT = ("on_epoch", "verbose")

Model = TypeVar("Model")


def save_topic_model(model: Any, path: Path) -> None:
    """Write a fitted model, atomically."""
    from safetensors.torch import save

    names = [name for name in model.get_params(deep=False) if name not in (*_LEFT_OUT, *NETWORK)]
    # the network's own settings are those it was made with, whatever was set since
    settings = {**vars(settings_of(model, *names)), **model._built}
    facts = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": {name: _plain(value) for name, value in settings.items()},
        "words": int(model.n_features_in_),
        "named_columns": hasattr(model, "feature_names_in_"),
        "vocabulary": model.vocabulary_,
        "epochs": model.trainer_.epochs,
        "seed": model.trainer_.seed,
        "history": model.trainer_.history,
    }
    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in model.network_.state_dict().items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, save(tensors, {"gengs": json.dumps(facts)}))


def load_topic_model(kind: type[Model], path: Path) -> Model:
    """Read a model that :func:`save_topic_model` wrote.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or something else.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no topic model {path}.")
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {}).get("gengs", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged, or not a topic model.") from error
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise ValueError(f"expected a topic model of gengs, but {path} is something else.")
    if facts.get("version") != _VERSION:
        raise ValueError(
            f"expected version {_VERSION} of a topic model, but {path} has {facts.get('version')}."
        )
    try:
        return _rebuilt(kind, facts, tensors, path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the description of the model in {path} is damaged: {error!r}") from error


def _rebuilt(kind: Any, facts: dict[str, Any], tensors: dict[str, Any], path: Path) -> Any:
    known = kind().get_params(deep=False)
    settings = facts["settings"]
    for name in settings:
        if name not in known:
            raise ValueError(f"unknown setting {name!r} in {path}{nearest(name, known)}")
    model = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})
    model.n_features_in_ = int(facts["words"])
    model.vocabulary_ = facts["vocabulary"]
    if facts["named_columns"]:
        model.feature_names_in_ = np.array(facts["vocabulary"], dtype=object)
    model._build(model.n_features_in_)
    try:
        model.network_.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} do not fit its settings: {error}") from error
    own = settings_of(model)
    model.trainer_ = TopicFit(
        model.network_, own.learning_rate, own.weight_decay, int(facts["seed"])
    )
    model.trainer_.epochs, model.trainer_.history = int(facts["epochs"]), list(facts["history"])
    model.n_iter_ = model.trainer_.epochs
    return model


def _plain(value: Any) -> Any:
    """JSON of a setting; a generator object has none, and becomes no seed."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else None
