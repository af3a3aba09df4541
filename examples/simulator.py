"""Calibrate a stochastic simulator by its gradient: an epidemic with binomial draws.

The simulator is plain code, written without a thought of gradients. Inside a block of
``gengs.differentiable()`` its draws carry one, so that Adam can fit the infection and the recovery
rate to an observed curve. Then the whole fit is repeated on other simulated outbreaks: do the
answers scatter around the truth?

    python examples/simulator.py --steps 120
"""

import argparse
import math

import torch
from torch.distributions import Binomial

import gengs

TRUTH = torch.tensor([0.5, 0.2])  # infections and recoveries per person and day
PEOPLE, DAYS, REPLICATES = 5000.0, 25, 32


def epidemic(rates, replicates):
    """The share of people who are ill on each day, (replicates, DAYS)."""
    infect, recover = rates
    ill = torch.full((replicates,), 100.0)
    healthy = PEOPLE - ill
    days = []
    for _ in range(DAYS):
        risk = 1 - torch.exp(-infect * ill / PEOPLE)
        new = Binomial(healthy, risk).sample()
        well = Binomial(ill, 1 - torch.exp(-recover)).sample()
        healthy, ill = healthy - new, ill + new - well
        days.append(ill / PEOPLE)
    return torch.stack(days, -1)


def calibrate(observed, steps, say=lambda line: None):
    """The rates whose curves are nearest to the observed one, found by Adam from a poor start."""
    log_rates = torch.tensor([math.log(0.3), math.log(0.1)], requires_grad=True)
    optimiser = torch.optim.Adam([log_rates], lr=0.05)
    for step in range(1, steps + 1):
        optimiser.zero_grad()
        with gengs.differentiable() as program:
            curves = epidemic(log_rates.exp(), REPLICATES)
            misfit = (curves - observed).square().sum(-1)  # one number per replicate
        program.loss(misfit).mean().backward()
        optimiser.step()
        if step % max(1, steps // 5) == 0:
            infect, recover = log_rates.detach().exp().tolist()
            say(f"step {step:4}  misfit {misfit.mean():.4f}  rates {infect:.3f} {recover:.3f}")
    return log_rates.detach().exp()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--outbreaks", type=int, default=6, help="for the check of the answers")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    rates = TRUTH.clone().requires_grad_()
    share = epidemic(rates, REPLICATES)[:, -1].mean()
    print(f"plain autograd reaches the rates: {share.requires_grad}")
    with gengs.differentiable() as program:
        share = epidemic(rates, REPLICATES)[:, -1]
    program.loss(share).mean().backward()
    grad = ", ".join(f"{g:+.2f}" for g in rates.grad)
    print(f"in the block, the gradient of who is ill at the end: {grad}")

    print("\nOne outbreak, simulated with the rates 0.5 and 0.2; the fit begins at 0.3 and 0.1:")
    found = [calibrate(epidemic(TRUTH, 1)[0], args.steps, print)]
    for _ in range(args.outbreaks - 1):
        found.append(calibrate(epidemic(TRUTH, 1)[0], args.steps))
    fits = torch.stack(found)
    print(f"\n{len(fits)} outbreaks, a fit of each:")
    for name, truth, column in zip(("infection", "recovery"), TRUTH, fits.T, strict=True):
        spread = column.std().item() if len(fits) > 1 else math.nan
        print(f"{name:10} true {truth:.3f}  mean {column.mean():.3f}  deviation {spread:.3f}")


if __name__ == "__main__":
    main()
