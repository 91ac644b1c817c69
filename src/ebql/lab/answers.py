"""Answers in JSON, and streams of events in which the server tells the page what is new."""

import json
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ebql.errors import UserError


def plain(content: Any) -> Any:
    """Return content as JSON can hold it: arrays as lists, NaN and infinity as None."""
    if isinstance(content, np.ndarray | np.generic):
        return plain(content.tolist())
    if isinstance(content, Mapping):
        return {str(name): plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def encoded(content: Any) -> str:
    """Return content as one line of JSON."""
    return json.dumps(plain(content), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def answer(content: Any, status: int = 200) -> Response:
    """Return content as a JSON answer."""
    return Response(encoded(content), status, media_type="application/json")


def refusal(_: Request, error: Exception) -> Response:
    """Return the line of an error that the user can mend."""
    return answer({"error": str(error)}, 400)


def event_stream(events: AsyncIterator[tuple[str, Any]]) -> Response:
    """Return named events as a stream; an error that the user can mend is the last event, `refused`."""

    async def lines() -> AsyncIterator[str]:
        try:
            async for name, content in events:
                yield f"event: {name}\ndata: {encoded(content)}\n\n"
        except UserError as error:
            yield f"event: refused\ndata: {encoded({'error': str(error)})}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
