"""The source of a cut, for what a file of the cut has besides."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from swathe.core.errors import ChangedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.files.array_file import ArrayFile
    from swathe.files.variable import VariableSet


@contextmanager
def open_source(cutout: VariableSet, rest: str) -> Iterator[ArrayFile]:
    """Return the file of a cut: as it was opened, else opened again by its path or URL.

    Args:
        cutout: the cut.
        rest: what is read of the file, in an error.

    Raises:
        ChangedError: If the file is another version by now.
    """
    from swathe.files.array_file import ArrayFile
    from swathe.files.file import open_any

    if cutout.source.file is not None:
        yield cutout.source.file
        return
    with open_any(cutout.url) as file:
        if not isinstance(file, ArrayFile) or file.version != cutout.version:
            raise ChangedError(
                f"{cutout.url}: expected version {cutout.version}, found {file.version}: {rest} "
                "cannot be written; cut again"
            )
        yield file
