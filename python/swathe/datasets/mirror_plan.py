"""Plan a mirror: compare a dataset with its copies in another store, and predict the time."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from swathe._swathe import HIDDEN
from swathe.catalog import Replica
from swathe.core.errors import DatasetError, OutputError, OutputExistsError, SwatheError
from swathe.core.outputs import EXISTS, check_output, identities
from swathe.costs.store_costs import reading_costs, writing_costs
from swathe.datasets.scan import SkippedObject
from swathe.stores.listing import ListedObject, UnlistedObject, list_objects
from swathe.stores.registry import to_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swathe.catalog import Catalog, Dataset, Store

THREADS = 8
"""Number of threads; each copies one object at a time and holds at most 40 MiB of it."""
PART_BYTES = 8 << 20
"""Size of the parts in which an object is copied."""
NS = 1_000_000_000
FILE_TAG = "mtime:"
"""Prefix of the versions of files."""
FOLDER_TAG = "folder:"
"""Prefix of the versions of folders, as of a Zarr."""


@dataclass(frozen=True)
class MirrorPlan:
    """Work of mirroring a dataset.

    Attributes:
        dataset: name of the dataset.
        source: name of the store of its objects.
        store: name of the store of the copies.
        prefix: folder of the copies.
        copies: path of each missing or stale object, and path of its copy.
        versions: versions of these objects in the catalogue.
        replaces: whether each copy may replace a file of its name.
        there: number of copies that are up to date.
        vanished: copies of objects that no longer exist.
        gone: copies that, like their objects, no longer exist.
        changed: files with the names of copies of vanished objects, which are no longer the copies.
        untold: copies of vanished objects, in a store that cannot tell whether the copies exist.
        skipped: objects that are damaged, or were unreadable when they were catalogued.
        faults: objects that cannot be copied, with the reason.
        bytes: total size of the missing and stale objects.
        predicted_s: predicted time to copy them.
        measured: whether reading from the source and writing to the target were measured. If not,
            `predicted_s` is a guess.
    """

    dataset: str
    source: str
    store: str
    prefix: str
    copies: list[tuple[str, str]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    replaces: list[bool] = field(default_factory=list)
    there: int = 0
    vanished: list[Replica] = field(default_factory=list)
    gone: list[Replica] = field(default_factory=list)
    changed: list[Replica] = field(default_factory=list)
    untold: list[Replica] = field(default_factory=list)
    skipped: int = 0
    faults: list[SkippedObject] = field(default_factory=list)
    bytes: int = 0
    predicted_s: float = 0.0
    measured: bool = False


def plan_mirror(
    catalog: Catalog,
    dataset: str,
    store: str,
    prefix: str | None = None,
    *,
    threads: int = THREADS,
    overwrite: bool = False,
) -> MirrorPlan:
    """Compare a dataset with its copies in another store.

    Args:
        catalog: catalogue of the dataset.
        dataset: name of the dataset.
        store: name of the store to copy to.
        prefix: folder in that store; `None` for the dataset's own, so that paths are the same.
        threads: number of threads that will copy.
        overwrite: whether a copy may replace a file that is not the copy that was recorded. Objects
            of the dataset are never replaced.

    Raises:
        NoSuchDatasetError, NoSuchStoreError: If there is no such dataset or store.
        DatasetError: If the store cannot be written to, or holds the dataset itself.
        NotFoundError, AccessError, SourceError: If the store cannot be listed, or the token of one
            of both stores cannot be read.
    """
    dataset_record = catalog.dataset(dataset)
    source, target = catalog.store(dataset_record.store), catalog.store(store)
    prefix = dataset_record.prefix if prefix is None else prefix
    _check_apart(dataset_record, source, target, prefix)
    copies_there, unread_paths = _list_target(target, prefix)
    copies = {replica.object_path: replica for replica in catalog.replicas(dataset, store)}
    result = MirrorPlan(dataset, source.name, store, prefix)
    sizes = []
    skip_count = 0
    present = 0
    other_copies = dict(copies)
    objects = catalog.replicas(dataset, source.name)
    refusal = _refusals(source, target, objects, copies_there)
    is_same = partial(_is_same, source, target)
    for replica in objects:
        path = replica.object_path
        if replica.state == "vanished":
            continue
        copy = other_copies.pop(path, None)
        if replica.state != "ok" or replica.version is None:
            skip_count += 1
            continue
        if replica.version.partition(" ")[2].startswith(FOLDER_TAG):
            reason = f"{source.name}:{path}: a folder, not a file; to copy it: swathe cp -r"
            result.faults.append(SkippedObject(path, reason))
            continue
        to = _moved_path(path, dataset_record.prefix, prefix)
        if fault := _unsafe(to):
            result.faults.append(SkippedObject(path, fault))
            continue
        objects_there = copies_there.get(to)
        state = _state_of(copy, replica, to, objects_there, is_same)
        if state == "current":
            present += 1
            continue
        may_replace = overwrite or state == "own"
        if fault := refusal(to, may_replace):
            reason = f"{source.name}:{path} to {store}:{to}: {fault}"
            result.faults.append(SkippedObject(path, reason))
            continue
        result.copies.append((path, to))
        result.versions.append(replica.version)
        result.replaces.append(may_replace)
        sizes.append(int(replica.version.partition(" ")[0]))
    remaining = [copy for copy in other_copies.values() if copy.state != "vanished"]
    _sort_out(result, remaining, target, copies_there, unread_paths)
    seconds, is_measured = _predict_time(catalog, (source, target), sizes, threads)
    return replace(
        result,
        there=present,
        skipped=skip_count,
        bytes=sum(sizes),
        predicted_s=seconds,
        measured=is_measured,
    )


def _moved_path(path: str, before: str, after: str) -> str:
    """Return a path with another folder at its beginning."""
    below = path.removeprefix(f"{before}/") if before else path
    return f"{after}/{below}" if after else below


def _state_of(
    copy: Replica | None,
    replica: Replica,
    to: str,
    there: ListedObject | None,
    is_same: Callable[[Replica, ListedObject], bool],
) -> Literal["current", "own", "other"]:
    """Return whether the object at a path is an up-to-date copy, another own one, or neither."""
    if copy is None or copy.path != to or there is None:
        return "other"
    if _is_recorded(copy, there):
        return "current" if copy.state == "ok" else "own"
    # A killed run may have left a complete copy that is not recorded.
    return "own" if copy.version is None and is_same(replica, there) else "other"


def _check_apart(dataset: Dataset, source: Store, target: Store, prefix: str) -> None:
    if not target.kind.is_writable:
        raise DatasetError(
            f"a mirror is in a folder, in a bucket or on a WebDAV server; expected a store that "
            f"can be written to, found {target.name!r}, {target.url}"
        )
    ours, theirs = _url(source, dataset.prefix), _url(target, prefix)
    inside = f"{ours}/".startswith(f"{theirs}/") or f"{theirs}/".startswith(f"{ours}/")
    if source.name == target.name or inside:
        raise DatasetError(
            f"a mirror of {dataset.name!r} is in another store, and neither within "
            f"{source.name}:{dataset.prefix} nor around it; not {target.name}:{prefix}"
        )


def _url(store: Store, prefix: str) -> str:
    """Return one URL for a folder, whichever scheme the store has."""
    if (folder := store.kind.local_path) is not None:
        return os.path.realpath(folder / prefix)
    if (http_url := to_native([store]).http_url(f"{store.name}:")) is None:
        return f"{store.key}/{prefix}".rstrip("/")
    # The port is included if it is not the default; http:// and https:// share their folders.
    root = urlsplit(http_url)
    path = re.sub("/+", "/", f"/{unquote(root.path)}/{prefix}").rstrip("/")
    return f"//{root.netloc.lower()}{path}"


def _list_target(store: Store, prefix: str) -> tuple[dict[str, ListedObject], list[str]]:
    """Return the objects by path, and the paths that could not be listed."""
    entries = list(list_objects(store, prefix, None, may_lack=True))
    return (
        {each.path: each for each in entries if isinstance(each, ListedObject)},
        [each.path for each in entries if isinstance(each, UnlistedObject)],
    )


def _sort_out(
    result: MirrorPlan,
    copies: list[Replica],
    target: Store,
    copies_there: dict[str, ListedObject],
    unread_paths: list[str],
) -> None:
    """Separate copies that may be deleted from those that no longer exist.

    A copy's name may belong to a folder now, and a server may delete a whole folder.
    """
    # The mirror may have been in another folder before.
    for folder in {copy.path.rpartition("/")[0] for copy in copies}:
        if result.prefix and not f"{folder}/".startswith(f"{result.prefix}/"):
            try:
                more, silent = _list_target(target, folder)
            except SwatheError:  # deleting reports the error
                more, silent = {}, [folder]
            copies_there.update(more)
            unread_paths += silent
    for copy in copies:
        if (now := copies_there.get(copy.path)) is not None:
            (result.vanished if _is_recorded(copy, now) else result.changed).append(copy)
        elif any(not at or f"{copy.path}/".startswith(f"{at}/") for at in unread_paths):
            result.untold.append(copy)
        else:
            result.gone.append(copy)


def _unsafe(path: str) -> str | None:
    """Return why a path must not be written, or `None`; a listing may name paths elsewhere."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        return f"expected a path below the folder of the mirror, found {path[:200]!r}"
    if any(part.startswith(HIDDEN) for part in parts):
        return f"expected no part that is hidden ({HIDDEN}...), found {path[:200]!r}"
    return None


