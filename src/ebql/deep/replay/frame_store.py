"""Compressed frames, each stored once under a consecutive number.

Frames are stored in segments of a fixed length. A full segment is sealed: it never changes again, so a
checkpoint writes it only once. It is dropped as a whole when none of its frames is needed any more.

Within a segment, key frames at regular intervals are stored uncompressed. The frames that follow are
compressed with the key frame as dictionary: most of a game's picture does not move, so only the differences
take memory.
"""

from collections import deque
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError

Frames = NDArray[np.uint8]
Array = NDArray[Any]

NO_FRAME = -1
"""The number of the all-zero frame, which is not stored: it stands for frames before a game's first."""

SEGMENT = 8_192
"""Frames per segment."""

_KEY_PERIOD = 512  # frames from one key frame to the next


class _Segment(NamedTuple):
    data: Frames
    """The frames' bytes, concatenated."""
    ends: NDArray[np.int64]
    """The offset at which each frame's bytes end."""


class FrameStore:
    """Frames of `n_bytes` bytes by number, from the oldest stored to the newest."""

    def __init__(self, n_bytes: int, *, compress: bool, segment: int) -> None:
        self.n_bytes = n_bytes
        self.next = 0
        """The number of the next frame."""
        self._codec = _lz4() if compress else None
        self._per_segment = segment
        self._sealed: deque[_Segment] = deque()
        self._first = 0  # the number of the oldest frame stored
        self._open, self._open_ends = bytearray(), [0]

    @property
    def memory(self) -> int:
        """The bytes of memory that the frames take."""
        return len(self._open) + sum(s.data.nbytes + s.ends.nbytes for s in self._sealed)

    def __len__(self) -> int:
        """The number of frames stored."""
        return self.next - self._first

    def append(self, frame: Frames) -> int:
        """Store a frame; return its number."""
        content, place = frame.tobytes(), self.n_unsealed
        if self._codec and place % _KEY_PERIOD:
            content = self._codec.compress(
                content, store_size=False, dict=self._content(self._key(self.next))
            )
        self._open += content
        self._open_ends.append(len(self._open))
        self.next += 1
        if len(self._open_ends) > self._per_segment:
            self._seal()
        return self.next - 1

    @property
    def n_unsealed(self) -> int:
        """The number of frames stored since the last segment was sealed."""
        return len(self._open_ends) - 1

    def _seal(self) -> None:
        segment = _Segment(np.array(self._open, np.uint8), np.array(self._open_ends[1:], np.int64))
        for array in segment:
            array.flags.writeable = False  # tells checkpoints that it never changes
        self._sealed.append(segment)
        self._open, self._open_ends = bytearray(), [0]

    def drop_before(self, number: int) -> None:
        """Drop the sealed segments whose frames all have numbers below this one."""
        while self._sealed and self._first + self._per_segment <= number:
            self._sealed.popleft()
            self._first += self._per_segment

    def decode(self, numbers: NDArray[np.int32]) -> Frames:
        """Return the frames with these numbers, (rows, n_bytes)."""
        frames = [self._frame(number) for number in numbers.tolist()]
        return np.frombuffer(b"".join(frames), np.uint8).reshape(len(frames), self.n_bytes)

    def _frame(self, number: int) -> Any:
        if number == NO_FRAME:
            return bytes(self.n_bytes)
        content, key = self._content(number), self._key(number)
        if self._codec is None or key == number:
            return content
        return self._codec.decompress(content, uncompressed_size=self.n_bytes, dict=self._content(key))

    def _key(self, number: int) -> int:
        """Return the number of the frame's key frame; a key frame is its own."""
        return number - (number - self._first) % self._per_segment % _KEY_PERIOD

    def _content(self, number: int) -> Any:
        which, place = divmod(number - self._first, self._per_segment)
        if which < len(self._sealed):
            data, ends = self._sealed[which]
            return data[ends.item(place - 1) if place else 0 : ends.item(place)]
        return self._open[self._open_ends[place] : self._open_ends[place + 1]]

    def state(self) -> dict[str, Array]:
        """Return the store's content; the arrays of sealed segments are read-only and not copied."""
        state: dict[str, Array] = {
            "numbers": np.array([self._first, self.next], np.int64),
            "data": np.array(self._open, np.uint8),
            "ends": np.array(self._open_ends, np.int64),
        }
        for i, segment in enumerate(self._sealed):
            first = self._first + i * self._per_segment
            state |= {f"{first}.{name}": array for name, array in segment._asdict().items()}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Restore a saved `state`."""
        self._first, self.next = state["numbers"].tolist()
        self._open, self._open_ends = bytearray(state["data"]), state["ends"].tolist()
        self._sealed.clear()
        for first in range(self._first, self.next - self.n_unsealed, self._per_segment):
            segment = _Segment(*(state[f"{first}.{name}"].copy() for name in _Segment._fields))
            for array in segment:
                array.flags.writeable = False
            self._sealed.append(segment)


def _lz4() -> Any:
    try:
        return import_module("lz4.block")
    except ImportError as error:
        raise InputError(
            'Compressing frames needs lz4: pip install "ebql[atari]", or use --no-compress.'
        ) from error
