"""Request parameters: names in any case, values that may be repeated, in a query or a form.

Values have the form of DALI 1.1. Sizes are checked before values are parsed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from swathe.core.box import box_from_section
from swathe.core.errors import RegionError
from swathe.files.targets.hdus import parse_hdu
from swathe.portal.vo.errors import VoError, usage
from swathe.portal.vo.geometry.regions import Circle, Polygon, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from starlette.requests import Request

    from swathe._swathe import HduKey
    from swathe.core.box import Box
    from swathe.portal.vo.geometry.regions import SkyRegion

MOST_VALUES = 10_000
LONGEST_VALUE = 100_000
LONGEST_FORM = 4_000_000
"""Maximum size of a form without tables, bytes."""
MOST_VERTICES = 1000
LONGEST_QUOTE = 80
"""Maximum number of characters of a value that an error repeats."""
STATES = ("I", "Q", "U", "V", "RR", "LL", "RL", "LR", "XX", "YY", "XY", "YX", "POLI", "POLA")
"""States of polarization, in the words of ObsCore."""
LONGEST_NUMBER = 50
"""Maximum number of characters of a number."""
LONGEST_SUB = 300
"""Maximum number of characters of a SUB without surrounding blanks."""
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?",
    re.IGNORECASE,
)
SUB = re.compile(r"(?:\[([^][:]*)\]\s*)?(\[[^][:]*:[^][]*\])?")

Interval = tuple[float, float]


class RequestParameters:
    """The parameters of one request. A parameter without a value counts as missing."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Set names and values in their order."""
        self.pairs = list(pairs)
        self._values: dict[str, list[str]] = {}
        for name, value in self.pairs:
            if len(value) > LONGEST_VALUE:
                raise usage(
                    f"{name[:LONGEST_QUOTE]}: expected at most {LONGEST_VALUE} characters, found "
                    f"{len(value)}"
                )
            if "\x00" in value:
                raise usage(f"{name[:LONGEST_QUOTE]}: expected text without NUL, found one")
            if value and not value.isspace():
                self._values.setdefault(name.upper(), []).append(value)

    def all(self, name: str) -> Sequence[str]:
        """Return all values of a parameter."""
        return self._values.get(name, ())

    def one(self, name: str) -> str | None:
        """Return the value of a parameter, or None.

        Raises:
            VoError: If the parameter has several values.
        """
        values = self._values.get(name, ())
        if len(values) > 1:
            raise multi_value_error(name)
        return values[0] if values else None

    def __contains__(self, name: str) -> bool:
        return name in self._values


def multi_value_error(name: str) -> VoError:
    """Return the error for a parameter with several values, if one is allowed."""
    return VoError(
        "MultiValuedParamNotSupported", f"{name}: expected one value, found several", 400
    )


def from_query(query: bytes) -> RequestParameters:
    """Parse the parameters of a query string."""
    return RequestParameters(_pairs(query))


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.decode("latin-1"), True, max_num_fields=MOST_VALUES)
    except ValueError:
        raise usage(f"expected at most {MOST_VALUES} parameters, found more") from None


async def read_parameters(request: Request) -> RequestParameters:
    """Read the parameters of a GET, or of a POST with a form. Files are not parameters."""
    query = request.scope["query_string"]
    if request.method != "POST":
        return from_query(query)
    parts = await read_form(request)
    return RequestParameters(
        [*from_query(query).pairs, *((part.name, part.text) for part in parts)]
    )


@dataclass(frozen=True)
class Part:
    """A field of a form: its text, or the content of a file."""

    name: str
    text: str
    content: bytes | None = None


async def read_form(request: Request, longest: int = LONGEST_FORM) -> list[Part]:
    """Return the fields of a form, in order.

    Raises:
        VoError: If the body is too large, or not a form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await _body(request, longest)
    if kind == "multipart/form-data":
        parts = []
        try:
            async with request.form(
                max_files=10, max_fields=MOST_VALUES, max_part_size=longest
            ) as form:
                for name, value in form.multi_items():
                    if isinstance(value, UploadFile):
                        parts.append(Part(name, "", await value.read()))
                    else:
                        parts.append(Part(name, value))
        except HTTPException as error:
            raise usage(f"the form cannot be read: {error.detail}") from None
        return parts
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise usage(
            "expected application/x-www-form-urlencoded or multipart/form-data, found "
            f"{kind[:LONGEST_QUOTE]}",
            415,
        )
    return [Part(name, value) for name, value in _pairs(body)]


async def _body(request: Request, longest: int) -> bytes:
    """Read a body of at most `longest` bytes."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > longest:
            raise VoError(
                "UsageError", f"the form: expected at most {longest} bytes, found more", 413
            )
        parts.append(part)
    body = b"".join(parts)
    request._body = body  # starlette reads it from here
    return body


def quote_value(value: str) -> str:
    """Return a value shortened and quoted, for an error message."""
    return repr(value[:LONGEST_QUOTE])


