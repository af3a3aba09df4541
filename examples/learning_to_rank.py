"""Learn a ranking: train a network on the metric itself, expected NDCG@5, one drawn order a step.

Queries have lists of different lengths (padded), documents have grades from 0 to 4. The network's
scores are those of a Plackett-Luce distribution over orders. One exact order is drawn; the gains in
drawn order carry a gradient to the scores; NDCG is differentiated as it stands.

    python examples/learning_to_rank.py
    python examples/learning_to_rank.py --loss listnet
"""

import argparse

import torch
from torch import nn

import gengs

QUERIES, LONGEST, FEATURES, K = 200, 30, 12, 5


def make_queries(number, generator):
    """Features ``(Q, n, F)``, grades ``(Q, n)`` and which documents exist, ``(Q, n)``."""
    features = torch.randn(number, LONGEST, FEATURES, generator=generator)
    lengths = torch.randint(8, LONGEST + 1, (number, 1), generator=generator)
    exists = torch.arange(LONGEST) < lengths
    x, y, z = features[..., 0], features[..., 1], features[..., 2]
    noise = torch.randn(number, LONGEST, generator=generator)
    worth = x * y + z.abs() + 0.5 * features[..., 3] + 0.5 * noise  # what is worth finding
    grades = torch.bucketize(worth, torch.tensor([0.5, 1.5, 2.5, 3.5])).float()
    return features, grades, exists


def ndcg(gains, best):
    """Of gains in the order of their places, ``(…, k)``."""
    discounts = 1 / torch.log2(2.0 + torch.arange(K))
    return (gains[..., :K] * discounts).sum(-1) / (best[..., :K] * discounts).sum(-1).clamp_min(1)


def by_swaps(scores, gains, best):
    """Minus the NDCG of one drawn order; its gradient is that of the expected NDCG."""
    q = gengs.PlackettLuce(logits=scores, k=K)
    return -ndcg(q.arrange(q.sample_order(), gains), best).mean()


def listnet(scores, gains, best):
    """The usual stand-in: cross-entropy of the first place."""
    target = torch.log1p(gains).masked_fill(scores == -torch.inf, -torch.inf).softmax(-1)
    return -(target * scores.log_softmax(-1).masked_fill(target == 0, 0.0)).sum(-1).mean()


LOSSES = {"swaps": by_swaps, "listnet": listnet}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", choices=list(LOSSES), default="swaps")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(0)
    train, test = make_queries(QUERIES, generator), make_queries(QUERIES, generator)
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)

    def parts(queries):
        features, grades, exists = queries
        gains = (2**grades - 1) * exists
        scores = net(features).squeeze(-1).masked_fill(~exists, -torch.inf)  # padding
        return scores, gains, gains.sort(-1, descending=True).values

    def sorted_ndcg(queries):
        with torch.no_grad():
            scores, gains, best = parts(queries)
            order = scores.argsort(-1, descending=True)
            return ndcg(gains.gather(-1, order), best).mean().item()

    print(f"NDCG@{K} of sorted scores, trained by {args.loss}")
    print(f"step     0  train {sorted_ndcg(train):.3f}  test {sorted_ndcg(test):.3f}")
    for step in range(1, args.steps + 1):
        loss = LOSSES[args.loss](*parts(train))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(1, args.steps // 5) == 0:
            print(f"step {step:5}  train {sorted_ndcg(train):.3f}  test {sorted_ndcg(test):.3f}")


if __name__ == "__main__":
    main()
