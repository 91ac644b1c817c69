"""Short names for runs."""

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath

from ebql.analysis.runs import RecordedRun, labelled


def folder_labels(runs: Mapping[str, RecordedRun]) -> dict[str, str]:
    """Return labels by id: a run's agent, and the options in which the runs of its folder differ."""
    folders: dict[PurePosixPath, list[str]] = {}
    for identity in runs:
        folders.setdefault(PurePosixPath(identity).parent, []).append(identity)
    return {
        identity: label
        for ids in folders.values()
        for identity, label in _labels({identity: runs[identity] for identity in ids}).items()
    }


def names(runs: Mapping[str, RecordedRun], labels: Mapping[str, str]) -> dict[str, str]:
    """Return a name for each run by its id; runs in one environment share a name if only their seeds differ.

    The name is the run's label. Where two folders use the same label for different options, the folder is
    added.
    """
    kinds = {identity: (runs[identity].environment, label) for identity, label in _labels(runs).items()}
    first: dict[tuple[str, str], str] = {}
    for identity in runs:
        first.setdefault(kinds[identity], identity)
    taken = Counter((environment, labels[identity]) for (environment, _), identity in first.items())

    def name(kind: tuple[str, str]) -> str:
        label, folder = labels[first[kind]], PurePosixPath(first[kind]).parent
        return f"{label} · {folder}" if taken[kind[0], label] > 1 else label

    return {identity: name(kinds[identity]) for identity in runs}


def _labels(runs: Mapping[str, RecordedRun]) -> dict[str, str]:
    ids = {run.path: identity for identity, run in runs.items()}
    return {ids[run.path]: label for label, run in labelled(list(runs.values()))}
