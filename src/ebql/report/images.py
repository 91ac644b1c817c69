"""Encode matplotlib figures."""

import io

from matplotlib.figure import Figure


def png(figure: Figure, dpi: int = 110) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()
