"""The command `swathe info`: show the structure of a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import External, Json, one_image
from swathe.cli.output import print_json, print_text
from swathe.core.format import count_text, size_text

if TYPE_CHECKING:
    from astropy.io.fits import Header

    from swathe._swathe import HduKey
    from swathe.catalog.records.datasets import Granule
    from swathe.files.file import File
    from swathe.files.hdu import HduInfo

TYPES = {
    8: "uint8",
    16: "int16",
    32: "int32",
    64: "int64",
    -32: "float32",
    -64: "float64",
}
UNSIGNED_TYPES = {(16, 32768.0): "uint16", (32, 2147483648.0): "uint32", (8, -128.0): "int8"}
"""Key: BITPIX and BZERO, if BSCALE is 1."""
FIELDS = (
    "index",
    "name",
    "version",
    "kind",
    "bitpix",
    "shape",
    "codec",
    "tile_shape",
    "data_start",
    "problem",
)


def info(
    image: Annotated[str, typer.Argument(help="File: path or URL.", callback=one_image)],
    header: Annotated[
        bool,
        typer.Option(
            "--header", help="Print the headers instead; of other formats the attributes."
        ),
    ] = False,
    hdu: Annotated[
        str | None,
        typer.Option(
            help="HDU to print with --header, else all: number from 0, name, or NAME,VERSION."
        ),
    ] = None,
    allow_external: External = False,
    as_json: Json = False,
) -> None:
    """Show the HDUs or arrays of a file, without reading their pixels."""
    from swathe.cli.array_listing import print_arrays
    from swathe.files.array_file import ArrayFile
    from swathe.files.file import open

    if hdu is not None and not header:
        raise typer.BadParameter("needs --header", param_hint="--hdu")
    with open(image, allow_external=allow_external) as file:
        if isinstance(file, ArrayFile):
            if hdu is not None:
                raise typer.BadParameter("is for FITS files", param_hint="--hdu")
            print_arrays(file, header, as_json)
            return
        if header:
            _print_headers(file, hdu, as_json)
            return
        granules = _granules(file)
        if as_json:
            print_json(_as_dict(file, granules))
            return
        _print(file, granules)


def _granules(file: File) -> dict[int, Granule]:
    """Return the metadata that the images of a file have in their headers, by HDU number."""
    from swathe.datasets.read_granules import granules_of, headers_of

    return {each.hdu: each for each in granules_of(file.url, headers_of(file))}


def _print(file: File, granules: dict[int, Granule]) -> None:
    is_compressed = any(hdu.kind == "compressed-image" for hdu in file.hdus)
    packing = file.compression or (
        "images compressed in tiles" if is_compressed else "not compressed"
    )
    print_text(f"{file.url}: {size_text(file.size)} ({file.size:,} bytes), {packing}")
    for hdu in file.hdus:
        print_text(_line(file, hdu))
        for line in _sky_lines(granules.get(hdu.index), _projection(file, hdu)):
            print_text(f"       {line}")
    for note in file.notes:
        print_text(f"  note: {note}", err=True)


def _line(file: File, hdu: HduInfo) -> str:
    name = f"{hdu.name or ''}{f',{hdu.version}' if hdu.version != 1 else ''}"
    parts = [f"  {hdu.index:3}  {name:16} {hdu.kind:16}"]
    if hdu.bitpix is not None:
        shape = " x ".join(map(str, hdu.shape[::-1]))
        parts.append(f"{_dtype(hdu.bitpix, _header(file, hdu))}  {shape} pixels")
    if hdu.codec is not None:
        tile = " x ".join(map(str, (hdu.tile_shape or [])[::-1]))
        parts.append(f"{hdu.codec}, tiles of {tile}")
    if hdu.kind == "table":
        rows, columns = _table_size(_header(file, hdu))
        parts.append(f"{count_text(rows, 'row')}, {count_text(columns, 'column')}")
    if hdu.kind == "other":
        parts.append(_other_kind(_header(file, hdu)))
    if hdu.problem is not None:
        parts.append(hdu.problem)
    return "  ".join(parts).rstrip()


def _header(file: File, hdu: HduInfo) -> Header:
    return file.header(hdu.index)


def _dtype(bitpix: int, header: Header) -> str:
    """Return the dtype of physical pixels, with the scaling if there is one."""
    scale, zero = header.get("BSCALE", 1), header.get("BZERO", 0)
    if scale == 1 and (bitpix, zero) in UNSIGNED_TYPES:
        return UNSIGNED_TYPES[bitpix, zero]
    scaling = "" if (scale, zero) == (1, 0) else f" x {scale} + {zero}"
    return f"{TYPES.get(bitpix, f'BITPIX {bitpix}')}{scaling}"


def _other_kind(header: Header) -> str:
    """Return a description of an HDU that is neither an image nor a table."""
    if header.get("GROUPS") is True:
        return "random groups"
    return f"extension of type {header.get('XTENSION', 'unknown')}"


def _table_size(header: Header) -> tuple[int, int]:
    """Return the number of rows and columns of a table."""
    return int(header.get("NAXIS2", 0)), int(header.get("TFIELDS", 0))


def _sky_lines(granule: Granule | None, projection: str) -> list[str]:
    """Return lines on position, band, time and instrument of an image."""
    if granule is None:
        return []
    lines = []
    if granule.footprint is not None:
        footprint, (height, width) = granule.footprint, granule.shape[-2:]
        scale = footprint.s_pixel_scale
        lines.append(
            f"centre RA {footprint.s_ra:.5f} Dec {footprint.s_dec:+.5f} deg (ICRS), "
            f'{scale:.4g}"/pixel, {_extent(width * scale)} x {_extent(height * scale)}{projection}'
        )
    elif granule.note:
        lines.append(f"no sky position: {granule.note}")
    facts = [
        granule.band and f"band {granule.band}",
        granule.t_min is not None and f"taken {_date(granule.t_min)} UTC",
        granule.facility,
        granule.instrument,
        granule.target and f"target {granule.target}",
    ]
    text = ", ".join(str(each) for each in facts if each)
    return [*lines, text] if text else lines


def _extent(size_arcsec: float) -> str:
    """Return an angle in seconds, minutes or degrees, such as `39.6"`, `13.52'`, `12.8 deg`."""
    if size_arcsec < 59.95:
        return f'{size_arcsec:.3g}"'
    return f"{size_arcsec / 60:.4g}'" if size_arcsec < 7200 else f"{size_arcsec / 3600:.4g} deg"


def _projection(file: File, hdu: HduInfo) -> str:
    """Return the projection of an image, as `, TAN`, or an empty text if its header has none."""
    axis = str(_header(file, hdu).get("CTYPE1", ""))
    return f", {axis[5:].lstrip('-')}" if len(axis) > 5 and axis[4:5] == "-" else ""


def _date(mjd: float) -> str:
    from astropy.time import Time

    return str(Time(mjd, format="mjd", precision=0).iso)


def _as_dict(file: File, granules: dict[int, Granule]) -> dict[str, Any]:
    return {
        "path": file.url,
        "size": file.size,
        "version": file.version,
        "compression": file.compression,
        "hdus": [_hdu_as_dict(file, hdu, granules.get(hdu.index)) for hdu in file.hdus],
        "notes": file.notes,
    }


def _hdu_as_dict(file: File, hdu: HduInfo, granule: Granule | None) -> dict[str, Any]:
    facts: dict[str, Any] = {name: getattr(hdu, name) for name in FIELDS}
    if hdu.bitpix is not None:
        facts["dtype"] = _dtype(hdu.bitpix, _header(file, hdu))
    if hdu.kind == "table":
        facts["rows"], facts["columns"] = _table_size(_header(file, hdu))
    if granule is not None:
        names = ("band", "t_min", "t_max", "facility", "instrument", "target")
        facts |= {name: getattr(granule, name) for name in names}
        place = granule.footprint and asdict(granule.footprint)
        sky = ("s_ra", "s_dec", "s_fov", "s_pixel_scale")
        facts |= {name: place[name] if place else None for name in sky}
    return facts


def _print_headers(file: File, hdu: str | None, as_json: bool) -> None:
    from swathe.files.targets.hdus import parse_hdu

    key: HduKey | None = None if hdu is None else parse_hdu(hdu)
    only = None if key is None else file[key].index
    headers = {
        each.index: _header(file, each) for each in file.hdus if only is None or each.index == only
    }
    if as_json:
        cards = {
            number: header.tostring(sep="\n").split("\n") for number, header in headers.items()
        }
        print_json({"path": file.url, "headers": cards})
        return
    for number, header in headers.items():
        print_text(f"# HDU {number} of {file.url}")
        print_text(header.tostring(sep="\n", padding=False))
