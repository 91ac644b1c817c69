from dataclasses import fields

from ebql.deep.evaluation.bias import Bias
from ebql.runs import metric_names


def test_names_stay_those_in_the_files_of_earlier_runs():
    names = {value for name, value in vars(metric_names).items() if name.isupper()}
    assert names == {
        "frames",
        "evaluation/",
        "updates",
        "episodes",
        "epsilon",
        "learning_rate",
        "return",
        "length",
        "loss",
        "subset_size",
        "error/own",
        "error/others",
        "evaluation/return",
        "evaluation/return_std",
        "evaluation/length",
        "evaluation/episodes",
        "bias/",
        "bias/mean",
        "bias/normalised",
        "bias/spread",
        "bias/agreement",
        "bias/deviation",
        "bias/method",
        "bias/dropped",
        "bias/limit",
        "bias/horizon",
    }


def test_the_names_of_the_bias_are_its_fields():
    recorded = {f"{metric_names.BIAS_PREFIX}{field.name}" for field in fields(Bias)}
    prefix = metric_names.BIAS_PREFIX
    named = {
        value for name, value in vars(metric_names).items() if name.isupper() and value.startswith(prefix)
    }
    assert named - {prefix} <= recorded
