"""Agents on real Atari games, from the first step to the film."""

import random
import shlex
import time
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest

from ebql.cli import main
from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.agents import Rainbow
from ebql.deep.evaluation.bias import discounted_returns, measured_bias
from ebql.deep.evaluation.rollout import play
from ebql.deep.replay import capacity as memory
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.ring import Replay
from ebql.deep.training import trainer as training
from ebql.environments import make_lanes
from ebql.errors import InputError
from ebql.runs import RunFolder, read_metrics

from .test_resume import content, finish, start, wait_for_records

QUICK = {
    "preset": "atari-fast",
    "hidden": (16,),
    "batch_size": 4,
    "replay_size": 200,
    "learning_starts": 60,
    "target_period": 50,
    "epsilon_steps": 200,
    "evaluation_period": 0,
    "log_period": 40,
    "checkpoint_period": 100,
    "envs": 2,
}
WORDS = shlex.split(
    "--agent ebql --ensemble-size 2 --preset atari-fast --steps 360 --hidden 16 --batch-size 4 "
    "--replay-size 150 --learning-starts 60 --target-period 50 --epsilon-steps 200 --evaluation-period 0 "
    "--log-period 40 --checkpoint-period 60 --envs 2"
)


@pytest.mark.parametrize("game", ["breakout", "qbert"])
def test_a_killed_run_goes_on_to_the_same_bits_its_frames_included(game, tmp_path):
    whole = start("train", game, *WORDS, "--out", tmp_path / "whole")
    folder = tmp_path / "killed"
    process = start("train", game, *WORDS, "--out", folder)
    wait_for_records(folder, 4, process)
    time.sleep(0.2 * random.Random(game).random())
    process.kill()
    process.communicate()
    process = start("resume", folder)
    assert finish(process)[0] == 0
    assert finish(whole)[0] == 0
    assert content(folder) == content(tmp_path / "whole")


def test_rainbow_draws_frames_by_priority_and_goes_on_to_the_same_bits(tmp_path):
    options = {**QUICK, "preset": "atari-rainbow", "torso": "small", "threads": 1}
    whole = Rainbow("pong", **options).learn(200)
    Rainbow("pong", **options).learn(120, out=tmp_path / "run")
    resumed = Rainbow.resume(tmp_path / "run", steps=200)
    arrays, others = (agent._prepare().state()[2] for agent in (whole, resumed))
    np.testing.assert_array_equal(others["sampler.priorities"], arrays["sampler.priorities"])
    assert len(np.unique(arrays["sampler.priorities"])) > 20
    tensors, others = (agent._prepare().state()[0] for agent in (whole, resumed))
    assert all(np.array_equal(tensors[name], others[name]) for name in tensors)


