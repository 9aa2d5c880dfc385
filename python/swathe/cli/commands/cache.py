"""The commands `swathe cache`: show and clear what is cached on local disk."""

from __future__ import annotations

from typing import Literal

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table
from swathe.core.format import size_text

app = typer.Typer(
    help="Show and clear the local cache: blocks of remote files, and the index of layouts.",
    no_args_is_help=True,
)

KINDS: tuple[Literal["blocks", "index"], ...] = ("blocks", "index")


@app.command()
def show(as_json: Json = False) -> None:
    """Show folder, size and size limit of the block cache and the index."""
    from swathe import _swathe

    caches = [_swathe.kept(kind) for kind in KINDS]
    if as_json:
        print_json(
            {
                cache.name: {
                    "folder": str(cache.folder),
                    "values": cache.values,
                    "bytes": cache.bytes,
                    "limit": cache.limit,
                }
                for cache in caches
            }
        )
        return
    rows = [
        (
            cache.name,
            str(cache.values),
            size_text(cache.bytes, ".1f"),
            size_text(cache.limit, ".1f"),
            str(cache.folder),
        )
        for cache in caches
    ]
    print_table(("cache", "files", "size", "limit", "folder"), rows)


@app.command()
def clear(as_json: Json = False) -> None:
    """Remove all cached blocks and the index. Later reads fill them again."""
    from swathe import _swathe

    freed = {}
    for kind in KINDS:
        before = _swathe.kept(kind).bytes
        _swathe.clear_kept(kind)
        freed[kind] = before - _swathe.kept(kind).bytes
    if as_json:
        print_json({"freed": freed})
    else:
        sizes = ", ".join(f"{size_text(size, '.1f')} of {kind}" for kind, size in freed.items())
        typer.echo(f"freed {sizes}")
