"""`/vo/preview` and `/vo/image/...`: what the image page draws: tiles, values, spectra, places.

Pixels that were read are cached, so that another stretch or colour map needs no read.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from starlette.responses import Response

from swathe.files.preview import STRETCHES, stretch_levels, zscale
from swathe.files.pyramid import (
    OVERVIEW,
    TILE,
    Overview,
    Pyramid,
    check_read,
    plane_shape,
    read_overview,
    read_pixel,
    read_spectrum,
    read_tile,
)
from swathe.portal.pictures import room
from swathe.portal.run_slices import COLOUR_MAPS, colour_table
from swathe.portal.vo.compass import compass_of, pixel_of, position_of
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import from_query
from swathe.portal.vo.same_place import pixels_of_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from starlette.requests import Request

    from swathe.files.image import Image
    from swathe.files.preview import Stretch
    from swathe.portal.run_slices import ColourMap
    from swathe.portal.vo.images import OpenImage
    from swathe.portal.vo.parameters import RequestParameters
    from swathe.portal.vo.service import Service

CACHED_S = 3600
"""Time for which a browser keeps a picture, seconds."""
BLANK = 255
"""Number of the colour of pixels without a value: clear."""
PLACE_SIDE = 256
"""Side of a picture of a place, pixels."""
MOST_FIELD_DEG = 10.0
PNG, JSON = "image/png", "application/json"
DIGITS = 12


@dataclass(frozen=True)
class View:
    """An image, and the plane of it that is shown.

    Attributes:
        image: the open image.
        planes: index of the plane along each axis before NAXIS2, slowest first.
    """

    image: OpenImage
    planes: tuple[int, ...]

    @property
    def pixels(self) -> Image:
        """Return the image to read from."""
        return self.image.image

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what tells this plane of this version from others."""
        return self.image.did, self.pixels._native.version, self.planes

    def pyramid(self) -> Pyramid:
        """Return the levels of the plane.

        Raises:
            RegionError: If there is no such plane.
        """
        height, width = plane_shape(self.pixels, self.planes)
        return Pyramid(width, height)


@dataclass(frozen=True)
class Drawing:
    """How values become colours.

    Attributes:
        black: value of the first colour; `None` for that of zscale.
        white: value of the last colour; `None` for that of zscale.
        stretch: curve between them.
        colours: colour map.
        is_inverted: whether it goes from the last colour to the first.
    """

    black: float | None
    white: float | None
    stretch: Stretch
    colours: ColourMap
    is_inverted: bool


async def description(service: Service, request: Request) -> Response:
    """Return what a viewer needs of an image: size, levels, limits of zscale, north, planes."""
    parameters = from_query(request.scope["query_string"])

    def describe() -> bytes:
        view = _view(service, parameters)
        pyramid = view.pyramid()
        samples = _overview(service, view).samples
        black, white = _limits(samples)
        finite = samples[np.isfinite(samples)]
        return _json(
            {
                "width": pyramid.width,
                "height": pyramid.height,
                "tile": TILE,
                "levels": pyramid.levels,
                "shape": list(view.pixels.shape),
                "black": black,
                "white": white,
                "least": float(finite.min()) if finite.size else None,
                "most": float(finite.max()) if finite.size else None,
                "unit": _unit(view.pixels),
                "sky": compass_of(view.image),
            }
        )

    return await _answer(service, request, describe, JSON)


async def overview(service: Service, request: Request) -> Response:
    """Return a picture of a whole plane, of up to 512 pixels a side."""
    parameters = from_query(request.scope["query_string"])

    def draw() -> bytes:
        drawing = _drawing(parameters)
        overview = _overview(service, _view(service, parameters))
        return _png(overview.pixels, drawing, overview.samples)

    return await _answer(service, request, draw, PNG)


