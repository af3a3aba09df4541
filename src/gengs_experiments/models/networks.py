"""Fully connected encoders and decoders, the two shapes that the literature trains.

The decoder mirrors the encoder: pixels - 512 - 256 - latents, latents - 256 - 512 - pixels.

Example:
    >>> encoder, decoder = mlp_pair("256-128", pixels=784, latents=50, width=12)
    >>> encoder[-1].out_features, decoder[-1].out_features  # 12 logits per latent; 784 pixels
    (600, 784)
"""

__all__ = ["PRESETS", "Preset", "mlp", "mlp_pair"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import nn


@dataclass(frozen=True)
class Preset:
    """The encoder's hidden widths, which the decoder has in reverse, and what makes activations."""

    hidden: tuple[int, ...]
    activation: Callable[[], nn.Module]


PRESETS = {
    "512-256": Preset((512, 256), lambda: nn.LeakyReLU(0.1)),
    "256-128": Preset((256, 128), nn.ReLU),
    "64-32": Preset((64, 32), nn.ReLU),
}
"""By name: the two networks of the literature, and one for small images."""


def mlp(widths: Sequence[int], activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers of these widths, input first, with an activation between them.

    Example:
        >>> [type(layer).__name__ for layer in mlp([784, 256, 50])]
        ['Linear', 'ReLU', 'Linear']
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"mlp expects two or more positive `widths`, but got {list(widths)}.")
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def mlp_pair(
    preset: str | Preset, pixels: int, latents: int, width: int = 1
) -> tuple[nn.Sequential, nn.Sequential]:
    """An encoder and its mirrored decoder.

    Args:
        preset: A name in :data:`PRESETS`, or a :class:`Preset` of your own.
        pixels: What the encoder reads and the decoder writes.
        latents: The number of latent variables.
        width: How many raw parameters the encoder writes for each latent: 2 for a tilted posterior
            or a Gaussian, 1 for an explicit one, the number of atoms for an implicit one.
    """
    if isinstance(preset, str):
        if preset not in PRESETS:
            raise ValueError(
                f"there is no network preset {preset!r}; the presets are: {', '.join(PRESETS)}."
            )
        preset = PRESETS[preset]
    down, up = preset.hidden, preset.hidden[::-1]
    encoder = mlp([pixels, *down, latents * width], preset.activation)
    decoder = mlp([latents, *up, pixels], preset.activation)
    return encoder, decoder
