"""The VAE with modules, types and arguments of all kinds, the wrong ones too."""

import copy

import pytest
import torch
from tiny_vae import IMAGES, LATENTS, LEVEL, PIXELS, tiny
from torch import nn
from torch.distributions import Categorical, Independent, Normal, Poisson
from torch.utils._python_dispatch import TorchDispatchMode

import gengs
from gengs_experiments.models import VAE, mlp, mlp_pair

# ---------------------------------------------------------------------------- other architectures


def test_any_modules_and_image_shapes_will_do():
    encoder = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Flatten(), nn.Linear(3 * 36, 4))
    decoder = nn.Sequential(nn.Linear(4, 3 * 36), nn.Unflatten(1, (3, 6, 6)), nn.ReLU())
    decoder.append(nn.ConvTranspose2d(3, 1, 3))
    model = VAE(encoder, decoder, Poisson(torch.full((4,), 2.0)), gengs.MidCDF(samples=3))
    x = torch.bernoulli(torch.full((7, 1, 8, 8), 0.4))
    model(x).mean().backward()
    assert model.reconstruct(x).shape == x.shape
    assert model.sample_prior(3).shape == (3, 1, 8, 8)
    assert model.negative_elbo(x, 2).shape == model.log_likelihood(x, 2).shape == (7,)


def test_a_posterior_of_ones_own():
    def posterior(raw):
        return Poisson(nn.functional.softplus(raw))

    model = tiny(posterior=posterior, level=None)
    assert (model.laws(IMAGES)[0].rate == nn.functional.softplus(model.encoder(IMAGES))).all()
    model.loss(IMAGES).sum().backward()


def test_a_prior_on_atoms_of_ones_own():
    atoms = gengs.Finite(torch.tensor([0.0, 0.5, 3.0, 10.0]), probs=torch.ones(4))
    model = tiny(gengs.MidCDF(), "implicit", atoms, level=None)
    assert set(model.draw_prior(200).unique().tolist()) == {0.0, 0.5, 3.0, 10.0}
    model.loss(IMAGES).sum().backward()


def test_copies_types_and_states():
    model = tiny(posterior="implicit")  # made in single precision, and moved
    assert model.latents.prior.logits.dtype == torch.float64
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.encoder[0].weight.zero_()
    torch.manual_seed(0)
    before = model.negative_elbo(IMAGES, 3)
    twin.load_state_dict(model.state_dict())
    torch.manual_seed(0)
    assert (twin.negative_elbo(IMAGES, 3) == before).all()
    assert model.float().negative_elbo(IMAGES.float()).dtype == torch.float32
    assert "implicit" in repr(model)


def test_active_units_are_those_that_vary():
    model = tiny()
    with torch.no_grad():
        model.encoder[0].weight.zero_()
        model.encoder[0].weight[1, 0] = 1.0
    assert model.active_units(IMAGES).tolist() == [False, True]
    assert model.active_units(IMAGES, threshold=1e3).tolist() == [False, False]


def test_prior_samples_follow_the_prior():
    model = tiny()
    z = model.draw_prior(20_000)
    p = model.latents.prior
    error = (p.variance / 20_000).sqrt()
    assert ((z.mean(0) - p.mean).abs() < 5 * error).all()
    assert model.sample_prior(6).shape == (6, PIXELS)


# --------------------------------------------------------------------------------- odd but allowed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_a_model_in_half_precision(dtype, posterior):
    """Its laws and costs are in float32; the value is that of the model up to the weights' digits.

    Exact sums over all outcomes: nothing here is random.
    """
    model = tiny(gengs.Exact(), posterior).float()
    expected = model.loss(IMAGES.float())
    model, x = model.to(dtype), IMAGES.to(dtype)
    loss = model.loss(x)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.03, atol=0.03)
    loss.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    for value in (model.negative_elbo(x), model.log_likelihood(x, 10), model.sample_prior(2)):
        assert value.isfinite().all()


@pytest.mark.parametrize("estimator", [gengs.MidCDF(), gengs.GenGS(0.5), gengs.RLOO(4)])
@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_a_batch_without_images(estimator, posterior):
    model = tiny(estimator, posterior)
    loss = model.loss(IMAGES[:0])
    loss.sum().backward()
    assert loss.shape == model.negative_elbo(IMAGES[:0]).shape == (0,)


