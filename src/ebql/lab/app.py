"""The lab's application: its pages, the requests that they make, and the errors in words."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ebql.errors import UserError
from ebql.lab.answers import answer, event_stream, refusal
from ebql.lab.files.index import Index
from ebql.lab.guard import Guard
from ebql.lab.pages import agents, chains, estimators, studies, winner
from ebql.lab.run_routes import run_routes
from ebql.lab.workers import Work, computed

STATIC = Path(str(files("ebql.lab"))) / "static"
LOOK = Path(str(files("ebql.report"))) / "look.css"


@dataclass(frozen=True)
class Page:
    """A page: its address, its name in the navigation, and its title."""

    path: str
    name: str
    title: str


PAGES = (
    Page("estimators", "Estimators", "The largest of noisy means"),
    Page("chains", "Chains", "The Meta-Chain"),
    Page("runs", "Runs", "Runs"),
    Page("studies", "Studies", "Studies"),
    Page("winner", "A/B/n tests", "What is the winner worth?"),
    Page("agents", "Agents", "All methods, from over- to underestimation"),
)


def application(folder: Path, token: str | None = None) -> Starlette:
    """Return the application that shows what is below `folder`; with a `token`, visitors must show it."""
    index = Index(folder)
    pages = [Route(f"/{page.path}", partial(_page, page)) for page in PAGES]
    routes = [
        Route("/", partial(_start, index)),
        *pages,
        Route("/look.css", lambda _: FileResponse(LOOK)),
        Route("/api/agents", lambda _: answer(agents.catalogue())),
        Route("/api/estimators", _estimators),
        Route("/api/estimators/simulation", _simulation),
        Route("/api/chains", _chains),
        Route("/api/chains/regimes", lambda _: answer(chains.regime_map())),
        Route("/api/studies", lambda _: answer(studies.studies(index))),
        Route("/api/studies/one", partial(_study, index)),
        Route("/api/winner", _winner, methods=["POST"]),
        *run_routes(index),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    handlers: Any = {UserError: refusal, HTTPException: _not_found}
    return Starlette(routes=routes, exception_handlers=handlers, middleware=[Middleware(Guard, token=token)])


def _start(index: Index, _: Request) -> Response:
    """Lead to the runs of the folder; if it has none, to the estimators."""
    return RedirectResponse("/runs" if index.runs else "/estimators", 303)


def _page(page: Page, _: Request) -> Response:
    """Return a page: the frame that all share, around its own content."""
    links = "".join(
        f'<a href="/{other.path}"{" aria-current=page" if other is page else ""}>{escape(other.name)}</a>'
        for other in PAGES
    )
    content = (STATIC / "pages" / f"{page.path}.html").read_text(encoding="utf-8")
    return _framed(
        page.title, links, content, f'<script type="module" src="/static/js/{page.path}.js"></script>'
    )


def _framed(title: str, links: str, content: str, script: str = "") -> HTMLResponse:
    frame = Template((STATIC / "frame.html").read_text(encoding="utf-8"))
    return HTMLResponse(frame.substitute(title=escape(title), links=links, content=content, script=script))


def _not_found(request: Request, error: Exception) -> Response:
    """Say in words that there is no such page."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else ""
    if request.url.path.startswith(("/api/", "/static/")):
        return answer({"error": detail}, status)
    links = "".join(f'<a href="/{page.path}">{escape(page.name)}</a>' for page in PAGES)
    page = _framed("No such page", links, "<h1>No such page</h1><p>The lab's pages are listed above.</p>")
    page.status_code = status
    return page


def _estimators(request: Request) -> Response:
    return answer(estimators.exact(estimators.asked(request.query_params)))


async def _simulation(request: Request) -> Response:
    # Parameters are read within the stream: a browser that listens cannot see why a request was refused.
    query = request.query_params
    return event_stream(_named("histogram", lambda _: estimators.simulation(query)))


async def _chains(request: Request) -> Response:
    query = request.query_params
    return event_stream(_named("curve", lambda stop: chains.results(chains.asked(query), stop)))


async def _winner(request: Request) -> Response:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > winner.MOST_BYTES:  # refused below, without reading the rest
            break
    control = request.query_params.get("control")
    return answer(await run_in_threadpool(winner.answered, bytes(content), control))


def _study(index: Index, request: Request) -> Response:
    return answer(studies.study(index, request.query_params.get("study", "")))


async def _named(name: str, work: Work) -> AsyncIterator[tuple[str, Any]]:
    """Tell each result of a computation; a page that leaves stops it."""
    results = computed(work)
    try:
        async for content in results:
            yield name, content
    finally:
        await results.aclose()
    yield "done", {}
