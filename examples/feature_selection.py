"""Choose k of n inside a network: which four patches of an image tell the digit?

A selector sees the image and scores its 16 patches of 2 x 2 pixels; four are drawn, exactly; a
classifier sees those and nothing else. Both are trained together, through the draw: by the swap
rule (``gengs.rsample``), or by another estimator for comparison.

    python examples/feature_selection.py
    python examples/feature_selection.py --by simple
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import gengs

PATCHES, CHOSEN = 16, 4
ESTIMATORS = {
    "swap": None,  # gengs.rsample's own rule
    "simple": gengs.StraightThroughMean(),  # on subsets, that is SIMPLE
    "relaxed": gengs.GenGS(0.5),
    "straight-through": gengs.GenGS(0.5, hard=True),
}


def digits():
    """Images ``(N, 64)`` between 0 and 1, and their labels; every fifth is for testing."""
    images, labels = load_digits(return_X_y=True)
    images, labels = torch.tensor(images).float() / 16, torch.tensor(labels)
    test = torch.arange(len(images)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def seen(images, chosen):
    """Images with all patches but the chosen ones, ``(…, 16)``, in the dark."""
    mask = chosen.unflatten(-1, (4, 4)).repeat_interleave(2, -1).repeat_interleave(2, -2)
    return images * mask.flatten(-2)


def accuracy(classifier, selector, images, labels):
    """With exact draws, and with patches drawn at random."""
    with torch.no_grad():
        found = []
        for scores in (selector(images), torch.zeros(len(images), PATCHES)):
            chosen = gengs.Subset(CHOSEN, logits=scores).sample()
            answers = classifier(seen(images, chosen)).argmax(-1)
            found.append((answers == labels).float().mean().item())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=list(ESTIMATORS), default="swap")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, labels, test_images, test_labels = digits()
    selector = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, PATCHES))
    classifier = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    parameters = [*selector.parameters(), *classifier.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=2e-3)

    print(f"{CHOSEN} of {PATCHES} patches, chosen by {args.by}; test accuracy with exact draws")
    for step in range(1, args.steps + 1):
        batch = torch.randint(len(images), (100,))
        q = gengs.Subset(CHOSEN, logits=selector(images[batch]))
        chosen = gengs.rsample(q, by=ESTIMATORS[args.by])  # (100, 16), four ones in each row
        loss = cross_entropy(classifier(seen(images[batch], chosen)), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(1, args.steps // 5) == 0:
            ours, random = accuracy(classifier, selector, test_images, test_labels)
            print(f"step {step:5}  loss {loss:.3f}  chosen {ours:.3f}  at random {random:.3f}")

    with torch.no_grad():
        share = gengs.Subset(CHOSEN, logits=selector(test_images)).mean.mean(0)
    print("\nHow often each patch is chosen:")
    for row in share.reshape(4, 4):
        print("  ".join(f"{x:.2f}" for x in row))


if __name__ == "__main__":
    main()
