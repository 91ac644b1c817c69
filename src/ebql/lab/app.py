"""The lab's application: its pages, the requests that they make, and the errors in words."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
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
from ebql.lab.pages import agents, estimators
from ebql.lab.parameters import whole
from ebql.lab.run_routes import run_routes

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
    Page("runs", "Runs", "Runs"),
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
    arms = estimators.asked(request.query_params)
    seed = whole(request.query_params, "seed", 0, 0, 2**32 - 1)
    return event_stream(_named("histogram", estimators.simulated(arms, seed)))


async def _named(name: str, contents: Iterator[Any]) -> AsyncIterator[tuple[str, Any]]:
    """Compute the contents in a thread, one at a time: a page that leaves stops the computation."""
    async for content in iterate_in_threadpool(contents):
        yield name, content
    yield "done", {}
