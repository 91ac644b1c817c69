import csv
import json

import numpy as np
import pytest

from ebql.cli import main
from ebql.deep import Callback, KeepBest, Measure, StopAtScore
from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.training.callbacks import Callbacks
from ebql.errors import InputError, InputTypeError, RunError
from ebql.runs import read_metrics


class Diary(Callback):
    """Writes down what it is called with."""

    def __init__(self):
        self.events = []

    def _note(self, event, agent, record):
        assert isinstance(agent, Agent)
        assert record["step"] == agent.steps
        self.events.append((event, dict(record)))

    def on_step(self, agent, record):
        self._note("step", agent, record)

    def on_update(self, agent, record):
        self._note("update", agent, record)

    def on_evaluation(self, agent, record):
        self._note("evaluation", agent, record)

    def on_checkpoint(self, agent, record):
        self._note("checkpoint", agent, record)

    def on_end(self, agent, record):
        self._note("end", agent, record)

    def named(self, event):
        return [record for name, record in self.events if name == event]


@pytest.fixture
def evaluated(small):
    return {**small, "evaluation_period": 50, "evaluation_episodes": 1}


def lines(folder):
    return (folder / "metrics.jsonl").read_bytes()


def test_every_event_is_called_with_the_agent_and_its_record(evaluated, tmp_path):
    diary = Diary()
    DQN("CartPole-v1", **evaluated).learn(100, out=tmp_path / "run", callback=diary)
    assert [record["step"] for record in diary.named("step")] == list(range(1, 101))
    updates = diary.named("update")
    assert [record["step"] for record in updates] == [*range(52, 101, 4)]
    assert [record["updates"] for record in updates] == list(range(1, 14))
    assert all(np.isfinite(record["loss"]) for record in updates)
    written = [record for record in read_metrics(tmp_path / "run" / "metrics.jsonl") if "bias/mean" in record]
    assert diary.named("evaluation") == written
    assert [record["step"] for record in written] == [50, 100]
    assert [(r["step"], r["folder"]) for r in diary.named("checkpoint")] == [(100, tmp_path / "run")]
    assert diary.events[-1] == ("end", {"step": 100, "stopped": False})


def test_callbacks_change_nothing(evaluated):
    watched = DQN("CartPole-v1", **evaluated).learn(100, callback=[Diary(), lambda record: None])
    alone = DQN("CartPole-v1", **evaluated).learn(100)
    for name, tensor in alone._learner.state().items():
        np.testing.assert_array_equal(watched._learner.state()[name], tensor, err_msg=name)


def test_methods_that_are_not_overridden_are_not_called():
    callbacks = Callbacks(None, [Callback(), StopAtScore(1.0)])
    assert not callbacks.see_steps
    assert [event for event, hooks in callbacks._hooks.items() if hooks] == ["on_evaluation"]
    assert Callbacks(None, Diary()).see_steps


class StopsAt(Callback):
    def __init__(self, event, step):
        def answer(agent, record):
            return record["step"] < step

        setattr(self, event, answer)


@pytest.mark.parametrize("event", ["on_step", "on_update", "on_evaluation", "on_checkpoint"])
def test_false_stops_with_a_checkpoint_and_the_run_can_be_resumed(event, evaluated, tmp_path):
    diary = Diary()
    options = {**evaluated, "checkpoint_period": 70}
    whole = DQN("CartPole-v1", **options).learn(200, out=tmp_path / "whole")
    agent = DQN("CartPole-v1", **options)
    assert agent.learn(200, out=tmp_path / "cut", callback=[StopsAt(event, 60), diary]) is agent
    stopped = {"on_step": 60, "on_update": 60, "on_evaluation": 100, "on_checkpoint": 70}[event]
    assert agent.steps == stopped
    assert diary.events[-1] == ("end", {"step": stopped, "stopped": True})
    assert diary.named("checkpoint")[-1]["step"] == stopped
    resumed = DQN.resume(tmp_path / "cut")
    assert resumed.steps == 200
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    for name, tensor in whole._learner.state().items():
        np.testing.assert_array_equal(resumed._learner.state()[name], tensor, err_msg=name)


def test_a_function_stops_too_and_other_false_values_do_not(small):
    agent = DQN("CartPole-v1", **{**small, "log_period": 30})
    assert agent.learn(100, callback=lambda record: record["step"] < 60).steps == 60
    assert agent.learn(100, callback=lambda record: 0).steps == 160
    assert agent.learn(100, callback=lambda record: np.mean(record["step"]) < 200).steps == 210


