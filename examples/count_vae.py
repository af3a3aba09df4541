"""A VAE whose latents are counts: 32 Poisson variables for each image.

    image → encoder → rates → counts z ~ Poisson(rates) → decoder → pixels

A count has no derivative. An estimator makes a gradient of the expectation, and everything else is
plain PyTorch. Try --estimator rloo, gengs or reinforce: the bound that is reached differs.

    python examples/count_vae.py --steps 2000
"""

import argparse
import gzip
import os
from pathlib import Path

import torch
from torch import nn
from torch.distributions import Independent, Poisson, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits

import gengs

LATENTS, RATE = 32, 2.0
ESTIMATORS = {
    "midcdf": gengs.MidCDF(),
    "gengs": gengs.GenGS(0.5),
    "rloo": gengs.RLOO(4),
    "reinforce": gengs.REINFORCE(),
}


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


class CountVAE(nn.Module):
    def __init__(self, pixels, estimator, hidden=256):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, LATENTS)
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENTS, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )
        self.estimator = estimator

    def posterior(self, x):
        return Poisson(self.encoder(x).clamp(-6, 4).exp())  # (B, LATENTS)

    def negative_elbo(self, x, estimator):
        """One number per image; its gradient is the estimator's."""
        q = self.posterior(x)

        def cost(z):  # (S, B, LATENTS) counts to (S, B): minus the log-likelihood
            logits = self.decoder(z / RATE - 1)
            wrong = binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none")
            return wrong.sum(-1)

        expected = estimator.expect(cost, Independent(q, 1))
        return expected + kl_divergence(q, Poisson(torch.full_like(q.rate, RATE))).sum(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--estimator", choices=ESTIMATORS, default="midcdf")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train, test = images()
    model = CountVAE(train.shape[1], ESTIMATORS[args.estimator])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def evaluate():
        with torch.no_grad():  # exact draws, whatever the model was trained with
            return model.negative_elbo(test, gengs.REINFORCE()).mean().item()

    print(f"{len(train):,} images of {train.shape[1]} pixels, {args.estimator}")
    print(f"step {0:5}  negative ELBO on test images {evaluate():8.2f}")
    for step in range(1, args.steps + 1):
        x = train[torch.randint(len(train), (100,))]
        optimiser.zero_grad()
        model.negative_elbo(x, model.estimator).mean().backward()
        optimiser.step()
        if step % max(1, args.steps // 5) == 0:
            print(f"step {step:5}  negative ELBO on test images {evaluate():8.2f}")
    rates = model.posterior(test).rate.detach()
    used = (rates.var(0) > 0.01).sum().item()
    print(f"{used} of {LATENTS} latents depend on the image; the code of the first test image:")
    print(" ".join(str(int(z)) for z in Poisson(rates[0]).sample()))


if __name__ == "__main__":
    main()
