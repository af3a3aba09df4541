"""Topic models: deep Poisson factors of documents, and a Gaussian neighbour."""
