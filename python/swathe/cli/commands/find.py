"""The command `swathe find`: search the catalogued images."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import SIZE_FORMS, Frame, Json, Overwrite, TimeRange, place_of, size_of
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import count_text

if TYPE_CHECKING:
    from astropy.table import Table

FORMATS = {".csv": "ascii.csv", ".ecsv": "ascii.ecsv", ".vot": "votable", ".xml": "votable"}


def find(
    sky: Annotated[
        str | None,
        typer.Option(
            "--sky",
            "--at",
            metavar="RA DEC",
            help="Position that the images show: degrees or '10:00:28.6 +02:12:21'; or the name of "
            "an object.",
        ),
    ] = None,
    radius: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Radius around --sky; images that overlap the circle match: "
            "degrees, or as 30arcsec.",
        ),
    ] = None,
    frame: Frame = None,
    dataset: Annotated[str | None, typer.Option(help="Dataset to search; else all.")] = None,
    time: TimeRange = None,
    band: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|MIN,MAX",
            help="Filter name, or range of wavelengths in metres, as 5e-7,6e-7.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the table: *.csv, *.ecsv, *.vot or *.xml."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help=f"Size to add as a column, so that the table can be cut: {SIZE_FORMS}.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the catalogued images that match a position, a time and a band."""
    from swathe.core.outputs import check_output
    from swathe.datasets.search import find as find_images

    side = size_of(size)
    if side is not None and sky is None:
        raise typer.BadParameter("--size needs --sky")
    if frame is not None and sky is None:
        raise typer.BadParameter("--frame goes with --sky")
    if output is not None and output.suffix.lower() not in FORMATS:
        raise typer.BadParameter(
            f"expected a name ending in one of {', '.join(FORMATS)}, found {output.name!r}",
            param_hint="--output",
        )
    if output is not None:
        check_output(output, overwrite=overwrite)
    coord = place_of("--sky", sky, frame)
    table = find_images(coord, radius=radius, dataset=dataset, time=time, band=band)
    if side is not None and side.square_deg is not None:
        table["size_deg"] = side.square_deg
    elif side is not None:
        table["size"] = str(side)
    if output is not None:
        _write(table, output, overwrite)
    if as_json:
        rows = [dict(zip(table.colnames, row, strict=True)) for row in _plain(table)]
        print_json({"images": rows})
    elif output is not None:
        print_text(f"{output}: {count_text(len(table), 'image')}")
    else:
        _show(table)


def _plain(table: Table) -> list[list[Any]]:
    # Masked values are None in lists.
    columns = [table[name].tolist() for name in table.colnames]
    return [list(row) for row in zip(*columns, strict=True)]


def _write(table: Table, path: Path, overwrite: bool) -> None:
    from swathe.core.outputs import write_file
    from swathe.stores.registry import local_paths

    kind = FORMATS[path.suffix.lower()]
    content = _content(table, kind)
    sources = local_paths(table["file"].tolist())
    write_file(path, lambda file: file.write(content), overwrite=overwrite, sources=sources)


def _content(table: Table, kind: str) -> bytes:
    """Return a table as the content of a file, in a format named as astropy names it."""
    if kind == "votable":
        buffer = io.BytesIO()
        table.write(buffer, format=kind)
        return buffer.getvalue()
    text = io.StringIO()
    table.write(text, format=kind)
    return text.getvalue().encode()


def _show(table: Table) -> None:
    if not len(table):
        typer.echo("no catalogued image matches", err=True)
        return
    titles = ("file", "hdu", "dataset", "band", "t_min", "s_ra", "s_dec", "s_fov", "shape")
    digits = {"t_min": 5, "s_ra": 5, "s_dec": 5, "s_fov": 4}
    rows = []
    for row in zip(*(table[name].tolist() for name in titles), strict=True):
        rows.append(
            [
                ""
                if value is None
                else f"{value:.{digits[name]}f}"
                if name in digits
                else f"{value}"
                for name, value in zip(titles, row, strict=True)
            ]
        )
    print_table(titles, rows)
