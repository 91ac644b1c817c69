"""Film a run in a process of its own: one at a time, with a time limit, and it can be cancelled."""

import subprocess
import sys
from pathlib import Path
from threading import Lock, Timer

from ebql.errors import InputError, UserError

SECONDS = 600.0
MOST_STEPS = 500
FILM = "watch.gif"


class Filming:
    """The film that is being made, if any, and how the last one ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._run = ""
        self._stopped = ""

    def start(self, identity: str, path: Path) -> None:
        """Film the run in the folder `path`; refuse it while another film is being made."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                raise InputError(f"Another film is being made: {self._run}. Wait for it, or cancel it.")
            self._run, self._stopped = identity, ""
            command = [sys.executable, "-m", "ebql.lab.filming", str(path)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            limit = Timer(SECONDS, self.cancel, [f"It took more than {SECONDS / 60:.0f} minutes."])
            limit.daemon = True
            limit.start()

    def cancel(self, why: str = "Cancelled.") -> None:
        """Stop the film that is being made; nothing is written."""
        process = self._process
        if process is not None and process.poll() is None:
            self._stopped = why
            process.terminate()

    def state(self) -> dict[str, str] | None:
        """Return which run was filmed last, and whether it is `filming`, `done` or `failed`."""
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            return {"run": self._run, "state": "filming", "reason": ""}
        if process.returncode == 0:
            return {"run": self._run, "state": "done", "reason": ""}
        with self._lock:
            if not self._stopped and process.stderr is not None:
                lines = process.stderr.read().strip().splitlines()
                self._stopped = lines[-1] if lines else "The film could not be made."
        return {"run": self._run, "state": "failed", "reason": self._stopped}


def main(path: Path) -> int:
    """Film one episode of the run in the folder `path`; return an exit code."""
    from ebql.report.films.recording import record

    try:
        record(path, path / FILM, max_steps=MOST_STEPS)
    except (UserError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
