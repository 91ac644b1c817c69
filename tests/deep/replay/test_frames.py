"""The replay of frames against one that stores whole stacks: equal draws, to the bit."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay import frame_store
from ebql.deep.replay.frame_store import NO_FRAME, FrameStore
from ebql.deep.replay.frames import FrameReplay, _interleave, _interleave_four
from ebql.deep.replay.n_step import NStep
from ebql.deep.replay.ring import Replay
from ebql.environments import Episode, LaneStep, make_lanes
from ebql.errors import InputError

STACK = 4
SPEC = ObservationSpec((3, 2, STACK), "uint8")


class Film:
    """Lanes of random frames whose games end, are cut or lose lives at random."""

    def __init__(self, n_lanes, seed, n_shades):
        self.n_lanes, self.rng, self.n_shades = n_lanes, np.random.default_rng(seed), n_shades

    def _frame(self):
        return self.rng.integers(0, self.n_shades, SPEC.shape[:2])

    def _first(self):
        stack = np.zeros(SPEC.shape, np.uint8)
        stack[..., -1] = self._frame()
        return stack

    def reset(self):
        self.stacks = np.stack([self._first() for _ in range(self.n_lanes)])
        return self.stacks

    def step(self):
        frames = np.stack([self._frame() for _ in range(self.n_lanes)]).astype(np.uint8)
        following = np.concatenate([self.stacks[..., 1:], frames[..., None]], -1)
        over, cut, lost = (self.rng.random((3, self.n_lanes)) < [[0.1], [0.05], [0.15]]).astype(bool)
        observations, episodes = following.copy(), []
        for lane in np.flatnonzero(over | cut):
            observations[lane] = self._first()
            episodes.append(Episode(int(lane), 0.0, 0))
        self.stacks = observations
        rewards, everywhere = self.rng.normal(size=self.n_lanes), np.ones(self.n_lanes, bool)
        return LaneStep(following, rewards, over | lost, cut, everywhere, observations, tuple(episodes))


class Memory:
    """A replay and the n-step sums before it, as a training has them."""

    def __init__(self, replay, n_step, n_lanes, observations):
        self.replay, self.nstep, self.rng = replay, NStep(n_step, 0.9, n_lanes), np.random.default_rng(1)
        self.kept = replay.begin(observations)

    def remember(self, taken, actions):
        kept = self.replay.keep(taken)
        transitions = self.nstep.push(self.kept, actions, taken.rewards, kept)
        if transitions is not None:
            masks = self.rng.random((len(transitions.actions), self.replay.n_masks)) < 0.5
            self.replay.add(transitions._replace(masks=masks))
        self.kept = kept.observations

    def restored(self, replay, n_step, n_lanes, observations):
        """Return another one, brought to where this one is."""
        replay.restore({name: array.copy() for name, array in self.replay.state().items()})
        other = Memory(replay, n_step, n_lanes, observations)
        other.nstep.restore(self.nstep.state())
        other.rng = self.rng
        return other


def require_equal_draws(memories, n_rows, seed):
    rows = np.random.default_rng(seed).integers(0, memories[0].replay.size, n_rows)
    assert len({(memory.replay.size, memory.replay.next_row) for memory in memories}) == 1
    draws = [memory.replay.gather(rows) for memory in memories]
    for whole, rebuilt in zip(*draws, strict=True):
        assert whole.dtype == rebuilt.dtype
        np.testing.assert_array_equal(rebuilt, whole)


@settings(max_examples=60, deadline=None)
@given(
    n_lanes=st.integers(1, 4),
    n_step=st.integers(1, 5),
    capacity=st.integers(1, 60),
    segment=st.integers(1, 20),
    compress=st.booleans(),
    key_period=st.sampled_from([1, 3, 512]),
    n_masks=st.integers(0, 2),
    n_shades=st.sampled_from([1, 2, 256]),  # 1: all frames are black, as those before a game's first are
    seed=st.integers(0, 2**32),
)
def test_draws_equal_those_of_a_replay_of_whole_stacks(
    n_lanes, n_step, capacity, segment, compress, key_period, n_masks, n_shades, seed
):
    def frame_replay():
        return FrameReplay(capacity, SPEC, n_masks, n_step=n_step, compress=compress, segment=segment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_store, "_KEY_PERIOD", key_period)
        film = Film(n_lanes, seed, n_shades)
        naive = Memory(Replay(capacity, SPEC, n_masks), n_step, n_lanes, film.reset())
        frames = Memory(frame_replay(), n_step, n_lanes, film.stacks)
        for t in range(120):
            taken, actions = film.step(), film.rng.integers(0, 5, n_lanes)
            naive.remember(taken, actions)
            frames.remember(taken, actions)
            if t == 70:
                frames = frames.restored(frame_replay(), n_step, n_lanes, film.stacks)
            if t % 10 == 9 and naive.replay.size:
                require_equal_draws((naive, frames), 16, t)
            # What nobody needs goes: two frames a transition at most, the steps in wait, and what
            # segments round up.
            most = 2 * (capacity + 2 * n_lanes * (n_step + STACK)) + 3 * (segment + 2 * n_lanes)
            assert frames.replay.n_frames <= most


@pytest.mark.parametrize("game", ["breakout", "pong"])
def test_stacks_of_real_games_come_back_as_the_emulator_gave_them(game):
    lanes = make_lanes(game, 2)
    first = lanes.reset(3)
    spec = ObservationSpec.of(lanes.observation_space)
    replays = Replay(300, spec), FrameReplay(300, spec, n_step=3, segment=100)
    naive, frames = (Memory(replay, 3, 2, first) for replay in replays)
    rng = np.random.default_rng(0)
    n_games = 0
    for t in range(400):
        actions = rng.integers(0, lanes.n_actions, 2)
        taken = lanes.step(actions)
        n_games += len(taken.episodes)
        for memory in (naive, frames):
            memory.remember(taken, actions)
        if t % 40 == 39:
            require_equal_draws((naive, frames), 32, t)
    lanes.close()
    assert n_games >= 2 or game == "pong"
    assert 300 <= frames.replay.n_frames <= 300 + 200
    assert frames.replay.memory < 0.25 * 84 * 84 * frames.replay.n_frames


def test_sealed_segments_keep_their_name_and_content_until_they_go():
    store = FrameStore(6, compress=True, segment=4)
    frames = np.random.default_rng(0).integers(0, 256, (10, 6)).astype(np.uint8)
    for frame in frames[:5]:
        store.append(frame)
    before = store.state()
    assert not before["0.data"].flags.writeable
    for frame in frames[5:]:
        store.append(frame)
    after = store.state()
    assert after["0.data"] is before["0.data"]
    assert sorted(name for name in after if name.endswith(".data")) == ["0.data", "4.data"]
    store.drop_before(7)
    assert (len(store), "0.data" in store.state()) == (6, False)
    numbers = np.array([9, NO_FRAME, 4, 9], np.int32)
    np.testing.assert_array_equal(store.decode(numbers), [frames[9], np.zeros(6), frames[4], frames[9]])


def test_compression_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lz4", None)
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    with pytest.raises(InputError, match=r'pip install "ebql\[atari\]", or use --no-compress'):
        FrameReplay(10, SPEC)
    FrameReplay(10, SPEC, compress=False)


def test_four_frames_are_put_together_as_any_number_is():
    rng = np.random.default_rng(0)
    frames, places = rng.integers(0, 256, (5, 6), dtype=np.uint8), rng.integers(0, 5, (7, 4))
    by_byte, by_word = np.empty((7, 6, 4), np.uint8), np.empty((7, 6, 4), np.uint8)
    _interleave(frames, places, by_byte)
    _interleave_four(frames, places, by_word.reshape(7, -1).view("<u4"))
    np.testing.assert_array_equal(by_byte, frames[places].transpose(0, 2, 1))
    np.testing.assert_array_equal(by_word, by_byte)
