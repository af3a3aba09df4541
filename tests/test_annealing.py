"""A temperature that was typed is kept; the others fall together."""

import pytest

from gengs.estimators.spec import parse_estimator
from gengs.experiments.annealing import anneal


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
