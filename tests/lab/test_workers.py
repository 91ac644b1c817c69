import asyncio
import threading

import pytest

from ebql.errors import InputError
from ebql.lab.workers import computed


def collected(work):
    async def collect():
        return [result async for result in computed(work)]

    return in_thread(collect)


def in_thread(function):
    """Run a coroutine in a loop of its own; this thread may have one already."""
    found = []

    def run():
        try:
            found.append(asyncio.run(function()))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def test_results_come_in_order():
    assert collected(lambda stop: iter(range(5))) == [0, 1, 2, 3, 4]


def test_an_error_reaches_the_visitor():
    def fails(stop):
        yield 1
        raise InputError("Too large.")

    with pytest.raises(InputError, match="Too large"):
        collected(fails)


def test_leaving_stops_the_work():
    stopped = threading.Event()

    def endless(stop):
        while not stop.wait(0.01):
            yield 1
        stopped.set()

    async def leave():
        results = computed(endless)
        await anext(results)
        await results.aclose()

    in_thread(leave)
    assert stopped.wait(10)
