"""Every law that ``gengs measure`` lists can be measured."""

import json

import pytest
import torch
from torch.distributions import Categorical

import gengs
from gengs_experiments.cli import main

LAWS = [
    "poisson(3)",
    "geometric(0.25)",
    "bernoulli(0.4)",
    "binomial(5, 0.3)",
    "negative-binomial(3, 0.5)",
    "skellam(3, 1)",
    "categorical([0.2, 0.3, 0.5])",
    "categorical([2, 3, 5])",
    "categorical(probs=(0.2, 0.8))",
]


@pytest.mark.parametrize("law", LAWS)
def test_a_law_by_name_is_measured(law, capsys):
    arguments = ["--law", law, "--gradients", "40", "--json", "--estimators", "RLOO(4)"]
    code = main(["measure", *arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "RLOO" in json.dumps(json.loads(said.out))


@pytest.mark.parametrize(
    "law", ["categorical([])", "categorical([0, 0])", "categorical(0.3)", "categorical([-1, 2])"]
)
def test_a_wrong_list_gets_one_sentence(law, capsys):
    code = main(["measure", "--law", law, "--gradients", "40"])
    said = capsys.readouterr().err
    assert code and "categorical" in said and "Traceback" not in said
    assert "NaN" not in said and "integer" not in said


def test_an_estimator_does_not_see_what_the_one_before_asked_of_the_law():
    """RLOO asks for the law's logits; a replicate of the law is still the same law."""
    probs = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    kinds = [gengs.RLOO(4), gengs.Exact()]
    result = gengs.lab.measure(lambda z: (z - 2.6) ** 2, Categorical(probs), kinds, gradients=50)
    assert abs(result["Exact"].bias) < 1e-5
