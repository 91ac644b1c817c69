import dataclasses
import multiprocessing
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ebql.errors import InputError
from ebql.studies.definition import parse_study
from ebql.studies.tuning.search import (
    Search,
    TrialResult,
    best_of,
    best_study,
    open_study,
    results,
    run_search,
    score_of,
    work,
)
from ebql.studies.tuning.space import Choice, Range

SPACE = {
    "learning_rate": Range(1e-4, 1e-2, log=True, whole=False),
    "batch_size": Range(4, 8, log=False, whole=True),
    "hidden": Choice(([4], [8, 8])),
}


@pytest.fixture
def search(tmp_path):
    return Search("ebql/ProbeOneStep-v0", "dqn", "plain", SPACE, 1_200, 3, 0, tmp_path)


def test_two_workers_share_the_trials_and_the_same_command_adds_more(search):
    seen = []
    ended = run_search(search, 2, seen.append)
    assert len(ended) == 3
    assert [trial.number for trial in ended] == list(range(len(ended)))
    assert seen[-1] == ended
    assert run_search(search, 2, seen.append) == ended  # there is nothing left to do
    for trial in ended:
        assert trial.outcome == "complete"
        assert trial.score == 1  # the probe pays 1 whatever one does
        assert 4 <= trial.options["batch_size"] <= 8
        assert trial.options["hidden"] in ([4], [8, 8])
    assert len({trial.options["learning_rate"] for trial in ended}) == len(ended)


def test_a_killed_worker_loses_its_trial_alone(search):
    endless = Search(search.environment, "dqn", "plain", SPACE, 10**9, 2, 0, search.folder)
    context = multiprocessing.get_context("spawn")
    tickets = context.Semaphore(2)
    worker = context.Process(target=work, args=(endless, 1, tickets))
    worker.start()
    study = open_study(endless, 0)
    while not study.get_trials(deepcopy=False):
        time.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert results(study) == []
    study.optimize(lambda trial: SPACE["batch_size"].suggest(trial, "batch_size"), n_trials=1)
    assert [trial.number for trial in results(study)] == [1]  # 0 was lost


def test_poor_trials_are_pruned_at_an_evaluation(search, monkeypatch):
    study = open_study(search, 0)

    class Poor:
        def __init__(self, *_args, **_options):
            pass

        def learn(self, steps, callback):
            callback({"step": 10, "loss": 1.0})
            callback({"step": 10, "evaluation/return": -5.0})
            raise AssertionError("the trial should have been pruned")

    monkeypatch.setattr("ebql.deep.agents.AGENTS", {"dqn": Poor})
    for _ in range(5):  # as many as must have ended before one is pruned

        def good(trial):
            trial.report(1.0, 10)
            return 1.0

        study.optimize(good, n_trials=1)
    study.optimize(lambda trial: score_of(search, trial), n_trials=1)
    *_, last = results(study)
    assert (last.outcome, last.score) == ("pruned", -5.0)


def test_a_trial_that_cannot_be_trained_fails_with_its_reason(search):
    odd = Search(
        search.environment, "dqn", "plain", {"replay_size": Choice((10, 20))}, 100, 2, 0, search.folder
    )
    ended = run_search(odd, 1, lambda _: None)
    assert [trial.outcome for trial in ended] == ["failed", "failed"]
    with pytest.raises(InputError, match=r"No trial was completed: learning-starts \(1000\) must not exceed"):
        best_of(ended)


def test_the_trials_of_another_search_are_not_mixed_in(search):
    open_study(search, 0)
    other = Search(search.environment, "dqn", "plain", SPACE, 99, 3, 0, search.folder)
    with pytest.raises(InputError, match="holds a search with steps 1200, not 99: use another --out"):
        open_study(other, 0)
    other = Search(search.environment, "dqn", "plain", SPACE, 1_200, 3, 7, search.folder)
    with pytest.raises(InputError, match="holds a search with seed 0, not 7: use another --out"):
        open_study(other, 0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the states of processes on Linux")
def test_workers_end_with_a_parent_that_is_killed(search):
    endless = Search(search.environment, "dqn", "plain", SPACE, 10**9, 2, 0, search.folder)
    parent = multiprocessing.get_context("spawn").Process(target=run_search, args=(endless, 1, print))
    parent.start()
    try:
        study = open_study(endless, 0)
        _wait_until(lambda: study.get_trials(deepcopy=False))
        (worker,) = subprocess.check_output(["pgrep", "-P", str(parent.pid), "-f", "spawn_main"]).split()
    finally:
        parent.kill()
        parent.join()
    try:
        _wait_until(lambda: not _is_alive(int(worker)))
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(worker), signal.SIGKILL)


def test_another_worker_runs_the_trial_of_a_killed_one(search):
    longer, killed = dataclasses.replace(search, steps=6_000), []

    def kill_one(ended):
        for process in multiprocessing.active_children():
            if not killed and open_study(longer, 0).get_trials(deepcopy=False):
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)

    assert len(run_search(longer, 2, kill_one)) == 3
    assert killed


def _wait_until(is_so, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(pid):
    """Whether a process runs; one that has ended and that nobody asks for its result does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_best_trial_is_complete_and_becomes_a_study_on_fresh_seeds(search):
    trials = [
        TrialResult(0, "complete", {"learning_rate": 1e-3}, -3.0, None),
        TrialResult(1, "complete", {"learning_rate": 2e-3, "hidden": [8, 8]}, -2.0, None),
        TrialResult(2, "pruned", {"learning_rate": 9e-3}, 7.0, None),
    ]
    best = best_of(trials)
    assert best.number == 1
    study = parse_study(best_study(search, best, 3), "the study", to_run=False)
    assert {run.label for run in study.runs} == {"DQN", "DQN, tuned"}
    tuned = [run for run in study.runs if run.label == "DQN, tuned"]
    assert [run.seeds for run in tuned] == [(100_000 + i,) for i in range(5)]
    assert tuned[0].options["hidden"] == [8, 8]
    assert tuned[0].options["learning_rate"] == 2e-3
