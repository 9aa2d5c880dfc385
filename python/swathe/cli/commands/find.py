"""The command `swathe find`: search the catalogued images and arrays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import (
    SIZE_FORMS,
    Bounds,
    Frame,
    Json,
    Overwrite,
    TimeRange,
    place_of,
    size_of,
)
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import count_text

if TYPE_CHECKING:
    from astropy.table import Table

CRITERIA = {
    "sky": "position (s_region)",
    "bounds": "position (s_region)",
    "place": "position (s_region)",
    "time": "time (t_min, t_max)",
    "band": "band (band, em_min, em_max)",
}
"""Criteria of a search, with the columns that it compares."""
SYNC = "swathe dataset sync NAME, which reads new files"
FORMATS = {".csv": "ascii.csv", ".ecsv": "ascii.ecsv", ".vot": "votable", ".xml": "votable"}


def find(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Dataset to search; else all.")
    ] = None,
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
    bounds: Bounds = None,
    place: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LON LAT", help="Place on the Earth that the arrays cover, degrees."),
    ] = None,
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
    """Find the catalogued images and arrays that match a position, a time and a band."""
    from swathe.core.outputs import check_output
    from swathe.datasets.search import find as find_images

    side = size_of(size)
    if side is not None and sky is None:
        raise typer.BadParameter("--size needs --sky")
    if name is not None and dataset is not None:
        raise typer.BadParameter("give the dataset once: NAME or --dataset")
    dataset = name or dataset
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
    table = find_images(
        coord,
        radius=radius,
        dataset=dataset,
        time=time,
        band=band,
        bounds=bounds,
        place=place,
    )
    if side is not None and side.square_deg is not None:
        table["size_deg"] = side.square_deg
    elif side is not None:
        table["size"] = str(side)
    if output is not None:
        _write(table, output, overwrite)
    if as_json:
        rows = [dict(zip(table.colnames, row, strict=True)) for row in _plain(table)]
        print_json({"images": rows})
        return
    if output is not None:
        print_text(f"{output}: {count_text(len(table), 'image')}")
    elif len(table):
        _show(table)
    if not len(table):
        print_text(
            _no_match(
                dataset,
                sky=sky is not None,
                bounds=bounds is not None,
                place=place is not None,
                time=time is not None,
                band=band is not None,
            ),
            err=True,
        )


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


def _no_match(dataset: str | None, **criteria: bool) -> str:
    """Return what was searched without a match, and what the user can try.

    Args:
        dataset: The only dataset that was searched; `None` for all.
        criteria: Whether the search had a criterion, by its name in `CRITERIA`.
    """
    from swathe import datasets

    candidates = [each for each in datasets.list() if dataset in (None, each.name)]
    images = sum(each.granules for each in candidates)
    if not images:
        where = "the catalogue" if dataset is None else f"dataset {dataset}"
        return (
            f"no image matches: {where} has no images; "
            "add some: swathe dataset add NAME STORE:FOLDER"
        )
    names = [name for name, is_given in criteria.items() if is_given]
    by = "".join(f", by {CRITERIA[name]}" for name in names)
    tries = ["a larger --radius"] * ("sky" in names)
    tries += [f"without --{name}" for name in names if name != "sky"]
    tries += ["without --dataset"] * (dataset is not None)
    return (
        f"no image matches: searched {count_text(images, 'image')} in "
        f"{count_text(len(candidates), 'dataset')}{by}; try {' or '.join([*tries, SYNC])}"
    )


def _show(table: Table) -> None:
    titles = ("file", "hdu", "array", "dataset", "band", "t_min", "s_ra", "s_dec", "s_fov", "shape")
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
