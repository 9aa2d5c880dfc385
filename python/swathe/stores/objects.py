"""Objects of stores: list them, look at one, remove some."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from swathe.core.argument_checks import check_text, check_texts
from swathe.core.errors import NoSuchStoreError, OptionError, SwatheError
from swathe.stores.listing import ListedObject, UnlistedObject, listed_objects, validate_pattern
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe import _swathe


class ObjectStatus(NamedTuple):
    """An object as it is now.

    Attributes:
        name: its name, path or URL.
        size: size in bytes.
        version: its version as manifests have it: size, and ETag or time.
    """

    name: str
    size: int
    version: str


class SubFolder(NamedTuple):
    """A folder in a listing, with all that is below it.

    Attributes:
        path: its full name, with a slash at the end.
        objects: number of objects.
        size: their size in bytes, as far as the listing gives it.
    """

    path: str
    objects: int
    size: int


def list_objects(
    place: str, *, pattern: str | None = None, notes: list[str] | None = None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects at or below a place, with their full names as `path`.

    Example:
        >>> sum(found.size for found in swathe.stores.list_objects("survey:dr17/"))

    Args:
        place: `NAME:folder/` of a store that can be listed, or a local folder.
        pattern: names of files, as `*.fits`; with a slash, paths below the place.
        notes: list to which warnings are added, as of servers of a striped store that were left
            out.

    Raises:
        NotFoundError, AccessError, SourceError: If the place cannot be listed.
        OptionError: If the store cannot be listed.
    """
    yield from _list_place(place, pattern, notes, tells_links=False)


def list_tree(place: str, pattern: str | None) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects of a place that belong to it, as `list_objects`; say which links do not.

    Links of a local folder that lead out of it, to folders or to nothing, are `UnlistedObject`.
    """
    return _list_place(place, pattern, None, tells_links=True)


def _list_place(
    place: str, pattern: str | None, notes: list[str] | None, *, tells_links: bool
) -> Iterator[ListedObject | UnlistedObject]:
    check_text("place", place)
    name, prefix = _parts_of(place)
    listing = native_stores().list(f"{name}{prefix}", tells_links=tells_links)
    for entry in listed_objects(listing, prefix, validate_pattern(pattern), notes):
        path = f"{name}{entry.path}"
        if isinstance(entry, UnlistedObject):
            yield UnlistedObject(path, entry.reason)
        else:
            yield ListedObject(path, entry.size, entry.modified, entry.etag)


def list_folder(
    place: str, *, pattern: str | None = None, notes: list[str] | None = None
) -> Iterator[ListedObject | UnlistedObject | SubFolder]:
    """Yield the objects of a folder as they are listed, then its sub-folders.

    All that is below is listed, since stores without folders know no other way.

    Example:
        >>> [found.path for found in swathe.stores.list_folder("survey:dr17")]

    Args:
        place: as in `list_objects`.
        pattern: as in `list_objects`.
        notes: as in `list_objects`.

    Raises:
        NotFoundError, AccessError, SourceError, OptionError: As `list_objects`.
    """
    top = top_of(check_text("place", place))
    folders: dict[str, tuple[int, int]] = {}
    for entry in list_objects(place, pattern=pattern, notes=notes):
        name, slash, _ = entry.path.removeprefix(top).partition("/")
        if not slash or not entry.path.startswith(top) or isinstance(entry, UnlistedObject):
            yield entry
        else:
            objects, size = folders.get(name, (0, 0))
            folders[name] = objects + 1, size + (entry.size or 0)
    for name in sorted(folders):
        yield SubFolder(f"{top}{name}/", *folders[name])


def stat_object(name: str) -> ObjectStatus:
    """Return size and version of an object.

    Example:
        >>> swathe.stores.stat_object("survey:dr17/frame-1.fits").size

    Args:
        name: `NAME:path`, a URL or a path.

    Raises:
        NotFoundError, AccessError, SourceError: If it cannot be opened.
    """
    source = native_stores().open(check_text("name", name))
    return ObjectStatus(name, source.size, source.version)


def remove_objects(names: str | Sequence[str]) -> int:
    """Remove objects of stores; return how many.

    Example:
        >>> swathe.stores.remove_objects("scratch:old.fits")

    Args:
        names: `NAME:path` of one or more objects. Files outside a store are not removed.

    Raises:
        OptionError: If one is not `NAME:path` of a store; then none is removed.
        NotFoundError: If an object does not exist; those before it are removed.
        OutputError, AccessError, SourceError: If one cannot be removed.
    """
    paths, engine = check_texts("names", names), native_stores()
    for path in paths:
        store, key = _parts_of(path)
        if store == "/" or not key or key.endswith("/"):
            raise OptionError(f"{path}: expected NAME:path of an object in a store")
    for path in paths:
        engine.open(path)
        engine.remove(path)
    return len(paths)


def object_identity(engine: _swathe.Stores, name: str) -> str:
    """Return what all names of one object have in common: its real path, or its URL."""
    if (path := engine.local_path(name)) is not None:
        return os.path.realpath(path)
    url = None
    with suppress(SwatheError):  # reported when it is opened
        url = engine.http_url(name)
    # In a bucket `%20` is part of a key.
    scheme, _, rest = (engine.locate(name)[1] if url is None else unquote(url)).partition("://")
    return f"{scheme}:{posixpath.normpath(rest)}"


def store_of(place: str) -> str:
    """Return the name of the store of a place; empty for a URL or a local path.

    Raises:
        NoSuchStoreError: If there is no store of this name. A local file is `./NAME:path`.
    """
    name, colon, path = place.partition(":")
    if not colon or "/" in name or path.startswith("//"):
        return ""
    if native_stores().locate(f"{name}:x")[1] == f"{name}:x":
        raise NoSuchStoreError(f"there is no store {name!r}; see: swathe store list")
    return name


def _parts_of(place: str) -> tuple[str, str]:
    """Return `NAME:` of a store and the path in it; for other places "/" and the rest."""
    if name := store_of(place):
        return f"{name}:", place.removeprefix(f"{name}:")
    local = native_stores().local_path(place)
    if local is None:
        raise OptionError(f"{place}: expected NAME:path of a store, or a local path")
    path = os.path.abspath(local)
    return "/", path.removeprefix("/") + ("/" if place.endswith("/") and path != "/" else "")


def top_of(place: str) -> str:
    """Return what the full names of the objects in a folder begin with."""
    name, prefix = _parts_of(place)
    return f"{name}{prefix.rstrip('/')}/" if prefix.strip("/") else name
