"""`ebql lab`: pages in the browser that show the bias and follow runs."""

from pathlib import Path

import tyro
from rich.markup import escape

from ebql.errors import InputError
from ebql.terminal.console import Console


def lab(
    folder: tyro.conf.Positional[Path] = Path(),
    host: str | None = None,
    port: int = 8321,
    open: bool = True,  # noqa: A002 - the option is --no-open
) -> None:
    """Open the lab in the browser: estimators, chains, runs, studies, A/B/n tests and all agents.

    It works without a network, and only this machine can reach it unless --host is given.

    Args:
        folder: The folder whose runs and studies are shown; by default the current one.
        host: An address that other machines can reach; visitors then need the token that is printed.
        port: The port to listen on; 0 takes any free one.
        open: Open the page in the browser.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}.")
    try:
        from ebql.lab.serving import listen, serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputError(f'The lab needs {error.name}: pip install "ebql[lab]"') from error
    console = Console()

    def tell(url: str) -> None:
        console.print(
            f"The lab is open at [bold]{escape(url)}[/] (stop it with Ctrl-C)",
            highlight=False,
            soft_wrap=True,
        )

    serve(folder, listen(host, port), open_browser=open, tell=tell)
