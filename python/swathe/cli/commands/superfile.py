"""The commands `swathe superfile`: many small files in one object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_line, print_text
from swathe.core.format import count_text, size_text

app = typer.Typer(help="Pack many small files into one object, and read them.")

Name = Annotated[
    str, typer.Argument(metavar="SUPERFILE", help="NAME:path of a store, a URL or a path.")
]


@app.command()
def pack(
    sources: Annotated[list[str], typer.Argument(help="Files to pack: paths, NAME:path or URLs.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="NAME:path of the new object, or its path.")
    ],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Contents of folders, with sub-folders.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Pack files into an uncompressed zip file; it has its name when it is whole."""
    from swathe.runs import pack_files

    report = pack_files(sources, output, recursive=recursive, overwrite=overwrite)
    if as_json:
        print_json(report._asdict())
    else:
        print_text(f"packed {count_text(report.entries, 'file')}, {size_text(report.bytes)}")


@app.command(name="list")
def list_entries(superfile: Name, as_json: Json = False) -> None:
    """List the entries: size in bytes, media type, name."""
    from swathe import superfile as open_superfile

    entries = open_superfile(superfile).entries.values()
    if as_json:
        print_json({"entries": [asdict(each) for each in entries]})
        return
    for each in entries:
        print_line(f"{each.size:>15}  {each.media_type:<24}  {each.name}")


@app.command()
def unpack(
    superfile: Name,
    folder: Annotated[str, typer.Argument(help="Folder of this machine for the files.")],
    entry: Annotated[
        list[str] | None, typer.Option(help="Name of an entry; may be repeated; else all.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Unpack the entries into a folder; their CRC-32 is compared."""
    from swathe.runs import unpack_files

    report = unpack_files(superfile, folder, names=entry or (), overwrite=overwrite)
    if as_json:
        print_json(report._asdict())
    else:
        print_text(f"unpacked {count_text(report.entries, 'file')}, {size_text(report.bytes)}")


@app.command()
def recover(
    part: Annotated[
        str, typer.Argument(metavar="FILE", help="Unfinished superfile of a process that is gone.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="NAME:path of the new object, or its path.")
    ],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write what a killed process had added into a superfile, up to the first damaged entry."""
    from swathe.runs import recover_superfile

    report = recover_superfile(part, output, overwrite=overwrite)
    if as_json:
        print_json(report._asdict())
    else:
        print_text(f"recovered {count_text(report.entries, 'file')}, {size_text(report.bytes)}")
