"""The commands `swathe cache`: what is kept on local disk."""

from __future__ import annotations

from typing import Literal

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table
from swathe.core.format import size_text

app = typer.Typer(
    help="Show and empty what is kept on local disk: blocks of files on servers, and the index.",
    no_args_is_help=True,
)

KINDS: tuple[Literal["blocks", "index"], ...] = ("blocks", "index")


@app.command()
def info(as_json: Json = False) -> None:
    """Show where blocks and the index lie, how much they take and may take."""
    from swathe import _swathe

    found = [_swathe.kept(kind) for kind in KINDS]
    if as_json:
        print_json(
            {
                kept.name: {
                    "folder": str(kept.folder),
                    "values": kept.values,
                    "bytes": kept.bytes,
                    "limit": kept.limit,
                }
                for kept in found
            }
        )
        return
    rows = [
        (
            kept.name,
            str(kept.values),
            size_text(kept.bytes, ".1f"),
            size_text(kept.limit, ".1f"),
            str(kept.folder),
        )
        for kept in found
    ]
    print_table(("kept", "files", "size", "limit", "folder"), rows)


@app.command()
def clear(as_json: Json = False) -> None:
    """Remove all blocks and the index. They come back as files are read."""
    from swathe import _swathe

    freed = {}
    for kind in KINDS:
        before = _swathe.kept(kind).bytes
        _swathe.clear_kept(kind)
        freed[kind] = before - _swathe.kept(kind).bytes
    if as_json:
        print_json({"freed": freed})
    else:
        told = ", ".join(f"{size_text(size, '.1f')} of {kind}" for kind, size in freed.items())
        typer.echo(f"freed {told}")
