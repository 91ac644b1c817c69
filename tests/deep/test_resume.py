"""Runs that are killed, interrupted or broken, and go on."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.agents import Rainbow
from ebql.deep.training.run_loop import Recorder
from ebql.errors import InputError, InputTypeError, Interrupted, RunError
from ebql.runs import DamagedCheckpointWarning, OtherVersionsWarning, RunFolder

STEPS = 900
OPTIONS = (
    f"--agent ebql --ensemble-size 3 --steps {STEPS} --seed 5 --preset plain --hidden 16 16 "
    "--replay-size 400 --learning-starts 50 --target-period 70 --epsilon-steps 300 --log-period 60 "
    "--checkpoint-period 90 --evaluation-period 250 --evaluation-episodes 2 --data masked --n-step 3"
).split()


def start(*words):
    code = "import sys; from ebql.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(process):
    _, told = process.communicate(timeout=120)
    return process.returncode, told


def wait_for_records(folder, n_records, process):
    """Wait until the run has written this many records, or has ended."""
    path = folder / "metrics.jsonl"
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < n_records):
        time.sleep(0.005)


def content(folder):
    """Everything that must be equal to the bit: the metrics and the last checkpoint."""
    last = max((folder / "checkpoints").iterdir(), key=lambda path: path.name)
    files = {path.name: path.read_bytes() for path in last.iterdir()}
    return {"name": last.name, "metrics": (folder / "metrics.jsonl").read_bytes(), **files}


@pytest.mark.parametrize("environment", ["CartPole-v1", "MinAtar/Breakout-v1", "FrozenLake-v1"])
def test_a_run_killed_at_random_moments_ends_to_the_same_bits(environment, tmp_path):
    whole = start("train", environment, *OPTIONS, "--out", tmp_path / "whole")
    rng = random.Random(environment)
    folder = tmp_path / "killed"
    process = start("train", environment, *OPTIONS, "--out", folder)
    for n_records in (3, 9):
        wait_for_records(folder, n_records, process)
        time.sleep(0.1 * rng.random())
        process.kill()
        process.communicate()
        process = start("resume", folder)
    assert finish(process)[0] == 0
    assert finish(whole)[0] == 0
    assert content(folder) == content(tmp_path / "whole")


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_or_sigterm_saves_and_says_how_to_go_on(number, exit_code, tmp_path):
    folder = tmp_path / "run"
    process = start("train", "CartPole-v1", *OPTIONS, "--steps", 10**6, "--out", folder)
    wait_for_records(folder, 2, process)
    process.send_signal(number)
    code, told = finish(process)
    assert code == exit_code
    assert f"ebql resume {folder}" in told
    step = RunFolder.open(folder).checkpoints.steps()[-1]
    assert f"step {step}" in told
    records = (folder / "metrics.jsonl").read_text().splitlines()
    assert json.loads(records[-1])["step"] <= step


def test_a_second_ctrl_c_stops_at_once(tmp_path, small, monkeypatch):
    def slow_checkpoint(*_):
        signal.raise_signal(signal.SIGINT)

    agent = DQN("CartPole-v1", **small)

    def interrupt(record):
        monkeypatch.setattr(Recorder, "checkpoint", slow_checkpoint)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        agent.learn(10_000, out=tmp_path / "run", callback=interrupt)
    assert not isinstance(caught.value, Interrupted)
    assert agent.steps == 100
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_in_python_goes_on_to_the_same_bits(tmp_path, small):
    whole = EBQL("CartPole-v1", **small).learn(400, out=tmp_path / "whole")

    def stop_at_250(record):
        if record["step"] >= 250:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        EBQL("CartPole-v1", **small).learn(400, out=tmp_path / "cut", callback=stop_at_250)
    resumed = EBQL.resume(tmp_path / "cut")
    assert resumed.steps == 400
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    observation = np.zeros(4, np.float32)
    for agent in (resumed, Agent.load(tmp_path / "cut")):
        np.testing.assert_array_equal(agent.q_values(observation), whole.q_values(observation))


BLOCKS = {"update_period": 16, "updates_per_period": 5, "learning_starts": 40, "evaluation_period": 0}


def run_as_pieces(kind, folder, options, ends):
    """Train up to each of these steps in turn, every time from the checkpoint that the one before left."""
    kind("CartPole-v1", **options).learn(ends[0], out=folder)
    for end in ends[1:]:
        agent = kind.resume(folder, steps=end)
    return agent


@pytest.mark.parametrize("kind", [DQN, EBQL, Rainbow])
def test_blocks_of_updates_resume_to_the_same_bits_from_any_step_of_a_block(kind, tmp_path, small):
    """Every step from 1 to 16 of a block and the one after; steps before learning starts resample noise."""
    options = {**small, **BLOCKS}
    whole = kind("CartPole-v1", **options).learn(100)
    pieces = run_as_pieces(kind, tmp_path / "steps", options, [7, 15, 16, 17, 33, 39, *range(47, 66), 100])
    assert pieces.steps == whole.steps == 100
    assert pieces._learner.updates == whole._learner.updates == 4 * 5
    for name, tensor in whole._learner.state().items():
        np.testing.assert_array_equal(pieces._learner.state()[name], tensor, err_msg=name)


@pytest.mark.parametrize("checkpoint_period", [16, 23])
def test_a_run_cut_amid_a_block_goes_on_to_the_same_bits(checkpoint_period, tmp_path, small):
    options = {**small, **BLOCKS, "checkpoint_period": checkpoint_period, "log_period": 9}
    EBQL("CartPole-v1", **options).learn(200, out=tmp_path / "whole")

    def stop_at_135(record):
        if record["step"] >= 135:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        EBQL("CartPole-v1", **options).learn(200, out=tmp_path / "cut", callback=stop_at_135)
    EBQL.resume(tmp_path / "cut")
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_a_finished_run_can_be_made_longer(tmp_path, small):
    whole = DQN("CartPole-v1", **small).learn(300)
    DQN("CartPole-v1", **small).learn(200, out=tmp_path / "run")
    longer = DQN.resume(tmp_path / "run", steps=300)
    observation = np.ones(4, np.float32)
    np.testing.assert_array_equal(longer.q_values(observation), whole.q_values(observation))
    assert RunFolder.open(tmp_path / "run").config["steps"] == 300


def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path, small):
    DQN("CartPole-v1", **small).learn(120, out=tmp_path / "run")
    before = content(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b"")  # a checkpoint comes before the first record
    assert DQN.resume(tmp_path / "run").steps == 120
    assert content(tmp_path / "run") == before


def test_a_run_killed_before_its_first_checkpoint_may_be_killed_again(tmp_path, small):
    whole = DQN("CartPole-v1", **small).learn(120, out=tmp_path / "run")
    before = content(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b"")

    def stop(record):
        raise RuntimeError("killed after the first record")

    with pytest.raises(RuntimeError, match="killed"):
        DQN.resume(tmp_path / "run", callback=stop)
    assert DQN.resume(tmp_path / "run").steps == whole.steps
    assert content(tmp_path / "run") == before


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path, small):
    DQN("CartPole-v1", **small).learn(300, out=tmp_path / "run")
    before = content(tmp_path / "run")
    file = tmp_path / "run" / "checkpoints" / before["name"] / "tensors.safetensors"
    damaged = bytearray(file.read_bytes())
    damaged[-5] ^= 1
    file.write_bytes(damaged)
    with pytest.warns(DamagedCheckpointWarning, match="using that of step 200"):
        DQN.resume(tmp_path / "run")
    assert content(tmp_path / "run") == before


def test_a_folder_with_another_run_is_refused(tmp_path, small):
    DQN("CartPole-v1", **small).learn(60, out=tmp_path / "run")
    with pytest.raises(InputError, match="holds another run"):
        DQN("CartPole-v1", **small).learn(60, out=tmp_path / "run")
    with pytest.raises(InputError, match="dqn agent, not ebql"):
        EBQL.resume(tmp_path / "run")


def test_a_loss_that_is_not_a_number_leaves_the_last_good_checkpoint(tmp_path, small, monkeypatch):
    from gymnasium.envs.classic_control import CartPoleEnv

    honest, taken = CartPoleEnv.step, []

    def step(self, action):
        taken.append(action)
        observation, reward, *rest = honest(self, action)
        # Finite, as rewards must be, but too much for the sum of a batch in single precision.
        return observation, 3e38 if len(taken) > 230 else reward, *rest

    monkeypatch.setattr(CartPoleEnv, "step", step)
    with pytest.raises(
        RunError, match=r"loss became (inf|nan).*continue from step 200: ebql resume"
    ) as caught:
        DQN("CartPole-v1", **small).learn(400, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "RunError" in (tmp_path / "run" / "failure.txt").read_text()
    monkeypatch.setattr(CartPoleEnv, "step", honest)
    assert DQN.resume(tmp_path / "run").steps == 400


def test_an_environment_given_as_an_object_must_be_given_again(tmp_path, small):
    def make():
        return gymnasium.make("CartPole-v1")

    DQN(make, **small).learn(100, out=tmp_path / "run")
    with pytest.raises(InputError, match="was a Python object"):
        DQN.resume(tmp_path / "run", steps=150)
    assert DQN.resume(tmp_path / "run", steps=150, environment=make).steps == 150


def test_evaluations_go_on_in_an_environment_of_their_own(tmp_path, small):
    def short():
        return gymnasium.make("CartPole-v1", max_episode_steps=5)

    gymnasium.register("tests/Shorter-v0", gymnasium.spec("CartPole-v1").entry_point, max_episode_steps=7)
    options = {**small, "evaluation_period": 50, "evaluation_episodes": 2, "seed": 3}
    for name, evaluation in (("object", short), ("id", "tests/Shorter-v0")):
        agents = [DQN("CartPole-v1", evaluation_environment=evaluation, **options) for _ in range(2)]
        agents[0].learn(200, out=tmp_path / "whole" / name)
        agents[1].learn(200, out=tmp_path / "cut" / name, callback=lambda record: record["step"] < 100)
    with pytest.raises(InputError, match="evaluation environment was a Python object: pass it again to"):
        DQN.resume(tmp_path / "cut" / "object")
    DQN.resume(tmp_path / "cut" / "object", evaluation_environment=short)
    DQN.resume(tmp_path / "cut" / "id")
    for name in ("object", "id"):
        logs = [(tmp_path / run / name / "metrics.jsonl").read_bytes() for run in ("whole", "cut")]
        assert logs[0] == logs[1]
    loaded = DQN.load(tmp_path / "whole" / "object")
    assert len(loaded.evaluate(1, environment="CartPole-v1").returns) == 1
    with pytest.raises(InputError, match="to `evaluate` as `environment`"):
        loaded.evaluate(1)
    with pytest.raises(InputError, match="pass it again to `load` or `resume` as `evaluation_environment`"):
        loaded.learn(100, out=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    path = agents[0].save(tmp_path / "agent")
    assert DQN.load(path)._about()["evaluation_environment"] == "tests/Shorter-v0"


@pytest.mark.parametrize("steps", [4e2, "400"])
def test_a_number_of_steps_that_is_not_whole_leaves_the_run_as_it_is(tmp_path, small, steps):
    DQN("CartPole-v1", **small).learn(100, out=tmp_path / "run")
    with pytest.raises(InputTypeError, match="steps must be a whole number"):
        DQN.resume(tmp_path / "run", steps=steps)
    with pytest.raises(InputTypeError, match="steps must be a whole number"):
        DQN("CartPole-v1", **small).learn(steps)
    assert DQN.resume(tmp_path / "run", steps=150).steps == 150


def test_a_run_that_never_saved_the_agent_it_began_with_is_refused(tmp_path, small):
    agent = DQN("CartPole-v1", **small).learn(100)
    agent.learn(100, out=tmp_path / "run")
    for name in ("metrics.jsonl", "checkpoints"):  # as if it had been killed before its first checkpoint
        (tmp_path / "run" / name).rename(tmp_path / name)
    with pytest.raises(InputError, match="stopped before it had saved what it began with: start it again"):
        DQN.resume(tmp_path / "run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path):
    """A limit on the size of files stands for the disk: writes fail when the replay has grown."""
    folder = tmp_path / "run"
    code = (
        "import resource, sys, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000));"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from ebql.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["train", "CartPole-v1", *OPTIONS, "--replay-size", "100000", "--steps", "100000"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode not in (0, 130)
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.startswith("error: Cannot")
    assert RunFolder.open(folder).checkpoints.load_latest() is not None


def test_a_run_killed_twice_before_its_first_checkpoint_goes_on(tmp_path, small, monkeypatch):
    """A resume that starts over saves a checkpoint before its first record, or the next one would refuse."""
    whole, folder = tmp_path / "whole", tmp_path / "run"
    DQN("CartPole-v1", **small).learn(300, out=whole)
    checkpoint = Recorder.checkpoint

    def killed(*_):
        raise KeyboardInterrupt

    def learn_and_be_killed(begin):
        with pytest.raises(KeyboardInterrupt):
            begin()

    monkeypatch.setattr(Recorder, "checkpoint", killed)
    learn_and_be_killed(lambda: DQN("CartPole-v1", **small).learn(300, out=folder))
    assert not RunFolder.open(folder).checkpoints.steps()
    monkeypatch.setattr(Recorder, "checkpoint", checkpoint)
    learn_and_be_killed(lambda: DQN.resume(folder, callback=killed))
    assert RunFolder.open(folder).last_step() == 100
    DQN.resume(folder)
    assert content(folder) == content(whole)


@pytest.mark.parametrize(
    ("lose", "told"),
    [("metrics.jsonl", "metrics.jsonl' was deleted or replaced while the run was"), (".", "No such file")],
)
def test_a_log_or_folder_that_is_deleted_during_a_run_ends_it(tmp_path, small, lose, told):
    folder = tmp_path / "run"

    def delete(record):
        if record["step"] == 100:
            shutil.rmtree(folder) if lose == "." else (folder / lose).unlink()

    with pytest.raises(RunError, match=told):
        DQN("CartPole-v1", **small).learn(300, out=folder, callback=delete)
    if lose == ".":
        assert not folder.exists()
    else:  # it stopped with a checkpoint, and goes on if that is accepted
        assert RunFolder.open(folder).checkpoints.steps()[-1] == 200
        with pytest.raises(InputError, match=r"the end of the file is lost.*--accept-changes"):
            DQN.resume(folder)
        assert DQN.resume(folder, accept_changes=True).steps == 300
        assert RunFolder.open(folder).accepted == ["metrics.jsonl"]


def test_a_changed_learning_rate_is_resumed_with_only_if_accepted(tmp_path, small):
    DQN("CartPole-v1", **small).learn(100, out=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["options"]["learning_rate"] = 0.5
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config.json' was changed after it was written"):
        DQN.resume(tmp_path, steps=150)
    assert DQN.resume(tmp_path, steps=150, accept_changes=True).config.learning_rate == 0.5
    assert RunFolder.open(tmp_path).accepted == ["config.json"]
    assert DQN.resume(tmp_path, steps=200).steps == 200


def test_other_versions_are_told_and_written_into_the_run(tmp_path, small):
    DQN("CartPole-v1", **small).learn(100, out=tmp_path)
    run = RunFolder.open(tmp_path)
    run.updated(versions={**run.config["versions"], "torch": "1.0", "cpu": "VAX"})
    with pytest.warns(
        OtherVersionsWarning, match=r"continues with torch .* instead of 1\.0, cpu .* instead of VAX"
    ):
        DQN.resume(tmp_path, steps=150)
    (note,) = RunFolder.open(tmp_path).config["resumed_with"]
    assert (note["step"], note["versions"].keys()) == (100, {"torch", "cpu"})
    with warnings.catch_warnings(action="error"):
        DQN.resume(tmp_path, steps=200)


def test_a_damaged_replay_leaves_the_weights_usable(tmp_path, small):
    agent = DQN("CartPole-v1", **small).learn(200, out=tmp_path)
    for path in (tmp_path / "checkpoints").glob("*/array-*.bin"):
        path.write_bytes(b"")
    loaded = DQN.load(tmp_path)
    np.testing.assert_array_equal(loaded.q_values(np.zeros(4)), agent.q_values(np.zeros(4)))


def forged(folder, step, name, change):
    """Change an array or an entry of the state of a run's last checkpoint, with checksums that fit."""
    store = RunFolder.open(folder).checkpoints
    last = store.load_latest()
    state, arrays = dict(last.state), dict(last.arrays)
    (state if name in state else arrays)[name] = change((state | arrays)[name])
    assert last.step == step
    store.save(step, last.tensors, state, arrays)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("episodes", str),
        ("losses", lambda losses: losses[:1]),
        ("returns", lambda _: [None]),
        ("rngs", lambda rngs: {**rngs, "sample": {}}),
        ("metrics_position", lambda _: -1),
        ("sampler.priorities", lambda rows: np.ones(10**6)),  # compiled code would write beyond the tree
        ("sampler.priorities", lambda rows: rows[:, None]),
        ("replay.next", lambda _: np.array(10**6)),
        ("replay.actions", lambda actions: actions + 2),
        ("replay.rewards", lambda rewards: rewards[1:]),
        ("nstep.lengths", lambda lengths: lengths + 1),
        ("lanes.episodes", lambda episodes: episodes[:0]),
    ],
)
def test_a_checkpoint_that_a_stranger_wrote_is_refused_in_one_line(name, change, tmp_path, small):
    DQN("CartPole-v1", **small, prioritized=True, n_step=2).learn(120, out=tmp_path / "run")
    forged(tmp_path / "run", 120, name, change)
    with pytest.raises(
        InputError, match=r"The checkpoint of step 120 does not fit its run|saved state"
    ) as told:
        DQN.resume(tmp_path / "run", steps=140)
    assert "\n" not in str(told.value)
