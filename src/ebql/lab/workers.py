"""Computations for a visitor: in a thread, a few at a time, stopped when the visitor leaves."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Any

from ebql.errors import InputError

MOST_AT_ONCE = 4
_PATIENCE_SECONDS = 10.0

_places = threading.BoundedSemaphore(MOST_AT_ONCE)

Work = Callable[[threading.Event], Iterator[Any]]
"""A computation in pieces; it must end soon after the event is set."""


async def computed(work: Work) -> AsyncGenerator[Any, None]:
    """Yield the results of `work` as they come; leaving the loop sets its event."""
    loop = asyncio.get_running_loop()
    results: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    stop = threading.Event()

    def tell(kind: str, content: Any = None) -> None:
        with suppress(RuntimeError):  # the server has stopped
            loop.call_soon_threadsafe(results.put_nowait, (kind, content))

    def compute() -> None:
        if not _places.acquire(timeout=_PATIENCE_SECONDS):
            tell("error", InputError("The lab is busy with other computations: try again in a moment."))
            return
        try:
            for result in work(stop):
                if stop.is_set():
                    return
                tell("result", result)
            tell("end")
        except Exception as error:
            tell("error", error)
        finally:
            _places.release()

    threading.Thread(target=compute, daemon=True).start()
    try:
        while True:
            kind, content = await results.get()
            if kind == "error":
                raise content
            if kind == "end":
                return
            yield content
    finally:
        stop.set()
