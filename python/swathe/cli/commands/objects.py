"""The commands `swathe ls|stat|cp|put|get|rm`: objects of stores."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_line
from swathe.core.errors import OptionError
from swathe.core.format import count_text, moment_text, rate_text, seconds_text, size_text
from swathe.stores.copies import MOST_THREADS, THREADS
from swathe.stores.objects import SubFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swathe.stores.copies import CopyReport
    from swathe.stores.listing import ListedObject, UnlistedObject

SHOWN_FAULTS = 10
NS = 1_000_000_000
MOMENT_WIDTH = len("2026-11-26 06:36:09 UTC")

Recursive = Annotated[
    bool, typer.Option("--recursive", "-r", help="Contents of folders, with their sub-folders.")
]
Pattern = Annotated[
    str | None, typer.Option(metavar="GLOB", help="Only files of such names, as '*.fits'.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip objects whose copy exists with the same size.")
]
Threads = Annotated[
    int, typer.Option(min=1, max=MOST_THREADS, help="Number of objects at the same time.")
]
Sources = Annotated[list[str], typer.Argument(help="Objects to copy: NAME:path, URLs or paths.")]


def ls(
    place: Annotated[str, typer.Argument(help="NAME:folder of a store, or a local folder.")],
    recursive: Recursive = False,
    pattern: Pattern = None,
    as_json: Json = False,
) -> None:
    """List the objects of a store: size in bytes, time, name.

    A sub-folder is one line, with the size and the number of all objects below. In stores whose
    objects are staged from tape, a column before the name says which are on `disk`, and which on
    `tape` only; of a sub-folder, how many cannot be read now.
    """
    from swathe import stores
    from swathe.stores.listing import UnlistedObject

    entries: Iterable[ListedObject | UnlistedObject | SubFolder]
    listing = stores.list_objects if recursive else stores.list_folder
    notes: list[str] = []
    entries = listing(place, pattern=pattern, notes=notes, localities=True)
    faults, separator = 0, '{"objects": ['
    for entry in entries:
        faults += isinstance(entry, UnlistedObject)
        if as_json:
            # Printed as it is listed: a store may have any number of objects.
            sys.stdout.write(f"{separator}{json.dumps(_fields(entry))}")
            separator = ", "
        elif isinstance(entry, UnlistedObject):
            print_line(f"{entry.path}: {entry.reason}", err=True)
        else:
            print_line(_line(entry))
    if as_json:
        sys.stdout.write("]}\n" if separator == ", " else '{"objects": []}\n')
    for note in notes:
        print_line(f"  note: {note}", err=True)
    if faults:
        raise typer.Exit(1)


def _fields(entry: ListedObject | UnlistedObject | SubFolder) -> dict[str, Any]:
    return entry._asdict() if isinstance(entry, SubFolder) else asdict(entry)


def _line(entry: ListedObject | SubFolder) -> str:
    if isinstance(entry, SubFolder):
        count = count_text(entry.objects, "object")
        off_disk = f"{entry.off_disk} off disk  " if entry.off_disk else ""
        return f"{entry.size:>15}  {count:<{MOMENT_WIDTH}}  {off_disk}{entry.path}"
    size = "?" if entry.size is None else entry.size
    place = "tape" if entry.locality == "nearline" else entry.locality
    locality = "" if place is None else f"{place:<{len('disk')}}  "
    return f"{size:>15}  {_moment(entry.modified):<{MOMENT_WIDTH}}  {locality}{entry.path}"


def _moment(text: str | None) -> str:
    """Return a time of a listing in UTC; as the listing has it, if that names no time zone."""
    if text is None:
        return ""
    if text.isdecimal():
        return moment_text(datetime.fromtimestamp(int(text) / NS, UTC))
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError):
            at = parse(text)
            return text if at.tzinfo is None else moment_text(at)
    return text


def stat(
    names: Annotated[list[str], typer.Argument(help="Objects: NAME:path, URLs or paths.")],
    as_json: Json = False,
) -> None:
    """Show size and version of objects."""
    from swathe import stores

    statuses = [stores.stat_object(name) for name in names]
    if as_json:
        print_json({"objects": [each._asdict() for each in statuses]})
        return
    for each in statuses:
        print_line(f"{each.name}: {each.size:,} bytes, version {each.version}")


def rm(
    names: Annotated[list[str], typer.Argument(help="Objects: NAME:path of a store.")],
    as_json: Json = False,
) -> None:
    """Remove objects from a store. Files outside a store are not removed."""
    from swathe import stores

    count = stores.remove_objects(names)
    if as_json:
        print_json({"removed": count})
    else:
        typer.echo(f"removed {count_text(count, 'object')}")


def cp(
    sources: Sources,
    target: Annotated[str, typer.Argument(help="NAME:path or path; a folder if it ends in /.")],
    recursive: Recursive = False,
    pattern: Pattern = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    threads: Threads = THREADS,
    as_json: Json = False,
) -> None:
    """Copy objects, between any two stores or a store and this machine; each copy is verified.

    Servers copy from one to the other where they can; else the bytes pass through this machine.
    """
    _copy(sources, target, recursive, pattern, overwrite, resume, threads, as_json)


def put(
    sources: Annotated[list[str], typer.Argument(help="Files of this machine.")],
    target: Annotated[str, typer.Argument(help="NAME:path of a store; a folder if it ends in /.")],
    recursive: Recursive = False,
    pattern: Pattern = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    threads: Threads = THREADS,
    as_json: Json = False,
) -> None:
    """Copy files of this machine to a store; each copy is verified."""
    for source in sources:
        if not os.path.lexists(source):
            raise OptionError(f"{source}: expected a file or a folder of this machine; see cp")
    if os.path.lexists(target) or ":" not in target:
        raise OptionError(f"{target}: expected NAME:path of a store; see cp")
    _copy(sources, target, recursive, pattern, overwrite, resume, threads, as_json)


def get(
    sources: Annotated[list[str], typer.Argument(help="Objects: NAME:path, or URLs.")],
    target: Annotated[str, typer.Argument(help="File or folder of this machine, as '.'.")],
    recursive: Recursive = False,
    pattern: Pattern = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    threads: Threads = THREADS,
    as_json: Json = False,
) -> None:
    """Copy objects of stores to this machine; each copy is verified."""
    for source in sources:
        if ":" not in source:
            raise OptionError(f"{source}: expected NAME:path of a store, or a URL; see cp")
    if ":" in target and "/" not in target.partition(":")[0]:
        raise OptionError(f"{target}: expected a file or a folder of this machine; see cp")
    _copy(sources, target, recursive, pattern, overwrite, resume, threads, as_json)


def _copy(
    sources: Sequence[str],
    target: str,
    recursive: bool,
    pattern: str | None,
    overwrite: bool,
    resume: bool,
    threads: int,
    as_json: bool,
) -> None:
    from swathe import stores

    report = stores.copy_objects(
        sources,
        target,
        recursive=recursive,
        pattern=pattern,
        overwrite=overwrite,
        resume=resume,
        threads=threads,
        progress=not as_json,
    )
    show_copies(report, as_json)


def route_texts(by_servers: int, detours: Mapping[str, int]) -> list[str]:
    """Return what a line says of copies between servers; nothing if there were none."""
    texts = [f"{by_servers:,} from server to server"] if by_servers else []
    if detours:
        texts.append(f"{sum(detours.values()):,} through this machine")
    return texts


def show_detours(detours: Mapping[str, int]) -> None:
    """Print why copies between servers passed through this machine."""
    for reason, count in list(detours.items())[:SHOWN_FAULTS]:
        print_line(
            f"  note: {count_text(count, 'object')} through this machine: {reason}", err=True
        )


def show_copies(report: CopyReport, as_json: bool) -> None:
    """Print what became of copies; the exit code is 1 if one failed."""
    if as_json:
        print_json({**asdict(report), "faults": [each._asdict() for each in report.faults]})
    else:
        _show(report)
    if report.failed:
        raise typer.Exit(1)


def _show(report: CopyReport) -> None:
    for fault in report.faults[:SHOWN_FAULTS]:
        print_line(f"{fault.name}: {fault.reason}", err=True)
    for note in report.notes[:SHOWN_FAULTS]:
        print_line(f"  note: {note}", err=True)
    show_detours(report.detours)
    if report.failed > SHOWN_FAULTS:
        typer.echo(f"and {count_text(report.failed - SHOWN_FAULTS, 'other')}", err=True)
    rate = f" ({rate_text(report.bytes / report.elapsed_s)})" if report.bytes else ""
    parts = [
        f"copied {count_text(report.copied, 'object')}, {size_text(report.bytes)}, "
        f"in {seconds_text(report.elapsed_s)}{rate}"
    ]
    parts += route_texts(report.by_servers, report.detours)
    if report.skipped:
        parts.append(f"{report.skipped:,} were there")
    if report.failed:
        parts.append(f"{report.failed:,} failed")
    typer.echo("; ".join(parts))
