"""A model's folder: the weights, and how to read text for it.

``model.safetensors`` is what :meth:`gengs.TopicModel.save` writes, and ``text.json`` beside it says
how documents were split into words, so that later ones are split the same way.
"""

from __future__ import annotations

__all__ = ["SavedModel", "load_model", "save_model"]

import json
from dataclasses import dataclass
from pathlib import Path

from ..data.words import Words
from ..models.topic_model import TopicModel
from ..study.atomic import write_atomically

_WEIGHTS, _TEXT = "model.safetensors", "text.json"


@dataclass(frozen=True)
class SavedModel:
    """A model, and how to split text for it."""

    model: TopicModel
    words: Words | None
    """None if the model was fitted to counts."""

    @property
    def vocabulary(self) -> list[str]:
        """The words of the columns."""
        return self.model._words(None)


def save_model(folder: Path, model: TopicModel, words: Words | None) -> None:
    """Write the folder; the weights come last."""
    folder.mkdir(parents=True, exist_ok=True)
    text = {"least_letters": None if words is None else words.least_letters}
    write_atomically(folder / _TEXT, (json.dumps(text) + "\n").encode())
    model.save(folder / _WEIGHTS)


def load_model(path: Path) -> SavedModel:
    """The model in a file, in a model's folder, or in the folder of ``gengs topics fit``.

    Raises:
        FileNotFoundError: If there is none, or it is not finished.
        ValueError: If it is damaged.
    """
    file = path
    if path.is_dir():
        places = [path / _WEIGHTS, path / "model" / _WEIGHTS]
        found = [place for place in places if place.is_file()]
        if not found:
            hint = ""
            if (path / "corpus.json").exists():
                hint = "; go on with gengs topics fit ... --resume"
            elif (path / "records.jsonl").exists():
                hint = (
                    ": it is the folder of another command, and gengs topics fit is the one that "
                )
                hint += "writes a model to use on documents"
            raise FileNotFoundError(f"{path} has no finished topic model{hint}.")
        file = found[0]
    model = TopicModel.load(file)
    settings = file.parent / _TEXT
    words = None
    if settings.is_file():
        try:
            least = json.loads(settings.read_bytes())["least_letters"]
            words = None if least is None else Words(int(least))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{settings} is damaged: {error}") from None
    return SavedModel(model, words)