def numbers(name: str, value: str) -> list[float]:
    """Parse numbers separated by blanks; `+Inf` and `-Inf` are allowed."""
    words = value.split(maxsplit=2 * MOST_VERTICES)
    if len(words) > 2 * MOST_VERTICES:
        raise usage(f"{name}: expected at most {2 * MOST_VERTICES} numbers, found more")
    for word in words:
        if len(word) > LONGEST_NUMBER or not NUMBER.fullmatch(word):
            raise usage(f"{name}: expected numbers separated by blanks, found {quote_value(word)}")
    return [float(word) for word in words]


def _finite(name: str, value: str) -> list[float]:
    values = numbers(name, value)
    if not all(map(math.isfinite, values)):
        raise usage(f"{name}: expected finite numbers, found {quote_value(value)}")
    return values


def circle(name: str, value: str) -> Circle:
    """Parse `ra dec radius`, degrees."""
    values = _finite(name, value)
    if len(values) != 3:
        raise usage(f"{name}: expected ra, dec and radius in degrees, found {quote_value(value)}")
    ra, dec, radius = values
    _place(name, ra, dec)
    if not 0 <= radius <= 180:
        raise usage(f"{name}: expected a radius from 0 to 180 degrees, found {radius:g}")
    return Circle(ra, dec, radius)


def polygon(name: str, value: str) -> Polygon:
    """Parse `ra dec ra dec ra dec ...`, degrees."""
    values = _finite(name, value)
    if len(values) < 6 or len(values) % 2:
        raise usage(f"{name}: expected ra, dec of 3 or more corners, found {len(values)} numbers")
    for ra, dec in zip(values[::2], values[1::2], strict=True):
        _place(name, ra, dec)
    try:
        return Polygon(values)
    except RegionError as error:
        raise usage(f"{name}: {error}") from None


def sky_range(name: str, value: str) -> Range:
    """Parse `ra1 ra2 dec1 dec2`, degrees: from ra1 eastwards to ra2; ends may be infinite."""
    values = numbers(name, value)
    if len(values) != 4:
        raise usage(f"{name}: expected ra1 ra2 dec1 dec2 in degrees, found {quote_value(value)}")
    ra1, ra2, dec1, dec2 = values
    if ra1 == -math.inf:
        ra1 = 0.0
    if ra2 == math.inf:
        ra2 = 360.0
    dec1, dec2 = max(dec1, -90.0), min(dec2, 90.0)
    for ra in (ra1, ra2):
        if not 0 <= ra <= 360:
            raise usage(
                f"{name}: expected right ascensions from 0 to 360, found {quote_value(value)}"
            )
    if not -90 <= dec1 <= dec2 <= 90:
        raise usage(f"{name}: expected -90 <= dec1 <= dec2 <= 90, found {quote_value(value)}")
    return Range(ra1, ra2, dec1, dec2)


def _place(name: str, ra: float, dec: float) -> None:
    if not (-360 <= ra <= 720 and -90 <= dec <= 90):
        raise usage(
            f"{name}: expected a right ascension from 0 to 360 and a declination from -90 to 90 "
            f"degrees, found {ra:g} {dec:g}"
        )


SHAPES: dict[str, Callable[[str, str], SkyRegion]] = {
    "CIRCLE": circle,
    "RANGE": sky_range,
    "POLYGON": polygon,
}


def position(name: str, value: str) -> SkyRegion:
    """Parse `CIRCLE ...`, `RANGE ...` or `POLYGON ...`."""
    word, _, rest = value.strip().partition(" ")
    shape = SHAPES.get(word.upper())
    if shape is None:
        raise usage(
            f"{name}: expected CIRCLE, RANGE or POLYGON and numbers, found {quote_value(value)}"
        )
    return shape(f"{name} {word.upper()}", rest)


def interval(name: str, value: str) -> Interval:
    """Parse two numbers, or one for both ends; ends may be infinite."""
    values = numbers(name, value)
    if len(values) not in (1, 2):
        raise usage(f"{name}: expected two numbers, from and to, found {quote_value(value)}")
    low, high = values[0], values[-1]
    if not low <= high or low == math.inf or high == -math.inf:
        raise usage(f"{name}: expected the smaller number first, found {quote_value(value)}")
    return low, high


def wavelengths(name: str, value: str) -> Interval:
    """Parse an interval of wavelengths, metres."""
    low, high = interval(name, value)
    if high < 0:
        raise usage(f"{name}: expected wavelengths in metres, found {quote_value(value)}")
    return low, high


def state(name: str, value: str) -> str:
    """Parse a state of polarization."""
    word = value.strip().upper()
    if word not in STATES:
        raise usage(f"{name}: expected one of {', '.join(STATES)}, found {quote_value(value)}")
    return word


def sub(name: str, value: str) -> tuple[HduKey | None, Box | None]:
    """Parse `[ext][x1:x2,y1:y2]`, one-based pixels, ends included. Either part may be missing."""
    value = value.strip()
    match = SUB.fullmatch(value) if len(value) <= LONGEST_SUB else None
    if match is None or match[1] is match[2] is None:
        raise usage(f"{name}: expected [ext][x1:x2,y1:y2], found {quote_value(value)}")
    try:
        hdu = parse_hdu(match[1]) if match[1] and match[1].strip() else None
        return hdu, box_from_section(match[2]) if match[2] else None
    except RegionError as error:
        raise usage(f"{name}: {error}") from None
