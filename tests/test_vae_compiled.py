"""Count VAEs under torch.compile."""

import pytest
import torch
from tiny_vae import IMAGES, tiny

import gengs

# what torch.compile does itself that torch warns of
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def afresh(torch_validation_off):
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("posterior", ["explicit", "implicit"])
@pytest.mark.parametrize("estimator", [gengs.Exact(), gengs.MidCDF(), gengs.GenGS(0.5)], ids=repr)
def test_a_training_step_compiles_as_one_graph(estimator, posterior):
    model = tiny(estimator, posterior)
    expected = model.loss(IMAGES)
    loss = torch.compile(model, fullgraph=True, backend="aot_eager")(IMAGES)
    (slope,) = torch.autograd.grad(loss.sum(), model.encoder[0].weight)
    assert slope.isfinite().all() and slope.any()
    if isinstance(estimator, gengs.Exact):  # the others draw
        torch.testing.assert_close(loss, expected)
        (right,) = torch.autograd.grad(expected.sum(), model.encoder[0].weight)
        torch.testing.assert_close(slope, right)


def test_a_whole_law_compiles_too():
    model = tiny(gengs.MidCDF(), level=None)
    loss = torch.compile(model, fullgraph=True, backend="aot_eager")(IMAGES)
    loss.sum().backward()
    assert model.kl(IMAGES).isfinite().all()
