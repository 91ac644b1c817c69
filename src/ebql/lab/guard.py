"""Who may talk to the lab, and what its pages may load.

A page on another site can make a browser send requests to this machine. Three checks stop it: the Host header
must name this machine (DNS rebinding), a request for data must come from our own pages, and a lab that other
machines can reach asks for a token.
"""

import ipaddress
import secrets
import socket
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_COOKIE = "ebql-lab"


@dataclass(frozen=True)
class Guard:
    """Refuses requests that do not belong here, and adds the headers that restrict the pages."""

    app: ASGIApp
    token: str | None = None
    """What a visitor must show; None if only this machine can reach the lab."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_restricted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope)
        await (answer or self.app)(scope, receive, send_restricted)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not _names_this_machine(headers.get("host", "")):
            return _refused("The Host header does not name this machine.", 421)
        if not _is_own(scope, headers):
            return _refused("Only the lab's own pages may ask for this.", 403)
        return None if self.token is None else self._without_token(scope, headers, self.token)

    def _without_token(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """Return None for a visitor with the token; move it from the address into a cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = dict(query).get("token", "")
        if shown and secrets.compare_digest(shown.encode(), token.encode()):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            # One slash only: a browser would take //name for another site.
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        if secrets.compare_digest(_cookie(headers).encode(), token.encode()):
            return None
        return _refused("Open the address with the token that `ebql lab` printed when it started.", 401)


def _cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[_COOKIE].value if _COOKIE in cookies else ""


def _names_this_machine(host: str) -> bool:
    """Whether a Host header is an address or a name of this machine; rebinding needs another name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", socket.gethostname().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_own(scope: Scope, headers: Headers) -> bool:
    """Whether a request is for a page, or comes from one of our own pages."""
    origin = headers.get("origin")
    try:
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return False
    except ValueError:  # no address at all
        return False
    is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")
    return is_page or headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _refused(line: str, status: int) -> Response:
    return PlainTextResponse(f"{line}\n", status)
