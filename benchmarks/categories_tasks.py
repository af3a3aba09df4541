"""Small models with categorical latents: a VAE, a VQ autoencoder, hard attention.

Each has logits of its latents given a batch, ``(B, L, K)``; a cost of one-hot draws,
``(S, B, L, K)`` to ``(S, B)``; and what is added to it (a divergence).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

from gengs_experiments.data import load_images

Cost = Callable[[Tensor], Tensor]


@lru_cache
def images(name: str) -> tuple[Tensor, Tensor]:
    """Training and test images as rows of black and white pixels."""
    found = load_images(name)
    train, test = (x.flatten(1).float() for x in (found.train, found.test))
    scale = 255 if float(train.max()) > 1 else 1
    return (train / scale > 0.5).float(), (test / scale > 0.5).float()


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Codes(nn.Module):
    """An autoencoder of categorical latents, each a choice of one code of 16 numbers.

    The logits are products of the encoder's 16 numbers with K keys.

    Args:
        data: The images.
        categories: K.
        divergence: Whether the cost includes the divergence from the uniform law: a VAE.
        shared: Whether all latents share one codebook; then the encoder's outputs are normalised
            over the batch, as is common for codebooks.
        latents: Their number, the positions of a code.
    """

    width = 16

    def __init__(
        self, data: str, categories: int, divergence: bool, shared: bool, latents: int = 16
    ) -> None:
        super().__init__()
        self.data, self.categories, self.divergence = data, categories, divergence
        self.latents = latents
        size = self.latents * self.width
        self.encoder, self.decoder = mlp(784, 256, size), mlp(size, 256, 784)
        if shared:
            self.encoder.append(nn.BatchNorm1d(size, affine=False))
        shape, scale = (1 if shared else self.latents, categories, self.width), self.width**-0.5
        self.keys = nn.Parameter(torch.randn(shape) * scale)
        self.codes = nn.Parameter(torch.randn(shape) * scale)

    def batch(self, part: int, size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        x = images(self.data)[part]
        return (x[torch.randint(len(x), (size,), generator=generator)],)

    def logits(self, x: Tensor) -> Tensor:
        query = self.encoder(x).unflatten(-1, (self.latents, self.width))
        return torch.einsum("bld,lkd->blk", query, self.keys.expand(self.latents, -1, -1))

    def cost(self, x: Tensor) -> Cost:
        def cost(z: Tensor) -> Tensor:
            codes = self.codes.expand(self.latents, -1, -1)
            pixels = self.decoder(torch.einsum("sblk,lkd->sbld", z, codes).flatten(2))
            loss = binary_cross_entropy_with_logits(pixels, x.expand_as(pixels), reduction="none")
            return loss.sum(-1)

        return cost

    def added(self, logits: Tensor) -> Tensor:
        if not self.divergence:
            return logits.new_zeros(len(logits))
        log_p = logits.log_softmax(-1)
        return (log_p.exp() * log_p).sum((-1, -2)) + self.latents * math.log(self.categories)


class Recall(nn.Module):
    """Hard attention: which of K slots does the query mean, and what is its class?

    Each slot has a key of eight numbers and one of ten classes. The query is a noisy copy of one
    key, seen through a fixed map. The model picks one slot and names the class.
    """

    latents, width = 1, 8
    mix: Tensor

    def __init__(self, categories: int) -> None:
        super().__init__()
        self.categories = categories
        mix = torch.randn(self.width, self.width, generator=torch.Generator().manual_seed(0))
        self.register_buffer("mix", mix / math.sqrt(self.width))
        self.query, self.key = mlp(self.width, 64, 16), nn.Linear(self.width, 16)
        self.value, self.head = nn.Parameter(torch.randn(10, 16) * 0.25), mlp(16, 32, 10)

    def batch(self, part: int, size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        keys = torch.randn(size, self.categories, self.width, generator=generator)
        classes = torch.randint(10, (size, self.categories), generator=generator)
        meant = torch.randint(self.categories, (size,), generator=generator)
        rows = torch.arange(size)
        noise = 0.1 * torch.randn(size, self.width, generator=generator)
        query = torch.tanh(keys[rows, meant] + noise) @ self.mix
        return query, keys, classes, classes[rows, meant]

    def logits(self, query: Tensor, keys: Tensor, *_: Tensor) -> Tensor:
        return torch.einsum("bd,bkd->bk", self.query(query), self.key(keys)).unsqueeze(1)

    def cost(self, query: Tensor, keys: Tensor, classes: Tensor, target: Tensor) -> Cost:
        def cost(z: Tensor) -> Tensor:
            seen = torch.einsum("sbk,bkc->sbc", z.squeeze(2), one_hot(classes, 10).to(z.dtype))
            named = self.head(seen @ self.value)
            targets = target.expand(named.shape[:2])
            return cross_entropy(named.movedim(-1, 1), targets, reduction="none")

        return cost

    def added(self, logits: Tensor) -> Tensor:
        return logits.new_zeros(len(logits))


TASKS: dict[str, Callable[[int], Codes | Recall]] = {
    "vae": lambda categories: Codes("mnist", categories, divergence=True, shared=False),
    "omniglot": lambda categories: Codes("omniglot", categories, divergence=True, shared=False),
    "vq": lambda categories: Codes("mnist", categories, divergence=False, shared=True),
    "vq-64": lambda categories: Codes("mnist", categories, False, shared=True, latents=64),
    "recall": Recall,
}
