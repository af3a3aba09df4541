"""Images of your own, in all forms, and what is no such thing."""

import gzip
import json
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from gengs_experiments.cli import main
from gengs_experiments.data import load_images

GREY = np.random.default_rng(0).integers(0, 256, (40, 6, 5), dtype=np.uint8)
TEST = GREY[:7] ^ 255


def idx(array):
    return bytes([0, 0, 8, 3]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def pictures(folder, images, mode="L"):
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.fromarray(image).convert(mode).save(folder / f"{number:03}.png")


def rows(images):
    return {row.tobytes() for row in images.reshape(len(images), -1)}


def npz(path):
    np.savez(path / "a.npz", train=GREY, test=TEST, labels=np.arange(40))
    return path / "a.npz"


def keras(path):
    np.savez_compressed(path / "a.npz", x_train=GREY[:, None], x_test=TEST[..., None])
    return path / "a.npz"


def folders_of_pictures(path):
    pictures(path / "a" / "train", GREY, "RGB")
    pictures(path / "a" / "test", TEST)
    return path / "a"


def idx_files(path):
    (path / "a").mkdir()
    (path / "a" / "train-images-idx3-ubyte").write_bytes(idx(GREY))
    (path / "a" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(TEST)))
    return path / "a"


@pytest.mark.parametrize("make", [npz, keras, folders_of_pictures, idx_files])
def test_two_parts(tmp_path, make):
    loaded = load_images(str(make(tmp_path)))
    assert loaded.shape == (6, 5) and loaded.train.dtype == torch.uint8
    assert (loaded.train.numpy() == GREY.reshape(40, 30)).all()
    assert (loaded.test.numpy() == TEST.reshape(7, 30)).all()


def one_array(path):
    np.save(path / "a.npy", GREY)
    return path / "a.npy"


def fractions(path):
    np.savez(path / "a.npz", GREY / 255)
    return path / "a.npz"


def nested_pictures(path):
    pictures(path / "a" / "cats", GREY[:20])
    pictures(path / "a" / "dogs", GREY[20:])
    return path / "a"


def one_idx_file(path):
    (path / "a.gz").write_bytes(gzip.compress(idx(GREY)))
    return path / "a.gz"


@pytest.mark.parametrize("make", [one_array, fractions, nested_pictures, one_idx_file])
def test_a_tenth_is_held_out_where_nothing_is_set_apart(tmp_path, make):
    path = make(tmp_path)
    loaded, again = load_images(str(path)), load_images(str(path))
    assert (len(loaded.train), len(loaded.test)) == (36, 4)
    assert rows(loaded.train.numpy()) | rows(loaded.test.numpy()) == rows(GREY)
    assert loaded.checksum == again.checksum and (loaded.train == again.train).all()


@pytest.mark.parametrize(("shape", "expected"), [((40, 36), (6, 6)), ((40, 30), (1, 30))])
def test_rows_of_pixels(tmp_path, shape, expected):
    np.save(tmp_path / "a.npy", np.eye(*shape) > 0)
    assert load_images(str(tmp_path / "a.npy")).shape == expected


# ------------------------------------------------------------------------------- what is refused


def saved(**arrays):
    return lambda path: np.savez(path / "a.npz", **arrays) or path / "a.npz"


def written(name, content):
    return lambda path: [(path / name).write_bytes(content), path / name][1]


def torn(path):
    npz(path).write_bytes(npz(path).read_bytes()[:-200])
    return path / "a.npz"


def zipped_text(path):
    with zipfile.ZipFile(path / "a.npz", "w") as file:
        file.writestr("a.txt", "hello")
    return path / "a.npz"


def two_sizes(path):
    pictures(path / "a", [GREY[0], GREY[1, :, :4]])
    return path / "a"