def test_sealed_segments_go_from_checkpoint_to_checkpoint_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "FrameReplay", partial(FrameReplay, segment=64))
    DQN("breakout", **QUICK).learn(400, out=tmp_path / "whole")

    def stop_at_240(record):
        if record["step"] >= 240:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        DQN("breakout", **QUICK).learn(400, out=tmp_path / "cut", callback=stop_at_240)
    DQN.resume(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    inodes = [
        {path.stat().st_ino for path in (tmp_path / "cut" / "checkpoints" / f"{step:012d}").iterdir()}
        for step in (300, 400)
    ]
    assert not inodes[0] & inodes[1], "one bad byte would damage both kept checkpoints"


def test_frames_kept_once_teach_what_whole_stacks_teach(monkeypatch):
    frames = DQN("breakout", **QUICK).learn(200)
    monkeypatch.setattr(
        training,
        "make_replay",
        lambda config, spec, lanes, n_masks: Replay(config.replay_size, spec, n_masks),
    )
    stacks = DQN("breakout", **QUICK).learn(200)
    assert isinstance(stacks._prepare().replay, Replay)
    for name, array in frames._learner.state().items():
        np.testing.assert_array_equal(array, stacks._learner.state()[name])


def test_frames_stand_beside_steps_and_the_protocol_is_told(tmp_path, capsys):
    run = tmp_path / "run"
    words = [*WORDS, "--steps", "80", "--atari-protocol", "machado", "--out", str(run)]
    assert main(["train", "pong", *words]) == 0
    told = capsys.readouterr().err
    assert "ALE/Pong-v5, protocol machado: sticky actions 0.25, up to 0 no-ops, minimal actions" in told
    assert "80 steps  320 frames" in told
    records = read_metrics(run / "metrics.jsonl")
    assert [(r["step"], r["frames"]) for r in records] == [(40, 160), (80, 320)]
    config = RunFolder.open(run).config
    assert config["environment"] == "ALE/Pong-v5"
    assert config["options"]["atari_protocol"] == "machado"
    assert Agent.load(run)._prepare().lanes.protocol.repeat_action_probability == 0.25


def test_the_replay_keeps_each_frame_once():
    agent = DQN("pong", **QUICK).learn(300)
    replay = agent._prepare().replay
    assert isinstance(replay, FrameReplay)
    assert replay.size == 200
    assert replay.n_frames <= 320
    draw = replay.gather(np.random.default_rng(0).integers(0, replay.size, 8))
    assert draw.observations.shape == draw.next_observations.shape == (8, 84, 84, 4)


def test_evaluations_play_whole_games_and_the_bias_stops_at_lost_lives():
    """Values that say what will be earned until the next life is lost have no bias; none else has."""
    lanes = make_lanes("breakout", 1)
    best = np.random.default_rng(0).integers(0, 4, 5000)
    time_of = iter(best)

    def values(observations):
        return np.eye(4)[[next(time_of)]][:, None]

    (game,) = play(values, lanes, 1, seed=0, pessimistic=False)
    lanes.close()
    assert len(game.lost_lives) == 4, "the fifth life's end is the game's"
    assert game.terminated
    assert game.score >= 1
    in_lives = discounted_returns(game.rewards, 0.99, set(game.lost_lives))
    pieces = np.split(game.rewards, np.array(game.lost_lives) + 1)
    by_hand = np.concatenate([discounted_returns(piece, 0.99) for piece in pieces])
    np.testing.assert_array_equal(in_lives, by_hand)
    assert (in_lives != discounted_returns(game.rewards, 0.99)).any()
    exact = type(game)(**{**vars(game), "values": in_lives})
    assert asdict(measured_bias([exact], 0.99))["absolute"] == 0


def test_another_set_of_actions_is_refused_in_one_line(tmp_path):
    path = DQN("pong", **QUICK).save(tmp_path / "agent")
    with pytest.raises(
        InputError, match=r"6 actions starting at 0; this environment has .* and 4 starting at 0"
    ):
        DQN.load(path, environment="breakout")
    full = DQN("pong", full_action_space=True, **QUICK)
    assert full.n_actions == 18
    assert DQN.load(full.save(tmp_path / "full")).n_actions == 18


def test_a_replay_that_will_not_fit_is_refused_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "available_memory", lambda: 3_000_000_000)
    with pytest.raises(InputError) as refused:
        DQN("pong", compress=False).learn(10, out=tmp_path / "run")
    assert str(refused.value) == (
        "A replay of 1,000,000 transitions needs about 7.1 GB, but only 3.0 GB of memory is free: "
        "use --replay-size 337457 or --compress."
    )
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=r"--replay-size 337457\.$"):
        DQN("pong", compress=False, replay_size=10_000_000).learn(10)
    monkeypatch.setattr(memory, "available_memory", lambda: 1_000_000_000)
    with pytest.raises(
        InputError, match=r"needs about 1\.3 GB, but only 1\.0 GB .*: use --replay-size 636942\.$"
    ):
        DQN("pong").learn(10)
    with pytest.raises(InputError, match=r"needs about 80\.0 GB"):
        DQN("CartPole-v1", replay_size=1_428_571_429, preset="plain").learn(10)


def test_memory_that_is_free_is_known_here():
    free = memory.available_memory()
    assert free is None or free > 10**7


def test_an_atari_run_is_watched_on_its_own_screen(tmp_path, capsys):
    path = EBQL("breakout", ensemble_size=2, **QUICK).save(tmp_path / "agent")
    assert main(["watch", str(path), "--max-steps", "5", "--out", str(tmp_path / "film.gif")]) == 0
    assert (tmp_path / "film.gif").read_bytes()[:3] == b"GIF"
