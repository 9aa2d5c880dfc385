"""The commands `swathe library`: libraries of one's own that algorithms use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table, print_text
from swathe.cli.sandbox_options import Users
from swathe.cli.versions import Portal, To, print_removal, print_version, print_versions
from swathe.core.format import size_text

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Keep libraries that your algorithms use.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME[@VERSION]", help="Library; by NAME the newest version.")
]


@app.command()
def add(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="Folder or tar with library.toml.")
    ],
    url: To = None,
    users: Users = None,
    as_json: Json = False,
) -> None:
    """Compile a library in the sandbox and add it. A version never changes."""
    from swathe.algorithms import libraries
    from swathe.cli.options import connect_portal

    if url is not None:
        record = connect_portal(url).add_library(source)
    elif users is None and os.geteuid() == 0:
        raise typer.BadParameter(
            "root needs a user id for the compiler, as 70000", param_hint="--users"
        )
    else:
        record = libraries.add(source, users)
    print_version(record, as_json=as_json)


@app.command("list")
def list_(url: Portal = None, as_json: Json = False) -> None:
    """List all versions of libraries, by name, the newest of each first."""
    from swathe.algorithms import libraries
    from swathe.cli.options import connect_portal

    records = libraries.list() if url is None else connect_portal(url).libraries()
    print_versions(records, ("library", "language"), "libraries", as_json=as_json)


@app.command()
def show(name: Name, url: Portal = None, as_json: Json = False) -> None:
    """Show a version of a library: its files, and how it is compiled."""
    from swathe.algorithms import libraries
    from swathe.cli.options import connect_portal

    values = libraries.show(name).summary() if url is None else connect_portal(url).library(name)
    if as_json:
        print_json(values)
        return
    words = " ".join((values["language"], *values["flags"]))
    print_text(f"{values['name']}@{values['version']} in {words}")
    files = values["files"].items()
    print_table(("file", "size"), ((path, size_text(size)) for path, size in files))


@app.command()
def remove(name: Name, url: Portal = None, as_json: Json = False) -> None:
    """Remove a version of a library, or by NAME all; algorithms that name one still have it."""
    from swathe.algorithms import libraries
    from swathe.cli.options import connect_portal

    if url is None:
        libraries.remove(name)
    else:
        connect_portal(url).remove_library(name)
    print_removal(name, as_json=as_json)
