"""Pictures that runs left: reconstructions and samples of the prior.

One run of a setting stands for all its seeds, the first that has the picture. A file that is no PNG
is left out, and the reason is shown in its place.
"""

from __future__ import annotations

__all__ = ["Exhibit", "gallery"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .reading import Picture, Unreadable, read_picture
from .runs import Run
from .settings import Setting

FILES = {
    "reconstructions.png": "originals, each row over its reconstructions",
    "samples.png": "samples of the prior",
}
MOST = 120
"""More pictures than this make a page too heavy to open."""


@dataclass(frozen=True)
class Exhibit:
    """The pictures of one setting."""

    setting: Setting
    seed: int | None
    pictures: Mapping[str, Picture]
    problems: tuple[str, ...] = ()


def gallery(settings: Mapping[Setting, Sequence[Run]]) -> list[Exhibit]:
    """The exhibits, in the order of the settings."""
    exhibits: list[Exhibit] = []
    count = 0
    for setting, runs in settings.items():
        for run in runs:
            if run.folder is None or count >= MOST:
                continue
            pictures, problems = _pictures(run)
            if pictures or problems:
                exhibits.append(Exhibit(setting, run.seed, pictures, tuple(problems)))
                count += len(pictures)
                break
    return exhibits


def _pictures(run: Run) -> tuple[dict[str, Picture], list[str]]:
    pictures, problems = {}, []
    for name, title in FILES.items():
        if run.folder is not None and (run.folder / name).exists():
            try:
                pictures[title] = read_picture(run.folder / name)
            except Unreadable as problem:
                problems.append(str(problem))
    return pictures, problems
