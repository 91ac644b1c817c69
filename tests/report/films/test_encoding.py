import io
import sys

import numpy as np
import pytest
from PIL import Image

from ebql.errors import InputError
from ebql.report.films.encoding import film

COLOURS = ((200, 30, 30), (30, 200, 30), (30, 30, 200))


def images():
    return (np.full((32, 48, 3), colour, np.uint8) for colour in COLOURS)


def near(pixel, colour, tolerance):
    return np.abs(np.array(pixel, int) - colour).max() <= tolerance


def test_a_gif_holds_every_image_for_its_time_and_repeats():
    with Image.open(io.BytesIO(film(images(), ".gif", fps=20))) as gif:
        assert (gif.n_frames, gif.size, gif.info["loop"]) == (3, (48, 32), 0)
        for i, colour in enumerate(COLOURS):
            gif.seek(i)
            assert gif.info["duration"] == 50
            assert near(gif.convert("RGB").getpixel((9, 9)), colour, 4)


# imageio-ffmpeg leaves the pipes that it read from open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_mp4_holds_every_image(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "film.mp4"
    path.write_bytes(film(images(), ".mp4", fps=10))
    frames = ffmpeg.read_frames(str(path))
    assert next(frames)["source_size"] == (48, 32)
    shown = [np.frombuffer(frame, np.uint8).reshape(32, 48, 3)[9, 9] for frame in frames]
    assert len(shown) == 3
    assert all(near(pixel, colour, 25) for pixel, colour in zip(shown, COLOURS, strict=True))


@pytest.mark.parametrize(
    ("suffix", "fps", "told"),
    [(".avi", 10, "Known: .gif, .mp4"), (".gif", 60, "at most 50"), (".mp4", 0, "at least 1")],
)
def test_bad_input(suffix, fps, told):
    with pytest.raises(InputError, match=told):
        film(images(), suffix, fps)


def test_a_missing_encoder_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(InputError, match=r'pip install "ebql\[video\]"'):
        film(images(), ".mp4", 10)
