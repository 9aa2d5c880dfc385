"""Write a folder that is one output, such as a Zarr, whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.outputs import EXISTS, check_output

if TYPE_CHECKING:
    from collections.abc import Iterable


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
        overwrite: whether an existing Zarr of this name may be replaced. It is renamed before the
            new one gets its name, and then removed.
        sources: local files and folders that are read; none of them is ever replaced.

    Raises:
        OutputExistsError: If the folder exists and `overwrite` is false.
        OutputError: If the folder cannot be written. An existing one is left unchanged.
    """
    output = Path(path)
    check_output(output, overwrite=overwrite, sources=sources)
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
        os.rename(output, old)
    try:
        os.rename(new, output)
    except OSError:
        if os.path.lexists(old):
            os.rename(old, output)
        raise