async def tile(service: Service, request: Request) -> Response:
    """Return a tile of an image, `LEVEL`, `COLUMN` and `ROW` from the top left corner."""
    parameters = from_query(request.scope["query_string"])
    level, column, row = (_integer(parameters, name) for name in ("LEVEL", "COLUMN", "ROW"))
    drawing = _drawing(parameters)
    if drawing.black is None or drawing.white is None:
        raise usage("BLACK, WHITE: expected both limits of a tile, found none")

    def draw() -> bytes:
        view = _view(service, parameters)
        pyramid = view.pyramid()
        columns, rows = pyramid.tile(level, column, row)

        def read() -> NDArray[np.float32]:
            pixels = pyramid.read_pixels(level, columns, rows)
            check_read(view.pixels, pixels)
            with room.reserve(pixels, view.image.did):
                return read_tile(view.pixels, view.planes, level, column, row)

        pixels = service.pixels.get((*view.key, level, column, row), read)
        return _png(pixels, drawing)

    return await _answer(service, request, draw, PNG)


async def value(service: Service, request: Request) -> Response:
    """Return the value and the sky position of the pixel `X`, `Y`, from 0."""
    parameters = from_query(request.scope["query_string"])
    x, y = _integer(parameters, "X"), _integer(parameters, "Y")

    def read() -> bytes:
        view = _view(service, parameters)
        number = read_pixel(view.pixels, view.planes, x, y)
        return _json(
            {
                "x": x,
                "y": y,
                "value": float(number) if math.isfinite(number) else None,
                "unit": _unit(view.pixels),
                **position_of(view.image, x, y),
            }
        )

    return await _answer(service, request, read, JSON)


async def pixel(service: Service, request: Request) -> Response:
    """Return the pixel of a sky position, `RA` and `DEC` in degrees; null if it has none."""
    parameters = from_query(request.scope["query_string"])
    ra, dec = (_degrees(parameters, name) for name in ("RA", "DEC"))

    def find() -> bytes:
        x, y = pixel_of(_view(service, parameters).image, ra, dec) or (None, None)
        return _json({"x": x, "y": y})

    return await _answer(service, request, find, JSON)


async def spectrum(service: Service, request: Request) -> Response:
    """Return the values of the pixel `X`, `Y` along NAXIS3, with their wavelengths if known."""
    parameters = from_query(request.scope["query_string"])
    x, y = _integer(parameters, "X"), _integer(parameters, "Y")

    def read() -> bytes:
        view = _view(service, parameters)
        values = read_spectrum(view.pixels, view.planes, x, y)
        axis = view.image.spectral
        is_spectral = axis is not None and axis.number == 2
        metres = ((axis.low + axis.high) / 2).tolist() if axis and is_spectral else None
        return _json(
            {
                "values": [float(each) if math.isfinite(each) else None for each in values],
                "wavelengths_m": metres,
                "unit": _unit(view.pixels),
            }
        )

    return await _answer(service, request, read, JSON)


async def place(service: Service, request: Request) -> Response:
    """Return a picture of a place, north up and east to the left, as all images show it.

    `RA`, `DEC` and `SIZE` are degrees, the projection is gnomonic, pixels are the nearest ones.
    """
    parameters = from_query(request.scope["query_string"])
    ra, dec, size = (_degrees(parameters, name) for name in ("RA", "DEC", "SIZE"))
    if not (-90 <= dec <= 90 and 0 < size <= MOST_FIELD_DEG):
        raise usage(
            f"DEC, SIZE: expected -90 to 90 and up to {MOST_FIELD_DEG:g} degrees, "
            f"found {dec:g} and {size:g}"
        )
    drawing = _drawing(parameters)

    def draw() -> bytes:
        view = _view(service, parameters)

        def read() -> NDArray[np.float32]:
            return pixels_of_place(view.image, view.planes, ra, dec, size, PLACE_SIDE)

        return _png(service.pixels.get((*view.key, ra, dec, size), read), drawing)

    return await _answer(service, request, draw, PNG)


def _degrees(parameters: RequestParameters, name: str) -> float:
    number = _limit(parameters, name)
    if number is None:
        raise usage(f"{name}: expected degrees, found none")
    return number


