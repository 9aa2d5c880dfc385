"""Write a folder that is one output, such as a Zarr, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from swathe.core import zarr_names
from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.outputs import EXISTS, check_output

if TYPE_CHECKING:
    from collections.abc import Iterable


MEMBER = re.compile("|".join([*map(re.escape, zarr_names.EVERY), r"c|(c\.)?\d+(\.\d+)*"]), re.ASCII)
"""Name of a file of a Zarr: metadata, or a chunk."""


def refuse_overlap(output: Path, source: str | os.PathLike[str]) -> None:
    """Refuse an output inside a source that is a folder, or a folder that holds the source.

    Args:
        output: file or folder to write.
        source: local file or folder that is read; links are followed.

    Raises:
        OutputError: If it is; names both.
    """
    real, other = Path(os.path.realpath(output)), Path(os.path.realpath(source))
    if real == other:
        return
    name = os.fsdecode(source)
    if other.is_dir() and real.is_relative_to(other):
        raise OutputError(f"{output}: cannot write: it is inside the source {name}")
    if real.is_dir() and other.is_relative_to(real) and other.exists():
        raise OutputError(f"{output}: cannot write: the source {name} is inside it")


def refuse_in_zarr(output: Path) -> None:
    """Refuse a result that is no member of a Zarr in a folder of one.

    Raises:
        OutputError: If the output would be in a Zarr; names both.
    """
    for folder in Path(os.path.realpath(output)).parents:
        if any((folder / name).exists() for name in zarr_names.MARKS):
            raise OutputError(f"{output}: cannot write: it is inside the Zarr {folder}")


def _refuse_others(folder: Path) -> None:
    """Refuse to replace a folder that has a link, or a file that is of no Zarr.

    Raises:
        OutputError: If it has one, or cannot be listed.
    """

    def fail(error: OSError) -> None:
        raise OutputError(f"{folder}: cannot be listed: {error.strerror}") from error

    if folder.is_symlink():
        raise OutputError(f"{folder}: cannot replace: it is a link")
    for path, folders, files in os.walk(folder, onerror=fail):
        links = (each for each in folders if os.path.islink(os.path.join(path, each)))
        for name in (*links, *files):
            file = os.path.join(path, name)
            if os.path.islink(file) or not MEMBER.fullmatch(name):
                raise OutputError(
                    f"{folder}: cannot replace: expected only files of a Zarr, found {file!r}"
                )


def write_folder(
    path: str | os.PathLike[str],
    members: Iterable[tuple[str, bytes]],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write a folder that gets its name only when it is complete.

    Args:
        path: folder to write.
        members: names of its files, with `/` between folders, and their contents.
        overwrite: whether an existing Zarr of this name may be replaced, if it has no other files
            and no links. It is renamed before the new one gets its name, and then removed.
        sources: local files and folders that are read; none of them is ever replaced.

    Raises:
        OutputExistsError: If the folder exists and `overwrite` is false.
        OutputError: If the folder cannot be written. An existing one is left unchanged.
    """
    output = Path(path)
    check_output(output, overwrite=overwrite, sources=sources)
    if os.path.lexists(output):
        _refuse_others(output)
    new = output.with_name(f".{output.name[:50]}-{token_hex(4)}.part")
    old = new.with_suffix(".old")
    try:
        new.mkdir()
        for name, content in members:
            file = new / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _replace(new, output, old, overwrite=overwrite)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{output}: cannot write: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _replace(new: Path, output: Path, old: Path, *, overwrite: bool) -> None:
    if os.path.lexists(output):
        if not overwrite:
            raise OutputExistsError(f"{output}: {EXISTS}")
        # It may have changed while the new one was made.
        _refuse_others(output)
        os.rename(output, old)
    try:
        os.rename(new, output)
    except OSError:
        if os.path.lexists(old):
            os.rename(old, output)
        raise
