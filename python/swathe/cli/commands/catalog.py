"""The commands `swathe catalog`: backups of the catalogue."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, PortalConfig
from swathe.cli.output import print_json, print_line
from swathe.core.format import size_text

if TYPE_CHECKING:
    from swathe.catalog.backup import BackupRecord

app = typer.Typer(
    help="Back up the catalogue while it is used, and restore it.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="File of the backup.")]


@app.command()
def backup(
    file: File,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing backup.")
    ] = False,
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Write a backup of the catalogue: stores, datasets, jobs, tokens, measurements.

    Portal and commands go on meanwhile. PostgreSQL needs pg_dump.
    """
    from swathe.catalog.backup import backup as run

    record = run(file, _url(config), overwrite=overwrite)
    _print(file, record, as_json)


@app.command()
def restore(
    file: File,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace a catalogue that is not empty; that of SQLite stays beside the new one.",
        ),
    ] = False,
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of the catalogue, completely or not at all. Stop the portal first.

    PostgreSQL needs pg_restore and psql.
    """
    from swathe.catalog.backup import restore as run

    record, old = run(file, _url(config), overwrite=overwrite)
    _print(file, record, as_json, earlier=None if old is None else str(old))
    if not as_json:
        print_line("restored: the catalogue is that of the backup")
    if old is not None and not as_json:
        print_line(f"the earlier catalogue is {old}; remove it when you need it no more")


@app.command()
def check(file: File, as_json: Json = False) -> None:
    """Check that a backup is complete, and show when it was made."""
    from swathe.catalog.backup import read_backup

    _print(file, read_backup(file), as_json)


def _url(config: Path | None) -> str | None:
    """Return the URL of the catalogue of settings; `None` for the default."""
    if config is None:
        return None
    from swathe.portal.config import read_config

    return read_config(config).catalog.database


def _print(file: Path, record: BackupRecord, as_json: bool, **more: Any) -> None:
    if as_json:
        print_json({"file": str(file), **asdict(record), **more})
    else:
        print_line(
            f"{file}: {record.kind}, {size_text(record.bytes)}, made at {record.made_at} by Swathe "
            f"{record.swathe} (tables {record.revision})"
        )
