"""Data files: found, downloaded from a local server, tried again, refused."""

import gzip
import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from gengs_experiments.data import IMAGE_SETS, RemoteFile, archive, fetch, load_images
from gengs_topics.text import CORPORA

CONTENT = bytes(range(256)) * 2000  # half a megabyte
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; the path says how badly."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/missing":
            return self.send_error(404)
        once = len(self.server.asked) == 1
        other = self.path == "/other" or (self.path == "/other-once" and once)
        content = b"something else" if other else self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        breaks = self.path == "/breaks" or (self.path == "/breaks-once" and once)
        self.wfile.write(content[: len(content) // 5] if breaks else content)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.asked, httpd.content = [], CONTENT
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
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GENGS_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def remote(server):
    def make(*pages, checksum=SHA256):
        urls = tuple(f"http://127.0.0.1:{server.server_port}/{page}" for page in pages)
        return RemoteFile("set/file.bin", checksum, urls, "a test")

    return make


def test_a_file_is_downloaded_once(remote, cache, server):
    path = fetch(remote("good"))
    assert path == cache / "set/file.bin" and path.read_bytes() == CONTENT
    assert fetch(remote("good")) == path and len(server.asked) == 1
    assert sorted(p.name for p in path.parent.iterdir()) == ["file.bin", "file.bin.lock"]


def test_md5_will_do(remote, cache):
    md5 = "md5:" + hashlib.md5(CONTENT).hexdigest()
    assert fetch(remote("good", checksum=md5)).read_bytes() == CONTENT


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


@pytest.mark.parametrize("page", ["breaks-once", "other-once"])
def test_a_download_is_tried_again(remote, server, page):
    assert fetch(remote(page)).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_connection_that_keeps_breaking_leaves_nothing(remote, cache, server):
    with pytest.raises(FileNotFoundError, match=r"/breaks: no complete answer \(\w+Error\)"):
        fetch(remote("breaks"))
    assert len(server.asked) == 3
    assert sorted(path.name for path in (cache / "set").iterdir()) == ["file.bin.lock"]
    assert fetch(remote("good")).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(remote, cache):
    with pytest.raises(FileNotFoundError, match=r"/other: .*checksum"):
        fetch(remote("other"))
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_the_next_address_is_tried(remote, server):
    assert fetch(remote("missing", "other", "good")).read_bytes() == CONTENT
    assert server.asked[-1] == "/good" and {"/missing", "/other"} <= set(server.asked)


def test_the_message_names_file_and_places(remote, cache, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(remote("missing"), tmp_path)
    message = str(caught.value)
    for part in ("set/file.bin", "(a test)", "the server answered 404", "GENGS_DATA"):
        assert part in message
    assert str(cache / "set/file.bin") in message and str(tmp_path) in message
    with pytest.raises(FileNotFoundError, match="not on the network"):
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
    with pytest.raises(ValueError, match=r"file\.bin.* sha256"):
        fetch(remote("good"), tmp_path)


def test_fashion_mnist_by_name(server, monkeypatch):
    """Its own two files, read after the download; what breaks or is another file is refused."""
    pixels = hashlib.shake_128(b"clothes").digest(5 * 28 * 28)
    head = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (5, 28, 28))
    server.content = gzip.compress(head + pixels, 0)
    checksum = "md5:" + hashlib.md5(server.content).hexdigest()
    files = archive.published("fashion-mnist")

    def served_at(page):
        urls = (f"http://127.0.0.1:{server.server_port}/{page}",)
        served = [replace(file, checksum=checksum, urls=urls) for file in files]
        monkeypatch.setattr(archive, "published", lambda name: served)

    for page, complaint in (
        ("other", "fashion-mnist/train-images.*/other: the checksum of what came is wrong"),
        ("breaks", "fashion-mnist/train-images.*/breaks: no complete answer"),
        ("missing", "fashion-mnist/train-images.*/missing: the server answered 404"),
    ):
        served_at(page)
        with pytest.raises(FileNotFoundError, match=complaint):
            load_images("fashion-mnist")
    server.asked.clear()
    served_at("other-once")
    images = load_images("fashion-mnist")
    assert images.shape == (28, 28) and images.train.shape == images.test.shape == (5, 784)
    assert images.train.numpy().tobytes() == pixels
    assert len(server.asked) == 3  # the first answer was not what it should be


def test_the_published_files_are_described_alike():
    sets = {"mnist", "fashion-mnist", "static-mnist", "omniglot", "omniglot-burda"}
    sets |= {"20news", "reuters", "rcv1-sample", "imdb"}
    assert sets < {*IMAGE_SETS, *CORPORA}
    for file in (file for name in sets for file in archive.published(name)):
        kind, _, digest = file.checksum.partition(":")
        assert len(digest) == {"sha256": 64, "md5": 32}[kind] and int(digest, 16)
        assert ".." not in file.path and not file.path.startswith("/")
        assert all(url.startswith("https://") for url in file.urls)
        assert file.origin
