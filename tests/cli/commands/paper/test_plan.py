"""`ebql plan table1`, called as a person would, on a small environment."""

import os
import re
import shlex

import pytest

from ebql.cli import main

QUICK = shlex.split("plan table1 --game ebql/ProbeOneStep-v0 --preset plain --seconds 0.1")


def test_the_cost_here_elsewhere_and_what_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*QUICK, "--steps-per-second", "1000", "--machines", "10", "--budget", "100"]) == 0
    told = capsys.readouterr().out
    assert "Measured on ebql/ProbeOneStep-v0 with plain" in told
    for agent in ("DQN", "DoubleDQN", "EBQL K=5"):
        assert agent in told
    assert "165 runs (11 games × 3 agents × 5 seeds) of 50M agent steps (200M frames), 8,250M" in told
    # 165 runs of 13.9 hours on ten machines: 17 rounds, the last of five runs.
    assert "10 machines of 1000 steps/s 2,292 236 9.8" in re.sub(" +", " ", told)
    assert "In 100 hours, 10 machines of 1000 steps/s can do 165 runs" in told
    assert "of 21M agent steps (84M frames)" in told  # 17 rounds of 5.83 hours: 99.2
    assert "--preset atari-paper --steps 21000000 --seed $seed" in told


@pytest.mark.parametrize(("load", "told"), [(3.2, "using this machine (load 3.2 on 4 cores)"), (1.9, None)])
def test_a_busy_machine_is_told(load, told, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert main(QUICK) == 0
    out = capsys.readouterr().out
    assert (told or "Measured") in out
    assert ("using this machine" in out) == (told is not None)


def test_all_of_it_fits_a_large_budget(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*QUICK, "--steps-per-second", "1e6", "--budget", "10"]) == 0
    assert "In 10 hours, one machine of 1e+06 steps/s can do all of it; it takes 2.3 hours" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("plan table2", "Unknown plan 'table2'. Did you mean 'table1'"),
        ("plan table1 --budget 0", "budget must be positive, not 0"),
        ("plan table1 --budget -2.5", "budget must be positive, not -2.5"),
        ("plan table1 --machines 0", "machines must be at least 1"),
        ("plan table1 --steps-per-second 0", "steps-per-second must be positive"),
        ("plan table1 --seconds 0", "seconds must be positive"),
        ("plan table1 --preset atary", "Unknown preset 'atary'"),
        ("plan table1 --preset plain --game CartPole-v7", "Did you mean 'CartPole-v1'"),
        ("plan table1 --preset plain --game CartPole-v1 --device abacus", "Unknown device"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, told, refused):
    assert told in refused(words.split())


def test_a_budget_that_nothing_fits_says_what_the_least_takes(capsys):
    assert main([*QUICK, "--steps-per-second", "1", "--budget", "1"]) == 2
    error = capsys.readouterr().err
    assert "Nothing fits into 1 hours" in error
    assert error.count("\n") == 1
