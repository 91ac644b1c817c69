"""Each pitfall of ale-py's vector environment has its test."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from ebql.environments import atari_protocol
from ebql.environments.atari import lanes as atari
from ebql.environments.atari.games import PROTOCOLS, emulator
from ebql.environments.atari.lanes import AtariLanes, make_game
from ebql.environments.lanes.interface import Episode
from ebql.environments.lanes.seeded import episode_seed
from ebql.errors import InputError

PAPER, MACHADO = PROTOCOLS["paper"], PROTOCOLS["machado"]


@pytest.fixture
def lanes_of():
    """Make lanes that are closed after the test."""
    made = []

    def make(game, n_lanes=1, protocol=PAPER):
        made.append(AtariLanes(game, n_lanes, protocol))
        return made[-1]

    yield make
    for lanes in made:
        lanes.close()


def steps(lanes, n, seed=0):
    """Step with random actions; return the actions and the steps."""
    actions = np.random.default_rng(seed).integers(0, lanes.n_actions, (n, lanes.n_lanes))
    return actions, [lanes.step(row) for row in actions]


def test_every_argument_of_the_vector_environment_is_passed():
    passed = {}
    module = emulator("vector_env")
    signature = inspect.signature(module.AtariVectorEnv.__init__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AtariVectorEnv", lambda *args, **kwargs: passed.update(kwargs))
        make_game("pong", MACHADO)
    assert set(passed) | {"self", "game", "num_envs"} == set(signature.parameters)
    assert passed["repeat_action_probability"] == 0.25
    assert not passed["episodic_life"]
    assert not passed["life_loss_info"]
    assert not passed["reward_clipping"]
    assert not passed["use_fire_reset"]


@pytest.mark.parametrize("action", [-1, 4, 99])
def test_an_action_that_does_not_exist_is_refused_and_not_waited_for(lanes_of, action):
    lanes = lanes_of("breakout", 2)
    lanes.reset(0)
    with pytest.raises(InputError, match="between 0 and 3"):
        lanes.step(np.array([0, action]))
    assert lanes.step(np.array([0, 3])).valid.all()


def test_the_first_stack_is_empty_but_for_the_newest_frame_and_observations_are_bytes(lanes_of):
    lanes = lanes_of("pong", 2)
    first = lanes.reset(0)
    assert first.shape == (2, 84, 84, 4)
    assert first.dtype == np.uint8
    assert not first[..., :3].any()
    assert first[..., 3].any()
    taken = lanes.step(np.array([0, 0]))
    np.testing.assert_array_equal(taken.next_observations[..., 2], first[..., 3])


def test_a_lost_life_terminates_and_the_game_goes_on_to_its_whole_score(lanes_of):
    lanes = lanes_of("breakout")
    lanes.reset(0)
    plain = make_game("breakout", PAPER)
    _, info = plain.reset(seed=np.array([episode_seed(0, 0, 0)]))
    lives, total, n_lost = int(info["lives"][0]), 0.0, 0
    actions, taken = steps(lanes, 500)
    for t, (action, step) in enumerate(zip(actions, taken, strict=True)):
        _, reward, over, _, info = plain.step(action)
        total += float(reward[0])
        n_lost += int(info["lives"][0]) < lives
        assert bool(step.terminated[0]) == (int(info["lives"][0]) < lives)
        assert step.rewards.dtype == np.float64
        assert step.rewards[0] == reward[0]
        lives = int(info["lives"][0])
        if over[0]:
            assert step.episodes == (Episode(0, total, t + 1),)
            break
        assert step.episodes == ()
        np.testing.assert_array_equal(step.observations, step.next_observations)
    plain.close()
    assert over[0]
    assert n_lost == 5


def test_a_game_without_lives_is_not_over_for_having_none(lanes_of):
    lanes = lanes_of("pong", 2)
    lanes.reset(0)
    _, taken = steps(lanes, 150)
    assert lanes._lives == [0, 0]
    assert not any(step.terminated.any() or step.episodes for step in taken)


def test_rewards_and_scores_are_not_clipped(lanes_of):
    lanes = lanes_of("qbert")
    lanes.reset(0)
    _, taken = steps(lanes, 400)
    first = next(t for t, step in enumerate(taken) if step.episodes)
    assert taken[first].episodes[0].ret == sum(step.rewards[0] for step in taken[: first + 1])
    assert max(step.rewards[0] for step in taken) >= 25


def test_the_next_game_begins_in_the_same_step_and_every_step_is_a_transition(lanes_of):
    lanes = lanes_of("breakout", 2)
    lanes.reset(1)
    _, taken = steps(lanes, 450)
    assert all(step.valid.all() for step in taken)
    ended = [(t, episode.lane) for t, step in enumerate(taken) for episode in step.episodes]
    assert len(ended) >= 2
    for t, lane in ended:
        step = taken[t]
        assert step.terminated[lane]
        assert step.next_observations[lane, ..., :3].any()
        assert not step.observations[lane, ..., :3].any()
        if t + 1 < len(taken):
            following = taken[t + 1].next_observations[lane, ..., 2]
            np.testing.assert_array_equal(following, step.observations[lane, ..., 3])


def test_under_machado_only_the_end_of_the_game_terminates(lanes_of):
    lanes = lanes_of("breakout", 1, MACHADO)
    lanes.reset(0)
    _, taken = steps(lanes, 400)
    assert [bool(step.terminated[0]) for step in taken] == [bool(step.episodes) for step in taken]
    assert any(step.episodes for step in taken)


def test_the_frame_limit_truncates_and_does_not_terminate(lanes_of):
    lanes = lanes_of("breakout", 2, replace(PAPER, most_frames=400))
    lanes.reset(0)
    taken = [lanes.step(np.array([0, 0])) for _ in range(101)]  # without fire, no ball, and no end
    assert not any(step.truncated.any() for step in taken[:99])
    assert taken[99].truncated.all()
    assert not taken[99].terminated.any()
    assert taken[99].episodes == (Episode(0, 0.0, 100), Episode(1, 0.0, 100))
    assert not taken[100].truncated.any()
    assert PAPER.most_steps == 27_000


def test_a_game_starts_after_up_to_as_many_no_ops_as_the_protocol_says():
    game = make_game("pong", replace(PAPER, most_no_ops=1))
    started = [game.reset(seed=np.array([seed]))[1]["episode_frame_number"].item() for seed in range(10)]
    game.close()
    assert set(started) == {0, 1}
    assert (PAPER.most_no_ops, MACHADO.most_no_ops) == (30, 0)


def test_actions_are_the_games_own_or_all_eighteen(lanes_of):
    assert lanes_of("breakout").n_actions == 4
    assert lanes_of("breakout", 1, atari_protocol("machado", full_action_space=True)).n_actions == 18


@pytest.mark.parametrize(("game", "protocol"), [("breakout", PAPER), ("qbert", MACHADO)])
def test_lanes_come_back_to_the_bit_whatever_games_and_seeds_came_before(
    game, protocol, lanes_of, monkeypatch
):
    monkeypatch.setattr(atari, "SEED_PERIOD", 200)
    lanes = lanes_of(game, 2, protocol)
    lanes.reset(7)
    steps(lanes, 450, seed=1)
    state = {name: array.copy() for name, array in lanes.state().items()}
    assert state["seeds_used"].any()
    assert len(set(state["lengths"].tolist())) > 1, "lanes of one length test less"
    other = lanes_of(game, 2, protocol)
    np.testing.assert_array_equal(other.restore(state), lanes._observations)
    for one, same in zip(steps(lanes, 150, seed=2)[1], steps(other, 150, seed=2)[1], strict=True):
        assert one.episodes == same.episodes
        for mine, its in zip(one[:6], same[:6], strict=True):
            np.testing.assert_array_equal(mine, its)


def test_lanes_come_back_to_their_very_first_observation(lanes_of):
    lanes, other = lanes_of("pong", 2), lanes_of("pong", 2)
    first = lanes.reset(3)
    np.testing.assert_array_equal(other.restore(lanes.state()), first)


def test_a_lane_does_not_depend_on_its_neighbours(lanes_of):
    alone, beside = lanes_of("breakout", 1), lanes_of("breakout", 3)
    alone.reset(5)
    beside.reset(5)
    actions = np.random.default_rng(0).integers(0, 4, (250, 3))
    for row in actions:
        one, three = alone.step(row[:1]), beside.step(row)
        np.testing.assert_array_equal(one.observations[0], three.observations[0])


def test_a_lane_that_rests_stays_where_it_is_and_goes_on_as_if_it_had_not_rested(lanes_of):
    lanes, other = lanes_of("breakout", 2), lanes_of("breakout", 2)
    lanes.reset(5)
    other.reset(5)
    actions, taken = steps(lanes, 300)
    for row in actions[:100]:
        other.step(row)
    other.rest(np.array([False, True]))
    for t in range(100, 300):
        step = other.step(np.array([actions[t, 0], 3]))
        assert step.valid.tolist() == [True, False]
        assert (step.rewards[1], step.terminated[1], step.truncated[1]) == (0, False, False)
        np.testing.assert_array_equal(step.next_observations[0], taken[t].next_observations[0])
        np.testing.assert_array_equal(step.observations[1], taken[99].observations[1])
    other.rest(np.array([True, False]))
    for t in range(100, 300):
        step = other.step(np.array([0, actions[t, 1]]))
        np.testing.assert_array_equal(step.observations[1], taken[t].observations[1])
        assert step.episodes == tuple(episode for episode in taken[t].episodes if episode.lane == 1)
    assert other.reset(0).shape == (2, 84, 84, 4)
    assert other.step(np.array([0, 0])).valid.all()


def test_an_emulator_that_strays_is_refused(lanes_of):
    lanes = lanes_of("pong")
    lanes.reset(0)
    steps(lanes, 5)
    state = lanes.state()
    state["observations"][0, 0, 0, 0] ^= 1
    with pytest.raises(InputError, match="cannot be restored"):
        lanes.restore(state)
    with pytest.raises(InputError, match="has 1 lanes, but there are 2 here"):
        lanes_of("pong", 2).restore(state)
