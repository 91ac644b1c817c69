"""Data to learn from: what becomes of it, and what is refused."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebql.deep.agent import DQN
from ebql.deep.config.agents import DQNConfig
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.spaces import Spaces
from ebql.deep.replay.n_step import NStep
from ebql.deep.training.datasets import checked_steps, environment_of, n_step_rows, read_data
from ebql.environments.lanes.interface import LaneStep
from ebql.errors import InputError, InputTypeError
from ebql.runs import RunFolder

SPACES = Spaces(ObservationSpec((1,), "float32"), n_actions=3, first_action=5)


def columns(**changed):
    """Two episodes: 0 → 1 → 2, terminated; 7 → 8, cut there by its data."""
    return {
        "observations": np.array([[0], [1], [7]], np.float32),
        "actions": np.array([5, 7, 6]),
        "rewards": np.array([10, 20, 40]),
        "next_observations": np.array([[1], [2], [8]], np.float32),
        "terminations": np.array([False, True, False]),
        **changed,
    }


def test_single_steps_become_transitions_with_their_discounts():
    data = read_data(columns(), DQNConfig(discount=0.5), SPACES)
    assert data.about == {"kind": "arrays", "rows": 3}
    assert data.replay["actions"].tolist() == [0, 2, 1]
    assert data.replay["rewards"].tolist() == [10, 20, 40]
    assert data.replay["discounts"].tolist() == [0.5, 0, 0.5]
    assert data.replay["next_observations"][:, 0].tolist() == [1, 2, 8]


def test_sums_of_rewards_end_with_their_episode():
    replay = read_data(columns(), DQNConfig(discount=0.5, n_step=3), SPACES).replay
    assert replay["rewards"].tolist() == [10 + 0.5 * 20, 20, 40]
    assert replay["discounts"].tolist() == [0, 0, 0.5]
    assert replay["next_observations"][:, 0].tolist() == [2, 2, 8]


def test_a_truncation_ends_an_episode_that_seems_to_go_on():
    """The next episode happens to begin where the last one was cut."""
    joined = columns(
        observations=np.array([[0], [1], [2]], np.float32),
        next_observations=np.array([[1], [2], [3]], np.float32),
        terminations=np.zeros(3, bool),
    )
    config = DQNConfig(discount=0.5, n_step=2)
    assert read_data(joined, config, SPACES).replay["rewards"].tolist() == [20, 40, 40]
    cut = {**joined, "truncations": np.array([False, True, False])}
    replay = read_data(cut, config, SPACES).replay
    assert replay["rewards"].tolist() == [20, 20, 40]
    assert replay["discounts"].tolist() == [0.25, 0.5, 0.5]


def test_rewards_are_scaled_and_clipped_as_in_training():
    replay = read_data(columns(), DQNConfig(reward_scale=0.1, reward_clip=3.0), SPACES).replay
    assert replay["rewards"].tolist() == [1, 2, 3]


@given(
    st.lists(st.sampled_from(["on", "terminated", "truncated"]), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(0, 2**16),
)
def test_n_step_returns_are_those_of_training(ends, n_step, seed):
    rng, n = np.random.default_rng(seed), len(ends)
    terminated, truncated = (np.array([end == kind for end in ends]) for kind in ("terminated", "truncated"))
    truncated[-1] |= not terminated[-1]
    after = np.arange(1, n + 1, dtype=np.float32)[:, None]
    before = after - 1
    given_columns = {
        "observations": before,
        "actions": rng.integers(5, 8, n),
        "rewards": rng.normal(size=n),
        "next_observations": after,
        "terminations": terminated,
        "truncations": truncated,
    }
    config = DQNConfig(n_step=n_step, discount=0.9)
    replay = n_step_rows(checked_steps(given_columns, SPACES), config)
    online, expected = NStep(n_step, 0.9, n_lanes=1), []
    for t in range(n):
        row = slice(t, t + 1)
        step = LaneStep(after[row], np.zeros(1), terminated[row], truncated[row], np.ones(1, bool), after, ())
        actions = given_columns["actions"][row] - 5
        completed = online.push(before[row], actions, given_columns["rewards"][row], step)
        expected += [] if completed is None else zip(*completed[:5], strict=True)
    expected.sort(key=lambda transition: float(transition[0][0]))
    names = ("observations", "actions", "rewards", "discounts", "next_observations")
    for name, column in zip(names, zip(*expected, strict=True), strict=True):
        assert np.array_equal(replay[name], np.array(column).astype(replay[name].dtype)), name


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (
            {"actions": np.array([4, 5, 6])},
            "actions lie between 4 and 6, but the environment's between 5 and 7.",
        ),
        (
            {"actions": np.array([5, 8, 6])},
            "actions lie between 5 and 8, but the environment's between 5 and 7.",
        ),
        ({"actions": np.array([5.0, 6.0, 7.0])}, "actions must be whole numbers, not float64."),
        ({"actions": np.array([[5], [6], [7]])}, "actions must have one number per row, not shape (1,)."),
        ({"actions": np.array([], int)}, "The data has no transitions"),
        ({"rewards": np.zeros(2)}, "differ in length: actions has 3 rows, rewards 2."),
        ({"rewards": np.array([0, np.nan, 0])}, "reward in row 1 is nan: rewards must be finite."),
        ({"rewards": np.array(["a", "b", "c"])}, "rewards must be numbers, not <U1."),
        (
            {"terminations": np.zeros(3)},
            "terminations must be True or False, not float64: use .astype(bool).",
        ),
        ({"truncations": np.zeros(3, int)}, "truncations must be True or False, not int64"),
        (
            {"observations": np.zeros((3, 2))},
            "observations have shape (2,), but the environment's have (1,).",
        ),
        (
            {"next_observations": np.zeros(3)},
            "next_observations have shape (), but the environment's have (1,).",
        ),
        ({"observations": np.full((3, 1), np.inf)}, "observations do not fit: The observation in row 0 has"),
        ({"observations": np.zeros((3, 1), complex)}, "are complex128, but the environment's are float32."),
    ],
)
def test_data_that_does_not_fit_is_refused_in_one_line(changed, line):
    with pytest.raises(InputError, match=re.escape(line)) as refused:
        read_data(columns(**changed), DQNConfig(), SPACES)
    assert "\n" not in str(refused.value)


def test_a_missing_column_is_named():
    without = columns()
    del without["rewards"], without["terminations"]
    with pytest.raises(InputError, match=r"lacks rewards, terminations; it needs observations, actions"):
        read_data(without, DQNConfig(), SPACES)
    with pytest.raises(InputTypeError, match=r"must be a mapping of arrays, .* not list."):
        read_data([1, 2], DQNConfig(), SPACES)


def test_observations_without_order_are_refused_by_their_range():
    spaces = Spaces(ObservationSpec((), "int64", n_categories=3, first_category=1), 3, 5)
    cells = columns(observations=np.array([1, 2, 3]), next_observations=np.array([2, 3, 4]))
    with pytest.raises(InputError, match=r"lie between 2 and 4, but the environment's between 1 and 3"):
        read_data(cells, DQNConfig(), spaces)


def test_shuffled_rows_have_no_n_step_returns():
    rng = np.random.default_rng(0)
    n = 40
    before = rng.permutation(n).astype(np.float32)[:, None]
    shuffled = columns(
        observations=before,
        next_observations=before + 0.5,
        actions=np.full(n, 5),
        rewards=np.zeros(n),
        terminations=np.zeros(n, bool),
    )
    read_data(shuffled, DQNConfig(), SPACES)
    with pytest.raises(InputError, match=r"n-step 3 needs rows in the order .* only 0 of 39 are followed"):
        read_data(shuffled, DQNConfig(n_step=3), SPACES)


def test_an_npz_file_is_read_without_pickle(tmp_path):
    np.savez(tmp_path / "data.npz", **columns())
    data = read_data(tmp_path / "data.npz", DQNConfig(), SPACES)
    assert data.about == {"kind": "npz", "source": str(tmp_path / "data.npz"), "rows": 3}
    assert environment_of(str(tmp_path / "data.npz")) is None
    np.savez(tmp_path / "evil.npz", **columns(rewards=np.array([print, 1, 2], object)))
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("no archive")
    for name, line in (
        ("evil.npz", "Object arrays cannot be loaded when allow_pickle=False"),
        ("single.npy", "is a single array, not an npz file"),
        ("text.npz", "cannot be read as an npz file"),
    ):
        with pytest.raises(InputError, match=line):
            read_data(tmp_path / name, DQNConfig(), SPACES)
    with pytest.raises(InputError, match=r"no npz file, run folder or local Minari dataset 'nothing-v0'"):
        read_data("nothing-v0", DQNConfig(), SPACES)


def test_a_runs_replay_is_taken_as_it_was_stored(tmp_path, small):
    agent = DQN("CartPole-v1", **small, n_step=2).learn(120, out=tmp_path / "run")
    spaces = Spaces(agent.spec, 2, 0)
    data = read_data(tmp_path / "run", agent.config, spaces)
    assert data.about["rows"] == agent._training.replay.size > 100
    for name, column in agent._training.replay.state().items():
        assert name == "masks" or np.array_equal(data.replay[name], column), name
    assert environment_of(str(tmp_path / "run")) == "CartPole-v1"
    RunFolder.open(tmp_path / "run").updated(environment="wreck:Env-v0")
    with pytest.raises(InputError, match="would run the code of the module 'wreck'"):
        environment_of(str(tmp_path / "run"))
    with pytest.raises(InputError, match=r"with n-step 2, but this agent has 1: set it to 2"):
        read_data(tmp_path / "run", agent.config.override(n_step=1), spaces)
    with pytest.raises(InputError, match=r"2 actions; this agent has \(4,\) float32 and 3"):
        read_data(tmp_path / "run", agent.config, replace(spaces, n_actions=3))


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A dataset that our own agent collected through Minari's DataCollector."""
    minari = pytest.importorskip("minari")
    pytest.importorskip("jax", reason="Minari's DataCollector needs it")
    import gymnasium

    folder = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari asks for an author and a description
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        agent = DQN("CartPole-v1", preset="plain", hidden=(8,))
        environment = minari.DataCollector(gymnasium.make("CartPole-v1", max_episode_steps=15))
        for episode in range(4):
            observation, _ = environment.reset(seed=episode)
            over = False
            while not over:
                action, _ = agent.predict(observation)
                observation, _, terminated, truncated, _ = environment.step(action)
                over = terminated or truncated
        dataset = environment.create_dataset("cartpole/own-v0")
        environment.close()
        environment._tmp_dir.cleanup()  # Minari leaves it to the garbage collector, which warns
        return folder, dataset, agent


