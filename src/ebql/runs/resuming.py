"""Notes in a run that it was resumed with other versions than it was begun with."""

import warnings
from collections.abc import Mapping
from typing import Any

from ebql.runs.folder import RunFolder
from ebql.runs.provenance import versions

# Whatever can change the last bits of a result.
_DECISIVE = ("numpy", "torch", "numba", "gymnasium", "minatar", "ale-py", "cpu", "torch cpu")
_RESUMED = "resumed_with"


class OtherVersionsWarning(UserWarning):
    """A run continues with other versions or on another kind of processor."""


def noted_versions(folder: RunFolder, step: int) -> RunFolder:
    """Compare the versions that the run was begun or last resumed with to those here.

    If some differ, warn in one line, and write them into `config.json` with the step at which they came.

    >>> folder = RunFolder.create("runs/noted", {"kind": "deep", "agent": "ebql"})
    >>> noted_versions(folder, step=100) is folder  # nothing differs
    True
    """
    before, here = versions_of(folder.config), versions()
    other = {
        name: here[name]
        for name in _DECISIVE
        if name in before and here.get(name, before[name]) != before[name]
    }
    if not other:
        return folder
    changes = ", ".join(f"{name} {here[name]} instead of {before[name]}" for name in other)
    warnings.warn(
        f"The run continues with {changes}: its results may differ in the last bits from those of an "
        "uninterrupted run.",
        OtherVersionsWarning,
        stacklevel=3,
    )
    return folder.updated(**{_RESUMED: [*folder.config.get(_RESUMED, []), {"step": step, "versions": other}]})


def versions_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions that a run was last continued with."""
    found = dict(config.get("versions", {}))
    for note in config.get(_RESUMED, []):
        if isinstance(note, dict) and isinstance(note.get("versions"), dict):
            found |= note["versions"]
    return found
