"""Turn the files of a Zarr folder, as a store lists them, into one object: the folder."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from swathe.core import zarr_names
from swathe.stores.listing import ListedObject, UnlistedObject, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MEMBER = re.compile("|".join([*map(re.escape, zarr_names.MARKS), r"\d+(\.\d+)*"]), re.ASCII)
"""Name of a file that makes a folder `.zarr` a Zarr: metadata, or a chunk.

A folder with another name is not opened. Some servers list no metadata of version 2.
"""


def with_zarr_folders(
    entries: Iterable[ListedObject | UnlistedObject], prefix: str, pattern: str | None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects that match a pattern; a Zarr folder is one object, its files are none.

    Its size is that of all files. Its mark is a digest of their names, sizes and marks; it has none
    if one of them has none. With a part that could not be listed a folder has none, too.

    Args:
        entries: all entries of a listing.
        prefix: folder of the listing.
        pattern: shell pattern of names, or of paths below the prefix; `None`: all.
    """
    every = [*entries]
    places = {
        each.path[: each.path.rindex(".zarr/") + len(".zarr")]
        for each in every
        if isinstance(each, ListedObject) and _is_of_zarr(each.path)
    }
    members: dict[str, list[ListedObject]] = {}
    faults = [each.path for each in every if isinstance(each, UnlistedObject)]
    for each in every:
        if isinstance(each, UnlistedObject):
            yield each
            continue
        folder = _outermost(each.path, places)
        if folder:
            members.setdefault(folder, []).append(each)
        elif matches(each.path, prefix, pattern):
            yield each
    for folder, files in members.items():
        if matches(folder, prefix, pattern):
            is_whole = not any(path.startswith(f"{folder}/") for path in faults)
            yield _folder_object(folder, files, is_whole=is_whole)


def _is_of_zarr(path: str) -> bool:
    """Check whether a path is that of metadata or a chunk of a Zarr."""
    folder, _, name = path.rpartition("/")
    return ".zarr/" in f"{folder}/" and MEMBER.fullmatch(name) is not None


def _outermost(path: str, places: set[str]) -> str:
    """Return the outermost of some folders around a file; empty if it is in none."""
    end = path.find("/")
    while end > 0:
        if path[:end] in places:
            return path[:end]
        end = path.find("/", end + 1)
    return ""


def _folder_object(folder: str, files: list[ListedObject], *, is_whole: bool) -> ListedObject:
    if not is_whole or not all(each.shows_changes() for each in files):
        return ListedObject(folder)
    digest = hashlib.sha256()
    for each in sorted(files, key=lambda file: file.path):
        digest.update(f"{each.path}\0{each.size}\0{each.mark}\0".encode("utf-8", "surrogateescape"))
    return ListedObject(folder, sum(each.size or 0 for each in files), etag=digest.hexdigest())
