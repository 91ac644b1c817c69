import pytest
import torch

import ebql
from ebql.deep.evaluation.diversity import Diversity, diversity
from ebql.errors import InputError


def test_errors_are_sorted_by_whether_the_action_is_greedy_for_the_member():
    # Two rows, two members, three actions. The decoys 99 are values of actions that nobody took.
    values = torch.tensor([[[5.0, 1, 0], [0, 1, 99]], [[0, 99, 3], [2, 1, 4]]])
    errors = torch.tensor([[-1.0, 10.0], [100.0, -1000.0]])
    # Row 0 takes action 0: greedy for member 0 only. Row 1 takes action 2: greedy for member 1 only.
    assert diversity(values, torch.tensor([0, 2]), errors) == Diversity(1001.0, 2.0, 110.0, 2.0)


def test_means_are_over_all_updates_and_missing_without_transitions():
    total = Diversity(3.0, 1.0, 0.0, 0.0).plus(Diversity(1.0, 3.0, 0.0, 0.0))
    assert (total.own, total.others) == (1.0, None)


@pytest.mark.parametrize(
    "options",
    [{}, {"members": "cycle"}, {"data": "independent"}, {"atoms": 5, "v_min": 0.0, "v_max": 20.0}],
)
def test_logging_it_changes_no_weight(options, small):
    options = {**small, "ensemble_size": 3, "log_period": 20, **options}
    records = []
    plain = ebql.EBQL("CartPole-v1", **options).learn(80)
    logging = ebql.EBQL("CartPole-v1", log_diversity=True, **options).learn(80, callback=records.append)
    weights, others = plain._learner.state(), logging._learner.state()
    assert weights.keys() == others.keys()
    assert all((weights[name] == others[name]).all() for name in weights)
    logged = [record for record in records if record.get("error/own") is not None]
    assert logged
    assert all(record["error/own"] > 0 and record["error/others"] > 0 for record in logged)


def test_it_is_refused_with_action_masks(small, tmp_path):
    """The replay keeps the masks of next states only, and an illegal action is no member's choice."""
    options, run = {**small, "ensemble_size": 3, "log_period": 20}, tmp_path / "run"
    with pytest.raises(InputError, match="turn log-diversity or action-masks off"):
        ebql.EBQL("Taxi-v4", log_diversity=True, **options).learn(80, out=run)
    assert not run.exists()
    records = []
    unmasked = ebql.EBQL("Taxi-v4", log_diversity=True, action_masks=False, **options)
    unmasked.learn(80, callback=records.append)
    assert any(record.get("error/own") is not None for record in records)


def test_it_is_refused_with_data_that_has_action_masks(small, tmp_path):
    options, run = {**small, "ensemble_size": 3}, tmp_path / "run"
    ebql.EBQL("Taxi-v4", **options).learn(80, out=run)
    with pytest.raises(InputError, match="data that has action masks"):
        ebql.EBQL("Taxi-v4", log_diversity=True, **options).learn_offline(run, 10)
    ebql.EBQL("Taxi-v4", **options).learn_offline(run, 10)