def test_a_score_stops_the_run(evaluated):
    agent = DQN("CartPole-v1", **evaluated)
    agent.learn(300, callback=StopAtScore(1.0))
    assert agent.steps == 50
    agent.learn(
        100, callback=[Measure(never=lambda agent, evaluation: None), StopAtScore(0, "evaluation/never")]
    )
    assert agent.steps == 150  # a metric without a result reaches no score
    with pytest.raises(InputError, match="Evaluations have no metric 'reward'. They have: evaluation/return"):
        agent.learn(100, callback=StopAtScore(1.0, metric="reward"))


def test_the_best_agent_is_kept_also_after_a_resume(evaluated, tmp_path):
    scores = iter([3.0, 5.0, 4.0, 4.5])
    planned = Measure(score=lambda agent, evaluation: next(scores))
    best = KeepBest(metric="evaluation/score")
    agent = DQN("CartPole-v1", **evaluated)
    stop = StopsAt("on_evaluation", 150)
    agent.learn(200, out=tmp_path / "run", callback=[planned, best, stop])
    path = tmp_path / "run" / "best.safetensors"
    assert Agent.load(path).steps == 100
    DQN.resume(tmp_path / "run", callback=[planned, KeepBest(metric="evaluation/score")])  # 4.5 < 5
    assert Agent.load(path).steps == 100
    with pytest.raises(InputError, match="KeepBest needs a path, or a run with a folder"):
        DQN("CartPole-v1", **evaluated).learn(50, callback=KeepBest())
    DQN("CartPole-v1", **evaluated).learn(50, callback=KeepBest(tmp_path / "elsewhere"))
    assert Agent.load(tmp_path / "elsewhere").steps == 50


def test_own_metrics_join_records_curves_and_reports(evaluated, tmp_path):
    def longest(agent, evaluation):
        return max(evaluation.lengths)

    for seed in (0, 1):
        EBQL("CartPole-v1", ensemble_size=2, seed=seed, **evaluated).learn(
            100, out=tmp_path / "runs" / str(seed), callback=Measure(longest=longest)
        )
    records = [json.loads(line) for line in lines(tmp_path / "runs" / "0").splitlines()]
    values = [record["evaluation/longest"] for record in records if "evaluation/return" in record]
    assert len(values) == 2
    assert main(["curves", str(tmp_path / "runs"), "--out", str(tmp_path / "curves")]) == 0
    with (tmp_path / "curves" / "runs.csv").open() as file:
        first, _ = csv.DictReader(file)
    assert float(first["evaluation/longest"]) == values[-1]
    with (tmp_path / "curves" / "curves.csv").open() as file:
        assert {row["metric"] for row in csv.DictReader(file)} >= {"evaluation/longest", "bias/mean"}
    assert main(["report", str(tmp_path / "runs")]) == 0
    (page,) = tmp_path.rglob("report.html")
    assert "evaluation/longest over time" in page.read_text()


@pytest.mark.parametrize(
    ("callback", "error", "told"),
    [
        (3, InputTypeError, "callback must be a function, an object with a method such as on_evaluation"),
        (Diary, InputTypeError, "or a list of them, not <class"),
        (
            Measure(bad=lambda agent, evaluation: float("nan")),
            RunError,
            "metric bad must be a finite number",
        ),
        (
            Measure(bad=lambda agent, evaluation: "good"),
            RunError,
            "finite number or None, not 'good'",
        ),
        (Measure(**{"return": lambda agent, evaluation: 1}), InputError, "evaluation/return exists already"),
    ],
)
def test_bad_callbacks_are_refused_in_one_line(callback, error, told, evaluated):
    with pytest.raises(error, match=told) as refused:
        DQN("CartPole-v1", **evaluated).learn(50, callback=callback)
    assert "\n" not in str(refused.value)


def test_a_bad_callback_leaves_no_folder(small, tmp_path):
    with pytest.raises(InputTypeError):
        DQN("CartPole-v1", **small).learn(50, out=tmp_path / "run", callback=object())
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputTypeError, match="The metric wins must be a function, not 3"):
        Measure(wins=3)


def test_progress_shows_the_line_of_the_command_line(evaluated, tmp_path, capsys):
    beats = []
    DQN("CartPole-v1", **evaluated).learn(100, out=tmp_path / "run", progress=True, heartbeat=beats.append)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"dqn on CartPole-v1: steps 0 to 100 → {tmp_path / 'run'}"
    assert told[1].startswith("step 50  ")
    assert "evaluated" in told[1]
    assert told[-1].startswith("done: dqn on CartPole-v1, 100 steps")
    assert beats
    DQN("CartPole-v1", **evaluated).learn(100, progress=True, callback=StopAtScore(0.0))
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("stopped: dqn on CartPole-v1, 50 steps")
    DQN("CartPole-v1", **evaluated).learn(50)
    assert not capsys.readouterr().err
