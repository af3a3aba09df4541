"""The laboratory for programs, on one whose exact gradient is known."""

import pytest
import torch

import gengs
from gengs.lab import measure_program

THETA = torch.tensor([6.0, 0.3], dtype=torch.float64, requires_grad=True)


def simulate(theta, replicates):
    born = torch.poisson(theta[0].expand(replicates))
    return torch.binomial(born, theta[1].expand(replicates))


def exact():
    """Bin(Poisson(λ), p) is Poisson(λp), so E z² = m + m² with m = λp."""
    rate, p = THETA.detach()
    return (1 + 2 * rate * p) * torch.stack([p, rate])


@pytest.fixture(scope="module")
def result():
    rules = [gengs.MidCDF(), gengs.RLOO(), gengs.REINFORCE()]
    return measure_program(simulate, THETA, torch.square, rules, gradients=200, reference=100_000)


def test_the_reference_has_the_error_that_it_says(result):
    error = float(result.source.rpartition("s.e. ")[2])
    assert (result.exact - exact()).norm() < 4 * error < 0.2 * exact().norm()


def test_no_rule_is_biased_and_the_path_varies_least(result):
    for row in result:
        assert abs(row.bias) < 4 * row.bias_error
    variances = [row.variance for row in result]
    assert variances == sorted(variances)
    assert result["MidCDF"].evaluations == 100 and result["RLOO"].milliseconds > 0


def test_a_bias_is_found():
    def rough(z):
        return torch.sin(2 * torch.pi * z) + z

    found = measure_program(simulate, THETA, rough, gengs.MidCDF(), gradients=60, reference=10_000)
    assert abs(found["MidCDF"].bias) > 10 * found["MidCDF"].bias_error


def test_it_prints_exports_and_takes_a_gradient_that_is_known(result):
    assert "finite differences" in str(result) and result.to_dict()["rows"][0]["bias"] is not None
    given = measure_program(
        lambda theta: torch.poisson(theta.expand(50, 1)).squeeze(-1),
        torch.tensor([3.0]),
        torch.square,
        gengs.MidCDF(),
        exact=torch.tensor([7.0]),
        gradients=200,
    )
    assert given.source == "given" and abs(given["MidCDF"].bias) < 4 * given["MidCDF"].bias_error


def test_the_random_state_is_put_back():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    measure_program(simulate, THETA, torch.square, gradients=2, reference=100)
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="gradients"):
        measure_program(simulate, THETA, torch.square, gradients=1)


def test_a_cost_whose_gradient_is_cut_off_has_a_row_of_zeros():
    with pytest.warns(gengs.CutGradientWarning, match="the cost carries no gradient"):
        found = measure_program(
            simulate,
            THETA,
            lambda z: (z == 0).double(),
            [gengs.MidCDF(), gengs.RLOO()],
            gradients=50,
            reference=20_000,
        )
    assert found["MidCDF"].variance == 0 and found["MidCDF"].cosine == 0
    assert abs(found["RLOO"].bias) < 4 * found["RLOO"].bias_error


def test_one_line_and_a_verdict():
    def rumour(theta, replicates):
        x = torch.zeros(replicates, 6, dtype=torch.float64)
        x[:, 0] = 1
        for _ in range(6):
            heard = 1 - torch.exp(-theta * (x.roll(1, -1) + x.roll(-1, -1)))
            x = torch.bernoulli((heard * (1 - x) + 0.7 * x).clamp(1e-6, 1 - 1e-6))
        return x.mean(-1)

    with pytest.warns(gengs.ProgramWarning, match="sets the parameters of later draws"):
        found = measure_program(rumour, torch.tensor(0.3).double(), gradients=60, reference=60_000)
    assert [row.estimator for row in found] == ["MidCDF", "RLOO", "FittedScore"]
    assert "MidCDF is off by" in str(found) and found.recommended in ("RLOO", "FittedScore")


def test_a_verdict_where_nothing_is_wrong(result):
    assert result.recommended == "MidCDF" and "no bias was found" in result.verdict


def test_parameters_that_are_no_tensor_are_refused():
    for theta in ([1.0, 2.0], torch.tensor([1, 2])):
        with pytest.raises(TypeError, match="expects a floating-point tensor as `theta`"):
            measure_program(simulate, theta)
