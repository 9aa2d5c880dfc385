"""Make a superfile of what a process had added that was killed before it closed one."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from swathe.core.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    OptionError,
    SourceError,
    SwatheError,
)
from swathe.core.inputs import check_regular
from swathe.runs.superfiles.packing import PackReport
from swathe.runs.superfiles.superfile_writer import SuperfileWriter
from swathe.runs.superfiles.zip_index import MOST_ENTRIES, Entry, check_crc, entry_at
from swathe.stores.object_ranges import PIECE_BYTES

HEADER_BYTES = 4096
"""Longest header of an entry that is looked for; ours have no long extra fields."""


def recover_superfile(
    part: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = False
) -> PackReport:
    """Write the entries of an unfinished superfile into a new one, up to the first damaged one.

    Example:
        >>> swathe.runs.recover_superfile(".astro3d.zip-5f0c1d2e.part", "archive:images/a.zip")

    Args:
        part: file that the process left: `.NAME-xxxxxxxx.part`, or `object` in a folder
            `swathe-superfile-*`. It is not changed.
        target: `STORE:path` or path of the superfile.
        overwrite: whether an object of this name is replaced.

    Raises:
        NotFoundError: If there is no such file.
        SourceError: If it cannot be read.
        OptionError: If it is the target, or has a name twice.
        FormatError: If it has no whole entry.
        LimitError: If it has too many.
        OutputError: If the superfile cannot be written, or exists.
    """
    label, output = os.fspath(part), os.fspath(target)
    path = Path(label)
    if path.exists() and os.path.realpath(output) == os.path.realpath(path):
        raise OptionError(f"{output}: expected a new name, found that of the unfinished superfile")
    try:
        check_regular(path)
        with path.open("rb") as file:
            entries = list(_entries(file, label))
            if not entries:
                raise FormatError(f"{label}: expected entries of a superfile, found none")
            with SuperfileWriter(output, overwrite=overwrite) as writer:
                for entry, first in entries:
                    writer.add(entry.name, _pieces(file, first, entry.end))
    except FileNotFoundError as error:
        raise NotFoundError(f"{label}: there is no such file") from error
    except OSError as error:
        if isinstance(error, SwatheError):
            raise
        raise SourceError(f"{label}: cannot be read: {error.strerror or error}") from error
    return PackReport(len(entries), sum(entry.size for entry, _ in entries))


def _entries(file: BinaryIO, label: str) -> Iterator[tuple[Entry, int]]:
    """Yield whole entries, and where their contents begin."""
    size, start, count = os.fstat(file.fileno()).st_size, 0, 0
    while start < size:
        file.seek(start)
        try:
            entry, length = entry_at(file.read(HEADER_BYTES), start, label)
            if entry.end > size:
                return
            crc = 0
            for piece in _pieces(file, start + length, entry.end):
                crc = zlib.crc32(piece, crc)
            check_crc(crc, entry, label)
        except FormatError:
            return  # what was being added, or the directory
        if (count := count + 1) > MOST_ENTRIES:
            raise LimitError(f"{label}: expected at most {MOST_ENTRIES} entries, found more")
        yield entry, start + length
        start = entry.end


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        file.seek(start)
        piece = file.read(min(PIECE_BYTES, end - start))
        if not piece:
            raise SourceError(f"{file.name}: expected {end} bytes, found {start}")
        yield piece
        start += len(piece)
