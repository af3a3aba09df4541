"""A fitted ``TopicModel`` as one file: tensors in safetensors, all else as JSON in its header.

One file is written in one step, so it is the old model or the new one, never half of each. It is
read as data: nothing in it is executed. The optimiser's memory is not kept; ``partial_fit`` after
``load`` starts it afresh.
"""

__all__ = ["load_topic_model", "save_topic_model"]

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gengs_experiments.runs.atomic import write_atomically
from gengs_experiments.runs.config import nearest

from .topic_settings import NETWORK, settings_of
from .topic_training import TopicFit

_FORMAT, _VERSION = "gengs topic model", 3
# settings that say how to run, or that cannot be written
_LEFT_OUT = ("on_epoch", "verbose")

Model = TypeVar("Model")


def save_topic_model(model: Any, path: Path) -> None:
    """Write a fitted model, atomically."""
    from safetensors.torch import save

    # the network's own settings are those it was made with, whatever was set since
    settings = vars(settings_of(model, **model._built))
    if not isinstance(settings["random_state"], int):  # a generator object has no JSON
        settings["random_state"] = None
    facts = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": {name: settings[name] for name in settings if name not in _LEFT_OUT},
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
    # one entry: several would come in any order, and the same model would not be the same file
    header = json.dumps({"sha256": _digest(facts, tensors), "model": facts})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, save(tensors, {"gengs": header}))


def _digest(facts: dict[str, Any], tensors: dict[str, Any]) -> str:
    """A checksum of a model's description and of its tensors' names, types, shapes and bytes."""
    digest = hashlib.sha256(json.dumps(facts).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def load_topic_model(kind: type[Model], path: Path, instead: dict[str, Any]) -> Model:
    """Read a model that :func:`save_topic_model` wrote, with some settings replaced.

    What is damaged, something else, or cannot be replaced is a ``ValueError``.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no topic model {path}.")
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {}).get("gengs", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged, or not a topic model.") from error
    facts = header.get("model", header) if isinstance(header, dict) else None
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise ValueError(f"expected a topic model of gengs, but {path} is something else.")
    if facts.get("version") != _VERSION:
        raise ValueError(
            f"expected version {_VERSION} of a topic model, but {path} has {facts.get('version')}."
        )
    if header.get("sha256") != _digest(facts, tensors):
        raise ValueError(
            f"{path} is damaged: it is not what was saved. Take a copy of it, or fit the model "
            "again."
        )
    for name in instead:
        if name in NETWORK:
            raise ValueError(f"expected no {name!r}: the model in {path} was made with its own.")
    try:
        model = _rebuilt(kind, facts, tensors, path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the description of the model in {path} is damaged: {error!r}") from error
    return model.set_params(**instead)


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
    model.trainer_ = TopicFit(model.network_, int(facts["seed"]))
    model.trainer_.epochs, model.trainer_.history = int(facts["epochs"]), list(facts["history"])
    return model
