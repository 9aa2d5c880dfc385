"""The commands `swathe dataset`: catalogue the images of an archive."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.catalog.records.datasets import MOC_ORDER, MOST_MOC_ORDER
from swathe.cli.commands.objects import show_detours
from swathe.cli.options import Json, Overwrite, Quiet
from swathe.cli.output import print_json, print_line, print_table, print_text
from swathe.core.argument_checks import Stage
from swathe.core.format import count_text, moment_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.datasets import Dataset, MirrorPlan, MirrorReport, ScanReport, SkippedObject
    from swathe.datasets.sky_coverage import MocFormat

app = typer.Typer(
    help="Catalogue the images of a store, so that they can be searched.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Name of the dataset.")]
Objects = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Text file with one object path of the store per line, used instead of listing the "
        "store.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=256, help="Number of threads that read headers; else 4 per core."),
]
TapeStage = Annotated[
    Stage | None,
    typer.Option(
        "--stage",
        help="Objects on tape: `wait` until they are on disk, to read their headers; else they are "
        "entered without.",
    ),
]
CALIB = "Calibration level of the images (ObsCore), 0 = raw to 4 = analysed"
SHOWN_FAULTS = 20


@app.command()
def add(
    name: Annotated[
        str,
        typer.Argument(help="Name of the dataset: at least two of letters, digits, '_', '.', '-'."),
    ],
    place: Annotated[str, typer.Argument(metavar="STORE:PREFIX", help="Folder of a store.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="GLOB", help="Pattern of object names to include; with a '/', of paths."
        ),
    ] = None,
    calib: Annotated[int, typer.Option(min=0, max=4, help=f"{CALIB}.")] = 2,
    objects: Objects = None,
    threads: Threads = None,
    stage: TapeStage = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Catalogue the images below a folder of a store.

    Run the same command again to continue after an interruption.
    """
    from swathe import datasets

    report = datasets.add(
        name,
        place,
        pattern=pattern,
        calib_level=calib,
        objects=objects,
        threads=threads,
        stage=stage,
        progress=not quiet,
    )
    _print_report(report, as_json)


