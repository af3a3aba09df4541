"""Refined posteriors: better bounds where the encoder is poor, and nothing else moves."""

import pytest
import torch
from test_topic_networks import WORDS, documents, network

from gengs import MidCDF
from gengs_topics import NVDM, NVPDEF, BagEncoder, perplexity
from gengs_topics.model.refinement import refined


def test_descent_finds_the_minimum_and_keeps_what_cannot_get_better():
    target = torch.tensor([[1.0, -2.0], [0.5, 0.5]])
    start = torch.tensor([[0.0, 0.0], [0.5, 0.5]])

    def bound(features):
        return (features - target).square().sum(-1)

    found = refined(bound, start, 300)
    torch.testing.assert_close(found, target, atol=0.05, rtol=0)
    assert torch.equal(found[1], start[1])  # no step makes the second smaller
    assert torch.equal(refined(bound, start, 0), start)


def test_a_step_that_makes_it_worse_is_undone():
    start = torch.ones(3, 2)
    found = refined(lambda features: (features - 1).square().sum(-1), start, 5)
    assert torch.equal(found, start)


@pytest.mark.parametrize("steps", [-1, 2.5, True])
def test_a_wrong_number_of_steps(steps):
    with pytest.raises(ValueError, match="non-negative integer number of steps"):
        refined(lambda features: features.sum(-1), torch.ones(1, 1), steps)


def trained(model, x):
    """After some steps on documents of which the encoder sees a scrambled version: a poor one."""
    adam = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(150):
        adam.zero_grad()
        model.loss(x).mean().backward()
        adam.step()
    with torch.no_grad():
        model.encoder.layers[0].weight.copy_(model.encoder.layers[0].weight.flip(0))
    return model.eval()


@pytest.mark.parametrize(
    "build",
    [
        lambda: NVDM(BagEncoder(WORDS, (16,)), 3),
        lambda: NVPDEF(BagEncoder(WORDS, (16,)), MidCDF(), (3,), 3.0, 12, "tilted"),
        lambda: NVPDEF(BagEncoder(WORDS, (16,)), MidCDF(), (3,), 3.0, None, "explicit"),
        lambda: network(sizes=(2, 3), stack="generative"),
        lambda: network("RLOO(2)", sizes=(2, 3), stack="chain"),
    ],
    ids=["gaussian", "tilted", "whole", "generative", "chain"],
)
def test_refining_repairs_a_poor_encoder(build):
    torch.manual_seed(0)
    kinds = torch.eye(2).repeat_interleave(WORDS // 2, -1) * 3 + 0.05  # two kinds of documents
    x = torch.poisson(kinds.repeat(30, 1))
    model = trained(build(), x)
    before, after = perplexity(model, [x], 20), perplexity(model, [x], 20, refine=40)
    # as far apart as two evaluations of one model are not: a thousand words, 20 draws of each
    assert after.document < 0.97 * before.document
    assert after.corpus < 0.97 * before.corpus


def test_nothing_but_the_posterior_moves():
    torch.manual_seed(0)
    model, x = network(sizes=(3,)).eval(), documents()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        model.negative_elbo(x, refine=3)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(weights[name], value, rtol=0, atol=0, equal_nan=True)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model.intensities(x, refine=3).requires_grad


def test_the_same_numbers_in_every_call_and_torch_is_left_alone():
    model, x = network(sizes=(3,)).eval(), documents()
    before = torch.get_rng_state()
    first, second = (model.intensities(x, refine=3) for _ in range(2))
    assert torch.equal(first, second) and torch.equal(torch.get_rng_state(), before)


def test_documents_without_words_have_a_posterior_too():
    model = network(sizes=(3,)).eval()
    assert torch.isfinite(model.intensities(torch.zeros(2, WORDS), refine=3)).all()


def test_inference_mode_and_empty_batches():
    model = network(sizes=(3,)).eval()
    with torch.inference_mode():
        x = documents()
        assert torch.isfinite(model.negative_elbo(x, refine=2)).all()
    assert model.negative_elbo(x[:0].clone(), refine=2).shape == (0,)


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_diverged_model_has_an_infinite_perplexity(gaussian):
    model = NVDM(BagEncoder(WORDS, (16,)), 3) if gaussian else network(sizes=(3,))
    with torch.no_grad():
        model.decoder.weight.copy_(torch.randn_like(model.decoder.weight) * 3e35)
    x = torch.poisson(torch.full((6, WORDS), 3.0))
    assert perplexity(model.eval(), [x], 2, refine=3).document == float("inf")
