"""The command `swathe cut`: cut one region, or those of a list."""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.operation_options import with_operations
from swathe.cli.options import (
    SIZE_FORMS,
    ArrayTimes,
    Bounds,
    DecColumn,
    External,
    FileOfAll,
    Fill,
    Frame,
    Json,
    Mode,
    Objective,
    Overwrite,
    Planes,
    Quiet,
    RaColumn,
    index_of,
    numbers_of,
    one_image,
    place_of,
    planes_of,
    shape_of,
    size_of,
    whole_numbers_of,
)
from swathe.cli.output import print_json, print_line, print_text
from swathe.core import errors
from swathe.core.argument_checks import Stage
from swathe.core.format import forecast_text, seconds_text
from swathe.core.row_record import END_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe._swathe import HduKey
    from swathe.costs.time_left import CutProgress
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.cutout import Cutout
URL = re.compile("[a-z][a-z0-9]*:/")
SHOWN_ROWS = 5


@with_operations(of_granules=False)
def cut(
    *,
    results: dict[str, Any],
    image: Annotated[
        str | None, typer.Argument(help="File: path or URL.", callback=one_image)
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(metavar="X0 Y0 W H", help="Zero-based lower-left pixel, width and height."),
    ] = None,
    center: Annotated[
        str | None,
        typer.Option(metavar="X Y", help="Zero-based pixel position of the centre."),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="H W", help="Height and width, or one side, in pixels, with --center."
        ),
    ] = None,
    sky: Annotated[
        str | None,
        typer.Option(
            metavar="RA DEC",
            help="Position: degrees or '10:00:28.6 +02:12:21'; or the name of an object.",
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="S", help=f"Size with --sky: {SIZE_FORMS}.")
    ] = None,
    frame: Frame = None,
    section: Annotated[
        str | None,
        typer.Option(metavar="[x1:x2,y1:y2]", help="FITS section: one-based, inclusive."),
    ] = None,
    targets: Annotated[
        Path | None,
        typer.Option(
            help="List of targets: a table (FITS, VOTable, CSV, ECSV, TSV, Parquet) or a text file "
            "with one target per line; see docs/cutting.md."
        ),
    ] = None,
    file: FileOfAll = None,
    ra: RaColumn = None,
    dec: DecColumn = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: *.fits, *.npy or *.png, by default cut.fits; of arrays also *.nc, "
            "*.h5, *.zarr, *.tif, *.asdf or *.dcm, by default in the format of the source, else "
            "cut.nc; with --targets a folder, "
            "*.zip, *.tar or *.fits, or null: to drop the results and only count them.",
        ),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(
            help="Store with a replica of the files, with --targets; may be repeated. The files "
            "are read from all of them."
        ),
    ] = None,
    hdu: Annotated[
        str | None,
        typer.Option(
            help="HDU: number from 0 (-1 = the last), name, or NAME,VERSION; else the first image."
        ),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            help="Path of the array in a file that is not FITS, as /grid/lst; its last name, lst, "
            "if no other array has it."
        ),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=N|START:STOP",
            help="Number or range on a named axis of the array; may be repeated.",
        ),
    ] = None,
    bounds: Bounds = None,
    time: ArrayTimes = None,
    with_quality: Annotated[
        bool, typer.Option("--with-quality", help="Quality planes of the array, too.")
    ] = False,
    allow_external: External = False,
    mode: Mode = "trim",
    fill: Fill = None,
    planes: Planes = None,
    bands: Annotated[
        str | None,
        typer.Option(
            metavar="R,G,B",
            help="Three values of the column band for --format rgb, red first, as i,r,g.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Number of threads, with --targets; else all cores."),
    ] = None,
    objective: Objective = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip targets that are already done, with --targets.")
    ] = False,
    stage: Annotated[
        Stage | None,
        typer.Option(help="Objects on tape: `wait` until they are on disk; else they are errors."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cut one region out of IMAGE, or all regions listed in --targets."""
    if (image is None) == (targets is None):
        raise typer.BadParameter("give either IMAGE or --targets")
    options: dict[str, Any] = {"mode": mode, "fill": fill, "planes": planes_of(planes)}
    options["objective"] = objective
    if targets is not None:
        regions = (box, center, shape, sky, section, hdu, array, index, bounds, time)
        if with_quality or allow_external or any(value is not None for value in regions):
            raise typer.BadParameter("with --targets the table gives the regions and HDUs")
        if output is None:
            raise typer.BadParameter("--targets needs --output")
        _check_local(output)
        options |= {"resume": resume, "overwrite": overwrite, "file": file, "size": size_of(size)}
        options |= {"frame": frame, "ra": ra, "dec": dec, **results}
        options |= {"bands": bands or (), "stores": store or (), "stage": stage}
        _cut_table(targets, output, threads, as_json, quiet, options)
        return
    assert image is not None
    if threads is not None or resume:
        raise typer.BadParameter("--threads and --resume go with --targets")
    if results or bands is not None or store:
        names = [*results, *(["bands"] if bands is not None else []), *(["store"] if store else [])]
        raise typer.BadParameter(f"{', '.join(f'--{name}' for name in names)}: only with --targets")
    region_count = sum(value is not None for value in (box, center, sky, section, bounds))
    if region_count != 1 and (region_count or (index is None and time is None)):
        raise typer.BadParameter(
            "give one of --box, --center, --sky, --section and --bounds; of an array also --index "
            "or --time"
        )
    if (file, ra, dec) != (None, None, None):
        raise typer.BadParameter("--file, --ra and --dec go with --targets")
    side = size_of(size)
    if (shape is None) != (center is None) or (side is None) != (sky is None):
        raise typer.BadParameter("--center goes with --shape, --sky with --size")
    if frame is not None and sky is None:
        raise typer.BadParameter("--frame goes with --sky or --targets")
    options |= {"box": _box_of(box), "section": _section_of(section)}
    options |= {"center": _center_of(center), "shape": shape_of(shape)}
    options |= {"sky": place_of("--sky", sky, frame), "size": side, "hdu": _hdu(hdu)}
    options |= {"array": array, "index": index_of(index), "with_quality": with_quality}
    options |= {"bounds": bounds, "time": time, "allow_external": allow_external}
    if stage is None:
        _cut_image(image, output, overwrite, as_json, options)
        return
    from swathe.stores.staging.hold import TapeHold

    with TapeHold() as hold:
        hold.bring([image])
        if reason := hold.faults.get(image):
            raise errors.StagingError(f"{image}: {reason}")
        _cut_image(image, output, overwrite, as_json, options)


def _cut_image(
    image: str, output: Path | None, overwrite: bool, as_json: bool, options: dict[str, Any]
) -> None:
    """Cut one region out of an image or an array, and write it."""
    from swathe.core.outputs import check_output
    from swathe.cutting.one import cut as cut_one
    from swathe.files.array_file import ArrayFile
    from swathe.files.array_outputs import DEFAULTS
    from swathe.files.file import open_any

    if output is not None:
        _check_local(output)
    file = open_any(image)  # an image that is not there is reported first
    suffix = DEFAULTS[file.format] if isinstance(file, ArrayFile) else ".fits"
    path = output or Path(f"cut{suffix}")
    check_output(path, overwrite=overwrite, sources=[image])
    cutout = cut_one(image, **options)
    cutout.write(path, overwrite=overwrite)
    _report_cut(cutout, path, as_json)
    for note in cutout.notes:
        print_line(f"note: {note}", err=True)


def _check_local(output: Path) -> None:
    """Check that the output is not a URL or an object of a store, which would become a local name.

    Raises:
        OutputError: If the output is a URL or an object of a store.
    """
    from swathe.stores.registry import is_named

    name = str(output)
    # A path has lost the second slash of a URL.
    is_url = URL.match(name) is not None and not output.parent.exists()
    if is_url or is_named(name):
        what = "a URL" if is_url else "an object of a store"
        raise errors.OutputError(
            f"{name}: expected a local file or folder, found {what}; results are written to local "
            "disk"
        )


def _box_of(text: str | None) -> tuple[int, int, int, int] | None:
    numbers = whole_numbers_of("--box", "X0 Y0 WIDTH HEIGHT", text)
    return None if numbers is None else (numbers[0], numbers[1], numbers[2], numbers[3])


def _section_of(text: str | None) -> str | None:
    """Check the form of a FITS section.

    Raises:
        typer.BadParameter: If the text is not a FITS section.
    """
    from swathe.core.box import section_ends

    try:
        if text is not None:
            section_ends(text)
    except errors.RegionError as error:
        raise typer.BadParameter(str(error), param_hint="--section") from error
    return text


def _center_of(text: str | None) -> tuple[float, float] | None:
    numbers = numbers_of("--center", "X Y", text)
    return None if numbers is None else (numbers[0], numbers[1])


def _hdu(text: str | None) -> HduKey | None:
    from swathe.files.targets.hdus import parse_hdu

    if text is not None and re.fullmatch("-[0-9]{1,9}", text.strip()):
        return int(text)
    return None if text is None else parse_hdu(text)


def _report_cut(cutout: Cutout | ArrayCutout, path: Path, as_json: bool) -> None:
    from swathe.files.array_cutout import ArrayCutout

    if isinstance(cutout, ArrayCutout):
        _report_array(cutout, path, as_json)
        return
    x0, y0, width, height = cutout.box
    if as_json:
        print_json(
            {
                "path": str(path),
                "box": [x0, y0, width, height],
                "shape": list(cutout.shape),
                "hdu": cutout.hdu,
                "source": cutout.url,
                "source_version": cutout.version,
            }
        )
    else:
        print_text(f"{path}: {' x '.join(map(str, cutout.shape[::-1]))} pixels from [{x0}, {y0}]")


def _report_array(cutout: ArrayCutout, path: Path, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "path": str(path),
                "box": None if cutout.box is None else list(cutout.box),
                "shape": list(cutout.shape),
                "array": cutout.path,
                "dims": list(cutout.dims),
                "start": list(cutout.start),
                "source": cutout.url,
                "source_version": cutout.version,
            }
        )
    else:
        axes = ", ".join(f"{n} {name}" for name, n in zip(cutout.dims, cutout.shape, strict=True))
        print_text(f"{path}: {axes or 'one element'} of {cutout.path} from {list(cutout.start)}")


def _cut_table(
    targets: Path,
    output: Path,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    options: dict[str, Any],
) -> None:
    from swathe.core.outputs import NULL
    from swathe.cutting.many import cut_many

    with nullcontext() if quiet or as_json else _print_prediction():
        try:
            progress = _print_progress if as_json and not quiet else not quiet
            manifest = cut_many(targets, output, threads=threads, progress=progress, **options)
        except KeyboardInterrupt as error:
            if str(error):
                print_text(f"{output}: {error}; --resume continues with the others", err=True)
            raise
    meta = manifest.meta
    counts: dict[str, int] = {name: meta[name] for name in END_STATUSES}
    if as_json:
        print_json({**meta, "output": str(output), "targets": len(manifest)})
    else:
        print_text(f"{str(output).rstrip(':')}: {_outcome_text(meta, counts)}")
        failed = manifest.failed if counts["ok"] < len(manifest) else []
        for row in failed[:SHOWN_ROWS]:
            print_text(f"  {row['id']}: {row['status']}: {row['reason']}", err=True)
        others = len(manifest) - counts["ok"] - SHOWN_ROWS
        if others > 0:
            where = ", see the manifest" if str(output) != NULL else ""
            typer.echo(f"  and {others:,} more{where}", err=True)
        for note in meta["notes"]:
            print_text(f"  note: {note}", err=True)
    if counts["ok"] < len(manifest):
        raise typer.Exit(1)


def _print_progress(progress: CutProgress) -> None:
    """Print the progress as a line of JSON to standard error."""
    typer.echo(json.dumps(progress.as_dict()), err=True)


def _outcome_text(meta: dict[str, Any], counts: dict[str, int]) -> str:
    """Return the number of targets per status, and the time taken."""
    before = meta["done_before"]
    summary = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    if before:
        summary = f"{summary} ({before:,} already done)"
    took = seconds_text(meta["actual_s"])
    if before == sum(counts.values()):
        return f"{summary}, in {took}" if before else f"no targets, in {took}"
    return f"{summary}, in {took} (predicted {forecast_text(meta['predicted_s'])})"


@contextmanager
def _print_prediction() -> Iterator[None]:
    """Print the first prediction that `cut_many` logs: that of the list, or of its first part."""
    from swathe.cutting.cut_run import PREDICTION_TEXT, log

    class Once(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg != PREDICTION_TEXT:
                return
            log.removeHandler(self)
            print_text(record.getMessage(), err=True)

    once, level = Once(), log.level
    log.addHandler(once)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(once)
        log.setLevel(level)
