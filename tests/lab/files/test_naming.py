from pathlib import Path

from ebql.analysis.runs import RecordedRun
from ebql.lab.files.naming import folder_labels, names


def run(identity, agent="dqn", environment="W-v0", seed=0, **options):
    config = {"kind": "deep", "label": None, "agent": agent, "environment": environment, "steps": 9}
    return identity, RecordedRun(Path("/lab", identity), config | {"options": {"seed": seed, **options}}, ())


def named(*runs):
    found = dict(runs)
    return names(found, folder_labels(found))


def test_labels_hold_what_differs_in_the_same_folder_only():
    rates = {"a/1": 0.1, "a/2": 0.2, "b/1": 0.3}
    labels = folder_labels(dict(run(name, learning_rate=rate) for name, rate in rates.items()))
    shown = {"a/1": "DQN, learning_rate=0.1", "a/2": "DQN, learning_rate=0.2", "b/1": "DQN"}
    assert labels == shown


def test_runs_that_differ_in_their_seed_share_a_name_across_folders():
    assert named(run("s0/x", seed=0), run("s1/x", seed=1)) == {"s0/x": "DQN", "s1/x": "DQN"}


def test_one_name_for_different_options_gets_the_folder():
    other = {"learning_rate": 0.2}
    found = named(run("a/x", learning_rate=0.1), run("b/x", **other), run("b/y", seed=1, **other))
    assert found == {"a/x": "DQN · a", "b/x": "DQN · b", "b/y": "DQN · b"}


def test_environments_tell_runs_apart_by_themselves():
    found = named(run("a/x", learning_rate=0.1), run("b/x", environment="V-v0", learning_rate=0.2))
    assert found == {"a/x": "DQN", "b/x": "DQN"}
