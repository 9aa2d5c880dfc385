"""Objects of stores: list them, look at one, copy and remove some."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, unquote

from swathe import _swathe
from swathe.core import errors
from swathe.core.argument_checks import check_count, check_text, check_texts
from swathe.core.errors import (
    NoSuchStoreError,
    NotFoundError,
    OptionError,
    OutputError,
    SwatheError,
)
from swathe.core.outputs import EXISTS, refuse_if_sources
from swathe.core.progress import progress_bar
from swathe.stores.copy_reports import CopyFault, CopyReport
from swathe.stores.listing import (
    ListedObject,
    UnlistedObject,
    is_folder,
    listed_objects,
    validate_pattern,
)
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.1
THREADS = 8
"""Objects copied at the same time; each holds at most 40 MiB in memory."""
MOST_THREADS = 64
IS_FOLDER = (
    "expected an object, found a folder; a folder of a store is copied with -r (recursive=True in "
    "Python)"
)
SERVERS = ("http:", "https:", "dav:", "davs:")


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


class CopyPair(NamedTuple):
    """An object, the name of its copy, and its size if a listing gave it."""

    source: str
    target: str
    size: int | None = None


def list_objects(
    place: str, *, pattern: str | None = None
) -> Iterator[ListedObject | UnlistedObject]:
    """Yield the objects at or below a place, with their full names as `path`.

    Example:
        >>> sum(found.size for found in swathe.stores.list_objects("survey:dr17/"))

    Args:
        place: `NAME:folder/` of a store that can be listed, or a local folder.
        pattern: names of files, as `*.fits`; with a slash, paths below the place.

    Raises:
        NotFoundError, AccessError, SourceError: If the place cannot be listed.
        OptionError: If the store cannot be listed.
    """
    check_text("place", place)
    name, prefix = _parts_of(place)
    listing = native_stores().list(f"{name}{prefix}")
    for entry in listed_objects(listing, prefix, validate_pattern(pattern)):
        path = f"{name}{entry.path}"
        if isinstance(entry, UnlistedObject):
            yield UnlistedObject(path, entry.reason)
        else:
            yield ListedObject(path, entry.size, entry.modified, entry.etag)


def list_folder(
    place: str, *, pattern: str | None = None
) -> Iterator[ListedObject | UnlistedObject | SubFolder]:
    """Yield the objects of a folder as they are listed, then its sub-folders.

    All that is below is listed, since stores without folders know no other way.

    Example:
        >>> [found.path for found in swathe.stores.list_folder("survey:dr17")]

    Args:
        place: as in `list_objects`.
        pattern: as in `list_objects`.

    Raises:
        NotFoundError, AccessError, SourceError, OptionError: As `list_objects`.
    """
    top = _top_of(check_text("place", place))
    folders: dict[str, tuple[int, int]] = {}
    for entry in list_objects(place, pattern=pattern):
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


def copy_objects(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    recursive: bool = False,
    pattern: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    threads: int = THREADS,
    progress: bool = True,
) -> CopyReport:
    """Copy objects between stores, or between a store and this machine; each copy is verified.

    Servers copy from one to the other where they can. Else the bytes pass through this machine, and
    the report says why. Each object is copied at one version. A copy gets its name when it is
    whole, and is read back, unless its store reports its MD5 or checksum. An object that cannot be
    copied does not stop the others.

    Example:
        >>> swathe.stores.copy_objects(["a.fits", "b.fits"], "wide:dr17/")
        >>> swathe.stores.copy_objects("wide:dr17/", "copies", recursive=True).bytes

    Args:
        sources: `NAME:path`, URLs or paths; with `recursive` folders, too.
        target: `NAME:path`, or a path. It is a folder if it ends in `/` or is one, if there are
            several sources, and with `recursive`.
        recursive: whether to copy all that is below each source, with its sub-folders.
        pattern: with `recursive`, names of the files to copy, as `*.fits`.
        overwrite: whether files that exist are replaced. A file that is read is never replaced.
        resume: whether objects are skipped whose copy exists with the same size.
        threads: number of objects copied at the same time.
        progress: whether to show a bar.

    Raises:
        OptionError: If arguments contradict each other, or two objects would get one name.
        NoSuchStoreError: If the target names a store that does not exist.
        OutputError: If the target cannot be written, or is one of the files that are read.
        NotFoundError, AccessError, SourceError: If a folder cannot be listed.
    """
    began_s = time.perf_counter()
    names = [os.fspath(each) for each in _as_list(sources)]
    check_texts("sources", names)
    store_of(check_text("target", os.fspath(target)))
    count = check_count("threads", threads, MOST_THREADS)
    if overwrite and resume:
        raise OptionError("expected overwrite or resume, found both")
    if pattern is not None and not recursive:
        raise OptionError("pattern: expected recursive=True with it")
    engine, report = native_stores(), CopyReport()
    pairs = _pairs_of(engine, names, os.fspath(target), recursive, pattern, report)
    _check_targets(engine, pairs)
    if not recursive:
        pairs = _without_folders(engine, pairs, count, report)
    if not overwrite:
        pairs = _new_of(engine, pairs, resume, count, report)
    if pairs:
        copy_pairs(engine, pairs, overwrite, count, report, progress)
    if not recursive:
        report.faults = [_folder_fault(engine, fault) for fault in report.faults]
    report.elapsed_s = time.perf_counter() - began_s
    return report


def copy_object(source: str, target: str, *, overwrite: bool = False) -> None:
    """Copy one object, and verify the copy.

    Args:
        source: `NAME:path`, a URL or a path.
        target: `NAME:path` or a path.
        overwrite: whether an existing object is replaced. A file is never replaced by itself.

    Raises:
        NotFoundError, AccessError, SourceError: If the object cannot be read.
        NoSuchStoreError: If the target names a store that does not exist.
        OutputError: If the copy cannot be written.
    """
    store_of(target)
    engine, pair = native_stores(), CopyPair(source, target)
    _check_targets(engine, [pair])
    report = CopyReport()
    if overwrite or _new_of(engine, [pair], False, 1, report):
        copy_pairs(engine, [pair], overwrite, 1, report, progress=False)
    for fault in report.faults:
        raise getattr(errors, fault.kind)(fault.reason)


def _as_list(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> Sequence[str | os.PathLike[str]]:
    return [sources] if isinstance(sources, str | os.PathLike) else sources


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


def _top_of(place: str) -> str:
    """Return what the full names of the objects in a folder begin with."""
    name, prefix = _parts_of(place)
    return f"{name}{prefix.rstrip('/')}/" if prefix.strip("/") else name


def _pairs_of(
    engine: _swathe.Stores,
    names: Sequence[str],
    target: str,
    recursive: bool,
    pattern: str | None,
    report: CopyReport,
) -> list[CopyPair]:
    """Return the objects to copy, with the names of their copies."""
    if target.startswith("file://"):
        # Names of objects are no part of a URL: `%2e%2e%2f` in one is not undone.
        target = f"{_local_path(engine, target)}{'/' if target.endswith('/') else ''}"
    local = _local_path(engine, target)
    is_folder = recursive or len(names) > 1 or target.endswith(("/", ":"))
    is_folder = is_folder or (local is not None and local.is_dir())
    folder = target if target.endswith(("/", ":")) else f"{target}/"
    is_url = "://" in folder and not _swathe.StoreKind(folder).is_bucket

    def name_below(base: str) -> str:
        """Return the name of a copy in the folder; in a URL `?`, `#` and `%` have a meaning."""
        return f"{folder}{quote(base) if is_url else base}"

    pairs = []
    for name in names:
        if not recursive:
            base = name.rstrip("/").rpartition("/")[2].rpartition(":")[2]
            base = unquote(base) if is_url and "://" in name else base
            pairs.append(CopyPair(name, name_below(base) if is_folder else target))
            continue
        top = _top_of(name)
        for entry in list_objects(name, pattern=pattern):
            below = entry.path.removeprefix(top) if entry.path.startswith(top) else ""
            base = below or entry.path.rpartition("/")[2]
            if isinstance(entry, UnlistedObject):
                report.add_fault(entry.path, "SourceError", entry.reason)
            elif {"", ".", ".."}.intersection(base.split("/")):
                reason = (
                    f"{entry.path}: expected a name below {folder}, found one that leads elsewhere"
                )
                report.add_fault(entry.path, "OutputError", reason)
            else:
                pairs.append(CopyPair(entry.path, name_below(base), entry.size))
    return pairs


def _without_folders(
    engine: _swathe.Stores, pairs: Sequence[CopyPair], threads: int, report: CopyReport
) -> list[CopyPair]:
    """Return the pairs that are not folders of servers; these are faults.

    A server may answer a request for a folder with its index, as if that were an object.
    """

    def is_server_folder(pair: CopyPair) -> bool:
        is_server = engine.locate(pair.source)[1].startswith(SERVERS)
        return is_server and is_folder(engine, pair.source)

    with ThreadPoolExecutor(threads) as pool:
        are_folders = list(pool.map(is_server_folder, pairs))
    objects = []
    for pair, is_one in zip(pairs, are_folders, strict=True):
        if is_one:
            report.add_fault(pair.source, "OptionError", IS_FOLDER)
        else:
            objects.append(pair)
    return objects


def _folder_fault(engine: _swathe.Stores, fault: CopyFault) -> CopyFault:
    """Return a fault of a copy, with its reason if that is that the source is a folder."""
    if fault.kind in ("NotFoundError", "SourceError") and is_folder(engine, fault.name):
        return CopyFault(fault.name, "OptionError", IS_FOLDER)
    return fault


def _local_path(engine: _swathe.Stores, name: str) -> Path | None:
    """Return the path of an object or a folder on this machine."""
    return engine.local_path(name[:-1] if name.endswith("/") and len(name) > 1 else name)


def _check_targets(engine: _swathe.Stores, pairs: Sequence[CopyPair]) -> None:
    """Check the names of the copies.

    Raises:
        OptionError: If two objects would get one name.
        OutputError: If one cannot be written, or is one of the files that are read.
    """
    sources: dict[str, str] = {}
    for pair in pairs:
        if pair.target in sources:
            both = f"{sources[pair.target]} and {pair.source}"
            raise OptionError(f"{pair.target}: expected one source for each name, found {both}")
        sources[pair.target] = pair.source
        if not engine.is_writable(pair.target):
            raise OutputError(
                f"{pair.target}: cannot be written: expected a path, or a store that is a folder, "
                "a bucket, dav(s):// or root://, or is over such stores"
            )
    targets = filter(None, (engine.local_path(pair.target) for pair in pairs))
    local_sources = (engine.local_path(pair.source) for pair in pairs)
    refuse_if_sources(targets, lambda: filter(None, local_sources))
    remote_sources = {
        object_identity(engine, pair.source): pair.source
        for pair in pairs
        if engine.local_path(pair.source) is None
    }
    for pair in pairs if remote_sources else ():
        if source := remote_sources.get(object_identity(engine, pair.target)):
            raise OutputError(
                f"{pair.target}: cannot write: it is the source {source}; give another name"
            )


def _new_of(
    engine: _swathe.Stores,
    pairs: Sequence[CopyPair],
    resume: bool,
    threads: int,
    report: CopyReport,
) -> list[CopyPair]:
    """Return the objects without a copy. The others are skipped if it is whole, else faults.

    A store is asked now, since not all refuse to replace an object when it is written.
    """
    with ThreadPoolExecutor(threads) as pool:
        states = list(pool.map(partial(_copy_state, engine, resume), pairs))
    new = []
    for pair, state in zip(pairs, states, strict=True):
        if isinstance(state, SwatheError):
            report.add_fault(pair.source, type(state).__name__, str(state))
        elif state == "missing":
            new.append(pair)
        elif state == "whole":
            report.skipped += 1
        else:
            report.add_fault(pair.source, "OutputExistsError", f"{pair.target}: {EXISTS}")
    return new


def _copy_state(
    engine: _swathe.Stores, resume: bool, pair: CopyPair
) -> Literal["missing", "whole", "other"] | SwatheError:
    """Return what is there under the name of a copy, or why that cannot be told."""
    try:
        copy_bytes = engine.open(pair.target).size
    except NotFoundError:
        return "missing"
    except SwatheError as error:
        # A file is not replaced when it is written, and says then what is wrong.
        return error if engine.local_path(pair.target) is None else "missing"
    if not resume:
        return "other"
    try:
        size = engine.open(pair.source).size if pair.size is None else pair.size
    except SwatheError as error:
        return error
    return "whole" if size == copy_bytes else "other"


def copy_pairs(
    engine: _swathe.Stores,
    pairs: Sequence[CopyPair],
    overwrite: bool,
    threads: int,
    report: CopyReport,
    progress: bool,
) -> None:
    """Copy objects, verify the copies, and add the outcomes to the report."""
    orders = [(pair.source, None, pair.target, overwrite) for pair in pairs]
    copies = _swathe.Copies(orders, threads, engine)
    with progress_bar("copying", progress, len(pairs)) as show:
        try:
            _collect(copies, pairs, report, show)
        finally:
            copies.cancel()
            report.bytes = copies.bytes


def _collect(
    copies: _swathe.Copies,
    pairs: Sequence[CopyPair],
    report: CopyReport,
    show: Callable[[int], object],
) -> None:
    while (outcomes := copies.poll(POLL_S)) is not None:
        for outcome in outcomes:
            if outcome.kind is None:
                report.add_copy(outcome)
            else:
                report.add_fault(pairs[outcome.number].source, outcome.kind, outcome.reason)
        show(report.copied + report.failed)
