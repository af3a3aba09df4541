"""Where a data file is: in your folder, in the cache, or on the network.

Files are looked for in this order:

1. the folder given as ``data_dir``, else the one in the environment variable ``GENGS_DATA``, as
   ``mnist/train-images-idx3-ubyte.gz`` and so on;
2. the cache folder (``~/.cache/gengs`` on Linux), in the same layout;
3. the public addresses of the file, from which it is downloaded into the cache. A download that
   breaks off is continued where it stopped, now or in the next run.

Wherever it comes from, its checksum is compared before anybody opens it.
"""

from __future__ import annotations

__all__ = ["RemoteFile", "cache_folder", "fetch"]

import os
import time
from dataclasses import dataclass
from pathlib import Path

import filelock
import pooch
import requests

_ATTEMPTS, _PAUSE = 3, 1.0
_TIMEOUT = (10, 30)  # seconds: to connect, and between two pieces


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
    size: int | None = None
    """Its length in bytes, where known."""


def fetch(file: RemoteFile, data_dir: str | Path | None = None) -> Path:
    """The path of a data file, downloaded if need be.

    Args:
        file: Which one.
        data_dir: Where to look first, instead of ``GENGS_DATA``.
    """
    given = data_dir or os.environ.get("GENGS_DATA") or None
    folders = [Path(given)] if given else []
    if given and not folders[0].is_dir():
        source = "data_dir" if data_dir else "GENGS_DATA"
        raise FileNotFoundError(f"the data folder {given} (from {source}) does not exist.")
    cached = cache_folder() / file.path
    for path in [*(folder / file.path for folder in folders), cached]:
        if path.is_file():
            _check(path, file)
            return path
    reasons = []
    for url in file.urls:
        try:
            return _download(url, file, cached)
        except (requests.RequestException, OSError, ValueError) as error:
            reasons.append(f"{url}: {_why(error)}")
    looked = " and ".join(str(folder) for folder in [*folders, cache_folder()])
    network = f"not to be had from {'; '.join(reasons)}" if reasons else "not on the network"
    about = f" ({file.origin})" if file.origin else ""
    raise FileNotFoundError(
        f"{file.path}{about} is not in {looked}, and {network}; put it at {cached}, or below a "
        "folder of yours that GENGS_DATA names."
    )


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(pooch.os_cache("gengs"))


def _check(path: Path, file: RemoteFile) -> None:
    kind, _, expected = file.checksum.partition(":")
    if file.size is not None and path.stat().st_size != file.size:
        found = f"{path.stat().st_size:,} bytes, but {file.size:,} were expected"
    elif (actual := pooch.file_hash(str(path), alg=kind)) != expected:
        found = f"{kind} {actual}, but {expected} was expected"
    else:
        return
    raise ValueError(
        f"{path} has {found}: it is damaged, incomplete or another file; replace or delete it."
    )


def _download(url: str, file: RemoteFile, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    # of several processes that want the file, one downloads and the others wait
    with filelock.FileLock(f"{target}.lock"):
        downloader = _Resuming(target.with_name(target.name + ".part"), file.size)
        saved = pooch.retrieve(
            url, file.checksum, fname=target.name, path=target.parent, downloader=downloader
        )
    return Path(saved)


class _Resuming:
    """A downloader for pooch that continues a broken download, here or in the next run."""

    def __init__(self, part: Path, size: int | None) -> None:
        self.part, self.size = part, size

    def __call__(self, url: str, output_file: str, _: object) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._continue(url)
                break
            except requests.HTTPError:
                raise  # the server has answered: asking again changes nothing
            except requests.RequestException:
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(_PAUSE * attempt)
        # pooch compares the checksum next; a wrong file is gone with its temporary name
        self.part.replace(output_file)

    def _continue(self, url: str) -> None:
        done = self.part.stat().st_size if self.part.exists() else 0
        if done and done == self.size:
            return
        # identity: bytes as they are stored, so that a position in the file means something
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
            if answer.status_code == requests.codes.range_not_satisfiable:
                self.part.unlink()
                raise requests.ConnectionError("the partial file is longer than the file itself")
            answer.raise_for_status()
            resumed = answer.status_code == requests.codes.partial_content
            with self.part.open("ab" if resumed else "wb") as out:
                for piece in answer.iter_content(1 << 16):
                    out.write(piece)
                    if self.size is not None and out.tell() > self.size:
                        break  # another file: the checksum will say so


def _why(error: Exception) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.RequestException):
        return f"no complete answer ({type(error).__name__}; run again to continue)"
    if isinstance(error, ValueError):
        return "the checksum of what came is wrong"
    return str(error)
