"""Outputs of the groups of an order, unpacked: a folder for each group beside its archive."""

from __future__ import annotations

import re
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from swathe.core.errors import OutputError, SourceError
from swathe.core.outputs import make_folder, write_file
from swathe.core.value_errors import short_text
from swathe.jobs.group_archives import Output, OutputFile, outputs_in

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX = ".zip"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")
"""Name of an output: no folder, no hidden file."""
BLOCK = 1 << 20


def unpack_groups(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Unpack the archives of groups: `GROUP.zip` into the folder `GROUP` beside it.

    The archives stay: a later fetch compares them. Files with the same content stay as they are,
    and so do files of other names.

    Args:
        folder: folder with the archives.
        names: names of the results of the job; those of other forms are left.
        overwrite: whether to replace files with another content.

    Raises:
        SourceError: If a name is none of a group, or an archive is damaged, has names that lead
            elsewhere, or says that it has more than it has.
        OutputExistsError: If a file has another content, and `overwrite` is false.
        OutputError: If a file cannot be written, or something else has the name of a folder.
    """
    for name in names:
        if not name.endswith(SUFFIX):
            continue
        group = name.removesuffix(SUFFIX)
        if Path(name).name != name or not group.strip("."):
            raise SourceError(f"{folder}: expected names of groups, found {short_text(name)}")
        _unpack(folder / name, folder / group, overwrite)


def _unpack(archive: Path, folder: Path, overwrite: bool) -> None:
    size = archive.stat().st_size
    with archive.open("rb") as content:
        outputs = outputs_in(content)
    for each in outputs:
        if not NAME.fullmatch(each.name):
            raise SourceError(
                f"{archive}: expected plain names of outputs, found {short_text(each.name)}"
            )
    # They are stored as they are, so together they are no larger than their archive.
    if sum(each.size for each in outputs) > size:
        raise SourceError(f"{archive}: expected outputs of at most {size:,} bytes, found more")
    if len({each.name.casefold() for each in outputs}) < len(outputs):
        raise SourceError(f"{archive}: expected each output once, found one twice")
    if folder.is_symlink():
        raise OutputError(f"{folder}: expected a folder, found a link")
    make_folder(folder)
    for each in outputs:
        if _is_there(folder / each.name, each):
            continue
        write_file(folder / each.name, partial(_copy, archive, each), overwrite=overwrite)


def _is_there(path: Path, output: Output) -> bool:
    """Check whether a file has the content of an output."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != output.size:
        return False
    crc = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            crc = zlib.crc32(block, crc)
    return crc == output.crc


def _copy(archive: Path, output: Output, file: BinaryIO) -> None:
    """Copy an output, and compare its size and CRC-32.

    Raises:
        SourceError: If they differ.
    """
    with OutputFile.opener(lambda: archive.open("rb"), output)() as content:
        crc = size = 0
        while block := content.read(BLOCK):
            file.write(block)
            crc, size = zlib.crc32(block, crc), size + len(block)
    if (crc, size) != (output.crc, output.size):
        raise SourceError(f"{archive}: {output.name}: is damaged")
