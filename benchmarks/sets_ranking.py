"""Learning to rank on real data: one draw of the swap rule beside score functions and losses.

A network of one hidden layer scores documents; orders are Plackett-Luce draws of the scores; what
is maximised is the expected NDCG@10 of the training queries (ListNet and LambdaRank have losses of
their own). 40 of the 201 training queries are held out to choose the step at which the 50 test
queries are ranked (by sorted scores). LightGBM's lambdarank is the anchor.

python -m benchmarks.sets_ranking --seeds 0 1 2 -o results/sets/ranking.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import gengs

K = 10
Loss = Callable[[Tensor, "Queries"], Tensor]


class Queries:
    """Queries of different lengths, padded: grades ``(Q, n)``, features of all documents."""

    def __init__(self, name: str, keep: slice | None = None) -> None:
        folder = Path(os.environ.get("GENGS_DATA", "data")) / "lambdarank"
        sizes = [int(x) for x in (folder / f"{name}.query").read_text().split()]
        rows, grades = [], []
        for line in (folder / name).read_text().splitlines():
            grade, *pairs = line.split()
            row = torch.zeros(301)
            for pair in pairs:
                index, value = pair.split(":")
                row[int(index)] = float(value)
            rows.append(row)
            grades.append(float(grade))
        ends = np.cumsum(sizes)
        chosen = range(len(sizes))[keep or slice(None)]
        places = torch.cat([torch.arange(ends[i] - sizes[i], ends[i]) for i in chosen])
        self.sizes = [sizes[i] for i in chosen]
        self.features = torch.stack(rows)[places]
        self.labels = torch.tensor(grades)[places]
        lengths = torch.tensor(self.sizes)
        self.mask = torch.arange(int(lengths.max())) < lengths[:, None]  # (Q, n)
        self.gains = self.padded(2**self.labels - 1, 0.0)
        places = torch.arange(self.gains.shape[1])
        self.discounts = 1 / torch.log2(2.0 + places)
        self.best = {k: self._ideal(k) for k in (5, 10)}
        self.shares = self.gains / self.best[K].clamp_min(1e-9).unsqueeze(-1)  # of NDCG@10

    def padded(self, values: Tensor, fill: float) -> Tensor:
        """A number for each document as ``(Q, n)``."""
        return torch.full(self.mask.shape, fill).masked_scatter(self.mask, values)

    def _ideal(self, k: int) -> Tensor:
        top = self.gains.sort(-1, descending=True).values[:, :k]
        return (top * self.discounts[: top.shape[1]]).sum(-1)

    def ndcg(self, scores: Tensor, k: int) -> float:
        """Of documents sorted by their scores, the mean over queries that have a relevant one."""
        order = scores.argsort(-1, descending=True)
        dcg = (self.gains.gather(-1, order)[:, :k] * self.discounts[:k]).sum(-1)
        some = self.best[k] > 0
        return float((dcg[some] / self.best[k][some]).mean())


def swap_rule(scores: Tensor, q: Queries) -> Tensor:
    law = gengs.PlackettLuce(scores, K, validate_args=False)
    placed = law.arrange(law.sample_order(), q.shares) * q.discounts[:K]  # (Q, K)
    return -placed.sum(-1).mean()


def score_to_go(draws: int) -> Loss:
    def loss(scores: Tensor, q: Queries) -> Tensor:
        law = gengs.PlackettLuce(scores, K, validate_args=False)
        order = law.sample_order(torch.Size([draws]))
        return -to_go_surrogate(law, order, q.shares, q.discounts[:K]).mean()

    return loss


def to_go_surrogate(
    law: gengs.PlackettLuce, order: Tensor, gains: Tensor, discounts: Tensor
) -> Tensor:
    """The score function with rewards to go and the other draws' mean at each place, ``(Q,)``.

    Args:
        law: The distribution of orders.
        order: Two draws or more, ``(S, Q, k)``.
        gains: What each item is worth, ``(Q, n)``.
        discounts: What each place counts, ``(k,)``.
    """
    with torch.no_grad():
        rewards = law.arrange(order, gains) * discounts
        to_go = rewards.flip(-1).cumsum(-1).flip(-1)  # (S, Q, k)
        others = (to_go.sum(0) - to_go) / (len(order) - 1)
    return ((to_go - others) * log_steps(law.logits, order)).sum(-1).mean(0)


def log_steps(scores: Tensor, order: Tensor) -> Tensor:
    """The log-probability of each place given the places before it, ``(S, Q, K)``."""
    wide = scores.clamp_min(-1e9).expand(*order.shape[:-1], -1)
    chosen = wide.gather(-1, order)
    rest = wide.scatter(-1, order, -1e9).logsumexp(-1, keepdim=True)
    left = torch.cat([chosen, rest], -1).flip(-1).logcumsumexp(-1).flip(-1)[..., :-1]
    return (chosen - left).where(chosen > -1e8, 0.0)  # padding is placed with probability 1


def pl_rank(draws: int) -> Loss:
    def loss(scores: Tensor, q: Queries) -> Tensor:
        law = gengs.PlackettLuce(scores.detach(), K, validate_args=False)
        order = law.sample_order(torch.Size([draws]))
        gradient = pl_rank_gradient(law, order, q.shares, q.discounts[:K])
        return -(gradient * scores.where(q.mask, 0.0)).sum() / len(q.sizes)

    return loss


@torch.no_grad()
def pl_rank_gradient(
    law: gengs.PlackettLuce, order: Tensor, gains: Tensor, discounts: Tensor
) -> Tensor:
    """PL-Rank-2 (Oosterhuis, 2021), ``(Q, n)``; arguments as for :func:`to_go_surrogate`."""
    k = len(discounts)
    weights = law.logits.exp().expand(*order.shape[:-1], -1)  # (S, Q, n)
    rewards = law.arrange(order, gains) * discounts
    to_go = rewards.flip(-1).cumsum(-1).flip(-1)
    chosen = weights.gather(-1, order)
    left = chosen.flip(-1).cumsum(-1).flip(-1) + weights.scatter(-1, order, 0.0).sum(-1, True)
    left = left.clamp_min(1e-30)
    # Σ_{k <= rank} π(d | before k) (θ_k ρ_d - reward to go from k), as sums up to each rank
    direct = (discounts / left).cumsum(-1)
    lost = (to_go / left).cumsum(-1)
    last = law.ranks(order).long().clamp_max(k - 1)
    per_item = weights * (gains * direct.gather(-1, last) - lost.gather(-1, last))
    after = torch.cat([to_go[..., 1:], torch.zeros_like(to_go[..., :1])], -1)
    return per_item.scatter_add(-1, order, after).mean(0)


def list_net(scores: Tensor, q: Queries) -> Tensor:
    target = q.padded(q.labels, -torch.inf).softmax(-1)
    return -(target * scores.log_softmax(-1).where(q.mask, 0.0)).sum(-1).mean()


def lambda_rank(scores: Tensor, q: Queries) -> Tensor:
    """Pairs weighed by what their exchange changes in NDCG@10 (Burges et al., 2006)."""
    with torch.no_grad():
        rank = scores.argsort(-1, descending=True).argsort(-1)
        discount = torch.where(rank < K, q.discounts[rank], 0.0)
        gain = q.gains / q.best[K].clamp_min(1e-9).unsqueeze(-1)
        change = (gain[:, :, None] - gain[:, None]) * (discount[:, :, None] - discount[:, None])
        better = (q.gains[:, :, None] > q.gains[:, None]) & q.mask[:, :, None] & q.mask[:, None]
        weight = change.abs() * better
    finite = scores.where(q.mask, 0.0)
    pairs = nn.functional.softplus(finite[:, None] - finite[:, :, None])
    return (weight * pairs).sum((1, 2)).mean()


METHODS: dict[str, tuple[Loss, int]] = {
    "swap rule, 1 draw": (swap_rule, 1),
    "score to go, 2 draws": (score_to_go(2), 2),
    "score to go, 8 draws": (score_to_go(8), 8),
    "PL-Rank, 1 draw": (pl_rank(1), 1),
    "PL-Rank, 8 draws": (pl_rank(8), 8),
    "ListNet": (list_net, 0),
    "LambdaRank": (lambda_rank, 0),
}


def train(loss: Loss, data: dict[str, Queries], seed: int, steps: int) -> list[dict[str, float]]:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(301, 64), nn.ReLU(), nn.Linear(64, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    curve, spent = [], 0.0
    for step in range(steps + 1):
        if step % 25 == 0:
            with torch.no_grad():
                row = {"step": float(step), "seconds": spent}
                for name, q in data.items():
                    scores = q.padded(net(q.features).squeeze(-1), -torch.inf)
                    row |= {f"{name}@{k}": q.ndcg(scores, k) for k in (5, 10)}
            curve.append(row)
        begin = time.process_time()
        q = data["train"]
        scores = q.padded(net(q.features).squeeze(-1), -torch.inf)
        optimiser.zero_grad()
        loss(scores, q).backward()
        optimiser.step()
        spent += time.process_time() - begin
    return curve


def light_gbm(data: dict[str, Queries], seed: int) -> dict[str, float]:
    import lightgbm

    def as_set(q: Queries) -> Any:
        return lightgbm.Dataset(q.features.numpy(), q.labels.numpy(), group=q.sizes)

    settings = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "ndcg_eval_at": [10],
        "learning_rate": 0.1,
        "num_leaves": 31,
        "min_data_in_leaf": 50,
        "feature_fraction": 0.8,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "seed": seed,
        "num_threads": 1,
        "verbose": -1,
    }
    train_set = as_set(data["train"])
    model = lightgbm.train(
        settings,
        train_set,
        200,
        valid_sets=[
            lightgbm.Dataset.create_valid(
                train_set,
                data["held"].features.numpy(),
                data["held"].labels.numpy(),
                group=data["held"].sizes,
            )
        ],
        callbacks=[lightgbm.early_stopping(30, verbose=False)],
    )
    row = {"step": float(model.best_iteration)}
    for name, q in data.items():
        predicted = torch.from_numpy(np.asarray(model.predict(q.features.numpy()))).float()
        scores = q.padded(predicted, -torch.inf)
        row |= {f"{name}@{k}": q.ndcg(scores, k) for k in (5, 10)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("-o", "--out", type=Path, default=None)
    config = parser.parse_args()
    torch.set_num_threads(1)
    data = {
        "train": Queries("rank.train", slice(0, 161)),
        "held": Queries("rank.train", slice(161, 201)),
        "test": Queries("rank.test"),
    }
    rows = []
    for seed in config.seeds:
        for name, (loss, draws) in METHODS.items():
            curve = train(loss, data, seed, config.steps)
            best = max(curve, key=lambda row: row["held@10"])
            rows.append(
                {
                    "method": name,
                    "draws": draws,
                    "seed": seed,
                    "best": best,
                    "last": curve[-1],
                    "curve": curve,
                }
            )
            print(_line(name, seed, best, curve[-1]), flush=True)
        try:
            best = light_gbm(data, seed)
        except ImportError:
            print("LightGBM is not installed: no anchor", flush=True)
        else:
            rows.append(
                {
                    "method": "LightGBM lambdarank",
                    "draws": 0,
                    "seed": seed,
                    "best": best,
                    "last": best,
                }
            )
            print(_line("LightGBM lambdarank", seed, best, best), flush=True)
    if config.out is not None:
        command = "python -m benchmarks.sets_ranking --seeds " + " ".join(map(str, config.seeds))
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        content = {"command": command, "versions": versions, "rows": rows}
        config.out.write_text(json.dumps(content, indent=1) + "\n")


def _line(name: str, seed: int, best: dict[str, float], last: dict[str, float]) -> str:
    return (
        f"{name:22s} seed {seed}  train@10 last {last['train@10']:.3f}  held {best['held@10']:.3f}"
        f"  test@5 {best['test@5']:.3f} @10 {best['test@10']:.3f}  step {best['step']:.0f}"
        f"  seconds {last.get('seconds', 0.0):.1f}"
    )


if __name__ == "__main__":
    main()
