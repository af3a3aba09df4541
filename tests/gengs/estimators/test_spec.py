"""Laws and estimators by name: what people type, and what they are told when it is wrong."""

import pytest
import torch

import gengs
from gengs.estimators.spec import parse_call, parse_estimator, parse_law


@pytest.mark.parametrize(
    "text",
    [
        "negative-binomial(3, 0.25)",
        "Negative_Binomial(3, probs=0.25)",
        "negativebinomial(total_count=3, probs=0.25)",
    ],
)
def test_a_law_takes_its_numbers_by_place_and_by_name(text):
    law, parameters = parse_law(text)
    assert type(law) is torch.distributions.NegativeBinomial
    assert (law.total_count.item(), law.probs.item()) == (3.0, 0.25)
    assert list(parameters) == ["probs"] and parameters["probs"].requires_grad


@pytest.mark.parametrize(
    "text", ["binomial(3)", "binomial(3, 0.5, 1)", "binomial(3, total_count=4)", "binomial(3, p=1)"]
)
def test_a_law_with_other_arguments_says_which_it_has(text):
    with pytest.raises(ValueError, match=r"expected binomial\(total_count, probs\), but got"):
        parse_law(text)


def test_a_law_that_goes_beyond_what_floats_count_is_refused():
    assert parse_law("poisson(1.6e7)")[0].mean == 1.6e7
    with pytest.raises(ValueError, match="go beyond 16,777,216"):
        parse_law(f"poisson({2**24})")


def test_an_estimator_takes_its_settings():
    estimator = parse_estimator("gengs(0.25, hard=True)")
    assert isinstance(estimator, gengs.GenGS)
    assert (estimator.temperature, estimator.hard) == (0.25, True)
    with pytest.raises(ValueError, match=r"no estimator 'RLO'.* RLOO"):
        parse_estimator("RLO(4)")


@pytest.mark.parametrize("text", ["f(**{'a': 1})", "f(a=1, a=2)", "f(open('x'))", "f.g(1)", "1"])
def test_anything_but_a_name_with_literals_is_refused(text):
    assert parse_call(" f(1, a='b') ") == ("f", [1], {"a": "b"})
    with pytest.raises(ValueError, match="literal arguments"):
        parse_call(text)


def test_a_long_text_is_shown_by_its_beginning():
    with pytest.raises(ValueError, match=r"but got 'f{80}…'\.$"):
        parse_call("f" * 81 + "(")
    with pytest.raises(ValueError, match=r"but got 'f{79}\('\.$"):
        parse_call("f" * 79 + "(")
