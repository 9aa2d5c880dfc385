"""A result as a response: whole or in ranges, or 304 if the client has it (RFC 9110, 13 and 14)."""

from __future__ import annotations

import re
from secrets import token_hex
from typing import TYPE_CHECKING

from starlette.responses import Response

from swathe.portal.http.long_responses import GeneratedResponse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.requests import Request

    from swathe.jobs import Result
    from swathe.portal.http.long_responses import VisitorStreams

PART = 1 << 20
"""Bytes read and sent at a time."""
MOST_RANGES = 50
ONE = r"\s*(?:\d{1,18}-\d{0,18}|-\d{1,18})\s*"
RANGES = re.compile(rf"bytes=({ONE}(?:,{ONE})*)", re.I | re.A)


def is_unchanged(request: Request, etag: str) -> bool:
    """Return whether the client already has this version (RFC 9110, 13.1.2)."""
    etags = request.headers.get("if-none-match")
    if etags is None:
        return False
    tags = re.findall(r'(?:W/)?("[^"]*")', etags)
    return etags.strip() == "*" or etag.removeprefix("W/") in tags


def answer_with(
    request: Request, streams: VisitorStreams, result: Result, headers: Mapping[str, str]
) -> Response:
    """Return a response with a result, or the requested ranges of it.

    Several ranges are sent as multipart/byteranges. An invalid Range header is ignored, and so is
    one that requests more than the whole file.
    """
    size = result.size
    all_headers = {
        **headers,
        "ETag": result.etag,
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{result.name}"',
    }
    if is_unchanged(request, result.etag):
        return Response(None, 304, all_headers)
    status, kind = 200, result.media_type
    pieces = [(b"", 0, size)]
    ranges = _ranges(request, result.etag, size)
    if ranges == []:
        return Response(None, 416, {"Content-Range": f"bytes */{size}"})
    if ranges is not None:
        status = 206
        if len(ranges) == 1:
            start, stop = ranges[0]
            pieces = [(b"", start, stop)]
            all_headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        else:
            pieces, kind = _multipart(ranges, kind, size)
    all_headers["Content-Length"] = str(
        sum(len(head) + stop - start for head, start, stop in pieces)
    )
    if request.method == "HEAD":
        return Response(None, status, all_headers, kind)
    return GeneratedResponse(
        streams, lambda _cancelled: _parts(result, pieces), kind, all_headers, status
    )


def _ranges(request: Request, etag: str, size: int) -> list[tuple[int, int]] | None:
    """Return the requested ranges, ends excluded; empty if none exists, `None` for all bytes."""
    match = RANGES.fullmatch(request.headers.get("range", "").strip())
    if match is None or request.headers.get("if-range", etag) != etag:
        return None
    ranges = []
    for each in match[1].split(","):
        first, last = each.strip().split("-")
        if first:
            start, stop = int(first), min(int(last or size) + 1, size)
            if last and int(last) < start:
                return None
        else:
            start, stop = max(0, size - int(last)), size
        if start < stop:
            ranges.append((start, stop))
    if len(ranges) > MOST_RANGES or sum(stop - start for start, stop in ranges) > size:
        return None
    return ranges


def _multipart(
    ranges: Sequence[tuple[int, int]], kind: str, size: int
) -> tuple[list[tuple[bytes, int, int]], str]:
    boundary = token_hex(16)
    pieces = [
        (
            f"\r\n--{boundary}\r\nContent-Type: {kind}\r\n"
            f"Content-Range: bytes {start}-{stop - 1}/{size}\r\n\r\n".encode(),
            start,
            stop,
        )
        for start, stop in ranges
    ]
    pieces.append((f"\r\n--{boundary}--\r\n".encode(), 0, 0))
    return pieces, f"multipart/byteranges; boundary={boundary}"


def _parts(result: Result, pieces: Sequence[tuple[bytes, int, int]]) -> Iterator[bytes]:
    """Yield pieces: some bytes, followed by a range of the result."""
    with result.open() as file:
        for head, start, stop in pieces:
            if head:
                yield head
            file.seek(start)
            while start < stop:
                part = file.read(min(PART, stop - start))
                if not part:
                    raise OSError(
                        f"{result.name}: expected bytes up to {stop}, found its end at {start}"
                    )
                start += len(part)
                yield part
