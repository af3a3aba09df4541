"""What the library's answers are compared with: plain enumeration in float64, without its tables.

A :class:`Table` lists the atoms of a law, their probabilities, and the derivatives of these in
every parameter, written down from textbook formulas in numpy and scipy. The formulas hold at the
boundary of the parameters too, where they are *one-sided* derivatives:
``n (b(k - 1; n - 1, p) - b(k; n - 1, p))`` for a binomial, say, needs no division by ``p``.

A derivative in the ``total_count`` of a binomial is that of the polynomial which ``E f`` is in n
for a polynomial cost (Newton's forward series). It is exact for costs of degree four or less.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import special, stats


@dataclass(frozen=True)
class Table:
    """Atoms ``(K, *event)``, probabilities ``(K,)``, and their slopes ``(*parameter, K)``."""

    atoms: np.ndarray
    probs: np.ndarray
    slopes: dict[str, np.ndarray]

    def expectation(self, cost):
        """``E f`` and its gradient in every parameter."""
        f = _values(cost, self.atoms)
        return float(self.probs @ f), {name: slope @ f for name, slope in self.slopes.items()}

    def bound_of_two(self, cost):
        """The multi-sample bound of two draws, ``E -log((exp(-f) + exp(-f'))/2)``, likewise."""
        f = _values(cost, self.atoms)
        bound = -np.logaddexp(-f[:, None], -f) + np.log(2.0)
        given_first = bound @ self.probs
        slopes = {name: 2 * slope @ given_first for name, slope in self.slopes.items()}
        return float(self.probs @ given_first), slopes


def joint_expectation(tables, cost):
    """``E f`` of independent latents side by side, and the gradient in the parameters of each."""
    sizes = [range(len(table.probs)) for table in tables]
    index = np.stack([grid.ravel() for grid in np.meshgrid(*sizes, indexing="ij")])
    values = np.stack([t.atoms[i] for t, i in zip(tables, index, strict=True)], -1)
    f = _values(cost, values)
    probs = np.stack([t.probs[i] for t, i in zip(tables, index, strict=True)])
    gradients = []
    for d, table in enumerate(tables):
        others = np.delete(probs, d, 0).prod(0) * f
        marginal = np.bincount(index[d], others, len(table.probs))
        gradients.append({name: slope @ marginal for name, slope in table.slopes.items()})
    return float(probs.prod(0) @ f), gradients


def _values(cost, atoms):
    return cost(torch.as_tensor(atoms, dtype=torch.float64)).numpy()


# ---------------------------------------------------------------------------- families of numbers


def _sigmoid_slope(logits):
    p = special.expit(logits)
    return p, p * special.expit(-logits)


def binomial(p, n, logits=False):
    """Binomial(n, p), n an integer; in p or in the logit."""
    p, factor = _sigmoid_slope(p) if logits else (p, 1.0)
    k = np.arange(n + 1.0)
    slope = np.zeros(n + 1)
    if n:
        fewer = stats.binom.pmf(k[:-1], n - 1, p)
        slope[1:] += n * fewer
        slope[:-1] -= n * fewer
    return Table(k, stats.binom.pmf(k, n, p), {"logits" if logits else "probs": factor * slope})


def binomial_in_both(p, n, logits=False):
    """Binomial(n, p) with a slope in n too: d/dn of the sum over j of C(n, j) p^j Δ^j f(0)."""
    inner, degree = binomial(p, n, logits), 4
    size = max(n, degree) + 1
    p = special.expit(p) if logits else p
    in_n = np.zeros(size)
    for j in range(1, degree + 1):
        factors = n - np.arange(j)
        rise = sum(np.delete(factors, i).prod() for i in range(j)) / special.factorial(j)
        for i in range(j + 1):
            in_n[i] += rise * p**j * (-1) ** (j - i) * special.comb(j, i)
    wide = {name: np.pad(s, (0, size - n - 1)) for name, s in inner.slopes.items()}
    probs = np.pad(inner.probs, (0, size - n - 1))
    return Table(np.arange(float(size)), probs, {"total_count": in_n, **wide})


def poisson(rate):
    """Poisson(rate), as far as float64 can see."""
    first = max(0, int(rate - 12 * rate**0.5 - 10))
    k = np.arange(first, int(rate + 12 * rate**0.5 + 40), dtype=float)
    probs = stats.poisson.pmf(k, rate)
    return Table(k, probs, {"rate": stats.poisson.pmf(k - 1, rate) - probs})


def geometric(p, logits=False):
    """Failures before the first success."""
    p, factor = _sigmoid_slope(p) if logits else (p, 1.0)
    k = np.arange(4.0 if p == 1 else min(40 / p, 1e6))
    fails = (1 - p) ** k
    slope = fails - k * (1 - p) ** np.maximum(k - 1, 0) * p
    return Table(k, fails * p, {"logits" if logits else "probs": factor * slope})


def negative_binomial(p, r, logits=False):
    """Successes, each of probability p, before r failures."""
    p, factor = _sigmoid_slope(p) if logits else (p, 1.0)
    k = np.arange(4.0 if p == 0 else stats.nbinom.isf(1e-17, max(r, 1.0), 1 - p) + 8)

    def pmf(k):
        if r == 0:
            return np.where(k == 0, 1.0, 0.0)
        above = np.maximum(k, 0)
        log_ratio = special.gammaln(above + r) - special.gammaln(r) - special.gammaln(above + 1)
        return np.where(k < 0, 0.0, np.exp(log_ratio + special.xlogy(above, p)) * (1 - p) ** r)

    probs = pmf(k)
    if r == 0:  # p^k / k for k > 0
        in_r = np.where(k == 0, np.log1p(-p), p**k / np.maximum(k, 1))
    else:
        in_r = probs * (special.psi(k + r) - special.psi(r) + np.log1p(-p))
    in_p = (k - 1 + r) * pmf(k - 1) - r * probs / (1 - p)
    return Table(k, probs, {"total_count": in_r, "logits" if logits else "probs": factor * in_p})


def skellam(rate_up, rate_down):
    """The difference of two Poisson counts, by adding up over both."""
    first, second = poisson(rate_up), poisson(rate_down)
    low, high = -second.atoms[-1], first.atoms[-1]
    k = np.arange(low, high + 1)
    probs = np.zeros(len(k))
    for j, mass in zip(second.atoms, second.probs, strict=True):
        start = int(first.atoms[0] - j - low)
        probs[start : start + len(first.probs)] += mass * first.probs
    before, after = np.append(0, probs[:-1]), np.append(probs[1:], 0)
    return Table(k, probs, {"rate_up": before - probs, "rate_down": after - probs})


# -------------------------------------------------------------------- tables, vectors and mixtures


def weighed(atoms, weights):
    """Atoms with unnormalised probabilities."""
    total, k = weights.sum(), len(weights)
    probs = weights / total
    return Table(np.asarray(atoms), probs, {"probs": (np.eye(k) - probs) / total})


def scored(atoms, logits):
    """Atoms with unnormalised log-probabilities."""
    probs = special.softmax(logits)
    return Table(np.asarray(atoms), probs, {"logits": np.diag(probs) - np.outer(probs, probs)})


def multinomial(parameters, n, logits=False):
    """Counts of n draws from a few categories."""
    p = special.softmax(parameters) if logits else parameters / parameters.sum()
    atoms = np.array([c for c in np.ndindex(*(n + 1,) * len(p)) if sum(c) == n])

    def pmf(counts, n):
        inside = (counts >= 0).all(-1)
        ways = special.factorial(n) / special.factorial(np.maximum(counts, 0)).prod(-1)
        return np.where(inside, ways * (p ** np.maximum(counts, 0)).prod(-1), 0.0)

    # n times the chance of the other n - 1 draws
    slopes = np.stack([n * pmf(atoms - row, n - 1) for row in np.eye(len(p), dtype=int)])
    slopes -= (p[:, None] * slopes).sum(0)  # towards p_i means away from all, in proportion
    if logits:
        return Table(atoms.astype(float), pmf(atoms, n), {"logits": p[:, None] * slopes})
    return Table(atoms.astype(float), pmf(atoms, n), {"probs": slopes / parameters.sum()})


def mixture(weights, parts, name):
    """Unnormalised weights of tables with one parameter each, on 0, 1, 2, …"""
    size = max(len(part.probs) for part in parts)
    rows = np.stack([np.pad(part.probs, (0, size - len(part.probs))) for part in parts])
    own = [np.pad(part.slopes[name], (0, size - len(part.probs))) for part in parts]
    w, total = weights / weights.sum(), weights.sum()
    slopes = {"weights": (rows - w @ rows) / total, name: w[:, None] * np.stack(own)}
    return Table(np.arange(float(size)), w @ rows, slopes)


def cut(table, low, high):
    """The law of ``clip(X, low, high)``: both tails are lumped on the ends."""
    return replace(table, atoms=np.clip(table.atoms, low, high))
