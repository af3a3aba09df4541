"""Image sets, their files and their batches."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from gengs_experiments.data import IMAGE_SETS, Batches, archive, batches, image_sets, load_images

DATA = os.environ.get("GENGS_DATA")


def has(*files):
    """Skip where the real files are not at hand."""
    missing = [file for file in files if not DATA or not Path(DATA, file).is_file()]
    return pytest.mark.skipif(bool(missing), reason=f"GENGS_DATA has no {', '.join(missing)}")


# ------------------------------------------------------------------------------------------ sets


def check_set(name, train, test, side, ink):
    loaded = load_images(name)
    assert loaded.train.shape == (train, side * side) and loaded.test.shape == (test, side * side)
    assert loaded.shape == (side, side) and loaded.pixels == side * side
    for part in (loaded.train, loaded.test):
        assert part.dtype == torch.uint8 and part.min() == 0 and part.max() == 255
        assert part.float().mean() / 255 == pytest.approx(ink, abs=0.003)
    return loaded


def test_digits_are_embedded():
    digits = check_set("digits", 1497, 300, 8, 0.305)
    everything = torch.cat([digits.train, digits.test])
    assert len(everything.unique(dim=0)) == 1797  # no image is in both parts
    assert (load_images().train == digits.train).all()


@has("mnist/train-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz")
def test_real_mnist():
    mnist = check_set("mnist", 60_000, 10_000, 28, 0.1315)
    five = mnist.train[0].reshape(28, 28)  # the first image is a 5, drawn upright
    assert five[5, 12:24].float().mean() > 90 and five[:5].sum() == 0
    assert five.long().sum() == 27_525


@has("binarized_mnist/binarized_mnist_train.mat", "binarized_mnist/binarized_mnist_test.mat")
def test_real_static_mnist():
    static = check_set("static-mnist", 50_000, 10_000, 28, 0.1315)
    assert set(static.test.unique().tolist()) == {0, 255}


@has("omniglot/omniglot28.npz")
def test_real_omniglot():
    check_set("omniglot", 24_345, 8_115, 28, 0.0825)


def test_burdas_omniglot_is_turned_upright(tmp_path, monkeypatch):
    """A stand-in with the file's layout: one image per column, MATLAB's order of pixels."""
    first = np.zeros((28, 28))
    first[2, 20] = 0.6  # row 2, column 20
    arrays = {}
    for variable, count in (("data", 24_345), ("testdata", 8_070)):
        arrays[variable] = np.zeros((784, count), dtype=np.float32)
        arrays[variable][:, 0] = first.flatten(order="F")
    path = tmp_path / "chardata.mat"
    scipy.io.savemat(path, arrays, do_compression=True)
    monkeypatch.setattr(image_sets, "fetch_all", lambda name, data_dir: [path])
    loaded = load_images("omniglot-burda")
    assert loaded.train.shape == (24_345, 784) and loaded.test.shape == (8_070, 784)
    assert loaded.train[0].reshape(28, 28)[2, 20] == 153 and loaded.train.sum() == 153


def test_smaller_sets():
    digits = load_images("digits")
    small = digits.take(train=100, test=50)
    assert small.train.shape == (100, 64) and small.test.shape == (50, 64)
    assert (small.train == digits.take(train=100).train).all()
    assert not (small.train == digits.take(train=100, seed=1).train).all()
    with pytest.raises(ValueError, match=r"images for train.* 2000"):
        digits.take(train=2000)


def test_unknown_sets_are_named():
    with pytest.raises(ValueError, match=r"'minst'.* 'mnist'"):
        load_images("minst")
    mnists = ["mnist", "fashion-mnist", "static-mnist"]
    assert list(IMAGE_SETS) == ["digits", *mnists, "omniglot", "omniglot-burda"]


# ----------------------------------------------------------------------------------------- files


def test_no_damaged_file_is_opened(tmp_path):
    """The checksum stands before every reader: bytes that are torn, packed or not, never arrive."""
    for name in ("mnist", "fashion-mnist", "static-mnist", "omniglot", "omniglot-burda"):
        for file in archive.published(name):
            path = tmp_path / file.path
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(b"something else"))
        with pytest.raises(ValueError, match=r"(sha256|md5).* damaged"):
            load_images(name, tmp_path)


def test_idx_files(tmp_path, monkeypatch):
    array = np.random.default_rng(0).integers(0, 256, (7, 4, 3), dtype=np.uint8)
    head = bytes([0, 0, 8, 3]) + np.array(array.shape, ">u4").tobytes()
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(head + array.tobytes()))
    monkeypatch.setattr(image_sets, "fetch_all", lambda name, data_dir: [path, path])
    loaded = load_images("mnist")
    assert loaded.shape == (4, 3) and (loaded.train == torch.from_numpy(array).flatten(1)).all()


# --------------------------------------------------------------------------------------- batches

GREY = torch.arange(1000 * 12, dtype=torch.int64).remainder(256).to(torch.uint8).reshape(1000, 12)


def test_batches_follow_from_seed_and_step():
    one, other = Batches(GREY, 64, seed=3), Batches(GREY, 64, seed=3)
    steps = [20, 3, 0, 3, 31]  # in any order, over several epochs
    assert all((one.at(step) == other.at(step)).all() for step in steps)
    assert not (one.at(3) == Batches(GREY, 64, seed=4).at(3)).all()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one.at(0)
    assert (torch.get_rng_state() == state).all()  # nobody else's generator moves


def test_an_epoch_visits_each_image_once():
    numbered = torch.zeros(250, 2, dtype=torch.uint8)
    numbered[:, 0] = torch.arange(250)
    shuffled = Batches(numbered, 60, binarise="none")
    assert len(shuffled) == 4
    first, second = ((torch.cat(list(shuffled.epoch(e)))[:, 0] * 255).round() for e in (0, 1))
    assert len(first.unique()) == len(second.unique()) == 240
    assert not (first == second).all()
    ordered = Batches(numbered, 60, binarise="none", shuffle=False)
    assert len(ordered) == 5 and len(ordered.at(4)) == 10
    assert ((torch.cat(list(ordered.epoch(1)))[:, 0] * 255).round() == torch.arange(250)).all()


def test_binarisations():
    ordered = {
        how: Batches(GREY, 1000, binarise=how, shuffle=False)
        for how in ("dynamic", "static", "threshold", "none")
    }
    none = ordered["none"].at(0)
    torch.testing.assert_close(none, GREY / 255)
    assert (ordered["threshold"].at(0) == (none > 0.5)).all()
    assert (ordered["static"].at(0) == ordered["static"].at(5)).all()
    again = Batches(GREY, 1000, seed=9, binarise="static", shuffle=False)
    assert (ordered["static"].at(0) == again.at(0)).all()
    assert not (ordered["dynamic"].at(0) == ordered["dynamic"].at(1)).all()
    for how in ("dynamic", "static", "threshold"):
        x = ordered[how].at(0)
        assert x.dtype == torch.float32 and set(x.unique().tolist()) == {0.0, 1.0}
        assert not x[GREY == 0].any() and x[GREY == 255].all()


def test_bernoulli_draws_are_exact():
    """All 256 grey values: chi-square with 254 degrees of freedom, false alarms 1e-6.

    A probability of v / 256 instead of v / 255 would add about 8,000 to it.
    """
    n = 400_000
    total = torch.zeros(256, dtype=torch.float64)
    generator = batches.keyed_generator("test")
    grey = torch.arange(256).to(torch.uint8).expand(n // 20, 256).contiguous()
    for _ in range(20):
        total += batches.bernoulli(grey, generator).double().sum(0)
    p = torch.arange(256, dtype=torch.float64) / 255
    assert total[0] == 0 and total[255] == n
    inner = slice(1, 255)
    chi_square = ((total - n * p)[inner].square() / (n * p * (1 - p))[inner]).sum()
    assert chi_square < 254 + 5.2 * (2 * 254) ** 0.5


def test_wrong_batches_are_named():
    with pytest.raises(TypeError, match="uint8 tensor"):
        Batches(GREY.float(), 10)
    with pytest.raises(ValueError, match=r"1000 images.* 1001"):
        Batches(GREY, 1001)
    with pytest.raises(ValueError, match="dynamic, static, threshold, none"):
        Batches(GREY, 10, binarise="often")


def test_processes_share_a_batch_evenly_or_not_at_all():
    batches = Batches(torch.zeros(12, 4, dtype=torch.uint8), 6)
    assert [len(batches.batch(0, rank, 3)) for rank in range(3)] == [2, 2, 2]
    with pytest.raises(ValueError, match=r"4 processes.* 6"):
        batches.batch(0, 0, 4)
