"""Agents on the Hugging Face Hub: where a published agent lies, and how it gets there."""

from pathlib import Path
from typing import Any

from ebql.errors import InputError

WEIGHTS = "agent.safetensors"


def fetch(source: str | Path, revision: str | None = None) -> Path:
    """Return the file of a published agent: that of a folder, or of the Hub's repository `user/name`."""
    folder = Path(source)
    if folder.is_dir():
        if not (folder / WEIGHTS).is_file():
            raise InputError(f"The folder {str(source)!r} is not a published agent: it has no {WEIGHTS}.")
        return folder / WEIGHTS
    if not is_repository(source):
        raise InputError(f"There is no folder {str(source)!r}. An agent on the Hub is called user/name.")
    hub = require_hub()
    try:
        return Path(hub.hf_hub_download(repo_id=str(source), filename=WEIGHTS, revision=revision))
    except hub.errors.RemoteEntryNotFoundError as error:
        raise InputError(
            f"{str(source)!r} on the Hub is not an agent of ebql: it has no {WEIGHTS}."
        ) from error
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError) as error:
        raise InputError(f"Cannot fetch {str(source)!r} from the Hub: {_first_line(error)}") from error


def upload(folder: Path, repository: str) -> str:
    """Send a folder to the Hub's repository `user/name`, and return its address."""
    hub = require_hub()
    try:
        api = hub.HfApi()
        api.create_repo(repository, exist_ok=True)
        return str(api.upload_folder(repo_id=repository, folder_path=str(folder)).commit_url)
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError) as error:
        raise InputError(
            f"Cannot publish to {repository!r}: {_first_line(error)} Log in with: hf auth login"
        ) from error


def is_repository(name: str | Path) -> bool:
    """Return whether a name has the form `user/name` and is not a path of this machine."""
    text = str(name)
    return text.count("/") == 1 and not text.startswith((".", "/", "~")) and not Path(text).exists()


def require_hub() -> Any:
    """Return `huggingface_hub`; raise an error that names the command to install it, if it is missing."""
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError as error:
        raise InputError('The Hub needs huggingface_hub: pip install "ebql[hub]"') from error
    return huggingface_hub


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if line.endswith(".") else f"{line}."
