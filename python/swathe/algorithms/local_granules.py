"""Granules on this machine: their times, orbits and arrays, as an algorithm needs them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.algorithms.definition import GranuleInput
from swathe.algorithms.groups import Granule
from swathe.core.errors import AlgorithmError, FormatError, NoSuchArrayError, NotFoundError
from swathe.core.times import utc_of
from swathe.datasets.array_metadata import FileMetadata
from swathe.datasets.header_metadata import times
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any

if TYPE_CHECKING:
    from swathe.files.array import Array
    from swathe.files.file import File


def local_granules(
    paths: Iterable[str | os.PathLike[str]], of_input: GranuleInput
) -> list[Granule]:
    """Return files as granules. One of a format that is not known has no time.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If it lacks an array that the input names.
        SwatheError: If it is damaged.
    """
    granules: list[Granule] = []
    for number, path in enumerate(map(Path, paths), 1):
        if not path.is_file():
            raise NotFoundError(f"{path}: expected a file, found none")
        start, end, orbit = metadata_of(path, of_input)
        name = path.name
        if any(each.id == name for each in granules):
            name = f"{number}-{name}"
        granules.append(Granule(name, str(path.resolve()), start, end, orbit))
    return granules


def metadata_of(
    path: str | os.PathLike[str], of_input: GranuleInput
) -> tuple[datetime | None, datetime | None, int | None]:
    """Return first and last time, and the number of the orbit, as far as they are known.

    Raises:
        AlgorithmError: If the file lacks an array that the input names.
        SwatheError: If it cannot be read, or is damaged.
    """
    try:
        file = open_any(path)
        if not isinstance(file, ArrayFile):
            return *_times(*_image_times(file)), None
    except FormatError:
        if of_input.arrays:
            raise
        return None, None, None
    arrays = [array_of(file, name) for name in of_input.arrays] or list(file.arrays)
    metadata = FileMetadata(file)
    span = metadata.times(arrays[0]) if arrays else (None, None)
    return *_times(*span), metadata.orbit()


def array_of(file: ArrayFile, name: str) -> Array:
    """Return an array by its path, or by its name if only one has it.

    Raises:
        AlgorithmError: If there is none, or several.
    """
    try:
        return file[name]
    except NoSuchArrayError as error:
        raise AlgorithmError(str(error)) from error


def _image_times(file: File) -> tuple[float | None, float | None]:
    return times(file.images[0].header) if file.images else (None, None)


def _times(start: float | None, end: float | None) -> tuple[datetime | None, datetime | None]:
    """Return times of MJD as UTC."""
    first, last = (None if mjd is None else utc_of(mjd) for mjd in (start, end))
    return first, last
