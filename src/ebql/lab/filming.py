"""Film a run in a process of its own: one at a time, with a time limit, and it can be cancelled."""

import subprocess
import sys
from pathlib import Path
from threading import Lock, Thread

from ebql.errors import InputError, UserError

SECONDS = 600.0
MOST_STEPS = 500
FILM = "watch.gif"


class Filming:
    """The film that is being made, if any, and how the last one ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._follower = Thread()
        self._run = ""
        self._stopped = ""

    def start(self, identity: str, path: Path) -> None:
        """Film the run in the folder `path`; refuse it while another film is being made."""
        with self._lock:
            if self._follower.is_alive():
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
            self._follower = Thread(target=self._follow, args=[self._process], daemon=True)
            self._follower.start()

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
        if self._follower.is_alive():
            return {"run": self._run, "state": "filming", "reason": ""}
        if process.returncode == 0:
            return {"run": self._run, "state": "done", "reason": ""}
        return {"run": self._run, "state": "failed", "reason": self._stopped}

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Wait for a film, within the time limit, and keep the reason if it could not be made."""
        try:
            _, told = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.cancel(f"It took more than {SECONDS / 60:.0f} minutes.")
            _, told = process.communicate()
        if process.returncode and not self._stopped:
            lines = told.strip().splitlines()
            self._stopped = lines[-1] if lines else "The film could not be made."


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
