"""Common random numbers: every document's own law and gradient, and no other document's."""

import torch
from torch.distributions import Independent, Poisson

from gengs import MidCDF, truncate
from gengs.distributions.scored import with_scores
from gengs.models.common_draws import CommonDraws


def cost(z):
    return (z - 2).square().sum(-1) + z.prod(-1)


def gradients(estimator, raw, times):
    found = []
    for _ in range(times):
        leaf = raw.clone().requires_grad_()
        law = Independent(truncate(Poisson(leaf.exp()), 12), 1)
        found.append(torch.autograd.grad(estimator.expect(cost, law).sum(), leaf)[0])
    return torch.stack(found)


def test_the_gradient_is_that_of_midcdf():
    torch.manual_seed(0)
    raw = torch.randn(5, 2)
    ours, theirs = (gradients(one(4), raw, 2000) for one in (CommonDraws, MidCDF))
    error = ((ours.var(0) + theirs.var(0)) / 2000).sqrt()
    # ten numbers within 4.5 standard errors: a false alarm once in 15,000 runs
    assert float(((ours.mean(0) - theirs.mean(0)) / error).abs().max()) < 4.5


def test_documents_share_uniforms_and_draws_of_other_layers_do_not():
    seen = []

    def keep(z):
        seen.append(z.detach())
        return z.sum(-1)

    law = Independent(truncate(Poisson(torch.full((3, 4, 50), 4.0)), 20), 1)
    CommonDraws(2).expect(keep, law)
    (z,) = seen  # (2, 3, 4, 50)
    assert torch.equal(z, z[:, :, :1].expand_as(z))
    assert not torch.equal(z[:, 0], z[:, 1]) and not torch.equal(z[0], z[1])


def test_draws_are_exact_also_of_whole_laws():
    torch.manual_seed(0)
    found = []
    CommonDraws(1000).expect(
        lambda z: found.append(z) or z.sum(-1), Independent(Poisson(torch.full((1, 40), 3.0)), 1)
    )
    # 40,000 draws of variance 3: five standard errors
    assert abs(float(found[0].mean()) - 3) < 5 * (3 / 40_000) ** 0.5
    assert abs(float(found[0].var()) - 3) < 0.15


def test_an_atom_in_a_valley_has_no_huge_weight(monkeypatch):
    middle = torch.full((1, 1, 1), 0.5, dtype=torch.float64)
    monkeypatch.setattr("gengs.models.common_draws.stratified_uniforms", lambda *_: middle)
    leaf = torch.tensor([[[0.0, -12.0, 0.0]]], requires_grad=True)  # 0.5 is in the middle atom
    law = Independent(with_scores(truncate(Poisson(torch.ones(1, 1)), 3), leaf), 1)
    value = CommonDraws().expect(lambda z: z.sum(-1), law)
    assert float(value.detach()) == 1.0
    (grad,) = torch.autograd.grad(value, leaf)
    assert float(grad.abs().max()) < 101  # without the bound, 80,000
