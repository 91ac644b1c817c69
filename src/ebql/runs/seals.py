"""Seals: short digests that show whether a file was changed after it was written.

A line of a log is sealed with a digest of itself and of the line before it, so a line that was edited, added
or removed does not fit its neighbours. A `config.json` has one seal for its whole content. Seals show
accidents and edits. They do not stop a person who computes new ones: they hold no secret.
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b, sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEAL = "seal"
"""The key of a seal in a line of a log, in a `config.json` and in a `seeds.npz`."""

ACCEPT = "Undo the change, or accept it with --accept-changes (in Python: accept_changes=True)."
"""What to do about a change."""

_LINE = re.compile(rb'(?P<body>\{.+), "seal": "(?P<seal>[0-9a-f]{16})"\}', flags=re.S)


def sealed_line(body: bytes, before: bytes) -> bytes:
    """Return a JSON object, `body`, with its seal as its last key; `before` is the line before it, or b""."""
    return b'%s, "seal": "%s"}' % (body[:-1], _line_seal(body, before))


def is_sealed(line: bytes) -> bool:
    """Whether a line of a log has a seal, fitting or not."""
    return _LINE.fullmatch(line) is not None


def changed_lines(lines: Sequence[bytes]) -> list[int]:
    """Return the numbers, from 1 on, of the lines that do not fit their seals.

    Logs that were begun by version 0.1 begin with lines without seals; those are not in the list.
    """
    changed, before, sealing = [], b"", False
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is not None:
            sealing = True
            if _line_seal(found["body"] + b"}", before) != found["seal"]:
                changed.append(number)
        elif sealing:
            changed.append(number)
        before = line
    return changed


def content_seal(content: Mapping[str, Any]) -> str:
    """Return the seal of JSON values, whatever their layout in the file; a key `SEAL` does not count."""
    own = {key: value for key, value in content.items() if key != SEAL}
    return blake2b(json.dumps(own, sort_keys=True).encode(), digest_size=16).hexdigest()


def arrays_seal(arrays: Mapping[str, NDArray[Any]], about: str = "") -> str:
    """Return the SHA-256 of a text and of arrays with their names, types and shapes, in hexadecimal."""
    digest = sha256(about.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _line_seal(body: bytes, before: bytes) -> bytes:
    return blake2b(before + b"\n" + body, digest_size=8).hexdigest().encode()
