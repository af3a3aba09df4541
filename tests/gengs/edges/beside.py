"""Several latents beside each other: a vector of independent factors, and its reference."""

import numpy as np
import torch
from reference import binomial, joint_expectation, poisson
from torch.distributions import Bernoulli, Independent, Poisson

FACTORS = [
    ("bernoullis", Bernoulli, lambda p: binomial(p, 1), "probs", [0.3, 0.8, 0.55]),
    ("poissons", Poisson, poisson, "rate", [0.7, 1.6]),
    ("bernoullis, two sure", Bernoulli, lambda p: binomial(p, 1), "probs", [0.0, 1.0, 0.55]),
    ("poissons, one silent", Poisson, poisson, "rate", [0.0, 1.6]),
]
"""Latents beside each other: name, torch's law, its table, the parameter and its values."""


def beside(which, cost, replicates=None):
    """The parameter, the law of the vector, the expectation and the gradient."""
    _, build, table, _, values = which
    tensor = torch.tensor(values, dtype=torch.float64)
    if replicates is not None:
        tensor = tensor.expand(replicates, len(values)).clone()
    value, gradients = joint_expectation([table(np.float64(v)) for v in values], cost)
    tensor.requires_grad_()
    found = np.array([next(iter(gradient.values())) for gradient in gradients])
    return tensor, Independent(build(tensor), 1), value, found
