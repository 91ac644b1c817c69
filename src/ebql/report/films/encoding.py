"""Encode a sequence of images as a GIF or an MP4 file."""

import io
import tempfile
from collections.abc import Iterable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ebql.errors import InputError, unknown_name

Images = Iterable[NDArray[np.uint8]]

FORMATS = (".gif", ".mp4")
_FASTEST_GIF = 50  # frames per second; viewers slow down GIFs with frames shorter than 0.02 s


def require_film(suffix: str, fps: int) -> None:
    """Raise an error if a film with this suffix and frame rate could not be written."""
    if suffix not in FORMATS:
        raise unknown_name("video format", suffix or "(no suffix)", FORMATS)
    if fps < 1 or (suffix == ".gif" and fps > _FASTEST_GIF):
        most = f" and at most {_FASTEST_GIF} for a GIF" if suffix == ".gif" else ""
        raise InputError(f"fps must be at least 1{most}, not {fps}.")
    if suffix == ".mp4":
        _ffmpeg()


def film(images: Images, suffix: str, fps: int) -> bytes:
    """Return the images (H, W, 3), all of the same size, as the content of a file with this suffix."""
    require_film(suffix, fps)
    return _gif(images, fps) if suffix == ".gif" else _mp4(images, fps)


def _gif(images: Images, fps: int) -> bytes:
    frames = (Image.fromarray(image).quantize(method=Image.Quantize.FASTOCTREE) for image in images)
    content = io.BytesIO()
    first = next(frames)
    first.save(content, "GIF", save_all=True, append_images=frames, duration=round(1000 / fps), loop=0)
    return content.getvalue()


def _mp4(images: Images, fps: int) -> bytes:
    frames = iter(images)
    first = next(frames)
    size = first.shape[1], first.shape[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        writer = _ffmpeg().write_frames(str(path), size, fps=fps, quality=8)
        writer.send(None)
        try:
            for frame in chain([first], frames):
                writer.send(np.ascontiguousarray(frame))
        finally:
            writer.close()
        return path.read_bytes()


def _ffmpeg() -> Any:
    try:
        return import_module("imageio_ffmpeg")
    except ImportError as error:
        raise InputError(
            'MP4 files need imageio-ffmpeg: pip install "ebql[video]". GIF files do not.'
        ) from error
