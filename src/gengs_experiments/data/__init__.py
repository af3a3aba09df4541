"""Data sets: found on disk, or downloaded and checked; and fast batches of them."""

from .archive import RemoteFile, fetch
from .batches import Batches
from .image_sets import IMAGE_SETS, ImageSet, load_images

__all__ = ["IMAGE_SETS", "Batches", "ImageSet", "RemoteFile", "fetch", "load_images"]
