"""The command `swathe`. Its exit codes are EXIT_CODES."""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import traceback
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from swathe import errors, trace
from swathe.commands import bench, buffer, cache, dataset, pool, portal, probe, store, token
from swathe.commands import trace as tracing
from swathe.commands.find import find
from swathe.commands.info import info
from swathe.commands.options import (
    SIZE_FORMS,
    DecColumn,
    FileOfAll,
    Frame,
    Json,
    Overwrite,
    Quiet,
    RaColumn,
    ValuesCommand,
    numbers_of,
    one_image,
    place_of,
    planes_of,
    shape_of,
    size_of,
    whole_numbers_of,
)
from swathe.commands.output import print_json
from swathe.commands.predict import predict
from swathe.commands.serve import serve
from swathe.commands.simulate import simulate
from swathe.commands.usage import Group
from swathe.sizes import forecast_text, seconds_text
from swathe.trace.recording import for_children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe._swathe import HduKey
    from swathe.boxes import Box
    from swathe.cutout import Cutout

EXIT_CODES = (
    "Exit codes: 0 done, 1 some targets failed, 2 usage, 3 no such file or no access, "
    "4 damaged file, 5 region outside or senseless, 6 output cannot be written, "
    "7 catalogue cannot be used, 70 internal, 130 interrupted. SWATHE_DEBUG=1 shows tracebacks."
)
INTERNAL = 70
URL = re.compile("[a-z][a-z0-9]*:/")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SHOWN_ROWS = 5
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.TargetsError, 2),
    (errors.NoSuchStoreError, 2),
    (errors.StoreSettingsError, 2),
    (errors.NoSuchDatasetError, 2),
    (errors.DatasetError, 2),
    (errors.SettingsError, 2),
    (errors.TraceError, 2),
    (errors.TokenError, 2),
    (errors.JobError, 2),
    (errors.NoSuchJobError, 2),
    (errors.NoSuchResultError, 2),
    (errors.LimitError, 2),
    (errors.NoSuchHduError, 2),
    (errors.RegionError, 5),
    (errors.OutputError, 6),
    (errors.CatalogError, 7),
    (errors.FormatError, 4),
    (errors.NotFoundError, 3),
    (errors.AccessError, 3),
    (errors.SourceError, 3),
    (errors.SwatheError, INTERNAL),
)

CUTTING, ARCHIVE, PORTAL, MEASURING = "Cutting", "Archive", "Portal", "Measuring"

