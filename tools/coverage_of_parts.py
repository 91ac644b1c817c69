"""Print how much of each part of the package the tests run, and name the files below 85%.

python tools/coverage_of_parts.py .coverage.json
"""

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath

_ENOUGH = 0.85


class Lines:
    """Counted lines: those that were run, and all."""

    def __init__(self) -> None:
        self.run = self.all = 0

    def add(self, summary: dict[str, int]) -> "Lines":
        """Add the lines of one file, as coverage sums them up."""
        self.run += summary["covered_lines"]
        self.all += summary["num_statements"]
        return self

    @property
    def share(self) -> float:
        """The share of lines that were run; 1 if there are none."""
        return self.run / self.all if self.all else 1.0


def shares(measured: dict[str, dict[str, dict[str, int]]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the share of lines run in each part of the package, and in each file."""
    parts: dict[str, Lines] = defaultdict(Lines)
    files = {}
    for name, about in measured.items():
        within = PurePath(name).parts
        within = within[within.index("ebql") + 1 :]
        summary = about["summary"]
        parts[within[0]].add(summary)
        parts["all"].add(summary)
        files["/".join(within)] = Lines().add(summary).share
    return {name: lines.share for name, lines in sorted(parts.items())}, files


def main() -> None:
    """Print the table and the files below 85%."""
    measured = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    parts, files = shares(measured)
    for name, share in parts.items():
        print(f"{name:20s} {share:6.1%}")
    low = {name: share for name, share in files.items() if share < _ENOUGH}
    print(f"{len(low)} of {len(files)} files are below {_ENOUGH:.0%}:")
    for name, share in sorted(low.items(), key=lambda item: item[1]):
        print(f"  {share:6.1%} {name}")


if __name__ == "__main__":
    main()
