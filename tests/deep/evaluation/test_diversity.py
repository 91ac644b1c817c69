import pytest
import torch

import ebql
from ebql.deep.evaluation.diversity import Diversity, diversity


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
