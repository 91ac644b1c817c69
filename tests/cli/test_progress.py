"""The lines about a run in progress: what they show of each record."""

import pytest

from ebql.cli.progress import progress

TRAINING = {"return": 20.0, "loss": 0.5, "epsilon": 0.25}


@pytest.fixture
def shown(capsys, tmp_path):
    """Show records of a run; return the lines that were told."""

    def show_all(*records):
        with progress("dqn on W-v0", 100, tmp_path) as show:
            for record in records:
                show(record)
        return capsys.readouterr().err.splitlines()

    return show_all


def evaluation(bias):
    return {"evaluation/return": 12.5, "bias/mean": bias}


def test_a_bias_that_is_unknown_now_hides_the_one_before(shown):
    first, second, done = shown(
        {"step": 50, **TRAINING},
        {"step": 50, **evaluation(3.0)},
        {"step": 100, **TRAINING},
        {"step": 100, **evaluation(None)},
    )
    assert "bias +3.00" in first
    for line in (second, done):
        assert "bias n/a" in line
        assert "3.00" not in line


def test_a_record_of_the_other_kind_says_nothing_of_the_bias(shown):
    first, done = shown({"step": 50, **evaluation(3.0)}, {"step": 100, **TRAINING})
    assert "bias +3.00" in first
    assert "bias +3.00" in done
    assert "return 20.0" in done


def test_a_loss_that_is_unknown_now_hides_the_one_before(shown):
    (done,) = shown({"step": 50, **TRAINING}, {"step": 100, **TRAINING, "loss": None})
    assert "loss n/a" in done
    assert "return 20.0" in done
