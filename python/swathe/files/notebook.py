"""HTML for notebooks: a table of facts and a small picture of an object.

All text is escaped, since it comes from headers, paths and servers. Colours are the notebook's.
"""

from __future__ import annotations

from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astropy.io import fits
    from numpy.typing import NDArray

SIDE = 256
"""Largest side of a picture in pixels."""
LONGEST_TEXT = 200
MOST_ROWS = 50
SHOWN_CARDS = ("OBJECT", "TELESCOP", "INSTRUME", "FILTER", "DATE-OBS", "BUNIT")


def thin_pixels(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return every n-th pixel of the first plane, so that no side is longer than `SIDE`."""
    plane: NDArray[Any] = pixels.reshape(-1, *pixels.shape[-2:])[0]
    step = max(1, -(-max(plane.shape) // SIDE))
    return plane[::step, ::step]


def png(pixels: NDArray[Any]) -> bytes:
    """Return a grey PNG picture of thinned pixels."""
    from swathe.files.preview import picture

    file = BytesIO()
    picture(pixels).save(file, "PNG")
    return file.getvalue()


def card_facts(header: fits.Header) -> dict[str, Any]:
    """Return the most useful cards, if they can be read."""
    from astropy.io.fits import VerifyError

    facts: dict[str, Any] = {}
    for keyword in SHOWN_CARDS:
        try:
            value = header.get(keyword)
        except VerifyError:
            value = "(damaged card)"
        if value is not None:
            facts[keyword] = value
    return facts


def page(
    title: str,
    facts: Mapping[str, Any],
    pixels: NDArray[Any] | None = None,
    tables: Iterable[str] = (),
) -> str:
    """Return HTML with a title, facts, an optional picture of thinned pixels, and tables."""
    lines = "".join(
        f'<tr><th style="text-align:left">{_cell(name)}</th>'
        f'<td style="text-align:left">{_cell(value)}</td></tr>'
        for name, value in facts.items()
    )
    image = "" if pixels is None else _picture(pixels)
    return (
        f"<div><strong>{_cell(title)}</strong>{image}<table>{lines}</table>{''.join(tables)}</div>"
    )


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the HTML of a table, of its first rows where there are many."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in names)
    lines = ["".join(f"<td>{_cell(value)}</td>" for value in row) for row in rows[:MOST_ROWS]]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    rest = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    text = str(value)
    return escape(text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}...")


def _picture(pixels: NDArray[Any]) -> str:
    from base64 import b64encode

    height, width = pixels.shape
    scale = max(1, SIDE // max(height, width))
    content = b64encode(png(pixels)).decode()
    return (
        f'<div><img alt="" width="{width * scale}" height="{height * scale}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{content}"></div>'
    )
