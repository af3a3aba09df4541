"""One file per distribution: everything that the library knows of it."""
