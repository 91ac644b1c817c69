"""A replay of stacked frames that keeps each frame once.

The observation of an Atari game shows its last frames, so that two neighbours have all but one of them in
common. What a transition keeps of an observation are its frames' numbers; the stacks are put together
again when they are drawn.
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

    `begin` and `keep` turn the lanes' observations into frame numbers (N, frames): as such they go through
    the n-step sums, and into `add`. `gather` gives images again.
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
        self._seen = np.zeros((0, self._stack), np.int32)

    @property
    def capacity(self) -> int:
        """The most transitions kept."""
        return self._rows.capacity

    @property
    def size(self) -> int:
        """The transitions kept."""
        return self._rows.size

    @property
    def next_row(self) -> int:
        """Where the next transition will be written."""
        return self._rows.next_row

    @property
    def n_masks(self) -> int:
        """The members that have masks; 0 where all learn from everything."""
        return self._rows.n_masks

    @property
    def memory(self) -> int:
        """The bytes that the frames take."""
        return self._frames.memory

    @property
    def n_frames(self) -> int:
        """The frames kept."""
        return len(self._frames)

    def begin(self, observations: Array) -> Array:
        """Return the frame numbers (N, frames) of what the lanes show now; frames kept are not kept again."""
        if len(self._seen) != len(observations) or not np.array_equal(self._stacks(self._seen), observations):
            self._seen = np.stack([self._started(observation) for observation in observations])
        return self._seen

    def keep(self, taken: LaneStep) -> LaneStep:
        """Keep the frames that a step brought; return the step with numbers instead of observations."""
        next_seen = np.empty_like(self._seen)
        next_seen[:, :-1] = self._seen[:, 1:]
        for lane, newest in enumerate(taken.next_observations[..., -1]):
            next_seen[lane, -1] = self._frames.append(newest)
        self._seen = next_seen
        if taken.episodes:
            self._seen = next_seen.copy()
            for episode in taken.episodes:
                self._seen[episode.lane] = self._started(taken.observations[episode.lane])
        if self._frames.n_unsealed < 2 * len(next_seen):  # some segment may just have been sealed
            self._drop_unneeded()
        return taken._replace(next_observations=next_seen, observations=self._seen)

    def _started(self, observation: Array) -> NDArray[np.int32]:
        """Keep the frames of a game's first observation; the empty ones before them need no keeping."""
        frames = np.moveaxis(observation, -1, 0)
        numbers = [self._frames.append(frame) if frame.any() else NO_FRAME for frame in frames]
        return np.array(numbers, np.int32)

    def _drop_unneeded(self) -> None:
        # What waits for its n-th reward is not among the rows yet, but it is recent.
        recent = self._frames.next - 2 * len(self._seen) * (self._n_step + self._stack)
        rows = self._rows.state()
        kept = [rows[name].view(np.uint32) for name in ("observations", "next_observations")]
        # As unsigned numbers, NO_FRAME is the largest.
        oldest = min((int(numbers.min()) for numbers in kept if len(numbers)), default=recent)
        self._frames.drop_before(min(oldest, recent))

    def add(self, transitions: Transitions[Array]) -> None:
        """Append transitions whose observations are frame numbers, over the oldest once the ring is full."""
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
        """Return everything kept; what never changes again is read-only."""
        frames = {f"{_FRAMES}{name}": array for name, array in self._frames.state().items()}
        return {**self._rows.state(), "seen": self._seen.copy(), **frames}

    def restore(self, state: dict[str, Array]) -> None:
        """Become the replay that `state` was taken from."""
        self._rows.restore(state)
        self._seen = state["seen"].copy()
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
    """As `_interleave`, for stacks of four: a pixel is one word, (rows, pixels). Eight times as fast."""
    for row in range(len(places)):
        first, second, third, fourth = places[row]
        a, b, c, d = frames[first], frames[second], frames[third], frames[fourth]
        image = images[row]
        for i in range(len(image)):
            low, high = a[i] | np.uint32(b[i]) << np.uint32(8), c[i] | np.uint32(d[i]) << np.uint32(8)
            image[i] = low | high << np.uint32(16)