def test_every_step_of_every_episode_is_learnt_from(collected, monkeypatch):
    folder, dataset, agent = collected
    spaces = Spaces(agent.spec, 2, 0)
    data = read_data(dataset, agent.config.override(n_step=3), spaces)
    episodes = list(dataset.iterate_episodes())
    assert data.about == {"kind": "minari", "source": "cartpole/own-v0", "rows": dataset.total_steps}
    observations = np.concatenate([episode.observations[:-1] for episode in episodes])
    assert np.array_equal(data.replay["observations"], observations)
    ends = np.cumsum([len(episode) for episode in episodes]) - 1
    last = np.array([episode.observations[-1] for episode in episodes])
    for before in range(3):
        assert np.array_equal(data.replay["next_observations"][ends - before], last)
    cut = [episode.truncations[-1] for episode in episodes]
    assert np.array_equal(data.replay["discounts"][ends] > 0, cut)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    named = read_data("cartpole/own-v0", agent.config, spaces)
    assert np.array_equal(named.replay["observations"], observations)
    assert environment_of("cartpole/own-v0") == "CartPole-v1"


def test_a_dataset_without_spaces_would_run_its_own_code(collected, monkeypatch, tmp_path):
    folder, _, agent = collected
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    path = folder / "cartpole" / "own-v0" / "data" / "metadata.json"
    whole = path.read_text()
    metadata = json.loads(whole)
    del metadata["observation_space"]
    path.write_text(json.dumps(metadata))
    try:
        with pytest.raises(InputError, match="does not say its spaces"):
            read_data("cartpole/own-v0", agent.config, Spaces(agent.spec, 2, 0))
    finally:
        path.write_text(whole)
