"""The requests of the page of runs: the live list, curves, differences and films."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ebql.errors import InputError
from ebql.lab.answers import answer, event_stream
from ebql.lab.files.index import FILMS, Index
from ebql.lab.filming import Filming
from ebql.lab.pages import runs
from ebql.lab.parameters import Query, choice, real

_SECONDS_BETWEEN_LOOKS = 1.0
_KINDS = {".gif": "image/gif", ".mp4": "video/mp4"}


def run_routes(index: Index) -> list[Route]:
    """Return the routes of the page of runs below a folder."""
    filming = Filming()

    async def events(_: Request) -> Response:
        return event_stream(_changes(index))

    def curves(request: Request) -> Response:
        return answer(_curves(index, request.query_params))

    def differences(request: Request) -> Response:
        one, other = (index.run(request.query_params.get(name, "")) for name in ("a", "b"))
        return answer(runs.differences(one, other))

    def show_film(request: Request) -> Response:
        run, name = index.run(request.query_params.get("run", "")), request.query_params.get("name", "")
        if name not in run.films():
            raise InputError(f"This run has no film {name[:80]!r}.")
        kind = next(_KINDS[suffix] for suffix in FILMS if name.endswith(suffix))
        return FileResponse(run.path / name, media_type=kind)

    def film(request: Request) -> Response:
        run = index.run(request.query_params.get("run", ""))
        filming.start(run.id, run.path)
        return answer({"film": filming.state()})

    def cancel(_: Request) -> Response:
        filming.cancel()
        return answer({"film": filming.state()})

    return [
        Route("/api/runs", lambda _: answer(runs.listed(index))),
        Route("/api/runs/events", events),
        Route("/api/runs/curves", curves),
        Route("/api/runs/differences", differences),
        Route("/api/films", lambda _: answer({"film": filming.state()})),
        Route("/api/films", film, methods=["POST"]),
        Route("/api/films/cancel", cancel, methods=["POST"]),
        Route("/films", show_film),
    ]


async def _changes(index: Index) -> AsyncIterator[tuple[str, Any]]:
    """Look at the folder once a second, and tell what has changed."""
    before: dict[str, Any] | None = None
    while True:
        after = await run_in_threadpool(runs.listed, index)
        told = runs.changes(before, after)
        yield ("runs", told) if told is not None else ("alive", {})
        before = after
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


def _curves(index: Index, query: Query) -> dict[str, Any]:
    names = [name for name in query.get("runs", "").split("|") if name]
    if not 1 <= len(names) <= runs.MOST_RUNS:
        raise InputError(f"Choose from 1 to {runs.MOST_RUNS} runs, not {len(names)}.")
    span = None
    if "from" in query or "to" in query:
        span = real(query, "from", 0.0, 0.0, 1e18), real(query, "to", 1e18, 0.0, 1e18)
    view = runs.View(
        choice(query, "axis", "steps", runs.AXES),
        real(query, "smooth", 0.0, 0.0, 50.0) / 100,
        query.get("group") == "1",
        span,
    )
    metrics = [name for name in query.get("metrics", "").split("|") if name]
    return runs.curves([index.run(name) for name in names], metrics, view)
