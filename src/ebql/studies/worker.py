"""`python -m ebql.studies.worker`: perform one task, read from standard input.

The pipe stays open as long as the sweep lives. When it closes, the worker saves a checkpoint and exits, so no
worker is orphaned even if the sweep is killed.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import NoReturn

from ebql.errors import UserError
from ebql.studies.tasks import Task, perform

_GRACE_SECONDS = 300.0


def main() -> int:
    """Perform the task; return an exit code as the command line does: 0, 1, 2 or 130."""
    signal.signal(signal.SIGTERM, _interrupt)
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        line = pipe.readline()
    if not line:
        return 130
    threading.Thread(target=_watch_parent, daemon=True).start()
    try:
        perform(Task.from_json(json.loads(line)))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _watch_parent() -> None:
    os.read(0, 1)  # returns when the pipe closes
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