def _is_recorded(copy: Replica, now: ListedObject) -> bool:
    """Check whether a file of the target is the copy that was recorded."""
    if copy.version is None or now.size != copy.size:
        return False
    tag = copy.version.partition(" ")[2]
    # Not every server lists ETags, and some change them (Apache: a second after the file was
    # written). Then the size is compared.
    same_size = now.etag is None or not tag.startswith('"')
    return now.mark == copy.modified or (same_size and not tag.startswith(FILE_TAG))


def _is_same(source: Store, target: Store, replica: Replica, now: ListedObject) -> bool:
    """Check whether a file of the target has the content of an object, by reading both."""
    if now.size != replica.size:
        return False
    engine = to_native([source, target])
    names = (f"{source.name}:{replica.path}", f"{target.name}:{now.path}")
    ours, theirs = (engine.open(name) for name in names)
    return ours.size == theirs.size and all(
        ours.read(start, stop) == theirs.read(start, stop)
        for start in range(0, ours.size, PART_BYTES)
        for stop in [min(start + PART_BYTES, ours.size)]
    )


def _refusals(
    source: Store,
    target: Store,
    objects: Sequence[Replica],
    copies_there: Mapping[str, ListedObject],
) -> Callable[[str, bool], str | None]:
    """Return a function that says why a path of the target must not be written, or `None`."""
    ours, theirs = source.kind.local_path, target.kind.local_path

    @cache
    def sources() -> dict[tuple[int, int], Path]:
        return identities(ours / replica.path for replica in objects) if ours is not None else {}

    @cache
    def looks() -> dict[tuple[int, str], str]:
        return {look: replica.path for replica in objects for look in _looks(replica)}

    def why(path: str, may_replace: bool) -> str | None:
        try:
            if theirs is None:
                if path in copies_there and not may_replace:
                    raise OutputExistsError(f"{target.name}:{path}: {EXISTS}")
                if path in copies_there and target.kind.is_webdav:
                    _refuse_alike(f"{target.name}:{path}", copies_there[path], source, looks())
            elif os.path.lexists(file := theirs / path) and not _is_folder(file):
                same = identities([file]).keys() & sources().keys()
                check_output(file, overwrite=may_replace, sources=[sources()[it] for it in same])
        except OutputError as error:
            return str(error)
        return None

    return why


