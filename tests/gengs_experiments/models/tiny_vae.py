"""A VAE so small that everything about it can be enumerated."""

import torch
from torch import nn
from torch.distributions import Poisson

import gengs
from gengs_experiments.models import VAE, mlp

PIXELS, LATENTS, LEVEL = 5, 2, 4
IMAGES = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 1, 0, 1.0]], dtype=torch.float64)


def tiny(estimator=None, posterior="explicit", prior=None, **settings):
    """Two latents, few atoms: everything can be enumerated."""
    torch.manual_seed(5)
    settings = {"level": LEVEL, "latents": LATENTS} | settings
    width = {"implicit": LEVEL, "tilted": 2}.get(posterior, 1)
    encoder, decoder = mlp([PIXELS, LATENTS * width]), mlp([LATENTS, 8, PIXELS], nn.Tanh)
    prior = Poisson(torch.tensor(1.3)) if prior is None else prior
    return VAE(encoder, decoder, prior, estimator or gengs.RLOO(4), posterior, **settings).double()
