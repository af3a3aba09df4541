"""A VAE with a codebook: each image is written as a few words of a small vocabulary.

    image → encoder → logits (B, POSITIONS, CODES) → one code each → its vector → decoder → pixels

The codes are drawn, exactly one per position, and the draw carries a gradient into the logits; the
codebook learns like any weight. No straight-through of distances, no commitment loss, no moving
averages: the bound on the likelihood is the loss.

    python examples/vq_vae.py --steps 2000
    python examples/vq_vae.py --gradient gumbel      # hard Gumbel-softmax instead
"""

import argparse
import gzip
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

import gengs

POSITIONS, CODES, WIDTH = 12, 16, 16
GRADIENTS = {"midcdf": gengs.MidCDF(), "gumbel": gengs.GenGS(0.5, hard=True)}


def images():
    """Black and white pixels to train on and to test on, each (N, pixels)."""
    folder = Path(os.environ.get("GENGS_DATA", "")) / "mnist"
    files = [folder / f"{part}-images-idx3-ubyte.gz" for part in ("train", "t10k")]
    if all(file.is_file() for file in files):
        raw = [bytearray(gzip.decompress(file.read_bytes())) for file in files]
        train, test = (torch.frombuffer(r, dtype=torch.uint8, offset=16) for r in raw)
        return (train.reshape(-1, 784) > 127).float(), (test.reshape(-1, 784) > 127).float()
    from sklearn.datasets import load_digits

    pixels = (torch.tensor(load_digits().data) > 7).float()
    pixels = pixels[torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))]
    return pixels[:-300], pixels[-300:]


class CodebookVAE(nn.Module):
    def __init__(self, pixels, gradient, hidden=256):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, POSITIONS * CODES)
        )
        self.codebook = nn.Parameter(torch.randn(POSITIONS, CODES, WIDTH))
        self.decoder = nn.Sequential(
            nn.Linear(POSITIONS * WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )
        self.gradient = gradient

    def posterior(self, x):
        logits = self.encoder(x).unflatten(-1, (POSITIONS, CODES))
        return gengs.OneHot(logits)

    def negative_elbo(self, x):
        """One number per image: what is wrong in the pixels, and what the codes cost."""
        q = self.posterior(x)
        z = gengs.rsample(q, by=self.gradient)  # (B, POSITIONS, CODES), one-hot
        vectors = torch.einsum("bpk,pkw->bpw", z, self.codebook)
        logits = self.decoder(vectors.flatten(1))
        wrong = binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
        kl = (torch.tensor(float(CODES)).log() - q.entropy()).sum(-1)  # from the uniform prior
        return wrong + kl


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gradient", choices=GRADIENTS, default="midcdf")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train, test = images()
    model = CodebookVAE(train.shape[1], GRADIENTS[args.gradient])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def evaluate():
        with torch.no_grad():
            return model.negative_elbo(test).mean().item()

    print(f"{len(train):,} images, {POSITIONS} codes of {CODES} each, {args.gradient}")
    print(f"step {0:5}  negative ELBO on test images {evaluate():8.2f}")
    for step in range(1, args.steps + 1):
        x = train[torch.randint(len(train), (100,))]
        optimiser.zero_grad()
        model.negative_elbo(x).mean().backward()
        optimiser.step()
        if step % max(1, args.steps // 5) == 0:
            print(f"step {step:5}  negative ELBO on test images {evaluate():8.2f}")
    with torch.no_grad():
        codes = model.posterior(test).sample().argmax(-1)  # (N, POSITIONS)
    share = torch.nn.functional.one_hot(codes, CODES).float().mean(0)
    perplexity = (-(share * share.clamp_min(1e-9).log()).sum(-1)).exp().mean().item()
    print(f"codes in use at a position, on average: {perplexity:.1f} of {CODES}")
    print(f"the first test image is written: {' '.join(map(str, codes[0].tolist()))}")


if __name__ == "__main__":
    main()