# ------------------------------------------------------------------------------------------ errors


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"between 0 and 1.* 2"):
        tiny(level=None, mass=2.0)
    with pytest.raises(ValueError, match="at least 2 atoms"):
        tiny(level=1)
    with pytest.raises(ValueError, match=r"`kl_weight`.* 'a'"):
        tiny(kl_weight="a")
    for weight in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="`kl_weight` of at least 0"):
            tiny().loss(IMAGES, kl_weight=weight)
    for n in (-1, 1.5):
        with pytest.raises(ValueError, match=f"how many images, but got {n}"):
            tiny().sample_prior(n)
    pair = tiny()
    pair.encoder = nn.GRU(PIXELS, LATENTS, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"tensor from the encoder.* tuple"):
        pair.loss(IMAGES)
    with pytest.raises(ValueError, match="level= or mass="):
        tiny(posterior="implicit", level=None)
    with pytest.raises(ValueError, match="not both"):
        tiny(mass=0.9)
    with pytest.raises(ValueError, match="'explicit', 'implicit'"):
        tiny(posterior="none")
    with pytest.raises(TypeError, match="explicit posterior exists for Poisson"):
        tiny(prior=Categorical(torch.ones(3)), level=None)
    with pytest.raises(ValueError, match="event shape"):
        tiny(prior=Independent(Poisson(torch.ones(2)), 1))
    with pytest.raises(TypeError, match="torch distribution"):
        tiny(prior=2.0)
    with pytest.raises(TypeError, match="estimator"):
        tiny(estimator="midcdf")
    with pytest.raises(ValueError, match="latents=2 and a prior"):
        tiny(prior=Poisson(torch.ones(3)))
    with pytest.raises(ValueError, match="4 outputs for each latent"):
        tiny(posterior="implicit").latents(torch.zeros(2, 9))
    with pytest.raises(ValueError, match=r"\(batch, 2\)"):
        tiny().latents(torch.zeros(2, 9))
    with pytest.raises(ValueError, match="pass latents="):
        tiny(latents=None).sample_prior(2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        tiny().loss(IMAGES * 255)
    with pytest.raises(ValueError, match=r"2 pixels.* 5"):
        VAE(mlp([5, 2]), mlp([2, 2]), Poisson(1.0), gengs.RLOO()).loss(IMAGES.float())
    with pytest.raises(ValueError, match="positive integer `samples`"):
        tiny().negative_elbo(IMAGES, 0)
    with pytest.raises(ValueError, match="two images"):
        tiny().active_units(IMAGES[:1])
    with pytest.raises(ValueError, match="kl_weight"):
        tiny(kl_weight=-1.0)
    with pytest.raises(ValueError, match="no network preset '9-9'"):
        mlp_pair("9-9", 4, 2)
    with pytest.raises(ValueError, match="widths"):
        mlp([4])


def test_presets_mirror_each_other():
    for preset, activation in (("512-256", nn.LeakyReLU), ("256-128", nn.ReLU)):
        encoder, decoder = mlp_pair(preset, pixels=784, latents=50)
        hidden = [int(width) for width in preset.split("-")]
        widths = [layer.out_features for layer in encoder[::2]]
        assert widths == [*hidden, 50]
        assert [layer.out_features for layer in decoder[::2]] == [*hidden[::-1], 784]
        assert isinstance(encoder[1], activation) and isinstance(decoder[1], activation)
    assert mlp_pair("512-256", 784, 50)[0][1].negative_slope == 0.1


def test_normal_is_no_count_prior():
    with pytest.raises(TypeError, match="explicit posterior"):
        tiny(prior=Normal(0.0, 1.0), level=None)


class HostReads(TorchDispatchMode):
    """Counts how often a number is read out of a tensor: on an accelerator, that waits."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += "_local_scalar_dense" in function.__name__ or "nonzero" in function.__name__
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
@pytest.mark.parametrize("estimator", [gengs.MidCDF(2), gengs.GenGS(0.5), gengs.RLOO(4)], ids=repr)
def test_without_checks_a_step_reads_no_number(posterior, estimator):
    """With them: of the pixels, the law, the cost and, on the way back, the gradient."""
    level = LEVEL if posterior == "implicit" else 20  # where little is lumped, nothing to warn of
    for validate, most in ((True, 4), (False, 0)):
        model = tiny(estimator, posterior, level=level, validate_args=validate)
        with HostReads() as reads:
            model.loss(IMAGES).mean().backward()
        assert validate == bool(reads.count) and reads.count <= most
