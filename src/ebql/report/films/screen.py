"""Draw one step of an episode: the rendered environment and, beside it, the Q-values of each member."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image

from ebql.deep.evaluation.watching import Moment

WIDTH, HEIGHT = 960, 432  # pixels; multiples of 16, which video encoders want
_DPI = 100
_CORNER, _COLUMN = (24, 74), (424, 336)  # x, y of the rendered environment, and its largest width and height
_CHOSEN, _OTHER, _BAND = "#d9641e", "#5d7ea6", "#fcefe3"
_INK, _FAINT = "#22252b", "#7b818c"
_BORDER = 0xD8  # grey level
_HISTORY = 120  # steps that the curve of V shows
_RECENT = 40  # steps whose Q-values the axis must include
_MARGIN = 0.25  # space beyond the Q-values, relative to their range, when the axis is rescaled
_LEAST_FILLED = 0.35  # the axis is rescaled if the Q-values fill less than this share of it
_MOST_LEVEL_LABELS = 6  # with more actions their names are vertical, and the caption is left out


class Screen:
    """Draws steps of an episode on one canvas.

    The static background, which includes the axis of Q-values, is drawn once and copied into each frame; only
    what changes is drawn again. The axis is rescaled only if the Q-values leave it or fill little of it.
    """

    def __init__(
        self, title: str, actions: Sequence[str], ensemble_size: int, *, pessimistic: bool = False
    ) -> None:
        self._figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI, facecolor="white")
        self._canvas: Any = FigureCanvasAgg(self._figure)  # matplotlib gives its methods no types
        self._figure.text(0.025, 0.94, title, fontsize=13.5, fontweight="bold", color=_INK, va="center")
        self._picture = _Picture(self._figure)
        caption = "dots: the members, filled where it is their own choice; bar: their "
        caption += "minimum" if pessimistic else "mean"
        self._members = _Members(self._figure, actions, ensemble_size, caption if ensemble_size > 1 else "")
        self._numbers = _Numbers(self._figure, ensemble_size)
        self._value_curve = _ValueCurve(self._figure)
        self._background: object = None

    def draw(self, moment: Moment) -> NDArray[np.uint8]:
        """Return the image (HEIGHT, WIDTH, 3) of this step."""
        if self._members.show(moment) or self._background is None:
            self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self._figure.bbox)
        self._numbers.show(moment)
        self._value_curve.show(moment)
        self._canvas.restore_region(self._background)
        buffer = np.asarray(self._canvas.buffer_rgba())
        self._picture.paste(moment, buffer)
        for part in (self._picture, self._members, self._numbers, self._value_curve):
            for artist in part.artists:
                self._figure.draw_artist(artist)
        return buffer[:, :, :3].copy()


def images(moments: Iterable[Moment], screen: Screen, hold: int) -> Iterator[NDArray[np.uint8]]:
    """Draw each step; repeat the last image of an episode `hold` times, so that its end can be seen."""
    for moment in moments:
        image = screen.draw(moment)
        yield from repeat(image, hold if moment.ended else 1)


class _Picture:
    """The rendered environment, as large as its column allows. Pillow resizes faster than matplotlib."""

    def __init__(self, figure: Figure) -> None:
        self._end = figure.text(
            0,
            0,
            "",
            ha="center",
            va="center",
            fontsize=12.5,
            color="white",
            bbox={"boxstyle": "round,pad=0.6", "facecolor": _INK, "edgecolor": "none", "alpha": 0.85},
            animated=True,
        )
        self.artists: tuple[Artist, ...] = (self._end,)

    def paste(self, moment: Moment, buffer: NDArray[np.uint8]) -> None:
        """Copy the rendered environment into its column of the canvas's buffer (HEIGHT, WIDTH, 4)."""
        rows, columns = moment.picture.shape[:2]
        scale = min(_COLUMN[0] / columns, _COLUMN[1] / rows)
        width, height = round(columns * scale), round(rows * scale)
        # Keep enlarged pixels sharp; average pixels when shrinking.
        method = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS
        resized = Image.fromarray(moment.picture).resize((width, height), method)
        left, top = _CORNER[0], _CORNER[1] + (_COLUMN[1] - height) // 2
        buffer[top - 1 : top + height + 1, left - 1 : left + width + 1, :3] = _BORDER
        buffer[top : top + height, left : left + width, :3] = np.asarray(resized)
        self._end.set_position(((left + width / 2) / WIDTH, 1 - (top + height / 2) / HEIGHT))
        self._end.set_text(f"over after {moment.step:,} steps")
        self._end.set_visible(moment.ended)