async def _answer(
    service: Service, request: Request, work: Callable[[], bytes], media_type: str
) -> Response:
    """Return what work makes in a thread; equal requests at the same time share one answer."""
    key = f"{request.url.path}?{request.url.query}"
    headers = {"Cache-Control": f"private, max-age={CACHED_S}"}
    return Response(await service.workers.run_once(key, work), 200, headers, media_type)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _view(service: Service, parameters: RequestParameters) -> View:
    did = parameters.one("ID")
    if did is None:
        raise usage("ID: expected an image, found none")
    image = service.images.get(did)
    axes = max(0, len(image.shape) - 2)
    text = parameters.one("PLANE")
    words = ["0"] * axes if text is None else text.split(",")
    if len(words) != axes or not all(_is_number(each) for each in words):
        raise usage(
            f"PLANE: expected {axes} numbers from 0 with commas, slowest axis first, "
            f"found {(text or '')[:80]!r}"
        )
    return View(image, tuple(map(int, words)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS


def _integer(parameters: RequestParameters, name: str) -> int:
    text = (parameters.one(name) or "").strip()
    if not _is_number(text):
        raise usage(f"{name}: expected a number from 0, found {text[:80]!r}")
    return int(text)


def _drawing(parameters: RequestParameters) -> Drawing:
    """Return how values become colours.

    Raises:
        VoError: If a limit is no number, or there is no such stretch or colour map.
    """
    limits = [_limit(parameters, name) for name in ("BLACK", "WHITE")]
    stretch = parameters.one("STRETCH") or "asinh"
    colours = parameters.one("COLOURS") or "grey"
    if stretch not in STRETCHES:
        raise usage(f"STRETCH: expected one of {', '.join(STRETCHES)}, found {stretch[:80]!r}")
    if colours not in COLOUR_MAPS:
        raise usage(f"COLOURS: expected one of {', '.join(COLOUR_MAPS)}, found {colours[:80]!r}")
    is_inverted = parameters.one("INVERT") == "1"
    return Drawing(limits[0], limits[1], stretch, cast("ColourMap", colours), is_inverted)


def _limit(parameters: RequestParameters, name: str) -> float | None:
    text = parameters.one(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise usage(f"{name}: expected a number, found {text[:80]!r}")
    return number


def _overview(service: Service, view: View) -> Overview:
    pyramid = view.pyramid()

    def read() -> Overview:
        pixels = min(pyramid.height, OVERVIEW) * pyramid.width
        check_read(view.pixels, pixels)
        with room.reserve(pixels, view.image.did):
            return read_overview(view.pixels, view.planes)

    return service.pixels.get((*view.key, "overview"), read)


def _limits(pixels: NDArray[np.float32]) -> tuple[float, float]:
    """Return the values that are black and white by zscale; 0 and 1 of an image without values."""
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    if not finite.size:
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge values
        black, white = zscale(finite)
    if not (math.isfinite(black) and math.isfinite(white) and black < white):
        black, white = float(finite.min()), float(finite.max())
    return (black, white) if black < white else (black, black + 1.0)


def _png(
    pixels: NDArray[np.float32], drawing: Drawing, samples: NDArray[np.float32] | None = None
) -> bytes:
    """Return pixels as PNG with a palette; those without a value are clear.

    Limits that are not chosen are those of zscale, of the samples or else of the pixels.
    """
    from PIL import Image as Picture

    black, white = _limits(pixels if samples is None else samples)
    black = black if drawing.black is None else drawing.black
    white = white if drawing.white is None else drawing.white
    if not black < white:
        raise usage(f"BLACK, WHITE: expected black below white, found {black:g} and {white:g}")
    valid = np.isfinite(pixels)
    values = np.where(valid, pixels, black).astype(np.float64)
    levels = np.clip((values - black) / (white - black), 0, 1)
    shades = np.rint(stretch_levels(levels, drawing.stretch) * (BLANK - 1)).astype(np.uint8)
    shades[~valid] = BLANK
    picture = Picture.fromarray(shades)
    table = colour_table(drawing.colours)
    picture.putpalette((table[::-1] if drawing.is_inverted else table).tobytes())
    file = io.BytesIO()
    clear = {} if valid.all() else {"transparency": BLANK}
    picture.save(file, "PNG", compress_level=1, **clear)
    return file.getvalue()


def _unit(image: Image) -> str:
    """Return the unit of the values, as the header has it."""
    return str(image.header.get("BUNIT", "")).strip()[:80]
