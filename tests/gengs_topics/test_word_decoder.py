"""The law of the words given topics: a multinomial, or a Pólya urn."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import pytest
import torch
from torch import Tensor

import gengs
from gengs_topics import NVDM, NVPDEF, BagEncoder, TopicNetwork, WordDecoder

CONCENTRATIONS = [1.5e-2, 0.3, 1.0, 50.0, 443.0, 1e4, 0.9e6]


def urn(s: float, topics: int = 3, words: int = 6, spread: float = 20.0) -> WordDecoder:
    """An urn of concentration s whose words have very different shares."""
    torch.manual_seed(0)
    decoder = WordDecoder(topics, words, law="urn").double()
    low, high = math.log(1e-2), math.log(1e6)
    with torch.no_grad():
        decoder.weight.mul_(spread)
        decoder.raw_concentration.copy_(
            torch.logit(torch.tensor((math.log(s) - low) / (high - low)))
        )
    return decoder


def exact_cost(decoder: WordDecoder, counts: Tensor, z: Tensor) -> list[float]:
    """Minus the log-probability of each document, by the formula, with fifty digits."""
    found = []
    with mpmath.workdps(50):
        s = mpmath.exp(mpmath.mpf(float(decoder.log_concentration.detach())))
        for x, logits in zip(counts.tolist(), decoder(z).tolist(), strict=True):
            weights = [mpmath.exp(mpmath.mpf(logit)) for logit in logits]
            alpha = [s * weight / mpmath.fsum(weights) for weight in weights]
            total = mpmath.loggamma(s) - mpmath.loggamma(s + mpmath.fsum(x))
            for a, n in zip(alpha, x, strict=True):
                total += mpmath.loggamma(a + n) - mpmath.loggamma(a)
            found.append(float(-total))
    return found


DOCUMENTS = torch.tensor(
    [[0, 1, 2, 7, 0, 3], [1, 1, 1, 0, 0, 0], [0] * 6, [0, 0, 9000, 0, 2, 0], [0.5, 2.5, 0, 0, 1, 0]]
).double()


@pytest.mark.parametrize("s", CONCENTRATIONS)
def test_urn_agrees_with_the_formula_in_many_digits(s: float) -> None:
    decoder, z = urn(s), 2 * torch.randn(len(DOCUMENTS), 3, dtype=torch.float64)
    expected = torch.tensor(exact_cost(decoder, DOCUMENTS, z), dtype=torch.float64)
    assert math.isclose(float(decoder.log_concentration.detach().exp()), s, rel_tol=1e-4)
    torch.testing.assert_close(decoder.cost(DOCUMENTS, z), expected, rtol=1e-9, atol=1e-7)
    # in single precision there are as many digits as the multinomial has
    single = decoder.float().cost(DOCUMENTS.float(), z.float())
    torch.testing.assert_close(single.double(), expected, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("s", CONCENTRATIONS)
def test_probabilities_of_all_sequences_sum_to_one(s: float) -> None:
    decoder, z = urn(s, words=3), torch.randn(1, 3, dtype=torch.float64)
    sequences = [torch.bincount(torch.tensor(w), minlength=3) for w in product(range(3), repeat=5)]
    cost = decoder.cost(torch.stack(sequences).double(), z.expand(len(sequences), -1))
    torch.testing.assert_close((-cost).logsumexp(0).exp(), torch.ones((), dtype=torch.float64))


def test_gradient_is_that_of_the_formula() -> None:
    decoder, z = urn(20.0), torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    inputs = (z, decoder.weight, decoder.bias, decoder.raw_concentration)
    assert torch.autograd.gradcheck(lambda *_: decoder.cost(DOCUMENTS[:3], z), inputs, atol=1e-5)


def test_a_rich_urn_is_the_multinomial_and_words_once_seen_come_again() -> None:
    rich, z = urn(0.99e6), torch.zeros(1, 3, dtype=torch.float64)
    plain = WordDecoder(3, 6).double()
    once, twice = torch.tensor([[1.0, 1, 0, 0, 0, 0]]), torch.tensor([[2.0, 0, 0, 0, 0, 0]])
    for counts in (once, twice):
        expected = plain.cost(counts.double(), z)
        torch.testing.assert_close(rich.cost(counts.double(), z), expected, rtol=1e-5, atol=1e-4)
    poor = urn(1.0)
    assert float((poor.cost(twice.double(), z) - poor.cost(once.double(), z)).detach()) < -1


def test_where_a_share_underflows_the_cost_and_its_gradient_are_finite() -> None:
    decoder = urn(1.5e-2).float()
    with torch.no_grad():
        decoder.bias.copy_(torch.tensor([0.0, -300, -300, -300, -300, -300]))
        decoder.weight.zero_()
    cost = decoder.cost(torch.tensor([[1.0, 3, 0, 0, 0, 0]]), torch.zeros(1, 3))
    cost.sum().backward()
    assert 300 < float(cost.detach()) < 320
    assert all(bool(p.grad.isfinite().all()) for p in decoder.parameters() if p.grad is not None)


def bursty(documents: int, seed: int) -> Tensor:
    """Documents of forty words from an urn of concentration 5 over twenty words."""
    law = torch.distributions.Dirichlet(torch.full((20,), 5 / 20))
    torch.manual_seed(seed)
    shares = law.sample(torch.Size([documents]))
    return torch.distributions.Multinomial(40, shares).sample()


def networks(words: str) -> dict[str, TopicNetwork]:
    def encoder() -> BagEncoder:
        return BagEncoder(20, (16,))

    return {
        "one layer": NVPDEF(encoder(), gengs.MidCDF(2), (2,), 3.0, 12, "tilted", words=words),  # type: ignore[arg-type]
        "two layers": NVPDEF(
            encoder(), gengs.MidCDF(2), (2, 3), 3.0, 12, "tilted", "generative", words=words  # type: ignore[arg-type]
        ),
        "Gaussian": NVDM(encoder(), 2, words=words),  # type: ignore[arg-type]
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["one layer", "two layers", "Gaussian"])
def test_every_network_learns_the_urn_that_wrote_the_documents(kind: str) -> None:
    torch.manual_seed(0)
    network, counts = networks("urn")[kind], bursty(400, 1)
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(150):
        optimizer.zero_grad()
        network.loss(counts).mean().backward()
        optimizer.step()
    s = float(network.decoder.log_concentration.detach().exp())
    # topics explain some of the spread, so the urn need not explain all of it
    assert 3 < s < 15
    new, law = bursty(400, 2), urn(5.0, words=20, spread=0.0)
    truth = float(law.cost(new.double(), torch.zeros(400, 3).double()).mean().detach())
    assert truth < 40 * math.log(20) - 25  # the urn is far from independent draws
    assert truth - 1 < float(network.eval().negative_elbo(new, 4).mean()) < truth + 3


@pytest.mark.parametrize("kind", ["one layer", "two layers", "Gaussian"])
def test_refined_and_importance_weighted_bounds_are_tighter(kind: str) -> None:
    torch.manual_seed(0)
    network, counts = networks("urn")[kind].eval(), bursty(60, 1)
    plain = network.negative_elbo(counts, 64).mean()
    assert network.negative_elbo(counts, 64, refine=20).mean() < plain
    assert -network.log_likelihood(counts, 200).mean() < plain


def test_an_unknown_law_is_named() -> None:
    with pytest.raises(ValueError, match=r"`words`.* multinomial"):
        NVDM(BagEncoder(5, (4,)), 2, words="bag")  # type: ignore[arg-type]