class _Members:
    """The Q-values: for each action a dot per member and a bar for the aggregate."""

    def __init__(self, figure: Figure, actions: Sequence[str], ensemble_size: int, caption: str) -> None:
        n_actions = len(actions)
        axes = self._axes = _value_axes(figure, actions, caption)
        offsets = np.linspace(-0.26, 0.26, ensemble_size) if ensemble_size > 1 else np.zeros(1)
        self._places = offsets[:, None] + np.arange(n_actions)  # (K, A)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self._limits = (np.inf, -np.inf)
        self._band = Rectangle((0, 0), 1, 1, transform=axes.get_xaxis_transform(), color=_BAND, lw=0)
        axes.add_patch(self._band)
        area = 900 / (ensemble_size + 14) * min(1, _MOST_LEVEL_LABELS / n_actions)
        self._dots = axes.scatter(self._places, np.zeros_like(self._places), s=area, linewidths=1.4)
        self._bars = LineCollection([], linewidths=2.6, capstyle="round")
        axes.add_collection(self._bars, autolim=False)
        self.artists: tuple[Artist, ...] = (self._band, self._bars, self._dots)
        for artist in self.artists:
            artist.set_animated(True)

    def show(self, moment: Moment) -> bool:
        """Update the dots and bars; return whether the axis was rescaled."""
        values, action = moment.values, moment.action
        colours = to_rgba_array([_CHOSEN if a == action else _OTHER for a in range(values.shape[1])])
        edges = np.broadcast_to(colours, (*values.shape, 4))
        favourite = values.argmax(1)[:, None] == np.arange(values.shape[1])
        faces = np.where(favourite[:, :, None], edges, to_rgba("white"))
        self._band.set_x(action - 0.5)
        places = np.column_stack([self._places.ravel(), values.ravel()])
        self._dots.set(offsets=places, edgecolor=edges.reshape(-1, 4), facecolor=faces.reshape(-1, 4))
        bars = [[(a - 0.36, value), (a + 0.36, value)] for a, value in enumerate(moment.together)]
        self._bars.set(segments=bars, color=colours)
        self._recent.append((float(values.min()), float(values.max())))
        return self._follow()

    def _follow(self) -> bool:
        lowest, highest = min(low for low, _ in self._recent), max(high for _, high in self._recent)
        low, high = self._limits
        if low <= lowest and highest <= high and highest - lowest >= _LEAST_FILLED * (high - low):
            return False
        margin = _MARGIN * (highest - lowest) or 0.1 * abs(highest) or 1.0
        before, self._limits = self._limits, (lowest - margin, highest + margin)
        self._axes.set_ylim(*self._limits)
        return self._limits != before


def _value_axes(figure: Figure, actions: Sequence[str], caption: str) -> Axes:
    """Return the axes of the Q-values with their labels."""
    crowded = len(actions) > _MOST_LEVEL_LABELS
    axes = figure.add_axes((0.555, 0.345, 0.425, 0.43))
    axes.set_xlim(-0.5, len(actions) - 0.5)
    axes.set_xticks(range(len(actions)), actions, rotation=90 if crowded else 0)
    axes.tick_params(axis="x", length=0, labelsize=7.5 if crowded else 11, labelcolor=_INK)
    axes.tick_params(axis="y", length=0, labelsize=9.5, labelcolor=_FAINT)
    axes.grid(axis="y", color="#e3e5e9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("Q-value", color=_FAINT, fontsize=10)
    axes.yaxis.set_label_coords(-0.125, 0.5)
    if not crowded:
        figure.text(0.555, 0.235, caption, fontsize=8.2, color=_FAINT, va="center")
    return axes


class _ValueCurve:
    """V over the last steps of the episode, with a band of one standard deviation over members."""

    def __init__(self, figure: Figure) -> None:
        axes = self._axes = figure.add_axes((0.555, 0.045, 0.425, 0.13))
        axes.set_axis_off()
        axes.set_xlim(0, _HISTORY)
        label = f"V of the\nlast {_HISTORY}\nsteps"
        figure.text(0.545, 0.11, label, fontsize=8.5, color=_FAINT, ha="right", va="center")
        self._band = PolyCollection([], facecolor=_CHOSEN, alpha=0.22, linewidth=0, animated=True)
        axes.add_collection(self._band, autolim=False)
        (self._line,) = axes.plot([], [], color=_CHOSEN, linewidth=1.6, animated=True)
        (self._now,) = axes.plot([], [], "o", color=_CHOSEN, markersize=4.5, animated=True, clip_on=False)
        self.artists: tuple[Artist, ...] = (self._band, self._line, self._now)
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=_HISTORY + 1)

    def show(self, moment: Moment) -> None:
        if moment.step == 0:
            self._recent.clear()
        taken = moment.values[:, moment.action]
        mean, spread = float(taken.mean()), float(taken.std())
        self._recent.append((float(moment.together[moment.action]), mean - spread, mean + spread))
        values, low, high = np.array(self._recent).T
        steps = np.arange(len(values))
        self._line.set_data(steps, values)
        self._now.set_data(steps[-1:], values[-1:])
        self._band.set_verts([np.column_stack([np.r_[steps, steps[::-1]], np.r_[low, high[::-1]]])])
        lowest, highest = min(low.min(), values.min()), high.max()
        margin = 0.15 * (highest - lowest) or 1.0
        self._axes.set_ylim(lowest - margin, highest + margin)


class _Numbers:
    """The step, the reward so far, V, and the spread and votes of the members, as text."""

    def __init__(self, figure: Figure, ensemble_size: int) -> None:
        self._place = figure.text(0.025, 0.88, "", fontsize=10.5, color=_FAINT, va="center")
        labels = ("reward so far", "V", "spread", "agree") if ensemble_size > 1 else ("reward so far", "V")
        self._values = []
        for x, label in zip((0.555, 0.69, 0.79, 0.905), labels, strict=False):
            figure.text(x, 0.94, label, fontsize=9, color=_FAINT, va="center")
            self._values.append(figure.text(x, 0.872, "", fontsize=16, color=_INK, va="center"))
        self.artists: tuple[Artist, ...] = (self._place, *self._values)
        for artist in self.artists:
            artist.set_animated(True)

    def show(self, moment: Moment) -> None:
        values, action = moment.values, moment.action
        value, spread = float(moment.together[action]), float(values[:, action].std())
        votes = int((values.argmax(1) == action).sum())
        self._place.set_text(f"episode {moment.episode + 1}   step {moment.step:,}")
        shown = (
            f"{moment.score:,.6g}".replace("-", "−"),
            _figures(value),
            f"± {_figures(spread)}",
            f"{votes} of {len(values)}",
        )
        for text, figure in zip(self._values, shown, strict=False):
            text.set_text(figure)


def _figures(value: float) -> str:
    """Return a number with about three digits, and a stable number of decimals."""
    decimals = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{decimals}f}".replace("-", "−")
