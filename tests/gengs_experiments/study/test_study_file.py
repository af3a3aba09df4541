"""Studies of one's own, in TOML."""

import pytest

from gengs_experiments.study.study_file import read_study

GOOD = """
experiment = "vae"
[base]
epochs = 2
[grid]
estimator = ["GenGS", "MidCDF"]
prior = ["poisson(2)", "geometric(0.5)"]
seed = [0, 1, 2]
[[runs]]
estimator = "RLOO(4)"
learning_rate = 1
"""


def study(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return read_study(file)


def test_a_grid_and_more(tmp_path):
    plan = study(tmp_path, GOOD)
    assert (plan.name, plan.budget, len(plan.runs)) == ("mine", "custom", 2 * 2 * 3 + 1)
    assert {run.config.epochs for run in plan.runs} == {2}
    last = plan.runs[-1]
    assert last.config.estimator == "RLOO(4)" and last.config.learning_rate == 1.0
    assert plan.runs[0].labels == {
        "table": "mine", "column": "GenGS", "row": "poisson(2), 0.001"
    }  # fmt: skip


def test_labels_are_filled_from_settings(tmp_path):
    text = GOOD + '[labels]\ncolumn = "{estimator} of {latents}"\ndata = "{{x}"\n'
    with pytest.raises(ValueError, match="unknown setting 'x'"):
        study(tmp_path, text)
    plan = study(tmp_path, text.replace("{{x}", "{ }{"))
    assert plan.runs[0].labels["column"] == "GenGS of 50"
    assert plan.runs[0].labels["data"] == "{ }{"  # only a setting's name in braces is special


def test_a_setting_that_a_label_names_is_not_used_for_another(tmp_path):
    grid = GOOD.partition("[[runs]]")[0]
    for label, other in (("row", "column"), ("column", "row")):
        run = study(tmp_path, grid + f'[labels]\n{label} = "{{prior}}"\n').runs[0]
        assert run.labels == {"table": "mine", label: "poisson(2)", other: "GenGS"}


def test_an_entry_has_its_own_grid_and_labels(tmp_path):
    entry = 'grid = { seed = [0, 1] }\nlabels = { column = "ours", row = "{prior}" }\n'
    *_, first, second = study(tmp_path, GOOD + entry).runs
    assert (first.config.seed, second.config.seed) == (0, 1)
    assert first.labels == {"table": "mine", "column": "ours", "row": "poisson(2)"}
    with pytest.raises((TypeError, ValueError), match=r"runs.*1.*did you mean 'column'"):
        study(tmp_path, GOOD + 'labels = { colum = "ours" }\n')
    with pytest.raises(ValueError, match="'estimator' has one value"):
        study(tmp_path, GOOD + 'grid = { estimator = ["GenGS"] }\n')


TABLE = """
experiment = "vae"
[base]
like = "short"
latents = 4
[like.short]
epochs = 1
latents = 9
[rows]
two = { prior = "poisson(2)" }
half = { prior = "geometric(0.5)" }
[columns]
GenGS = { estimator = "GenGS" }
EAT = { estimator = "ArrivalTimes", level = 0, only = ["two"] }
Gauss = { prior = "gaussian", only = ["half"] }
"""


def cells(plan):
    return [f"{run.labels['row']} {run.labels['column']} {run.seed}" for run in plan.runs]


def test_rows_and_columns_have_names(tmp_path):
    plan = study(tmp_path, TABLE)
    assert cells(plan) == ["two GenGS 0", "two EAT 0", "half GenGS 0", "half Gauss 0"]
    configs = [run.config for run in plan.runs]
    assert {(config.epochs, config.latents) for config in configs} == {(1, 4)}
    assert [config.level for config in configs] == [None, 0, None, None]
    assert configs[2].prior == "geometric(0.5)" and configs[3].prior == "gaussian"
    assert cells(study(tmp_path, TABLE + "[grid]\ncolumn = ['EAT', 'GenGS']\nseed = [0, 1]\n")) == [
        *("two EAT 0", "two EAT 1", "two GenGS 0", "half GenGS 0", "two GenGS 1", "half GenGS 1"),
    ]


def test_columns_alone_have_names(tmp_path):
    head, _, _ = TABLE.partition("[rows]")
    text = head + "[grid]\nprior = ['poisson(2)', 'geometric(0.5)']\n[columns]\n"
    plan = study(tmp_path, text + "GenGS = { estimator = 'GenGS' }\n")
    assert cells(plan) == ["poisson(2) GenGS 0", "geometric(0.5) GenGS 0"]


def test_an_entry_chooses_rows_and_comes_last(tmp_path):
    text = TABLE + "[repeat]\nseed = [0, 1]\n" + "".join(
        f"[[runs]]\nrow = '{row}'\ncolumn = 'GenGS'\nlatents = 5\n" for row in ("half", "two")
    )  # fmt: skip
    plan = study(tmp_path, text)
    assert cells(plan) == ["half GenGS 0", "two GenGS 0", "half GenGS 1", "two GenGS 1"]
    assert {run.config.latents for run in plan.runs} == {5}


def test_a_budget_changes_parts_of_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TABLE + "[budgets.smoke]\nlike.short.epochs = 3\n[budgets.small]\n")
    smoke, small = read_study(file, "smoke"), read_study(file)
    assert (smoke.budget, small.budget) == ("smoke", "small")
    assert {run.config.epochs for run in smoke.runs} == {3}
    assert {run.config.epochs for run in small.runs} == {1}
    assert {run.config.latents for run in smoke.runs} == {4}


