"""Data sets: found on disk, or downloaded and checked; and fast batches of them."""

from .archive import RemoteFile, fetch
from .batches import Batches
from .images.image_sets import IMAGE_SETS, ImageSet, load_images
from .text.corpus import Corpus
from .text.text_sets import CORPORA, load_corpus

__all__ = [
    "CORPORA",
    "IMAGE_SETS",
    "Batches",
    "Corpus",
    "ImageSet",
    "RemoteFile",
    "fetch",
    "load_corpus",
    "load_images",
]
