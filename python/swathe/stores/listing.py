"""List the objects of a store below a prefix, or those in a text file."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from swathe._swathe import LONGEST_PATH_BYTES
from swathe.core.errors import DatasetError, NotFoundError, SourceError, SwatheError
from swathe.stores.registry import to_native

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swathe._swathe import Listing, Stores
    from swathe.catalog import Store
    from swathe.stores.staging.stager import Locality

LONGEST_MARK = 100
"""Limit of the catalogue for an ETag or a time; all known ones are shorter."""
LARGEST_SIZE = (1 << 63) - 1
"""Limit of the catalogue for a size."""


@dataclass(frozen=True)
class ListedObject:
    """An object in a listing.

    Attributes:
        path: path in the store.
        size: size in bytes; `None` if the listing does not give it exactly.
        modified: modification time as the listing writes it; `None` if it gives none.
        etag: ETag without quotes; `None` if the listing gives none.
        locality: `disk`, `nearline` (on tape only), `lost` or `unavailable`; `None` if it was not
            asked for, or the objects of the store are not staged.
    """

    path: str
    size: int | None = None
    modified: str | None = None
    etag: str | None = None
    locality: Locality | None = None

    @property
    def mark(self) -> str | None:
        """Return the object's version mark: its ETag, else its time."""
        return self.etag or self.modified

    def shows_changes(self) -> bool:
        """Check whether a change of the object would show in the listing."""
        return self.size is not None and self.mark is not None


@dataclass(frozen=True)
class UnlistedObject:
    """An entry that could not be listed, and the reason."""

    path: str
    reason: str


def list_objects(
    store: Store, prefix: str, pattern: str | None, *, may_lack: bool = False
) -> Iterator[ListedObject | UnlistedObject]:
    """Return the objects below a folder of a store whose names match the pattern.

    A pattern without a slash is matched with the last part of the path. A pattern with a slash is
    matched with the whole path after the prefix. A sub-folder that cannot be listed is yielded as
    `UnlistedObject` and does not stop the listing. With `may_lack` a missing folder yields nothing.

    Raises:
        NotFoundError, AccessError, SourceError: If the folder cannot be listed.
        DatasetError: If the server's answer is not an index.
    """
    listing = to_native([store]).list(f"{store.name}:{prefix}", may_lack=may_lack)
    return listed_objects(listing, prefix, pattern)


def is_folder(engine: Stores, name: str) -> bool:
    """Check whether a name is that of a folder with objects below it.

    Args:
        engine: stores of the catalogue.
        name: `NAME:path`, a URL or a path.
    """
    place = name.rstrip("/")
    base = place.rpartition("/")[2].rpartition(":")[2]
    try:
        page = engine.list(place, may_lack=True).next_page() or []
    except SwatheError:
        return False  # what is wrong with it is told when it is read
    parts = (f"/{path}" for path, *_ in page)
    return any(f"/{unquote(base) if '://' in name else base}/" in path for path in parts)


def listed_objects(
    listing: Listing, prefix: str, pattern: str | None, notes: list[str] | None = None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the entries of a listing whose names match the pattern, as `list_objects`.

    Warnings are added to `notes`.
    """
    while (page := listing.next_page()) is not None:
        for path, size, time, etag, why in page:
            if why is not None:
                yield _check_name(UnlistedObject(path, why))
            elif matches(path, prefix, pattern):
                if size is not None and size > LARGEST_SIZE:
                    size = None
                yield _check_name(ListedObject(path, size, _mark(time), _mark(etag)))
    if notes is not None:
        notes.extend(listing.take_notes())


def read_list(
    file: Path, prefix: str, pattern: str | None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects named in a text file, one a line; skip empty lines and # lines.

    Raises:
        NotFoundError, SourceError: If the file cannot be read.
        DatasetError: If the file is not text, or a line is not a path below the prefix.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError as error:
        raise NotFoundError(f"{file}: no such list of objects") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file}: a list of objects is UTF-8 text: {error}") from error
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}") from error
    names = set()
    for number, line in enumerate(lines, 1):
        path = line.strip()
        if not path or path.startswith("#"):
            continue
        below = not prefix or path.startswith(f"{prefix}/") or path == prefix
        if path.startswith("/") or "://" in path or ".." in path.split("/") or not below:
            raise DatasetError(
                f"{file}, line {number}: expected the path of an object in the store, below "
                f"{prefix or 'its root'!r}; found {path[:100]!r}"
            )
        if path not in names and matches(path, prefix, pattern):
            names.add(path)
            yield _check_name(ListedObject(path))


_SET = re.compile(r"\[!?(?:\][^\]]*(\])|[^\]]*(\]?))")
"""Set of characters in a pattern, with its end if it has one."""


def validate_pattern(pattern: str | None) -> str | None:
    """Return the pattern if it is valid.

    Raises:
        DatasetError: If the pattern is empty, or has a [ without a ].
    """
    if pattern is None:
        return None
    is_open = any(not (each[1] or each[2]) for each in _SET.finditer(pattern))
    if not pattern or is_open or pattern.startswith("/") or "\0" in pattern:
        raise DatasetError(
            f"a pattern is that of names, as *.fits or run[0-9]*/frame-*.fits.bz2; not {pattern!r}"
        )
    return pattern


def matches(path: str, prefix: str, pattern: str | None) -> bool:
    """Check whether a path matches a pattern."""
    if pattern is None:
        return True
    below = path.removeprefix(f"{prefix}/") if prefix else path
    text = below if "/" in pattern else below.rpartition("/")[2]
    return fnmatch.fnmatchcase(text, pattern)


def _mark(text: str | None) -> str | None:
    """Return an ETag or a time as the catalogue can hold it."""
    return text[:LONGEST_MARK] if text and "\0" not in text else None


def _check_name(entry: ListedObject | UnlistedObject) -> ListedObject | UnlistedObject:
    if "\0" in entry.path:
        return UnlistedObject(entry.path.replace("\0", "?"), "its path has a null character")
    length = len(entry.path.encode())
    if length > LONGEST_PATH_BYTES:
        return UnlistedObject(
            entry.path, f"its path has {length} bytes, more than {LONGEST_PATH_BYTES}"
        )
    return entry
