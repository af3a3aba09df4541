"""Image sets: MNIST and OMNIGLOT, found on disk or downloaded and checked."""
