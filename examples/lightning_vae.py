"""The count VAE as a LightningModule: an estimator is an nn.Module, ``expect`` returns a loss.

What to remember: give the optimiser all parameters (an estimator may have its own), and step a
temperature schedule with the batches. Needs ``pip install pytorch-lightning``.

    python examples/lightning_vae.py --steps 1000
"""

import argparse
import gzip
import logging
import os
import warnings
from pathlib import Path

import pytorch_lightning as lightning
import torch
from torch import nn
from torch.distributions import Independent, Poisson, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

import gengs


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


class CountVAE(lightning.LightningModule):
    def __init__(self, pixels, latents=16, level=12, steps=1000, hidden=128):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, latents)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latents, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )
        self.level = level
        self.temperature = gengs.temperature.Exponential(1.0, 0.1, steps)
        self.estimator = gengs.GenGS(self.temperature)

    def loss(self, x):
        q = gengs.truncate(Poisson(self.encoder(x).clamp(-6, 2).exp()), self.level)
        prior = gengs.truncate(Poisson(torch.full((), 2.0, device=x.device)), self.level)

        def cost(z):  # (S, B, latents) to (S, B)
            logits = self.decoder(z - 2)
            wrong = binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none")
            return wrong.sum(-1)

        expected = self.estimator.expect(cost, Independent(q, 1))
        return (expected + kl_divergence(q, prior).sum(-1)).mean()

    def training_step(self, batch, index):
        return self.loss(batch[0])

    def validation_step(self, batch, index):  # Lightning calls eval(): exact draws
        self.log("negative ELBO", self.loss(batch[0]))

    def on_train_batch_end(self, outputs, batch, index):
        self.temperature.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")  # about workers and loggers
    lightning.seed_everything(args.seed, verbose=False)
    train, test = (TensorDataset(part) for part in images())
    model = CountVAE(train.tensors[0].shape[1], steps=args.steps)
    trainer = lightning.Trainer(
        max_steps=args.steps, accelerator="cpu", devices=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, limit_val_batches=0,
    )  # fmt: skip
    judge = lightning.Trainer(
        accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_checkpointing=False, enable_model_summary=False,
    )  # fmt: skip
    batches = DataLoader(test, batch_size=1000)
    (before,) = judge.validate(model, batches, verbose=False)
    trainer.fit(model, DataLoader(train, batch_size=100, shuffle=True))
    (after,) = judge.validate(model, batches, verbose=False)
    print(f"{len(train):,} images, {trainer.global_step} steps")
    print(f"temperature now {model.temperature.value:.3f}")
    print(f"negative ELBO on test images, before {before['negative ELBO']:.2f}")
    print(f"negative ELBO on test images, after  {after['negative ELBO']:.2f}")


if __name__ == "__main__":
    main()
