"""The commands `swathe environment`: interpreters of Python for algorithms."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import moment_text

if TYPE_CHECKING:
    from swathe.catalog.records.algorithms import EnvironmentRecord

app = typer.Typer(help="Offer environments of Python to algorithms.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the environment.")]


@app.command()
def add(
    name: Name,
    lock: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Lock file it was made of, a line as numpy==2.1.0 each."),
    ],
    python: Annotated[
        Path, typer.Option(metavar="PATH", help="Interpreter of the environment, or its folder.")
    ],
    as_json: Json = False,
) -> None:
    """Add an environment, after comparing its packages with the lock file."""
    from swathe.algorithms import environments

    record = environments.add(name, lock, python)
    if as_json:
        print_json(_values(record))
    else:
        print_text(_line(record))


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List all environments by name."""
    from swathe.algorithms import environments

    records = environments.list()
    if as_json:
        print_json({"environments": [_values(record) for record in records]})
        return
    print_table(
        ("environment", "Python", "packages", "interpreter", "added"),
        (
            (
                each.name,
                each.python_version,
                str(len(each.packages)),
                each.python,
                "" if each.added_at is None else moment_text(each.added_at),
            )
            for each in records
        ),
    )


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show an environment, with the version of each package."""
    from swathe.algorithms import environments

    record = environments.show(name)
    if as_json:
        print_json(_values(record))
        return
    print_text(_line(record))
    print_table(("package", "version"), sorted(record.packages.items()))


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove an environment; its folder stays, and algorithms that name it cannot run."""
    from swathe.algorithms import environments

    environments.remove(name)
    if as_json:
        print_json({"removed": name})
    else:
        print_text(f"removed: {name}")


def _line(record: EnvironmentRecord) -> str:
    return (
        f"{record.name}: Python {record.python_version}, {len(record.packages)} packages, lock "
        f"SHA-256 {record.lock_sha256}"
    )


def _values(record: EnvironmentRecord) -> dict[str, Any]:
    added_at = None if record.added_at is None else record.added_at.isoformat()
    return {**asdict(record), "added_at": added_at}
