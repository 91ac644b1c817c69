"""Serve the lab on this machine until Ctrl-C."""

import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from ebql.errors import InputError
from ebql.lab.app import application

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Address:
    """Where the lab listens: an open socket, and the token of visitors from other machines."""

    listener: socket.socket
    token: str | None

    @property
    def url(self) -> str:
        """The address to open in a browser, with the token if there is one."""
        host, port, *_ = self.listener.getsockname()
        name = f"[{host}]" if ":" in host else host
        # A browser cannot open "all addresses", so its own machine is named instead.
        shown = {"0.0.0.0": socket.gethostname(), "[::]": socket.gethostname()}.get(name, name)
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")


def listen(host: str | None, port: int) -> Address:
    """Open the port before anything else, so that a port in use is refused in one line.

    Without a `host`, only this machine can connect. With one, visitors need the token. Port 0 is any free
    port.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"port must be from 0 to 65535, not {port}.")
    address = host or LOOPBACK
    try:
        family, *_, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((where[0], port), family=family)
    except socket.gaierror as error:
        raise InputError(f"There is no host {address!r} on this machine.") from error
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it cannot be opened"
        raise InputError(
            f"Cannot listen on {address}, port {port}: {why}. Choose another: --port 0 takes any free one."
        ) from error
    return Address(listener, None if host is None else secrets.token_urlsafe(24))


def serve(folder: Path, address: Address, *, open_browser: bool, tell: Callable[[str], None]) -> None:
    """Show what is below `folder` until Ctrl-C; `tell` gets the address."""
    config = uvicorn.Config(
        application(folder, address.token),
        log_level="warning",
        timeout_graceful_shutdown=2,
        server_header=False,
        ws="none",
    )
    tell(address.url)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(address.url,), daemon=True).start()
    with suppress(KeyboardInterrupt):  # the way to stop it
        uvicorn.Server(config).run(sockets=[address.listener])