def no_picture(path):
    pictures(path / "a", GREY[:2])
    (path / "a" / "001.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 50)
    return path / "a"


def wide_picture(path):
    pictures(path / "a", [np.zeros((1, 5000), np.uint8)])
    return path / "a"


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


BAD = {
    "pickle.npz": (saved(train=np.array([Evil()])), "Python objects, which could run code"),
    "pickle.npy": (
        lambda path: np.save(path / "a.npy", np.array([Evil()])) or path / "a.npy",
        "Python objects, which could run code",
    ),
    "torn": (torn, "is damaged, or no npz file"),
    "text.npz": (written("a.npz", b"hello"), "a.npz is damaged, or no npz file"),
    "text.npy": (written("a.npy", b"hello"), "a.npy is damaged, or no npy file"),
    "zipped text": (zipped_text, "expected arrays in .*a.npz, but a.txt in it is none"),
    "empty.npy": (written("a.npy", b""), "a.npy is damaged, or no npy file"),
    "text": (written("a.txt", b"hello"), "an idx file of images, but .*a.txt is something else"),
    "short idx": (written("a.idx", idx(GREY)[:-1]), "40 x 6 x 5 pixels, but holds 1,199"),
    "labels": (written("a.idx", bytes([0, 0, 8, 1, 0, 0, 0, 0])), "is something else"),
    "torn gzip": (written("a.gz", gzip.compress(idx(GREY))[:-9]), "a.gz is damaged"),
    "several": (saved(a=GREY, b=GREY), "a pair named train and test, but it has a, b"),
    "none": (saved(), "but it has none"),
    "colour": (saved(a=np.ones((4, 6, 5, 3))), r"expected grey images .* \(4, 6, 5, 3\)"),
    "one number": (saved(a=np.float64(3)), r"\(N, height, width\)"),
    "no image": (saved(a=GREY[:0]), r"has \(0, 6, 5\)"),
    "one image": (saved(a=GREY[:1]), "at least two images"),
    "words": (saved(a=np.array([[["a"]]])), "expected numbers"),
    "complex": (saved(a=GREY * 1j), "expected numbers"),
    "nan": (saved(a=np.full((4, 2, 2), np.nan)), "from 0 to 255, or from 0 to 1"),
    "negative": (saved(a=GREY - 1.0), "from 0 to 255, or from 0 to 1, but .* has -1 to 254"),
    "sixteen bits": (saved(a=GREY.astype(np.uint16) * 257), "has 0 to 65535"),
    "black": (saved(a=GREY * 0), "expected images in .*a.npz, but all of its pixels are 0"),
    "one grey": (saved(a=GREY * 0 + 7), "expected images in .*a.npz, but all of its pixels are 7"),
    "white": (saved(a=GREY < 256), "all of its pixels are 1"),
    "parts": (saved(train=GREY, test=TEST[:, :4]), "training have 6 x 5 pixels and .* 4 x 5"),
    "two sizes": (two_sizes, "000.png has 6 x 5 pixels and .*001.png 6 x 4"),
    "no picture": (no_picture, "001.png is damaged, or no PNG file"),
    "wide picture": (wide_picture, "4096 pixels a side, but .* says 1 x 5000"),
    "empty folder": (lambda path: path, "expected PNG files in"),
    "nothing": (lambda path: path / "b.npz", "no such file or folder"),
}


@pytest.mark.parametrize(("make", "sentence"), BAD.values(), ids=BAD)
def test_what_is_no_image_is_refused_in_a_sentence(tmp_path, make, sentence, capsys):
    with pytest.raises(ValueError, match=sentence) as caught:
        load_images(str(make(tmp_path)))
    assert "\n" not in str(caught.value) and capsys.readouterr().out == ""


# ----------------------------------------------------------------------------------- the command

SMALL = ["--network", "64-32", "--latents", "4", "--batch-size", "10", "--no-progress"]


def test_a_run_on_own_images_goes_on_with_the_same_alone(tmp_path, capsys):
    path = one_array(tmp_path)
    arguments = ["vae", "--data", str(path), "--out", str(tmp_path / "run"), *SMALL]
    assert main([*arguments, "--epochs", "1"]) == 0
    record = json.loads((tmp_path / "run" / "records.jsonl").read_text().splitlines()[-1])
    assert record["kind"] == "evaluation" and record["nelbo_test"] > 0
    said = capsys.readouterr().out
    assert "the latents say almost nothing" in said
    assert f"{path}: 36 images to train on, and 4 held out to test on" in said
    # unfinished: as if it had been killed after its checkpoint
    (tmp_path / "run" / "complete.json").unlink()
    np.save(path, GREY[::-1])
    assert main([*arguments, "--epochs", "1", "--resume"]) == 1
    assert "the images of --data are not those" in capsys.readouterr().err


def test_what_is_set_apart_is_not_said_to_be_held_out(tmp_path, capsys):
    arguments = ["vae", "--data", str(npz(tmp_path)), "--out", str(tmp_path / "run"), *SMALL]
    assert main([*arguments, "--epochs", "1"]) == 0
    assert "held out" not in capsys.readouterr().out


def test_the_help_names_the_arrays(capsys):
    with pytest.raises(SystemExit):
        main(["vae", "--help"])
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "train and test, or x_train and x_test, or train_images and test_images" in said
    assert "a tenth" in said and "held out" in said


def test_a_name_that_is_none_is_named(tmp_path, capsys):
    assert main(["vae", "--data", "minst", "--out", str(tmp_path / "run"), *SMALL]) == 2
    assert "did you mean 'mnist'?" in capsys.readouterr().err
