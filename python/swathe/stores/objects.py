"""Objects of stores: list them, look at one, remove some."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from swathe.core.argument_checks import check_text, check_texts
from swathe.core.errors import NoSuchStoreError, OptionError, SwatheError
from swathe.stores.listing import ListedObject, UnlistedObject, listed_objects, validate_pattern
from swathe.stores.near_names import open_to_look, source_name
from swathe.stores.registry import caches_of, native_stores, tape_objects, tape_stores
from swathe.stores.staging.on_disk import places_off_disk

if TYPE_CHECKING:
    from swathe import _swathe

LOOK_OBJECTS = 1000
"""Objects of a listing that a staging service is asked about at once."""


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
        off_disk: number of objects that cannot be read now: on tape, lost or unavailable.
    """

    path: str
    objects: int
    size: int
    off_disk: int = 0


def list_objects(
    place: str,
    *,
    pattern: str | None = None,
    notes: list[str] | None = None,
    localities: bool = False,
    dot_names: bool = False,
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects at or below a place, with their full names as `path`.

    Example:
        >>> sum(found.size for found in swathe.stores.list_objects("survey:dr17/"))

    Args:
        place: `NAME:folder/` of a store that can be listed, or a local folder.
        pattern: names of files, as `*.fits`; with a slash, paths below the place.
        notes: list to which warnings are added, as of servers of a striped store that were left
            out.
        localities: whether to ask, in bulk, where each object is, in stores whose objects are
            staged from tape. If the staging service fails, that is unknown, and a warning.
        dot_names: whether to yield those whose names, or those of their folders, begin with a dot,
            too.

    Raises:
        NotFoundError, AccessError, SourceError: If the place cannot be listed.
        OptionError: If the store cannot be listed.
    """
    entries = _list_place(place, pattern, notes, tells_links=False, dot_names=dot_names)
    yield from with_localities(entries, place, notes) if localities else entries


def list_tree(place: str, pattern: str | None) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects of a place that belong to it, as `list_objects`; say which links do not.

    Links of a local folder that lead out of it, to folders or to nothing, are `UnlistedObject`.
    """
    return _list_place(place, pattern, None, tells_links=True)


def _list_place(
    place: str,
    pattern: str | None,
    notes: list[str] | None,
    *,
    tells_links: bool,
    dot_names: bool = False,
) -> Iterator[ListedObject | UnlistedObject]:
    check_text("place", place)
    name, prefix = _parts_of(place)
    listing = native_stores().list(
        f"{name}{prefix}", with_hidden=dot_names, tells_links=tells_links
    )
    for entry in listed_objects(listing, prefix, validate_pattern(pattern), notes):
        path = f"{name}{entry.path}"
        if isinstance(entry, UnlistedObject):
            yield UnlistedObject(path, entry.reason)
        else:
            yield ListedObject(path, entry.size, entry.modified, entry.etag)


def with_localities(
    entries: Iterator[ListedObject | UnlistedObject], place: str, notes: list[str] | None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the entries of a place with their localities, if its objects are staged from tape."""
    sample = f"{top_of(place)}x"
    if not tape_objects([sample]) and not caches_of([sample]):
        yield from entries
        return
    silent: dict[str, str] = {}
    is_any_on_tape = False
    while part := list(islice(entries, LOOK_OBJECTS)):
        names = [each.path for each in part if isinstance(each, ListedObject)]
        places = places_off_disk(names, silent) if not silent else {}
        for each in part:
            if isinstance(each, ListedObject) and not silent:
                off_disk = places.get(each.path)
                locality = "disk" if off_disk is None else off_disk.locality
                each = replace(each, locality=locality)
                is_any_on_tape |= locality != "disk"
            yield each
    if notes is not None:
        if not is_any_on_tape and (store := _folder_of_disk(sample)):
            notes.append(
                f"{store}: only what is on disk is listed, if its folder does not show what is on "
                f"tape; a list of names enters it: swathe dataset add NAME {store}: --objects FILE"
            )
        notes.extend(
            f"{store}: where objects are is unknown: {why}" for store, why in silent.items()
        )


def _folder_of_disk(name: str) -> str:
    """Return the store of an object, if a program brings its objects to a folder; else nothing."""
    store = next((each.store for each in tape_objects([name]).values()), "")
    is_by_program = bool(store) and tape_stores()[store].options.get("staging") == "command"
    return store if is_by_program else ""


def list_folder(
    place: str,
    *,
    pattern: str | None = None,
    notes: list[str] | None = None,
    localities: bool = False,
) -> Iterator[ListedObject | UnlistedObject | SubFolder]:
    """Yield the objects of a folder as they are listed, then its sub-folders.

    All that is below is listed, since stores without folders know no other way.

    Example:
        >>> [found.path for found in swathe.stores.list_folder("survey:dr17")]

    Args:
        place: as in `list_objects`.
        pattern: as in `list_objects`.
        notes: as in `list_objects`.
        localities: as in `list_objects`.

    Raises:
        NotFoundError, AccessError, SourceError, OptionError: As `list_objects`.
    """
    top = top_of(check_text("place", place))
    folders: dict[str, tuple[int, int, int]] = {}
    for entry in list_objects(place, pattern=pattern, notes=notes, localities=localities):
        name, slash, _ = entry.path.removeprefix(top).partition("/")
        if not slash or not entry.path.startswith(top) or isinstance(entry, UnlistedObject):
            yield entry
        else:
            objects, size, off_disk = folders.get(name, (0, 0, 0))
            off_disk += entry.locality not in (None, "disk")
            folders[name] = objects + 1, size + (entry.size or 0), off_disk
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
    source = open_to_look(native_stores(), check_text("name", name))
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
        open_to_look(engine, path)
        engine.remove(path)
    return len(paths)


def object_identity(engine: _swathe.Stores, name: str) -> str:
    """Return what all names of one object have in common: its real path, or its URL."""
    name = source_name(name)
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
