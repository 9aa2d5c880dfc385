"""Parse and write the HDUs of lists of targets: numbers, names, names with a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError
from swathe.files.targets.cells import LARGEST, is_missing, text_of

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.core.row_record import Fault


def hdus_of(column: Any, faults: dict[int, Fault]) -> list[str | None]:
    """Return the HDUs of a column as text; an invalid one is a fault of its row."""
    hdus: list[str | None] = []
    for row, value in enumerate(column):
        try:
            hdus.append(hdu_text(_hdu(value)))
        except RegionError as error:
            hdus.append(None)
            faults[row] = ("error", str(error))
    return hdus


def _hdu(value: Any) -> HduKey | None:
    if isinstance(value, bytes | str):
        text = text_of(value)
        return parse_hdu(text) if text else None
    if is_missing(value):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= LARGEST or number != value:
        raise RegionError(f"hdu must be a number from 0, a name or NAME,VERSION, not {value}")
    return number


def parse_hdu(text: str) -> HduKey:
    """Parse an HDU: a number, a name, or `NAME,2` for a name and its EXTVER."""
    text = text.strip()
    if _is_whole(text):
        return int(text)
    name, comma, version = text.rpartition(",")
    return (name, int(version)) if comma and _is_whole(version.strip()) else text


def hdu_key(text: str | None) -> HduKey | None:
    """Return the HDU of a row, from its text; the path of an array stays as it is."""
    return text if text is None or is_array_path(text) else parse_hdu(text)


def hdu_text(hdu: HduKey | None) -> str | None:
    """Return the text of an HDU that `parse_hdu` reads back."""
    if hdu is None:
        return None
    return f"{hdu[0]},{hdu[1]}" if isinstance(hdu, tuple) else str(hdu)


def is_array_path(hdu: str | None) -> bool:
    """Check whether the text of an HDU is the path of an array in a file that is not FITS."""
    return hdu is not None and hdu.startswith("/")


def _is_whole(text: str) -> bool:
    return text.isdecimal() and len(text) < 19
