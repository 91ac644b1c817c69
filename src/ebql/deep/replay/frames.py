"""A replay of stacked frames that stores each frame once.

An observation of an Atari game is a stack of its last frames, so consecutive observations share all but one
of them. Transitions store frame numbers; the stacks are rebuilt when transitions are sampled.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.frame_store import NO_FRAME, SEGMENT, FrameStore
from ebql.deep.replay.ring import Array, Replay, Transitions
from ebql.environments import LaneStep

_FRAMES = "frames."


class FrameReplay:
    """A `Replay` of images (height, width, frames) of bytes, the newest frame last.

    `begin` and `keep` turn the lanes' observations into frame numbers (N, frames), which pass through the
    n-step returns and into `add`. `gather` returns images again.
    """

    def __init__(
        self,
        capacity: int,
        spec: ObservationSpec,
        n_masks: int = 0,
        *,
        n_step: int = 1,
        compress: bool = True,
        segment: int = SEGMENT,
    ) -> None:
        self._spec = spec
        height, width, self._stack = spec.shape
        self._rows = Replay(capacity, ObservationSpec((self._stack,), "int32"), n_masks)
        self._frames = FrameStore(height * width, compress=compress, segment=segment)
        self._n_step = n_step
        self._images = np.zeros((0, *spec.shape), np.uint8)
        self._current = np.zeros((0, self._stack), np.int32)

    @property
    def capacity(self) -> int:
        """The largest number of transitions."""
        return self._rows.capacity

    @property
    def size(self) -> int:
        """The number of transitions stored."""
        return self._rows.size

    @property
    def next_row(self) -> int:
        """The row that the next transition will be written to."""
        return self._rows.next_row

    @property
    def n_masks(self) -> int:
        """The number of members that have masks; 0 if all learn from every transition."""
        return self._rows.n_masks

    @property
    def memory(self) -> int:
        """The bytes of memory that the frames take."""
        return self._frames.memory

    @property
    def n_frames(self) -> int:
        """The number of frames stored."""
        return len(self._frames)

    def begin(self, observations: Array) -> Array:
        """Return the frame numbers (N, frames) of the lanes' observations, storing frames that are new."""
        if len(self._current) != len(observations) or not np.array_equal(
            self._stacks(self._current), observations
        ):
            self._current = np.stack([self._store_first(observation) for observation in observations])
        return self._current

    def keep(self, step: LaneStep) -> LaneStep:
        """Store the new frames of a step; return the step with frame numbers instead of observations."""
        next_numbers = np.empty_like(self._current)
        next_numbers[:, :-1] = self._current[:, 1:]
        for lane, newest in enumerate(step.next_observations[..., -1]):
            next_numbers[lane, -1] = self._frames.append(newest)
        self._current = next_numbers
        if step.episodes:
            self._current = next_numbers.copy()
            for episode in step.episodes:
                self._current[episode.lane] = self._store_first(step.observations[episode.lane])
        if self._frames.n_unsealed < 2 * len(next_numbers):  # a segment may just have been sealed
            self._drop_unneeded()
        return step._replace(next_observations=next_numbers, observations=self._current)

    def _store_first(self, observation: Array) -> NDArray[np.int32]:
        """Store the frames of an episode's first observation, except for the empty ones before its start."""
        frames = np.moveaxis(observation, -1, 0)
        numbers = [self._frames.append(frame) if frame.any() else NO_FRAME for frame in frames]
        return np.array(numbers, np.int32)

    def _drop_unneeded(self) -> None:
        # Transitions that wait for their n-th reward are not in the rows yet, but their frames are recent.
        recent = self._frames.next - 2 * len(self._current) * (self._n_step + self._stack)
        rows = self._rows.state()
        kept = [rows[name].view(np.uint32) for name in ("observations", "next_observations")]
        # As unsigned numbers, NO_FRAME is the largest.
        oldest = min((int(numbers.min()) for numbers in kept if len(numbers)), default=recent)
        self._frames.drop_before(min(oldest, recent))

    def add(self, transitions: Transitions[Array]) -> None:
        """Append transitions whose observations are frame numbers; a full ring overwrites the oldest."""
        self._rows.add(transitions)

    def gather(self, rows: NDArray[np.int64]) -> Transitions[Array]:
        """Return the transitions in these rows (n,), in arrays reused by the next call."""
        n, numbers = len(rows), self._rows.gather(rows)
        images = self._stacks(np.concatenate([numbers.observations, numbers.next_observations]))
        return numbers._replace(observations=images[:n], next_observations=images[n:])

    def _stacks(self, numbers: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the images (rows, height, width, frames) of frame numbers (rows, frames)."""
        if len(self._images) != len(numbers):
            self._images = np.empty((len(numbers), *self._spec.shape), np.uint8)
        distinct, places = np.unique(numbers, return_inverse=True)
        frames, places = self._frames.decode(distinct), places.reshape(numbers.shape)
        if self._stack == 4:
            _interleave_four(frames, places, self._images.reshape(len(numbers), -1).view("<u4"))
        else:
            _interleave(frames, places, self._images.reshape(len(numbers), -1, self._stack))
        return self._images

    def state(self) -> dict[str, Array]:
        """Return the replay's content; arrays that never change again are read-only."""
        frames = {f"{_FRAMES}{name}": array for name, array in self._frames.state().items()}
        return {**self._rows.state(), "seen": self._current.copy(), **frames}

    def restore(self, state: dict[str, Array]) -> None:
        """Restore a saved `state`."""
        self._rows.restore(state)
        self._current = state["seen"].copy()
        own = {name.removeprefix(_FRAMES): x for name, x in state.items() if name.startswith(_FRAMES)}
        self._frames.restore(own)


@compiled
def _interleave(frames: NDArray[np.uint8], places: NDArray[np.int64], images: NDArray[np.uint8]) -> None:
    """Write frame places[row, i] (pixels,) as channel i of image `row`, (pixels, frames)."""
    n_rows, n_frames = places.shape
    for row in range(n_rows):
        for i in range(n_frames):
            frame = frames[places[row, i]]
            for pixel in range(len(frame)):
                images[row, pixel, i] = frame[pixel]


@compiled
def _interleave_four(frames: NDArray[np.uint8], places: NDArray[np.int64], images: NDArray[Any]) -> None:
    """The same for stacks of four, whose pixels are 32-bit words (rows, pixels): eight times as fast."""
    for row in range(len(places)):
        first, second, third, fourth = places[row]
        a, b, c, d = frames[first], frames[second], frames[third], frames[fourth]
        image = images[row]
        for i in range(len(image)):
            low, high = a[i] | np.uint32(b[i]) << np.uint32(8), c[i] | np.uint32(d[i]) << np.uint32(8)
            image[i] = low | high << np.uint32(16)
