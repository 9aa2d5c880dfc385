"""The commands `swathe cache`: show and clear the caches on local disk."""

from __future__ import annotations

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table
from swathe.core.format import size_text

app = typer.Typer(
    help="Show and clear the local cache: blocks of remote files, and the index of layouts.",
    no_args_is_help=True,
)


@app.command()
def show(as_json: Json = False) -> None:
    """Show folder, size and size limit of the block cache and the index."""
    from swathe.core import cache

    folders = cache.show()
    if as_json:
        print_json(
            {
                each.name: {
                    "folder": str(each.folder),
                    "values": each.files,
                    "bytes": each.bytes,
                    "limit": each.limit_bytes,
                }
                for each in folders
            }
        )
        return
    rows = [
        (
            each.name,
            str(each.files),
            size_text(each.bytes, ".1f"),
            size_text(each.limit_bytes, ".1f"),
            str(each.folder),
        )
        for each in folders
    ]
    print_table(("cache", "files", "size", "limit", "folder"), rows)


@app.command()
def clear(as_json: Json = False) -> None:
    """Remove all cached blocks and the index. Later reads fill them again."""
    from swathe.core import cache

    freed_bytes = cache.clear()
    if as_json:
        print_json({"freed": freed_bytes})
    else:
        sizes = ", ".join(
            f"{size_text(size, '.1f')} of {kind}" for kind, size in freed_bytes.items()
        )
        typer.echo(f"freed {sizes}")
