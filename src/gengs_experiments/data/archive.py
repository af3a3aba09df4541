"""Where a data file is: in your folder, in the cache, or on the network.

Files are looked for in the folder given as ``data_dir``, else in the one that the environment
variable ``GENGS_DATA`` names, as ``mnist/train-images-idx3-ubyte.gz`` and so on; then in the cache
folder (``~/.cache/gengs`` on Linux), in the same layout; then at their public addresses, from which
they are downloaded into the cache, in three attempts at each. Wherever a file comes from, its
checksum is compared before anybody opens it. ``published.toml`` lists the files of the data sets.
"""

__all__ = [
    "RemoteFile",
    "cache_folder",
    "data_folders",
    "fetch",
    "fetch_all",
    "not_found",
    "offline",
]

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

_RETRIES = 2
_TIMEOUT = (10, 30)  # seconds: to connect, and between two pieces
_offline: ContextVar[bool] = ContextVar("offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Inside, nothing is downloaded: what is not on this machine is not found."""
    token = _offline.set(True)
    try:
        yield
    finally:
        _offline.reset(token)


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set: its name, its checksum and where it is published."""

    path: str
    """Its place below a data folder, such as ``mnist/train-images-idx3-ubyte.gz``."""
    checksum: str
    """``sha256:...`` or ``md5:...``."""
    urls: tuple[str, ...] = ()
    """Public addresses, the first tried first; none where it can only be put in place by hand."""
    origin: str = ""
    """Who publishes it, in words."""


def published(name: str) -> list[RemoteFile]:
    """The files of a data set, as ``published.toml`` lists them; none of what is embedded."""
    lists = tomllib.loads((files(__package__) / "published.toml").read_text("utf-8"))
    facts = lists.get(name, {"files": {}})
    found = []
    for file, checksum in facts["files"].items():
        urls = tuple(mirror + file for mirror in facts.get("mirrors", ()))
        found.append(RemoteFile(f"{facts['folder']}/{file}", checksum, urls, facts["origin"]))
    return found


def fetch(file: RemoteFile, data_dir: str | Path | None = None) -> Path:
    """The path of a data file, downloaded if need be; ``data_dir`` is looked into first."""
    import pooch

    kind, _, expected = file.checksum.partition(":")
    for folder in data_folders(data_dir):
        if (path := folder / file.path).is_file():
            if (actual := pooch.file_hash(path, kind)) != expected:
                raise ValueError(
                    f"{path} has {kind} {actual}, but {expected} was expected: it is damaged, "
                    "incomplete or another file; replace or delete it."
                )
            return path
    if _offline.get():
        raise not_found(file.path, file.origin, data_dir)
    return _download(file, data_dir)


def fetch_all(name: str, data_dir: str | Path | None = None) -> list[Path]:
    """The paths of the files of a data set, in the order of ``published.toml``."""
    return [fetch(file, data_dir) for file in published(name)]


def data_folders(data_dir: str | Path | None = None) -> list[Path]:
    """Where files are looked for: the folder of the user, if there is one, and the cache."""
    given = data_dir or os.environ.get("GENGS_DATA")
    if not given:
        return [cache_folder()]
    if not Path(given).is_dir():
        source = "data_dir" if data_dir else "GENGS_DATA"
        raise FileNotFoundError(f"the data folder {given} (from {source}) does not exist.")
    return [Path(given), cache_folder()]


def not_found(
    path: str, origin: str, data_dir: str | Path | None, reason: str = ""
) -> FileNotFoundError:
    """The error that says where a file was looked for, and where to put it."""
    looked = " and ".join(map(str, data_folders(data_dir)))
    return FileNotFoundError(
        f"{path}{f' ({origin})' if origin else ''} is not in {looked}{reason}; put it at "
        f"{cache_folder() / path}, or below a folder of yours that GENGS_DATA names."
    )


def cache_folder() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("gengs"))


def _download(file: RemoteFile, data_dir: str | Path | None) -> Path:
    import filelock
    import pooch
    import requests

    cache, reasons = cache_folder(), []
    (cache / file.path).parent.mkdir(parents=True, exist_ok=True)
    for url in file.urls:
        # to a temporary name, which becomes the file's if the checksum is right
        known, place = {file.path: file.checksum}, {file.path: url}
        source = pooch.Pooch(cache, "", known, place, retry_if_failed=_RETRIES)
        try:
            # of several processes that want the file, one downloads and the others wait
            with filelock.FileLock(cache / f"{file.path}.lock"):
                http = pooch.HTTPDownloader(timeout=_TIMEOUT)
                return Path(source.fetch(file.path, downloader=http))
        except requests.HTTPError as error:
            reasons.append(f"{url}: the server answered {str(error).partition(' for url')[0]}")
        except requests.RequestException as error:
            reasons.append(f"{url}: no complete answer ({type(error).__name__})")
        except ValueError:
            reasons.append(f"{url}: the checksum of what came is wrong")
        except OSError as error:
            reasons.append(f"{url}: {error}")
    network = f"not to be had from {'; '.join(reasons)}" if reasons else "not on the network"
    raise not_found(file.path, file.origin, data_dir, f", and {network}")
