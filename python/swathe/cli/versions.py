"""What the commands `swathe algorithm` and `swathe library` share: versions by name."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import PORTAL_HELP, PORTAL_VARIABLE
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import moment_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog.records.algorithms import AlgorithmRecord, LibraryRecord

Portal = Annotated[str | None, typer.Option("--url", envvar=PORTAL_VARIABLE, help=PORTAL_HELP)]
To = Annotated[
    str | None, typer.Option("--to", metavar="URL", envvar=PORTAL_VARIABLE, help=PORTAL_HELP)
]


def version_values(record: AlgorithmRecord | LibraryRecord) -> dict[str, Any]:
    """Return a version as values of JSON."""
    return {**asdict(record), "added_at": record.added_at.isoformat()}


def print_version(record: AlgorithmRecord | LibraryRecord, *, as_json: bool) -> None:
    """Print a version that was added."""
    if as_json:
        print_json(version_values(record))
    else:
        print_text(f"{record.label}: {size_text(record.bytes)}, SHA-256 {record.sha256}")


def print_versions(
    records: Sequence[AlgorithmRecord | LibraryRecord],
    titles: tuple[str, str],
    key: str,
    *,
    as_json: bool,
) -> None:
    """Print versions.

    Args:
        records: the versions.
        titles: title of the names, and the field of the second column.
        key: key of the list in JSON.
        as_json: whether to print JSON.
    """
    if as_json:
        print_json({key: [version_values(record) for record in records]})
        return
    print_table(
        (*titles, "added", "description"),
        (
            (each.label, getattr(each, titles[1]), moment_text(each.added_at), each.description)
            for each in records
        ),
    )


def print_removal(name: str, *, as_json: bool) -> None:
    """Print the name of what was removed."""
    if as_json:
        print_json({"removed": name})
    else:
        print_text(f"removed: {name}")
