"""A lab that really serves, a client that asks it, and a real browser that opens its pages."""

import json
import shutil
import threading
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from playwright.sync_api import sync_playwright

from ebql.lab.app import application
from ebql.lab.serving import listen
from ebql.runs import RunFolder


@contextmanager
def serving(folder, host=None):
    address = listen(host, 0)
    config = uvicorn.Config(
        application(folder, address.token), log_level="error", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [address.listener]}, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(10)
        address.listener.close()
        assert not thread.is_alive()


@pytest.fixture
def open_lab():
    """Return a function that serves a folder and returns the lab's address."""
    with ExitStack() as stack:
        yield lambda folder, host=None: stack.enter_context(serving(folder, host))


@pytest.fixture
def serve_lab():
    """Return a context in which a folder is served."""
    return serving


@pytest.fixture
def write_log(tmp_path):
    """Write a run with given records, and optionally timing records."""

    def write(name, records, timing=(), steps=30, **about):
        options = {"seed": 0, **about.pop("options", {})}
        said = {"kind": "deep", "label": None, "agent": "dqn", "environment": "W-v0", "steps": steps}
        folder = RunFolder.create(tmp_path / name, said | about | {"options": options}, command=[])
        for path, lines in ((folder.metrics_path, records), (folder.timing_path, timing)):
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder.path

    return write


@pytest.fixture
def client(open_lab, tmp_path):
    """A client of a lab that shows `tmp_path`."""
    with httpx.Client(base_url=open_lab(tmp_path).url, timeout=300) as client:
        yield client


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no browser: the lab's pages were not opened (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, open_lab, tmp_path):
    """Return a function that opens a page of the lab; afterwards, nothing may have gone wrong in it.

    A request to another host, an error in the console or an exception in a script fails the test.
    """
    troubles = []
    address = open_lab(tmp_path)
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(20_000)
    page = context.new_page()

    def check_request(request):
        if urlsplit(request.url).hostname != "127.0.0.1":
            troubles.append(f"asked another host: {request.url}")

    page.on("request", check_request)
    page.on("console", lambda told: told.type in ("error", "warning") and troubles.append(told.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))

    def visit(path):
        page.goto(address.url.rstrip("/") + path)
        return page

    def until(holds):
        """Wait until `holds()`; the pages' policy forbids the function that Playwright has for it."""
        for _ in range(3600):
            if holds():
                return
            page.wait_for_timeout(50)
        pytest.fail("waited three minutes in vain")

    visit.troubles, visit.until = troubles, until
    yield visit
    context.close()
    assert troubles == []
