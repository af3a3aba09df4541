"""Schedules: their ends, their shapes, their state."""

import math
from itertools import pairwise

import pytest

from gengs import temperature

SCHEDULES = [temperature.Linear, temperature.Exponential, temperature.Cosine]
schedules = pytest.mark.parametrize("schedule", SCHEDULES)


@schedules
def test_starts_ends_and_falls(schedule):
    tau = schedule(2.0, 0.5, steps=10)
    values = [tau(step) for step in range(15)]
    assert values[0] == pytest.approx(2.0)
    assert values[10:] == pytest.approx([0.5] * 5)
    assert all(first > second for first, second in pairwise(values[:11]))


@schedules
def test_may_rise(schedule):
    assert schedule(0.5, 2.0, steps=4)(4) == pytest.approx(2.0)


def test_half_way():
    assert temperature.Linear(2.0, 0.5, steps=10)(5) == pytest.approx(1.25)
    assert temperature.Exponential(2.0, 0.5, steps=10)(5) == pytest.approx(1.0)
    assert temperature.Cosine(2.0, 0.5, steps=10)(5) == pytest.approx(1.25)
    quarter = 0.5 + 1.5 * (1 + math.cos(math.pi / 4)) / 2
    assert temperature.Cosine(2.0, 0.5, steps=8)(2) == pytest.approx(quarter)
    assert temperature.Constant(0.7)(10**9) == 0.7


@schedules
def test_counts_steps_and_resumes(schedule):
    tau = schedule(1.0, 0.1, steps=6)
    for _ in range(4):
        tau.step()
    assert tau.value == tau(4)
    resumed = schedule(1.0, 0.1, steps=6)
    resumed.load_state_dict(tau.state_dict())
    assert resumed.value == tau.value


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_temperatures(bad):
    with pytest.raises(ValueError, match=r"positive, finite `start`, but got"):
        temperature.Linear(bad, 1.0, steps=3)
    with pytest.raises(ValueError, match=r"positive, finite `end`, but got"):
        temperature.Linear(1.0, bad, steps=3)


def test_bad_steps_and_states():
    with pytest.raises(ValueError, match=r"`steps`.* 0"):
        temperature.Cosine(1.0, 0.5, steps=0)
    with pytest.raises(ValueError, match=r"non-negative `step`, but got -1"):
        temperature.Cosine(1.0, 0.5, steps=2)(-1)
    with pytest.raises(ValueError, match=r"'global_step' alone, but got \['epoch'\]"):
        temperature.Constant(1.0).load_state_dict({"epoch": 3})


def test_shows_itself():
    assert repr(temperature.Linear(1.0, 0.5, steps=3)) == "Linear(1.0, 0.5, steps=3)"
    assert repr(temperature.Constant(0.5)) == "Constant(0.5)"
