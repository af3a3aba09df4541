"""Do draws follow a law? Tests with a declared false-alarm rate.

The seeds are fixed, so a test that passes once passes always; the rate says how likely it was that
a *correct* sampler would have been called wrong when the seed was chosen.
"""

import numpy as np
import scipy.stats
import torch

FALSE_ALARM = 1e-6


def assert_frequencies(counts, probs):
    """Chi-square test that ``counts`` come from ``probs``; atoms of probability 0 must not occur.

    Power: with N draws a shift of the probabilities by chi-square distance d² is found almost
    surely once N d² > 100; for N = 2e4 and a dozen atoms: an atom of .1 whose rate is 20 % off.
    """
    counts = np.asarray(counts, dtype=float)
    probs = torch.as_tensor(probs).detach().double().numpy()
    assert counts[probs == 0].sum() == 0, "an impossible atom was drawn"
    expected = probs / probs.sum() * counts.sum()
    order = np.argsort(expected)
    groups, open_count, open_expected = [], 0.0, 0.0
    for k in order:  # rare atoms together, so that the chi-square approximation holds
        open_count, open_expected = open_count + counts[k], open_expected + expected[k]
        if open_expected >= 10:
            groups.append((open_count, open_expected))
            open_count = open_expected = 0.0
    if open_expected > 0:
        last = groups.pop() if groups else (0.0, 0.0)
        groups.append((last[0] + open_count, last[1] + open_expected))
    if len(groups) < 2:
        return
    observed, wanted = np.array(groups).T
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    p_value = scipy.stats.chi2.sf(statistic, len(groups) - 1)
    assert p_value > FALSE_ALARM, f"frequencies are off: chi-square p-value {p_value:.2g}"


def assert_mean(samples, mean):
    """Two-sided z-test of the mean; finds a bias of seven standard errors almost surely."""
    samples = np.asarray(samples, dtype=float).reshape(-1)
    error = samples.std(ddof=1) / len(samples) ** 0.5
    z = abs(samples.mean() - mean) / error
    assert z < scipy.stats.norm.isf(FALSE_ALARM / 2), f"mean {samples.mean()} is {z:.1f} errors off"
