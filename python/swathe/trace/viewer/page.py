"""The page that shows a trace: one file that needs no network, or served with growing data."""

from __future__ import annotations

import base64
import html
import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.host import cores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STATIC = Path(__file__).parent / "static"
STYLES = STATIC / "swathe.css"
"""Shared with the pages of the portal."""
MARK = STATIC / "mark.svg"
SUBJECTS = (
    *("trace", "pieces", "raster", "loads", "words", "page", "choices", "drawing", "panels"),
    *("moving", "looking", "input", "source"),
)
"""Scripts in order, joined to one: they share names in one private scope."""
PART = 4 << 20
"""Packed data are compressed in parts of this many bytes, in parallel."""


def page(title: str, data: Iterable[bytes | memoryview] = (), **settings: Any) -> bytes:
    """Return the page.

    Args:
        title: title of the page.
        data: whole data from `encode_view`; without them the page fetches data from `source` of
            `settings`.
        settings: settings of the script.
    """
    picture = base64.b64encode(MARK.read_bytes())
    parts = [
        b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        b'<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        b'<meta name="color-scheme" content="light dark">\n',
        f"<title>{html.escape(title)} \N{MIDDLE DOT} Swathe</title>\n".encode(),
        b'<link rel="icon" href="data:image/svg+xml;base64,' + picture + b'">\n',
        b"<style>\n" + STYLES.read_bytes() + (STATIC / "viewer.css").read_bytes() + b"</style>\n",
        b"</head>\n<body>\n",
        f'<div id="viewer" data-title="{html.escape(title)}" '.encode(),
        f'data-settings="{html.escape(json.dumps(settings))}">'.encode(),
        b"<noscript>This page draws with JavaScript.</noscript></div>\n",
    ]
    for part in compress(data):
        parts += [b'<script type="application/base64" class="data">', part, b"</script>\n"]
    parts += [b"<script>\n", script(), b"</script>\n</body>\n</html>\n"]
    return b"".join(parts)


def script() -> bytes:
    """Return the script of the viewer."""
    parts = [(STATIC / "viewer" / f"{subject}.js").read_bytes() for subject in SUBJECTS]
    return b'"use strict";\n(() => {\n' + b"\n".join(parts) + b"})();\n"


def compress(data: Iterable[bytes | memoryview]) -> Sequence[bytes]:
    """Compress data in parts, as text for a page."""
    content = memoryview(b"".join(data))
    with ThreadPoolExecutor(cores()) as pool:
        pieces = [content[at : at + PART] for at in range(0, len(content), PART)]
        return list(pool.map(lambda piece: base64.b64encode(zlib.compress(piece, 1)), pieces))
