"""Arguments and options shared by several commands, and parsers of their values."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from swathe.core import argument_checks, box
from swathe.core.angles import Size, is_angle
from swathe.core.errors import RegionError

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord

    from swathe.client.portal import RemotePortal


def one_image(image: str | None) -> str | None:
    """Return the name of an image, unless it is a pattern that the shell did not expand.

    Raises:
        typer.BadParameter: If the name is a pattern, and no file has exactly this name.
    """
    pattern = image is not None and "://" not in image and bool(set("*?") & set(image))
    if pattern and not Path(str(image)).exists():
        raise typer.BadParameter(
            f"no file matches {image!r}; name one image, or list several in a table: "
            "swathe cut --targets TABLE"
        )
    return image


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
External = Annotated[
    bool,
    typer.Option(
        "--allow-external",
        help="Arrays of a local HDF5 or ASDF file that lie in other files of its folder; only for "
        "files that you trust.",
    ),
]
Overwrite = Annotated[
    bool,
    # Parsed before the options that name files.
    typer.Option("--overwrite", is_eager=True, help="Replace existing files."),
]
Mode = Annotated[
    box.Mode,
    typer.Option(
        help="Treatment of a region that crosses the edge of the image: trim it, fill it "
        "(partial), or fail (strict)."
    ),
]
Fill = Annotated[
    float | None,
    typer.Option(help="Physical value of pixels outside the image; else NaN, BLANK or 0."),
]
Planes = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST:LAST",
        help="Planes of a cube, zero-based, FIRST <= p < LAST; or one plane.",
    ),
]
Objective = Annotated[
    argument_checks.Objective,
    typer.Option(
        help="Objective of the plans of reads from servers: a short read (latency), little use of "
        "line and server (throughput), or the one that fits their load (auto)."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")]

# Options that name a portal: one elsewhere by its URL, one's own by its settings.
PORTAL_VARIABLE = "SWATHE_PORTAL"
PORTAL_HELP = "URL of a portal; without one, the catalogue of this machine."
Url = Annotated[str | None, typer.Option(help="URL of the portal; else $SWATHE_PORTAL.")]
PortalConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Settings file of the portal; else the defaults."),
]


def connect_portal(url: str | None) -> RemotePortal:
    """Connect to the portal at a URL, else at $SWATHE_PORTAL.

    Raises:
        typer.BadParameter: If there is neither.
        SourceError: If the portal does not answer.
        TokenError: If it refuses the token.
    """
    from swathe.client.portal import connect

    url = url or os.environ.get(PORTAL_VARIABLE)
    if not url:
        raise typer.BadParameter(
            f"expected a URL, found none; give one, or set ${PORTAL_VARIABLE}", param_hint="--url"
        )
    return connect(url)


def values_by_name(option: str, texts: list[str] | None) -> dict[str, str]:
    """Parse NAME=VALUE, one for each name.

    Raises:
        typer.BadParameter: If a text is not of this form, or a name comes twice.
    """
    values: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name or name in values:
            raise typer.BadParameter(
                f"expected NAME=VALUE, one for each name, found {text!r:.60}", param_hint=option
            )
        values[name] = value
    return values


OPEN = ".."
"""End of a time that is open."""


def open_ends(time: tuple[str, str] | None) -> tuple[str | None, str | None] | None:
    """Return start and end of `--time`, `None` for one that is open."""
    if time is None:
        return None
    start, end = (None if text == OPEN else text for text in time)
    return start, end


# Options on positions, sizes and lists of targets.
SIZE_FORMS = '30", 0.5arcmin, 0.01deg, 100pix, or height and width as 30"x20"'
Frame = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Frame of positions: galactic, fk5, fk4, ecliptic, ...; else ICRS."
    ),
]
TargetSize = Annotated[
    str | None,
    typer.Option("--size", metavar="S", help=f"Size of targets that have none: {SIZE_FORMS}."),
]
TimeRange = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--time",
        metavar="START END",
        help="Time range of the images: MJD, or as 2005-09-21T04:30:00 (UTC); a last day without "
        "a time is a whole one.",
    ),
]
OpenTimes = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--time",
        metavar="START END",
        help="Time range of the observation: MJD, or as 2005-05-01 (UTC), the last "
        "day as a whole; '..' if open.",
    ),
]
ArrayTimes = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--time", metavar="START END", help="Times of an array, both ends included; in UTC."
    ),
]
Bounds = Annotated[
    tuple[float, float, float, float] | None,
    typer.Option(
        "--bounds",
        metavar="W S E N",
        help="Box of longitude and latitude on the Earth, of arrays, in degrees; "
        "W > E crosses the dateline.",
    ),
]
RaColumn = Annotated[
    str | None,
    typer.Option(
        "--ra",
        metavar="COLUMN",
        help="Column of right ascension, with --targets; else found by name or UCD.",
    ),
]
DecColumn = Annotated[
    str | None,
    typer.Option(
        "--dec",
        metavar="COLUMN",
        help="Column of declination, with --targets; else found by name or UCD.",
    ),
]
FileOfAll = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE", help="File for targets that have none, with --targets."),
]
WORDS = {"--box": 4, "--center": 2}
PLACES = {"--sky": 2, "--at": 2, "--shape": 2}


class ValuesCommand(TyperCommand):
    """A command with options that take one text or several words: `--sky 10.68 41.27`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments after joining the words of such options."""
        return super().parse_args(ctx, join_values(args))


def join_values(arguments: list[str]) -> list[str]:
    """Return arguments with the words of one value joined."""
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        words.append(word)
        if word == "--":
            return words + rest
        count = WORDS.get(word) or PLACES.get(word)
        if count is None or not rest:
            continue
        values = [rest.pop(0)]
        while rest and len(values) < count and _goes_on(word, values, rest[0]):
            values.append(rest.pop(0))
        words.append(" ".join(values))
    return words


def _goes_on(option: str, values: list[str], word: str) -> bool:
    """Return whether a word continues the value before it."""
    if " " in values[0] or "," in values[0]:
        return False
    return option in WORDS or (is_angle(values[0]) and is_angle(word))


def numbers_of(option: str, names: str, text: str | None) -> list[float] | None:
    """Parse the numbers of an option, as many as there are names.

    Raises:
        typer.BadParameter: If the text is anything else.
    """
    if text is None:
        return None
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) != len(names.split()):
        raise typer.BadParameter(f"expected {names}, found {text[:60]!r}", param_hint=option)
    return numbers


def whole_numbers_of(option: str, names: str, text: str | None) -> list[int] | None:
    """Parse the whole numbers of an option, as many as there are names.

    Raises:
        typer.BadParameter: If the text is anything else.
    """
    numbers = numbers_of(option, names, text)
    if numbers is None:
        return None
    if not all(number.is_integer() for number in numbers):
        raise typer.BadParameter(
            f"expected whole numbers {names}, found {text!r:.60}", param_hint=option
        )
    return [int(number) for number in numbers]


def index_of(texts: list[str] | None) -> dict[str, int | slice] | None:
    """Parse AXIS=N or AXIS=START:STOP, one for each axis.

    Raises:
        typer.BadParameter: If a text is neither, or an axis is named twice.
    """
    indices: dict[str, int | slice] = {}
    for text in texts or []:
        parts = re.fullmatch(r"([^=]+)=(-?\d{1,18})?(:(-?\d{1,18})?)?", text)
        if parts is None or not text.partition("=")[2]:
            raise typer.BadParameter(
                f"expected AXIS=N or AXIS=START:STOP, found {text!r:.60}", param_hint="--index"
            )
        name, first, is_range, last = parts.groups()
        if name in indices:
            raise typer.BadParameter(f"axis {name}: expected one range", param_hint="--index")
        ends = [None if end is None else int(end) for end in (first, last)]
        indices[name] = slice(*ends) if is_range else int(first)
    return indices or None


def shape_of(text: str | None) -> tuple[int, int] | None:
    """Parse HEIGHT WIDTH, or one number for a square, in pixels.

    Raises:
        typer.BadParameter: If the text is neither.
    """
    if text is None:
        return None
    words = text.replace("x", " ").replace(",", " ").split()
    sides = whole_numbers_of("--shape", "HEIGHT WIDTH", " ".join(words * (3 - len(words))))
    assert sides is not None
    return sides[0], sides[1]


def place_of(option: str, text: str | None, frame: str | None) -> SkyCoord | None:
    """Parse a position, or the name of an object.

    Raises:
        typer.BadParameter: If the text is neither.
    """
    from swathe.files.targets.positions import position

    if text is None:
        return None
    try:
        return position(text, frame)
    except RegionError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def size_of(text: str | None) -> Size | None:
    """Parse a size with its unit.

    Raises:
        typer.BadParameter: If the text is not a size.
    """
    from swathe.core.angles import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except RegionError as error:
        raise typer.BadParameter(str(error), param_hint="--size") from error


def planes_of(text: str | None) -> tuple[int, int] | None:
    """Parse FIRST:LAST or one plane. The cut itself checks that the planes exist.

    Raises:
        typer.BadParameter: If the text is neither.
    """
    if text is None:
        return None
    first, colon, last = text.strip().partition(":")
    if not colon and first.isdecimal() and len(first) < 16:
        return int(first), int(first) + 1
    if not (colon and first.strip().isdecimal() and last.strip().isdecimal()):
        raise typer.BadParameter(
            f"expected FIRST:LAST or one plane, found {text[:40]!r}", param_hint="--planes"
        )
    return int(first), int(last)


def _plot_path(context: typer.Context, path: Path | None) -> Path | None:
    """Check the path of a plot before anything is measured."""
    if path is None:
        return None
    from swathe.costs.plots import plot_path

    return plot_path(path, overwrite=context.params.get("overwrite", False))


# Options on measurements.
MeasureTarget = Annotated[
    str,
    typer.Argument(
        metavar="STORE", help="Store or object to measure: name of a store, NAME:path, URL or path."
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the order of reads; else random.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", callback=_plot_path, help="File for a plot: *.png, *.svg or *.html."
    ),
]

# Options on the security of a pool.
Certificates = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of certificates made by `swathe pool init`; needed beyond loopback, else "
        "created "
        "automatically.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Use no certificates: anyone who can reach the pool can run code on it."
    ),
]
