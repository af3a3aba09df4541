"""Every law of the list goes through autograd twice, through vmap and through torch.compile."""

import warnings

import pytest
import torch
from laws import LAWS
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import Poisson

import gengs

# what torch.compile does itself that torch warns of
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]
laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def relaxed_value(law, hard=False, temperature=0.6):
    """The relaxed value as a function of the parameters, with the same noise at every call."""

    def value(*tensors):
        generator = torch.Generator().manual_seed(5)
        relaxed = gengs.Relaxed(temperature, law.finite(*tensors))
        return relaxed.rsample_value((2,), hard=hard, generator=generator)

    return value


@laws
def test_gradient_of_the_relaxed_value(law):
    assert gradcheck(relaxed_value(law), law.tensors(torch.float64, requires_grad=True))


@laws
def test_second_derivative_of_the_relaxed_value(law):
    assert gradgradcheck(relaxed_value(law), law.tensors(torch.float64, requires_grad=True))


@laws
def test_gradient_of_the_table_with_its_lumped_ends(law):
    def table(*tensors):
        return law.finite(*tensors).probs

    tensors = law.tensors(torch.float64, requires_grad=True)
    assert gradcheck(table, tensors)
    assert gradgradcheck(table, tensors)


@laws
def test_vmap_of_the_mean_is_the_mean_of_the_batch(law, torch_validation_off):
    tensors = law.tensors(torch.float64, batch=(3,))

    def mean(*tensors):
        return law.finite(*tensors).mean

    torch.testing.assert_close(torch.func.vmap(mean)(*tensors), mean(*tensors))


@laws
def test_vmap_of_grad_is_the_gradient_of_the_batch(law, torch_validation_off):
    tensors = law.tensors(torch.float64, batch=(3,), requires_grad=True)

    def mean(*tensors):
        return law.finite(*tensors).mean.sum()

    every = tuple(range(len(tensors)))
    mapped = torch.func.vmap(torch.func.grad(mean, argnums=every))(*(t.detach() for t in tensors))
    mean(*tensors).backward()
    for gradient, tensor in zip(mapped, tensors, strict=True):
        torch.testing.assert_close(gradient, tensor.grad)


@laws
@pytest.mark.parametrize("hard", [False, True])
def test_vmap_draws_differ_and_have_gradients(law, hard, torch_validation_off):
    tensors = law.tensors(batch=(16,))

    def value(*tensors):
        z = gengs.Relaxed(0.6, law.finite(*tensors)).rsample_value(hard=hard).flatten()
        return (z * torch.arange(1, len(z) + 1)).sum()

    drawn = torch.func.vmap(value, randomness="different")(*tensors)
    assert drawn.unique().numel() > 1
    gradients = torch.func.vmap(torch.func.grad(value), randomness="different")(*tensors)
    assert gradients.shape == tensors[0].shape
    assert torch.isfinite(gradients).all()
    assert (gradients != 0).any()


def test_vmap_over_something_else_than_the_law():
    q = gengs.truncate(torch.distributions.Poisson(torch.tensor(2.0)), 8)

    def scaled(x):
        return x * gengs.Relaxed(0.5, q).rsample_value()

    drawn = torch.func.vmap(scaled, randomness="different")(torch.ones(16))
    assert drawn.unique().numel() > 1


def step_of(law):
    def step(*tensors):
        q = law.finite(*tensors)
        return gengs.Relaxed(0.6, q).rsample_value((4,)).square().mean()

    return step


def assert_same_compiled(law, backend):
    """Value and gradients are those of the same draws without a compiler."""
    # in float64, in which noise is drawn in one way whether compiled or not
    tensors = law.tensors(torch.float64, batch=(3,), requires_grad=True)
    found = []
    for run in (step_of(law), torch.compile(step_of(law), fullgraph=True, backend=backend)):
        torch.manual_seed(3)
        loss = run(*tensors)
        found.append((loss.detach(), *torch.autograd.grad(loss, tensors)))
    torch.compiler.reset()
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager)
        assert eager.any()


@laws
def test_compiles_as_one_graph(law, torch_validation_off):
    assert_same_compiled(law, "aot_eager")


@pytest.mark.slow
def test_compiles_to_machine_code(torch_validation_off):
    import torch._inductor.config

    # with torch's own random numbers, so that the draws are those without a compiler
    with torch._inductor.config.patch(fallback_random=True):
        assert_same_compiled(next(law for law in LAWS if law.name == "poisson"), "inductor")


TABLES = ("poisson", "skellam", "multinomial", "mixture", "own-pmf", "vector-atoms", "subset")


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law.name in TABLES], ids=lambda law: law.name
)
def test_compiled_table_is_the_table(law, torch_validation_off):
    """Without gradients, of each kind of table; with them, all laws have theirs above."""

    def table(*tensors):
        return law.finite(*tensors).probs

    tensors = law.tensors(torch.float64, batch=(2,))
    compiled = torch.compile(table, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*tensors), table(*tensors))
    torch.compiler.reset()


def test_a_cut_law_is_traced_by_jit():
    def probs(rate):
        return gengs.truncate(Poisson(rate), 9).probs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, and warns of it
        traced = torch.jit.trace(probs, (torch.tensor([1.0, 2.0]),))
    rate = torch.tensor([3.0, 4.0])
    torch.testing.assert_close(traced(rate), probs(rate))
