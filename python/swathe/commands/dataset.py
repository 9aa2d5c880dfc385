"""The commands `swathe dataset`: which images an archive holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.commands.options import Json, Quiet
from swathe.commands.output import print_json, print_table

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Dataset
    from swathe.datasets.scan import Report

app = typer.Typer(help="Catalogue the images of a store, to find them again.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the dataset.")]
Objects = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A text file with the path of one object in the store on each line, instead of "
        "listing the store.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, max=256, help="Threads that read headers; else 4 a core.")
]
SHOWN_FAULTS = 20


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Letters, digits, '_', '.', '-'; at least two.")],
    place: Annotated[str, typer.Argument(metavar="STORE:PREFIX", help="A folder of a store.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="GLOB", help="Take only objects with such names; with a '/': such paths."
        ),
    ] = None,
    objects: Objects = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Catalogue the images below a folder of a store. After an interruption, the same goes on."""
    from swathe.catalog import Catalog
    from swathe.datasets.listing import checked_pattern
    from swathe.datasets.places import split_place

    store, prefix = split_place(place)
    pattern = checked_pattern(pattern)
    with Catalog.open() as catalog:
        dataset = catalog.add_dataset(name, store, prefix, pattern)
        try:
            report = _scan(catalog, dataset, objects, threads, quiet)
        except BaseException:
            # What could not even be listed leaves nothing behind; what was begun is kept.
            if not catalog.replicas(name, store):
                catalog.remove_dataset(name)
            raise
    _tell(report, as_json)


@app.command()
def sync(
    name: Name,
    objects: Objects = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Bring a dataset up to date: read what is new or changed, note what is gone."""
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        report = _scan(catalog, catalog.dataset(name), objects, threads, quiet)
    _tell(report, as_json)


def _scan(
    catalog: Catalog, dataset: Dataset, objects: Path | None, threads: int | None, quiet: bool
) -> Report:
    from swathe.datasets.listing import list_objects, read_list
    from swathe.datasets.scan import scan
    from swathe.progress import progress_bar

    if objects is not None:
        found = list(read_list(objects, dataset.prefix, dataset.pattern))
    else:
        store = catalog.store(dataset.store)
        found = list(list_objects(store, dataset.prefix, dataset.pattern))
    with progress_bar("cataloguing", not quiet, len(found)) as show:
        return scan(
            catalog, dataset.name, found, threads=threads, show=lambda done, _total: show(done)
        )


def _tell(report: Report, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
    else:
        told = [
            (report.read, "read"),
            (report.unchanged, "unchanged"),
            (report.vanished, "vanished"),
            (report.returned, "there again"),
            (len(report.faults), "with faults"),
        ]
        counts = ", ".join(f"{count:,} {what}" for count, what in told if count)
        typer.echo(
            f"{report.dataset}: {report.listed:,} objects ({counts or 'nothing to do'}), "
            f"{report.images:,} images read in {report.seconds:.1f} s"
        )
        for fault in report.faults[:SHOWN_FAULTS]:
            typer.echo(f"  {fault.path}: {fault.reason}", err=True)
        if len(report.faults) > SHOWN_FAULTS:
            more = len(report.faults) - SHOWN_FAULTS
            shown = f"swathe dataset show {report.dataset} --json"
            typer.echo(f"  and {more:,} more: {shown}", err=True)
        for note, count in sorted(report.notes.items(), key=lambda each: -each[1])[:5]:
            typer.echo(f"  note: {count:,} images have no place in the sky: {note}", err=True)
    if report.faults:
        raise typer.Exit(1)


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """List the datasets."""
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        datasets = catalog.datasets()
    if as_json:
        print_json({"datasets": [_as_dict(dataset) for dataset in datasets]})
    elif datasets:
        print_table(
            ("name", "objects", "images", "place", "pattern", "synced (UTC)"),
            [
                (
                    dataset.name,
                    f"{dataset.objects:,}",
                    f"{dataset.granules:,}",
                    f"{dataset.store}:{dataset.prefix}",
                    dataset.pattern or "",
                    _synced(dataset),
                )
                for dataset in datasets
            ],
        )
    else:
        typer.echo("no datasets yet; add one: swathe dataset add NAME STORE:PREFIX", err=True)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show what a dataset holds, where its copies are, and which objects have faults."""
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        dataset = catalog.dataset(name)
        faults = [
            (store, replica)
            for store in sorted(dataset.states)
            for replica in catalog.replicas(name, store)
            if replica.reason is not None
        ]
    if as_json:
        told = [
            {"store": store, "path": at.path, "state": at.state, "reason": at.reason}
            for store, at in faults
        ]
        print_json({**_as_dict(dataset), "faults": told})
        return
    typer.echo(f"{dataset.name}: {dataset.store}:{dataset.prefix}")
    if dataset.pattern is not None:
        typer.echo(f"  names: {dataset.pattern}")
    typer.echo(f"  {dataset.objects:,} objects, {dataset.granules:,} images")
    typer.echo(f"  synced: {_synced(dataset)}")
    for store, states in sorted(dataset.states.items()):
        counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        typer.echo(f"  {store}: {counts}")
    for store, at in faults[:SHOWN_FAULTS]:
        typer.echo(f"    {store}:{at.path}: {at.state}: {at.reason}")


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Forget a dataset. Its files stay."""
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        catalog.remove_dataset(name)
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


def _synced(dataset: Dataset) -> str:
    at = dataset.synced_at
    return "the first scan is not done" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"