def _looks(replica: Replica) -> Iterator[tuple[int, str]]:
    """Yield size and time of an object as a server of the same folder may list them."""
    if replica.size is not None and replica.modified is not None:
        yield replica.size, replica.modified
        if replica.modified.isdecimal():  # a file's time in ns
            second = int(replica.modified) // NS
            yield replica.size, formatdate(second, usegmt=True)


def _refuse_alike(
    copy: str, copy_object: ListedObject, source: Store, looks: Mapping[tuple[int, str], str]
) -> None:
    """Refuse a file that may be an object of the dataset: a server may share the folder.

    Raises:
        OutputError: If an object has the same size and time.
    """
    for mark in (copy_object.etag, copy_object.modified):
        if copy_object.size is not None and mark and (path := looks.get((copy_object.size, mark))):
            raise OutputError(
                f"{copy}: cannot write: it has the size and the time of {source.name}:{path}, and "
                "may be the same file; delete it there if it is not"
            )


def _is_folder(file: Path) -> bool:
    """Check whether a folder has this name; the copy will fail, and that is recorded."""
    return file.is_dir() and not file.is_symlink()


def _predict_time(
    catalog: Catalog, stores: tuple[Store, Store], sizes: list[int], threads: int
) -> tuple[float, bool]:
    """Return the predicted time to copy, and whether the stores were measured.

    Reading and writing overlap, so the slower store counts. If writing was not measured, it is
    assumed to cost as much as reading.
    """
    if not sizes:
        return 0.0, True
    source, target = stores
    reading, is_measured = reading_costs(catalog, source)
    writing = writing_costs(catalog, target)
    requests = sum(max(1, -(-size // PART_BYTES)) for size in sizes)
    largest = min(max(sizes), PART_BYTES)
    slowest = max(
        float(costs.read_s(sum(sizes), requests, min(threads, requests), largest))
        for costs in (reading, writing.costs if writing else reading_costs(catalog, target)[0])
    )
    return slowest, is_measured and writing is not None