@app.command()
def sync(
    name: Name,
    objects: Objects = None,
    threads: Threads = None,
    reread: Annotated[
        bool, typer.Option("--reread", help="Read all headers, also those of unchanged objects.")
    ] = False,
    calib: Annotated[
        int | None, typer.Option(min=0, max=4, help=f"{CALIB}; else unchanged.")
    ] = None,
    stage: TapeStage = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Update a dataset: read new and changed objects, record vanished ones."""
    from swathe import datasets

    report = datasets.sync(
        name,
        objects=objects,
        threads=threads,
        reread=reread,
        calib_level=calib,
        stage=stage,
        progress=not quiet,
    )
    _print_report(report, as_json)


def _print_report(report: ScanReport, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
    else:
        labelled_counts = [
            (report.read, "read"),
            (report.unchanged, "unchanged"),
            (report.vanished, "vanished"),
            (report.returned, "reappeared"),
            (report.on_tape, "on tape"),
            (len(report.faults), "with errors"),
        ]
        counts = ", ".join(f"{count:,} {what}" for count, what in labelled_counts if count)
        typer.echo(
            f"{report.dataset}: {count_text(report.listed, 'object')} "
            f"({counts or 'nothing to do'}), "
            f"{_granules_text(report)} read in {seconds_text(report.elapsed_s)}"
        )
        if not report.listed:
            typer.echo(
                "  note: no object found: are folder and --pattern right? To choose others, first: "
                f"swathe dataset remove {report.dataset}",
                err=True,
            )
        if report.on_tape:
            typer.echo(
                "  note: headers of objects on tape were not read; to stage and read them: "
                f"swathe dataset sync {report.dataset} --stage wait",
                err=True,
            )
        _print_faults(report.dataset, report.faults)
        _print_notes(report.dataset, "no position", "image", report.notes)
        _print_notes(report.dataset, "not catalogued", "array", report.refusals)
    if report.faults:
        raise typer.Exit(1)


def _granules_text(report: ScanReport) -> str:
    """Return the number of images and arrays that were read."""
    images = report.images - report.arrays
    parts = [count_text(images, "image")] if images or not report.arrays else []
    parts += [count_text(report.arrays, "array")] if report.arrays else []
    return ", ".join(parts)


def _print_notes(dataset: str, label: str, noun: str, notes: dict[str, int]) -> None:
    """Print reasons with their counts, the most frequent first."""
    reasons = sorted(notes.items(), key=lambda each: -each[1])
    for note, count in reasons[:SHOWN_FAULTS]:
        print_line(f"  note: {label}: {count_text(count, noun)}: {note}", err=True)
    if rest := reasons[SHOWN_FAULTS:]:
        images = count_text(sum(count for _, count in rest), noun)
        more = f"swathe dataset sync {dataset} --reread --json"
        typer.echo(f"  note: {label}: {images} for {len(rest):,} more reasons: {more}", err=True)


def _print_faults(dataset: str, faults: list[SkippedObject]) -> None:
    for fault in faults[:SHOWN_FAULTS]:
        print_line(f"  {fault.path}: {fault.reason}", err=True)
    if len(faults) > SHOWN_FAULTS:
        more = f"swathe dataset show {dataset} --json"
        typer.echo(f"  and {len(faults) - SHOWN_FAULTS:,} more: {more}", err=True)


@app.command()
def mirror(
    name: Name,
    place: Annotated[
        str,
        typer.Argument(
            metavar="STORE[:PREFIX]",
            help="Folder of another store; without a prefix, the same paths as in the first.",
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would be copied, and the predicted time; copy nothing."
        ),
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete copies of vanished objects.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Number of objects copied in parallel; else 8."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Copy missing or outdated objects of a dataset to another store, and verify them.

    Run again to continue after an interruption. Existing files that are not copies of the dataset,
    or are not as they were written, are kept unless --overwrite is given. Objects that changed
    since the last sync are not copied but reported: sync first.
    """
    from swathe import datasets

    if dry_run:
        plan = datasets.plan_mirror(name, place, threads=threads, overwrite=overwrite)
        _print_plan(plan, delete, as_json)
        return
    report = datasets.mirror(
        name, place, delete=delete, threads=threads, overwrite=overwrite, progress=not quiet
    )
    if as_json:
        print_json(asdict(report))
    else:
        _print_mirror(name, report)
    if report.faults:
        raise typer.Exit(1)


def _print_mirror(name: str, report: MirrorReport) -> None:
    labelled_counts = [
        (report.copied, f"copied ({size_text(report.bytes)})"),
        (report.by_servers, "of them from server to server"),
        (report.there, "already there"),
        (report.deleted, "deleted"),
        (report.skipped, "skipped as damaged or unread"),
        (len(report.faults), "with errors"),
    ]
    counts = ", ".join(f"{count:,} {what}" for count, what in labelled_counts if count)
    typer.echo(
        f"{name} to {report.store}:{report.prefix}: {counts or 'nothing to do'} "
        f"in {seconds_text(report.elapsed_s)}"
    )
    show_detours(report.detours)
    _print_faults(name, report.faults)
    if report.outdated:
        typer.echo(f"  note: some objects have changed; run: swathe dataset sync {name}", err=True)


def _print_plan(plan: MirrorPlan, delete: bool, as_json: bool) -> None:
    if as_json:
        fields = asdict(plan)
        del fields["versions"]
        list_names = ("copies", "vanished", "gone", "changed", "untold")
        print_json({**fields, **{name: len(fields[name]) for name in list_names}})
        return
    typer.echo(
        f"{plan.dataset} to {plan.store}:{plan.prefix}: {count_text(len(plan.copies), 'object')} "
        f"to copy ({size_text(plan.bytes)}), {plan.there:,} already there"
    )
    if plan.copies:
        basis = "as measured" if plan.measured else "a guess; to measure: swathe probe STORE"
        typer.echo(f"  about {seconds_text(plan.predicted_s)}, {basis}")
    if plan.vanished:
        fate = "to delete" if delete else "kept; --delete would delete them"
        typer.echo(f"  {len(plan.vanished):,} copies of vanished objects: {fate}")
    if plan.skipped:
        typer.echo(f"  {plan.skipped:,} objects are skipped: damaged, or not read")
    _print_faults(plan.dataset, plan.faults)


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """List the datasets."""
    from swathe import datasets

    records = datasets.list()
    if as_json:
        print_json({"datasets": [_as_dict(dataset) for dataset in records]})
    elif records:
        print_table(
            ("name", "objects", "images", "place", "pattern", "synced"),
            [
                (
                    dataset.name,
                    f"{dataset.objects:,}",
                    f"{dataset.granules:,}",
                    f"{dataset.store}:{dataset.prefix}",
                    dataset.pattern or "",
                    _sync_text(dataset),
                )
                for dataset in records
            ],
        )
    else:
        typer.echo("no datasets yet; add one: swathe dataset add NAME STORE:PREFIX", err=True)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show the size of a dataset, its copies in stores, and the objects with errors."""
    from swathe import datasets

    condition = datasets.show(name)
    dataset, faults = condition.dataset, condition.faults
    if as_json:
        rows = [
            {"store": store, "path": at.path, "state": at.state, "reason": at.reason}
            for store, at in faults
        ]
        print_json({**_as_dict(dataset), "faults": rows})
        return
    typer.echo(f"{dataset.name}: {dataset.store}:{dataset.prefix}")
    if dataset.pattern is not None:
        typer.echo(f"  names: {dataset.pattern}")
    typer.echo(
        f"  {count_text(dataset.objects, 'object')}, {count_text(dataset.granules, 'image')}, "
        f"calibration level {dataset.calib_level}"
    )
    typer.echo(f"  synced: {_sync_text(dataset)}")
    for store, states in sorted(dataset.states.items()):
        counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        typer.echo(f"  {store}: {counts}")
    for store, at in faults[:SHOWN_FAULTS]:
        print_text(f"    {store}:{at.path}: {at.state}: {at.reason}")
    if len(faults) > SHOWN_FAULTS:
        more = f"swathe dataset show {name} --json"
        typer.echo(f"    and {len(faults) - SHOWN_FAULTS:,} more: {more}")


@app.command()
def moc(
    name: Name,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File to write: .fits, .json, or .txt (ASCII)."),
    ],
    order: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_MOC_ORDER,
            help="HEALPix order of the smallest cells (10: 3.4 arcminutes).",
        ),
    ] = MOC_ORDER,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the sky that the images of a dataset cover, as a MOC (Multi-Order Coverage map)."""
    from swathe import datasets
    from swathe.core.errors import OptionError
    from swathe.core.outputs import write_file
    from swathe.datasets.sky_coverage import moc_content

    forms: dict[str, MocFormat] = {".fits": "fits", ".json": "json", ".txt": "ascii"}
    if output.suffix not in forms:
        raise OptionError(f"-o: expected a name with .fits, .json or .txt, found {output.name!r}")
    coverage = datasets.moc(name, order=order)
    content = moc_content(coverage, forms[output.suffix])
    write_file(output, lambda file: file.write(content), overwrite=overwrite)
    part = float(coverage.sky_fraction)
    if as_json:
        print_json({"file": str(output), "order": order, "sky_fraction": part})
    else:
        print_line(f"{output}: {part:.4%} of the sky, cells of order {order}")


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a dataset from the catalogue. Its files are kept."""
    from swathe import datasets

    datasets.remove(name)
    if as_json:
        print_json({"removed": name})
    else:
        typer.echo(f"{name}: removed")


def _as_dict(dataset: Dataset) -> dict[str, Any]:
    synced_at = dataset.synced_at
    return {
        **asdict(dataset),
        "added_at": dataset.added_at.isoformat(),
        "synced_at": None if synced_at is None else synced_at.isoformat(),
    }


def _sync_text(dataset: Dataset) -> str:
    at = dataset.synced_at
    return "first scan not finished" if at is None else moment_text(at)