app = typer.Typer(
    cls=Group,
    help="Cut regions out of very large FITS images, at the speed of the disk.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def main() -> None:
    """Run the command line; turn errors into one line and an exit code."""
    try:
        try:
            app()
        finally:
            # What cannot be written is told by us, not when Python ends. There is none where it
            # was closed before.
            if sys.stdout is not None:
                sys.stdout.flush()
    except errors.SwatheError as error:
        _fail(error, next(code for kind, code in _CODES if isinstance(error, kind)))
    except KeyboardInterrupt as error:
        _fail(error, 130, "interrupted")
    except SystemExit as ended:
        # How Typer tells of Ctrl-C, without a word.
        if ended.code == 130:
            _fail(ended, 130, "interrupted")
        raise
    except BrokenPipeError:
        # Whoever read our output has had enough, as `| head` has.
        _drop_output()
        sys.exit(141)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            _drop_output()
            _fail(error, 6, f"cannot write what it prints: {error.strerror}")
        # A fault of ours. Python's own exit code would say that some targets failed.
        if not os.environ.get("SWATHE_DEBUG"):
            traceback.print_exc()
        _fail(error, INTERNAL, f"internal error: {type(error).__name__}: {error}")
    finally:
        _end_trace()


def _drop_output() -> None:
    """Let nothing more be written to standard output, which failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_trace() -> None:
    """Say where events of this command are lost."""
    counts = trace.stop()
    if counts.dropped:
        every = counts.written + counts.dropped
        try:
            typer.echo(f"swathe: {counts.dropped:,} of {every:,} events were dropped", err=True)
        except OSError:
            # Nobody can be told, and the work was done all the same.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _fail(error: BaseException, code: int, message: str | None = None) -> None:
    if os.environ.get("SWATHE_DEBUG"):
        raise error
    text = message or str(error)
    if "--json" in sys.argv:
        print_json({"error": text, "kind": type(error).__name__, "exit_code": code})
    typer.echo(f"swathe: {text}", err=True)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from swathe import __version__

        typer.echo(f"swathe {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - its callback does all
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    trace_to: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="PLACE",
            envvar=trace.VARIABLE,
            help="Record events: into FILE, FILE?rotate_mb=100&keep=5, memory:FILE?mb=64, stderr, "
            "syslog, or to the collector at tcp://HOST:PORT.",
        ),
    ] = None,
) -> None:
    if trace_to:
        trace.start(trace_to)
        # What this command starts records too.
        os.environ[trace.VARIABLE] = for_children(trace_to)


def cut(
    image: Annotated[
        str | None, typer.Argument(help="FITS file: path or URL.", callback=one_image)
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
        typer.Option(metavar="H W", help="Height and width, or one side, with --center."),
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
    size_deg: Annotated[
        str | None, typer.Option(metavar="S", help="Side in degrees, with --sky.")
    ] = None,
    frame: Frame = None,
    section: Annotated[
        str | None,
        typer.Option(metavar="[x1:x2,y1:y2]", help="FITS section: one-based, inclusive."),
    ] = None,
    targets: Annotated[
        Path | None,
        typer.Option(
            help="Many cuts: a table (FITS, VOTable, CSV, ECSV, TSV, Parquet) or a text of one "
            "target a line; see the README."
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
            help="cut.fits, .npy or .png; with --targets a folder, *.zip, *.tar or *.fits.",
        ),
    ] = None,
    hdu: Annotated[
        str | None,
        typer.Option(
            help="Number from 0 (-1: the last), name, or NAME,VERSION; by default the first image."
        ),
    ] = None,
    mode: Annotated[
        Literal["trim", "partial", "strict"],
        typer.Option(help="trim to the image, partial: fill outside, strict: refuse."),
    ] = "trim",
    fill: Annotated[
        float | None, typer.Option(help="Physical value outside the image; else NaN, BLANK or 0.")
    ] = None,
    planes: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:LAST", help="Planes of a cube, zero-based, FIRST <= p < LAST; or one."
        ),
    ] = None,
    result_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="fits|npy|png|rgb",
            help="With --targets: format of results, by default fits; rgb: a picture of the three "
            "images of each group, red first.",
        ),
    ] = None,
    operation: Annotated[
        Literal["cut", "stack"] | None,
        typer.Option(
            help="With --targets: cut each, or stack those of each name in a column group, or all."
        ),
    ] = None,
    stack: Annotated[
        Literal["mean", "median", "sigma-clipped", "weighted"] | None,
        typer.Option(help="With --operation stack: how pixels are put together; by default mean."),
    ] = None,
    bands: Annotated[
        str | None,
        typer.Option(
            metavar="R,G,B",
            help="With --format rgb: which three of a column band, red first, as i,r,g.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="With --targets; else all cores.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --targets: do only what is not done.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Cut one region out of IMAGE, or all those of a table of --targets."""
    if (image is None) == (targets is None):
        raise typer.BadParameter("give either IMAGE or --targets")
    options: dict[str, Any] = {"mode": mode, "fill": fill, "planes": planes_of(planes)}
    if targets is not None:
        regions = (box, center, shape, sky, section, hdu)
        if any(value is not None for value in regions):
            raise typer.BadParameter("with --targets the table says what to cut")
        if output is None:
            raise typer.BadParameter("--targets needs --output")
        _check_local(output)
        fills = {
            "file": file,
            "size": size_of(size, size_deg),
            "frame": frame,
            "ra": ra,
            "dec": dec,
        }
        options |= {"resume": resume, "overwrite": overwrite, **fills}
        if stack is not None and operation != "stack":
            raise typer.BadParameter("--stack goes with --operation stack")
        options |= {
            "operation": operation or "cut",
            "format": result_format or "fits",
            "stack": stack or "mean",
            "bands": bands or (),
        }
        _cut_table(targets, output, threads, as_json, quiet, options)
        return
    assert image is not None
    if threads is not None or resume:
        raise typer.BadParameter("--threads and --resume go with --targets")
    if any(value is not None for value in (result_format, operation, stack, bands)):
        raise typer.BadParameter("--format, --operation, --stack and --bands go with --targets")
    ways = [value is not None for value in (box, center, sky, section)]
    if sum(ways) != 1:
        raise typer.BadParameter("give one of --box, --center, --sky and --section")
    if (file, ra, dec) != (None, None, None):
        raise typer.BadParameter("--file, --ra and --dec go with --targets")
    side = size_of(size, size_deg)
    if (shape is None) != (center is None) or (side is None) != (sky is None):
        raise typer.BadParameter("--center goes with --shape, --sky with --size or --size-deg")
    if frame is not None and sky is None:
        raise typer.BadParameter("--frame goes with --sky or --targets")
    from swathe.core.outputs import check_output
    from swathe.single import cut as cut_one

    path = output or Path("cut.fits")
    _check_local(path)
    check_output(path, overwrite=overwrite, sources=[image])

    found = cut_one(
        image,
        box=_section_of(section) if section is not None else _box_of(box),
        center=_center_of(center),
        shape=shape_of(shape),
        sky=place_of("--sky", sky, frame),
        size=side,
        hdu=_hdu(hdu),
        **options,
    )
    found.write(path, overwrite=overwrite)
    _report_cut(found, path, as_json)


def _check_local(output: Path) -> None:
    """Refuse a URL or an object of a store as output: a file of that odd name would be made here.

    Raises:
        OutputError: where it is one.
    """
    from swathe.known import is_named

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


def _section_of(text: str) -> Box:
    """Read a FITS section.

    Raises:
        typer.BadParameter: where it is written otherwise.
        RegionError: where it is empty.
    """
    from swathe.boxes import section, section_ends

    try:
        section_ends(text)
    except errors.RegionError as error:
        raise typer.BadParameter(str(error), param_hint="--section") from error
    return section(text)


def _center_of(text: str | None) -> tuple[float, float] | None:
    numbers = numbers_of("--center", "X Y", text)
    return None if numbers is None else (numbers[0], numbers[1])


def _hdu(text: str | None) -> HduKey | None:
    from swathe.targets import parse_hdu

    if text is not None and re.fullmatch("-[0-9]{1,9}", text.strip()):
        return int(text)
    return None if text is None else parse_hdu(text)


def _report_cut(found: Cutout, path: Path, as_json: bool) -> None:
    x0, y0, width, height = found.box
    if as_json:
        print_json(
            {
                "path": str(path),
                "box": [x0, y0, width, height],
                "shape": list(found.shape),
                "hdu": found.hdu,
                "source": found.source,
                "source_version": found.source_version,
            }
        )
    else:
        typer.echo(f"{path}: {' x '.join(map(str, found.shape[::-1]))} pixels from [{x0}, {y0}]")


def _cut_table(
    targets: Path,
    output: Path,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    options: dict[str, Any],
) -> None:
    from swathe.many import cut_many

    with nullcontext() if quiet or as_json else _prediction_told():
        try:
            manifest = cut_many(targets, output, threads=threads, progress=not quiet, **options)
        except KeyboardInterrupt as error:
            if str(error):
                typer.echo(f"{output}: {error}; --resume goes on with the others", err=True)
            raise
    meta = manifest.meta
    counts = {name: meta[name] for name in ("ok", "no-overlap", "missing", "error")}
    if as_json:
        print_json({**meta, "output": str(output), "targets": len(manifest)})
    else:
        typer.echo(f"{output}: {_outcome_text(meta, counts)}")
        lacking = manifest[manifest["status"] != "ok"]
        for row in lacking[:SHOWN_ROWS]:
            typer.echo(f"  {row['id']}: {row['status']}: {row['reason']}", err=True)
        if len(lacking) > SHOWN_ROWS:
            typer.echo(f"  and {len(lacking) - SHOWN_ROWS:,} more, see the manifest", err=True)
        for note in meta["notes"]:
            typer.echo(f"  note: {note}", err=True)
    if counts["ok"] < len(manifest):
        raise typer.Exit(1)


def _outcome_text(meta: dict[str, Any], counts: dict[str, int]) -> str:
    """Return what became of a table of targets, and how long it took."""
    before = meta["done_before"]
    done = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    if before:
        done = f"{done} ({before:,} were done already)"
    total, cutting = seconds_text(meta["total_s"]), seconds_text(meta["actual_s"])
    if before == sum(counts.values()):
        return f"{done}, in {total}" if before else f"no targets, in {total}"
    predicted = forecast_text(meta["predicted_s"])
    return f"{done}, in {total}: {cutting} for cutting (predicted {predicted}), the rest to start"


@contextmanager
def _prediction_told() -> Iterator[None]:
    """Let the first thing that `cut_many` logs be seen; the last, beside it, is told anyway."""
    from swathe.many import log

    class Once(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.removeHandler(self)
            typer.echo(record.getMessage(), err=True)

    once, level = Once(), log.level
    log.addHandler(once)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(once)
        log.setLevel(level)


def sample(
    folder: Annotated[Path, typer.Argument(help="Where to put it.")],
    frames: Annotated[int, typer.Option(min=1, help="Frames, 12 MB each in all four kinds.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 1,
    targets: Annotated[int, typer.Option(min=1, help="Rows of targets.csv.")] = 2000,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make an SDSS-like survey to try things on, with a table of targets."""
    from swathe.progress import progress_bar
    from swathe.sample import make_sample

    with progress_bar("drawing", not quiet, frames) as show:
        try:
            table = make_sample(
                folder,
                frames,
                seed,
                targets,
                lambda done, _frames: show(done),
                overwrite=overwrite,
            )
        except errors.OutputError:
            raise
        except OSError as error:
            raise errors.OutputError(f"{folder}: {error}") from error
    if as_json:
        print_json({"folder": str(folder), "frames": frames, "seed": seed, "targets": str(table)})
    else:
        typer.echo(f"{table}: {targets} targets on {frames} frames, each as .fit, .gz, .bz2, .fz")


# In the order of `swathe --help`.
app.command(cls=ValuesCommand, rich_help_panel=CUTTING)(cut)
for command in (info, predict, sample):
    app.command(rich_help_panel=CUTTING)(command)
app.add_typer(store.app, cls=Group, name="store", rich_help_panel=ARCHIVE)
app.add_typer(dataset.app, cls=Group, name="dataset", rich_help_panel=ARCHIVE)
app.command(cls=ValuesCommand, rich_help_panel=ARCHIVE)(find)
app.add_typer(cache.app, cls=Group, name="cache", rich_help_panel=ARCHIVE)
app.command(rich_help_panel=PORTAL)(serve)
app.add_typer(portal.app, cls=Group, name="portal", rich_help_panel=PORTAL)
app.add_typer(token.app, cls=Group, name="token", rich_help_panel=PORTAL)
app.add_typer(pool.app, cls=Group, name="pool", rich_help_panel=PORTAL)
for measure in (probe.probe, buffer.buffer, simulate):
    app.command(rich_help_panel=MEASURING)(measure)
app.add_typer(bench.app, cls=Group, name="bench", rich_help_panel=MEASURING)
app.add_typer(tracing.app, cls=Group, name="trace", rich_help_panel=MEASURING)


if __name__ == "__main__":
    main()
