"""Data files: found, downloaded from a local server, continued, refused."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from gengs.data import RemoteFile, archive, fetch, images, load_images

CONTENT = bytes(range(256)) * 2000  # half a megabyte
SIZE = len(CONTENT)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; the path says how badly."""

    def do_GET(self):
        self.server.asked.append(self.headers.get("Range"))
        if self.path == "/missing":
            return self.send_error(404)
        content = b"something else" if self.path == "/other" else CONTENT
        start = 0
        if self.headers.get("Range") and self.path != "/no-ranges":
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = len(content)
        if self.path == "/breaks" or (self.path == "/breaks-once" and len(self.server.asked) == 1):
            stop = start + 100_000
        self.wfile.write(content[start:stop])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.asked = []
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, no pauses, no proxy, no data folder."""
    monkeypatch.setattr(archive, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(archive, "_PAUSE", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GENGS_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def remote(server):
    def make(*pages, checksum=SHA256, size=SIZE):
        urls = tuple(f"http://127.0.0.1:{server.server_port}/{page}" for page in pages)
        return RemoteFile("set/file.bin", checksum, urls, "a test", size)

    return make


def test_a_file_is_downloaded_once(remote, cache, server):
    path = fetch(remote("good"))
    assert path == cache / "set/file.bin" and path.read_bytes() == CONTENT
    assert fetch(remote("good")) == path and len(server.asked) == 1
    assert not list(cache.rglob("*.part"))


def test_md5_and_unknown_size_will_do(remote, cache):
    md5 = "md5:" + hashlib.md5(CONTENT).hexdigest()
    assert fetch(remote("good", checksum=md5, size=None)).read_bytes() == CONTENT


def test_data_folders_come_first(remote, tmp_path, monkeypatch, server):
    for folder in ("mine", "shared"):
        (tmp_path / folder / "set").mkdir(parents=True)
        (tmp_path / folder / "set" / "file.bin").write_bytes(CONTENT)
    monkeypatch.setenv("GENGS_DATA", str(tmp_path / "shared"))
    assert fetch(remote("good")) == tmp_path / "shared/set/file.bin"
    assert fetch(remote("good"), tmp_path / "mine") == tmp_path / "mine/set/file.bin"
    assert not server.asked
    monkeypatch.setenv("GENGS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"nowhere \(from GENGS_DATA\) does not exist"):
        fetch(remote("good"))


def test_a_broken_connection_is_continued(remote, server):
    assert fetch(remote("breaks-once")).read_bytes() == CONTENT
    assert server.asked[0] is None
    assert server.asked[1].startswith("bytes=") and server.asked[1] != "bytes=0-"


def test_a_connection_that_keeps_breaking_is_continued_in_the_next_run(remote, cache, server):
    with pytest.raises(FileNotFoundError, match="run again to continue"):
        fetch(remote("breaks"))
    part = cache / "set/file.bin.part"
    assert CONTENT.startswith(part.read_bytes()) and part.stat().st_size >= 65536
    assert not (cache / "set/file.bin").exists()
    server.asked.clear()
    assert fetch(remote("good")).read_bytes() == CONTENT
    assert server.asked[0] is not None  # from where it stopped
    assert not part.exists()


@pytest.mark.parametrize("page", ["no-ranges", "good"])
def test_useless_parts_do_no_harm(remote, cache, page):
    """From a server that cannot continue; and a part that is longer than the file."""
    part = cache / "set/file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * (100 if page == "no-ranges" else len(CONTENT) + 5))
    assert fetch(remote(page)).read_bytes() == CONTENT


def test_a_wrong_part_is_not_kept(remote, cache):
    part = cache / "set/file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * 1000)
    with pytest.raises(FileNotFoundError, match="checksum of what came is wrong"):
        fetch(remote("good"))
    assert fetch(remote("good")).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(remote, cache):
    with pytest.raises(FileNotFoundError, match="/other: the checksum of what came is wrong"):
        fetch(remote("other"))
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_the_next_address_is_tried(remote, server):
    assert fetch(remote("missing", "other", "good")).read_bytes() == CONTENT
    assert len(server.asked) == 3


def test_the_message_names_file_and_places(remote, cache, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(remote("missing"), tmp_path)
    message = str(caught.value)
    for part in ("set/file.bin", "(a test)", "the server answered 404", "GENGS_DATA"):
        assert part in message
    assert str(cache / "set/file.bin") in message and str(tmp_path) in message
    with pytest.raises(FileNotFoundError, match="not on the network; put it at"):
        fetch(remote())


def test_offline_is_said(cache, monkeypatch):
    def no_network(*_, **__):
        raise requests.ConnectionError("no route")

    monkeypatch.setattr(requests, "get", no_network)
    with pytest.raises(FileNotFoundError, match=r"mnist/train-images.*ConnectionError.*put it at"):
        load_images("mnist")
    with pytest.raises(FileNotFoundError, match=r"omniglot28.npz.*not on the network"):
        load_images("omniglot")


def test_damaged_files_on_disk_are_named(remote, tmp_path):
    path = tmp_path / "set/file.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-7])
    with pytest.raises(ValueError, match="511,993 bytes, but 512,000 were expected"):
        fetch(remote("good"), tmp_path)
    path.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(ValueError, match=r"file.bin has sha256 .*replace or delete it"):
        fetch(remote("good"), tmp_path)


def test_the_published_files_are_described_alike():
    files = [*images.MNIST, *images.STATIC_MNIST, images.OMNIGLOT, images.OMNIGLOT_BURDA]
    for file in files:
        kind, _, digest = file.checksum.partition(":")
        assert len(digest) == {"sha256": 64, "md5": 32}[kind] and int(digest, 16)
        assert ".." not in file.path and not file.path.startswith("/")
        assert all(url.startswith("https://") for url in file.urls)
        assert file.urls or file.origin
