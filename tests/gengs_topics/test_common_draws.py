"""Common random numbers: every document's own law and gradient, and no other document's."""

import torch
from torch.distributions import Independent, Poisson

from gengs import Finite, MidCDF, truncate
from gengs_topics.model.refinement import common_draws


def cost(z):
    return (z - 2).square().sum(-1) + z.prod(-1)


def gradients(estimate, raw, times):
    """Side by side: what stands before the documents has uniforms of its own."""
    leaf = raw.expand(times, *raw.shape).clone().requires_grad_()
    law = truncate(Poisson(leaf.exp()), 12)
    return torch.autograd.grad(estimate(law).sum(), leaf)[0]


def test_the_gradient_is_that_of_midcdf():
    torch.manual_seed(0)
    raw = torch.randn(5, 2)
    ours = gradients(lambda law: cost(common_draws(law, 4)).mean(0), raw, 2000)
    theirs = gradients(lambda law: MidCDF(4).expect(cost, Independent(law, 1)), raw, 2000)
    error = ((ours.var(0) + theirs.var(0)) / 2000).sqrt()
    # ten numbers within 4.5 standard errors: a false alarm once in 15,000 runs
    assert float(((ours.mean(0) - theirs.mean(0)) / error).abs().max()) < 4.5


def test_documents_share_uniforms_and_draws_of_other_layers_do_not():
    z = common_draws(truncate(Poisson(torch.full((3, 4, 50), 4.0)), 20), 2)  # (2, 3, 4, 50)
    assert torch.equal(z, z[:, :, :1].expand_as(z))
    assert not torch.equal(z[:, 0], z[:, 1]) and not torch.equal(z[0], z[1])


def test_draws_are_exact_also_of_whole_laws():
    torch.manual_seed(0)
    found = common_draws(Poisson(torch.full((1, 40), 3.0)), 1000)
    # 40,000 draws of variance 3: five standard errors
    assert abs(float(found.mean()) - 3) < 5 * (3 / 40_000) ** 0.5
    assert abs(float(found.var()) - 3) < 0.15


def test_an_atom_in_a_valley_has_no_huge_weight(monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda *shape: torch.full((1, 1, 1), 0.5))
    leaf = torch.tensor([[[0.0, -12.0, 0.0]]], requires_grad=True)  # 0.5 is in the middle atom
    value = common_draws(Finite(torch.arange(3.0), logits=leaf), 1).sum()
    assert float(value.detach()) == 1.0
    (grad,) = torch.autograd.grad(value, leaf)
    assert float(grad.abs().max()) < 101  # without the bound, 80,000
