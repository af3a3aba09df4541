"""A temperature that was typed is kept; the others fall together."""

import pytest

from gengs.estimators.spec import parse_estimator
from gengs_experiments.experiments.annealing import anneal
from gengs_experiments.experiments.vae import build
from gengs_experiments.experiments.vae_settings import VaeConfig


def annealed(*texts):
    estimators = [parse_estimator(text) for text in texts]
    return estimators, anneal(zip(texts, estimators, strict=True), (1.0, 0.1), steps=10)


@pytest.mark.parametrize("text", ["GenGS", "gengs()", "GenGS(samples=10)", "GenGS(hard=True)"])
def test_without_one_of_its_own_it_falls(text):
    (estimator,), schedules = annealed(text)
    assert estimator.temperature is schedules["temperature"]
    assert estimator.temperature.value == 1.0


@pytest.mark.parametrize(
    "text", ["GenGS(0.5)", "GenGS(2)", "gengs( .3)", "GenGS(temperature=2.0, samples=3)"]
)
def test_one_that_was_typed_is_kept(text):
    before = parse_estimator(text).temperature
    (estimator,), schedules = annealed(text)
    assert estimator.temperature == before
    assert not schedules


def test_several_follow_one_schedule_and_others_none():
    (first, fixed, second, other), schedules = annealed("GenGS", "GenGS(3)", "GenGS", "MidCDF")
    assert first.temperature is second.temperature is schedules["temperature"]
    assert fixed.temperature == 3
    assert not hasattr(other, "temperature")


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 14),
        ({"prior": "gaussian"}, None),
        ({"posterior": "implicit"}, None),
        ({"posterior": "explicit"}, None),
        ({"kl_warm_up": 0}, None),
        ({"kl_warm_up": 5, "posterior": "implicit"}, 5),
    ],
    ids=str,
)
def test_the_divergence_comes_in_over_a_quarter_of_the_steps_where_that_helps(settings, steps):
    config = VaeConfig(network="64-32", epochs=4, **settings)
    task, training = build(config, config.load(None))
    assert training.steps == 56
    weight = task.modules["model"].kl_weight
    if steps is None:
        assert weight == 1.0 and "kl_weight" not in task.schedules
    else:
        assert task.schedules["kl_weight"] is weight
        values = [weight.value] + [weight.step() or weight.value for _ in range(steps)]
        assert values[0] == pytest.approx(1 / steps) and values[-2] < 1.0 == values[-1]