def test_one_run(tmp_path):
    (run,) = study(tmp_path, 'experiment = "measure"').runs
    assert run.experiment == "measure" and run.config.seed == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("experiment = ", "is not TOML"),
        ("[base]", "does not say which experiment"),
        ('experiment = "vea"', "did you mean 'vae'"),
        ('experiment = "vae"\n[gird]', "did you mean 'grid'"),
        ('experiment = "vae"\n[base]\nepoch = 3', "did you mean 'epochs'"),
        ('experiment = "vae"\n[grid]\nepoch = [3]', "did you mean 'epochs'"),
        ('experiment = "vae"\n[grid]\nepochs = 3', r"expected list for .*grid\['epochs'\]"),
        ('experiment = "vae"\n[grid]\nepochs = []', "expected a list for 'epochs'"),
        ('experiment = "vae"\n[base]\nepochs = 1\n[grid]\nepochs = [1]', r"a list of them in"),
        ('experiment = "vae"\n[base]\nepochs = "x"', "expected int"),
        ('experiment = "vae"\n[grid]\nseed = [1, 1]', "twice"),
        ('experiment = "vae"\n[labels]\nrows = "x"', "did you mean 'row'"),
        ('experiment = "vae"\n[labels]\nrow = "{piror}"', "did you mean 'prior'"),
        ('experiment = "vae"\nruns = 3', "expected list for .*runs"),
        ('experiment = "vae"\nbase = 3', "expected dict for .*base"),
        ('experiment = "vae"\nname = "../x"', "expected a name"),
        (TABLE + '[[runs]]\nrow = "tow"', "unknown row in .*'tow'; did you mean 'two'"),
        (TABLE + "[grid]\ncolumn = [3]", r"unknown column in .*'3'; expected one of EAT"),
        (TABLE + '[[runs]]\nlike = "shirt"', "unknown `like` in .*did you mean 'short'"),
        (TABLE + '[[runs]]\nrow = "two"\ngrid = { row = ["two"] }', "has one value, and a list"),
        (TABLE.replace('["half"]', '"half"'), "expected a list for `only` of 'Gauss'"),
        (TABLE + "[budgets.paper]", "unknown budget in .*'small'; expected one of paper"),
        ('experiment = "vae"\nbudgets = 3', "expected dict for .*budgets"),
        ('experiment = "vae"\n[grid]\nrow = ["x"]', "unknown key 'row'"),
    ],
)
def test_mistakes_are_named(tmp_path, text, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        study(tmp_path, text)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_study(tmp_path / "none.toml")


def test_a_word_that_is_none_of_the_choices_names_them():
    from gengs_experiments.experiments.vae_settings import VaeConfig
    from gengs_experiments.runs.config import from_json

    with pytest.raises(TypeError, match=r"'64-32' for .*network"):
        from_json(VaeConfig, {"network": "6-3"}, "study.toml")
