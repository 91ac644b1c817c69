"""Frames kept once each, compressed, under numbers that count up for ever.

Frames lie in segments of a fixed number of them. A full segment is sealed: it never changes again, so that a
checkpoint needs to write it only once, and it goes as a whole when none of its frames is needed any more.

Within a segment, every so many frames one is kept as it is, and the ones after it are compressed with it as
the dictionary: most of a game's picture stands still, and only the difference takes room.
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
"""The number of a frame that is all zero, and not kept: what stands before the first frame of a game."""

SEGMENT = 8_192
"""Frames of a segment."""

_KEY_PERIOD = 512  # frames from one that is kept as it is to the next


class _Segment(NamedTuple):
    data: Frames
    """The frames' bytes, one after the other."""
    ends: NDArray[np.int64]
    """Where each frame's bytes end."""


class FrameStore:
    """Frames of `n_bytes` bytes by number, from the oldest one kept to the newest."""

    def __init__(self, n_bytes: int, *, compress: bool, segment: int) -> None:
        self.n_bytes = n_bytes
        self.next = 0
        """The number of the next frame."""
        self._codec = _lz4() if compress else None
        self._per_segment = segment
        self._sealed: deque[_Segment] = deque()
        self._first = 0  # the number of the first frame kept
        self._open, self._open_ends = bytearray(), [0]

    @property
    def memory(self) -> int:
        """The bytes that the frames take."""
        return len(self._open) + sum(s.data.nbytes + s.ends.nbytes for s in self._sealed)

    def __len__(self) -> int:
        """The number of frames kept."""
        return self.next - self._first

    def append(self, frame: Frames) -> int:
        """Keep a frame; return its number."""
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
        """The frames kept since the last segment was sealed."""
        return len(self._open_ends) - 1

    def _seal(self) -> None:
        segment = _Segment(np.array(self._open, np.uint8), np.array(self._open_ends[1:], np.int64))
        for array in segment:
            array.flags.writeable = False  # so that a checkpoint knows that it never changes
        self._sealed.append(segment)
        self._open, self._open_ends = bytearray(), [0]

    def drop_before(self, number: int) -> None:
        """Let go of the sealed segments whose frames all have lower numbers than this."""
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
        """Return the number of the frame that this one is compressed with; its own, if it is kept whole."""
        return number - (number - self._first) % self._per_segment % _KEY_PERIOD

    def _content(self, number: int) -> Any:
        which, place = divmod(number - self._first, self._per_segment)
        if which < len(self._sealed):
            data, ends = self._sealed[which]
            return data[ends.item(place - 1) if place else 0 : ends.item(place)]
        return self._open[self._open_ends[place] : self._open_ends[place + 1]]

    def state(self) -> dict[str, Array]:
        """Return everything kept; the sealed segments' arrays are read-only and not copied."""
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
        """Become the store that `state` was taken from."""
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
            'To compress frames needs lz4: pip install "ebql[atari]", or --no-compress.'
        ) from error
