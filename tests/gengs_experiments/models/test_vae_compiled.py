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


def loss_and_slopes(model, module):
    """With the same seed: what is compared draws the same numbers."""
    torch.manual_seed(11)
    loss = module(IMAGES)
    return loss.detach(), *torch.autograd.grad(loss.sum(), list(model.parameters()))


def assert_same_compiled(model):
    expected = loss_and_slopes(model, model.loss)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for found, wanted in zip(loss_and_slopes(model, compiled), expected, strict=True):
        torch.testing.assert_close(found, wanted)
        assert wanted.any()


ESTIMATORS = [gengs.Exact(), gengs.MidCDF(), gengs.GenGS(0.5)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_a_training_step_compiles_as_one_graph(estimator, posterior):
    assert_same_compiled(tiny(estimator, posterior))


def test_a_whole_law_compiles_too():
    assert_same_compiled(tiny(gengs.MidCDF(), level=None))
