"""Copies of the objects of a dataset in another store, verified, and kept in the catalogue.

An object is copied at the version that the catalogue knows, or not at all, so that what was read
of it holds for its copy. A copy is seen under its name when it is whole, and noted when it was
verified: whoever is killed leaves nothing to mend, and the next run goes on.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from swathe import _swathe
from swathe.catalog import BUCKETS, WEBDAV, Replica, this_host
from swathe.core.errors import DatasetError, OutputError, OutputExistsError, SwatheError
from swathe.core.outputs import EXISTS, check_output, identities
from swathe.costs.cost_model import Costs, Sample
from swathe.costs.probing.probe_writes import writing_costs
from swathe.datasets.scan import Fault
from swathe.stores.listing import HIDDEN, Listed, Unlisted, list_objects
from swathe.stores.registry import LOCAL_ROOT, to_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swathe.catalog import Catalog, Dataset, Store

THREADS = 8
"""Each copies one object at a time, and holds at most 40 MiB of it."""
PART_BYTES = 8 << 20
"""What the engine moves at once."""
WRITABLE = ("file", *BUCKETS, *WEBDAV)
POLL_S = 0.1
NS = 1_000_000_000
FILE_TAG = "mtime:"
"""So begin the versions of files."""


@dataclass(frozen=True)
class Plan:
    """What mirroring a dataset takes.

    Attributes:
        dataset: its name.
        source: the store its objects are in.
        store: where copies go.
        prefix: the folder there.
        copies: what is missing or stale: path of the object, and of its copy.
        versions: of these, as the catalogue knows them.
        there: how many copies there are already.
        vanished: copies of objects that are no longer there.
        gone: copies of such objects that are not there either.
        untold: copies of such objects of which the store does not say whether they are there.
        skipped: objects that are damaged, or could not be read when they were catalogued.
        faults: objects that cannot be copied, whatever is tried.
        bytes: of all that is missing or stale.
        seconds: how long copying them will take.
        measured: whether both stores were probed, the one that is written to with writing, so
            that this is more than a guess.
    """

    dataset: str
    source: str
    store: str
    prefix: str
    copies: list[tuple[str, str]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    there: int = 0
    vanished: list[Replica] = field(default_factory=list)
    gone: list[Replica] = field(default_factory=list)
    untold: list[Replica] = field(default_factory=list)
    skipped: int = 0
    faults: list[Fault] = field(default_factory=list)
    bytes: int = 0
    seconds: float = 0.0
    measured: bool = False


@dataclass
class Report:
    """What mirroring did.

    Attributes:
        copied: objects.
        bytes: written.
        read_back: of the objects, those whose store tells no MD5, so that they were read again.
        there: copies that were there already.
        deleted: copies of what has vanished.
        skipped: as of the plan.
        faults: what could not be copied or deleted.
        outdated: whether some are not as the catalogue knows them.
        seconds: how long it took.
    """

    dataset: str
    copied: int = 0
    bytes: int = 0
    read_back: int = 0
    there: int = 0
    deleted: int = 0
    skipped: int = 0
    faults: list[Fault] = field(default_factory=list)
    outdated: bool = False
    seconds: float = 0.0


def plan(
    catalog: Catalog,
    dataset: str,
    store: str,
    prefix: str | None = None,
    *,
    threads: int = THREADS,
    overwrite: bool = False,
) -> Plan:
    """Compare a dataset with what there is of it in another store.

    Args:
        catalog: where the dataset is.
        dataset: its name.
        store: name of the store to copy to.
        prefix: the folder there; else the one of the dataset, so that paths are the same.
        threads: that will copy.
        overwrite: whether a copy may take the place of a file that is no copy of this dataset.
            One of its own objects never goes.

    Raises:
        NoSuchDatasetError, NoSuchStoreError: where there is none of that name.
        DatasetError: where the store cannot be written to, or holds the dataset itself.
        NotFoundError, AccessError, SourceError: where the store cannot be listed, or the token of
            one of both cannot be read.
    """
    known = catalog.dataset(dataset)
    source, target = catalog.store(known.store), catalog.store(store)
    prefix = known.prefix if prefix is None else prefix
    _check_apart(known, source, target, prefix)
    there, unlisted = _listed(target, prefix)
    copies = {replica.object_path: replica for replica in catalog.replicas(dataset, store)}
    made = Plan(dataset, source.name, store, prefix)
    sizes = []
    skipped = 0
    present = 0
    gone = dict(copies)
    objects = catalog.replicas(dataset, source.name)
    taken = _taken(source, target, objects, there)
    for replica in objects:
        path = replica.object_path
        if replica.state == "vanished":
            continue
        copy = gone.pop(path, None)
        if replica.state != "ok" or replica.version is None:
            skipped += 1
            continue
        below = path.removeprefix(f"{known.prefix}/") if known.prefix else path
        to = f"{prefix}/{below}" if prefix else below
        if fault := _unsafe(to):
            made.faults.append(Fault(path, fault))
            continue
        if copy is not None and copy.path == to and _is_there(copy, there.get(to)):
            present += 1
            continue
        is_own = copy is not None and copy.path == to
        if fault := taken(to, overwrite or is_own):
            reason = f"{source.name}:{path} to {store}:{to}: {fault}"
            made.faults.append(Fault(path, reason))
            continue
        made.copies.append((path, to))
        made.versions.append(replica.version)
        sizes.append(int(replica.version.partition(" ")[0]))
    left = [copy for copy in gone.values() if copy.state != "vanished"]
    _sort_out(made, left, target, there, unlisted)
    seconds, measured = _predicted(catalog, (source, target), sizes, threads)
    return replace(
        made,
        there=present,
        skipped=skipped,
        bytes=sum(sizes),
        seconds=seconds,
        measured=measured,
    )


def mirror(
    catalog: Catalog,
    wanted: Plan,
    *,
    delete: bool = False,
    threads: int = THREADS,
    show: Callable[[int], None] = lambda _done: None,
) -> Report:
    """Copy what a plan says is missing or stale; one object that fails stops no other.

    Args:
        catalog: where the dataset is, and where copies are noted.
        wanted: made with `plan`.
        delete: whether to delete copies of what has vanished.
        threads: how many objects are copied at the same time.
        show: is told how many objects are done.
    """
    started = time.monotonic()
    report = Report(
        wanted.dataset, there=wanted.there, skipped=wanted.skipped, faults=list(wanted.faults)
    )
    stores = [catalog.store(name) for name in (wanted.source, wanted.store)]
    engine = to_native(stores)
    if delete:
        _delete(catalog, wanted, engine, report)
    if not wanted.copies:
        report.seconds = time.monotonic() - started
        return report
    orders = [
        (f"{wanted.source}:{path}", version, f"{wanted.store}:{to}")
        for (path, to), version in zip(wanted.copies, wanted.versions, strict=True)
    ]
    _begin(catalog, wanted)
    copies = _swathe.Copies(orders, threads, engine)
    finished = 0
    try:
        while (done := copies.poll(POLL_S)) is not None:
            if done:
                kept = [_noted(wanted, copied, report) for copied in done]
                # At once: what is not noted is copied again.
                catalog.put_objects(
                    wanted.dataset, wanted.store, [(replica, None) for replica in kept]
                )
            finished += len(done)
            show(finished)
    finally:
        copies.cancel()
    report.bytes = copies.bytes
    report.seconds = time.monotonic() - started
    return report


def _check_apart(dataset: Dataset, source: Store, target: Store, prefix: str) -> None:
    scheme = target.url.partition("://")[0]
    if scheme not in WRITABLE:
        raise DatasetError(
            f"a mirror is in a folder, in a bucket or on a WebDAV server ({', '.join(WRITABLE)}); "
            f"the store {target.name!r} is of {scheme}://"
        )
    ours, theirs = _url(source, dataset.prefix), _url(target, prefix)
    inside = f"{ours}/".startswith(f"{theirs}/") or f"{theirs}/".startswith(f"{ours}/")
    if source.name == target.name or inside:
        raise DatasetError(
            f"a mirror of {dataset.name!r} is in another store, and neither within "
            f"{source.name}:{dataset.prefix} nor around it; not {target.name}:{prefix}"
        )


def _url(store: Store, prefix: str) -> str:
    """Give the folder such that one has one name, whatever the scheme it is called by."""
    if store.url.startswith("file://"):
        return os.path.realpath(unquote(store.url.removeprefix("file://")) + f"/{prefix}")
    if (asked := to_native([store]).asked_by_http(f"{store.name}:")) is None:
        return f"{store.key}/{prefix}".rstrip("/")
    # The port is there if it is not the scheme's; http:// and https:// lead to the same folders.
    root = urlsplit(asked)
    path = re.sub("/+", "/", f"/{unquote(root.path)}/{prefix}").rstrip("/")
    return f"//{root.netloc.lower()}{path}"


def _listed(store: Store, prefix: str) -> tuple[dict[str, Listed], list[str]]:
    """Give what is there by its path, and what cannot be told."""
    found = list(list_objects(store, prefix, None, may_lack=True))
    return (
        {each.path: each for each in found if isinstance(each, Listed)},
        [each.path for each in found if isinstance(each, Unlisted)],
    )


def _sort_out(
    made: Plan,
    copies: list[Replica],
    target: Store,
    there: dict[str, Listed],
    unlisted: list[str],
) -> None:
    """Tell copies that may be deleted from those that are gone already.

    By the name of a copy there may be a folder now, and servers may delete all that is in it.
    """
    # The mirror may have been in another folder before.
    for folder in {copy.path.rpartition("/")[0] for copy in copies}:
        if made.prefix and not f"{folder}/".startswith(f"{made.prefix}/"):
            try:
                more, silent = _listed(target, folder)
            except SwatheError:  # what lies there is told by whoever deletes
                more, silent = {}, [folder]
            there.update(more)
            unlisted += silent
    for copy in copies:
        if copy.path in there:
            made.vanished.append(copy)
        elif any(not at or f"{copy.path}/".startswith(f"{at}/") for at in unlisted):
            made.untold.append(copy)
        else:
            made.gone.append(copy)


def _unsafe(path: str) -> str | None:
    """Tell why a path must not be written to, if so: a server may list what leads elsewhere."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        return f"expected a path below the folder of the mirror, found {path[:200]!r}"
    if any(part.startswith(HIDDEN) for part in parts):
        return f"a path with a part that is hidden ({HIDDEN}...) is none of a dataset"
    return None


def _is_there(copy: Replica, now: Listed | None) -> bool:
    """Tell whether a copy is in its store as it was written."""
    if copy.state != "ok" or copy.version is None or now is None or now.size != copy.size:
        return False
    tag = copy.version.partition(" ")[2]
    # Not every server lists ETags, or gave one for every byte at once (Apache: a second after
    # it was written). Then it is the size that counts.
    sized = now.etag is None or not tag.startswith('"')
    return now.mark == copy.modified or (sized and not tag.startswith(FILE_TAG))


def _taken(
    source: Store, target: Store, objects: Sequence[Replica], there: Mapping[str, Listed]
) -> Callable[[str, bool], str | None]:
    """Give what tells why nothing may be written to a path of the target, if so."""
    ours, theirs = (_local_root(store) for store in (source, target))

    @cache
    def sources() -> dict[tuple[int, int], Path]:
        return identities(ours / replica.path for replica in objects) if ours is not None else {}

    @cache
    def looks() -> dict[tuple[int, str], str]:
        return {look: replica.path for replica in objects for look in _looks(replica)}

    def why(path: str, may_replace: bool) -> str | None:
        try:
            if theirs is None:
                if path in there and not may_replace:
                    raise OutputExistsError(f"{target.name}:{path}: {EXISTS}")
                if path in there and target.url.partition("://")[0] in WEBDAV:
                    _refuse_alike(f"{target.name}:{path}", there[path], source, looks())
            elif os.path.lexists(file := theirs / path) and not _is_folder(file):
                same = identities([file]).keys() & sources().keys()
                check_output(file, overwrite=may_replace, sources=[sources()[it] for it in same])
        except OutputError as error:
            return str(error)
        return None

    return why


def _looks(replica: Replica) -> Iterator[tuple[int, str]]:
    """Give size and time of an object of a dataset as a server that has it, too, may list them."""
    if replica.size is not None and replica.modified is not None:
        yield replica.size, replica.modified
        if replica.modified.isdecimal():  # of a file, ns
            second = int(replica.modified) // NS
            yield replica.size, formatdate(second, usegmt=True)


def _refuse_alike(
    copy: str, listed: Listed, source: Store, looks: Mapping[tuple[int, str], str]
) -> None:
    """Refuse what may be an object of the dataset: a server may lead to the same folder.

    Raises:
        OutputError: where one has this size and this time.
    """
    for mark in (listed.etag, listed.modified):
        if listed.size is not None and mark and (path := looks.get((listed.size, mark))):
            raise OutputError(
                f"{copy}: cannot write: it has the size and the time of {source.name}:{path}, and "
                "may be the same file; delete it there if it is not"
            )


def _is_folder(file: Path) -> bool:
    """Tell whether copying will fail, which is noted then."""
    return file.is_dir() and not file.is_symlink()


def _local_root(store: Store) -> Path | None:
    is_local = store.url.startswith("file://")
    return Path(unquote(store.url.removeprefix("file://")) or "/") if is_local else None


def _begin(catalog: Catalog, wanted: Plan) -> None:
    """Note the copies to come: what a run leaves that is killed is known to be a copy then."""
    known = {copy.object_path: copy.path for copy in catalog.replicas(wanted.dataset, wanted.store)}
    reason = "its copy was begun, and not finished"
    catalog.put_objects(
        wanted.dataset,
        wanted.store,
        [
            (Replica(path, to, None, None, None, "failed", reason), None)
            for path, to in wanted.copies
            if known.get(path) != to
        ],
    )


def _noted(wanted: Plan, copied: _swathe.Copied, report: Report) -> Replica:
    """Give what to keep of an object that was copied, or could not be."""
    path, to = wanted.copies[copied.number]
    if copied.kind is None:
        report.copied += 1
        report.read_back += copied.read_back
        size, _, tag = copied.version.partition(" ")
        return Replica(path, to, int(size), _mark(tag), copied.version, "ok")
    reason = f"{wanted.source}:{path} to {wanted.store}:{to}: {copied.reason}"
    report.faults.append(Fault(path, reason))
    report.outdated |= copied.kind in ("ChangedError", "NotFoundError")
    return Replica(path, to, None, None, None, "failed", reason)


def _mark(tag: str) -> str:
    """Give what the next listing will say of a version: nanoseconds of a file, else an ETag."""
    if tag.startswith(FILE_TAG):
        return tag.removeprefix(FILE_TAG).partition("-ino:")[0].replace(".", "")
    return tag.strip('"')


def _delete(catalog: Catalog, wanted: Plan, engine: _swathe.Stores, report: Report) -> None:
    deleted, gone = [], [copy.object_path for copy in wanted.gone]
    for copy in wanted.untold:
        reason = f"{wanted.store}:{copy.path}: whether it is there to delete, its store cannot tell"
        report.faults.append(Fault(copy.object_path, reason))
    for copy in wanted.vanished:
        try:
            engine.remove(f"{wanted.store}:{copy.path}")
        except SwatheError as error:
            reason = f"{wanted.store}:{copy.path}: it cannot be deleted: {error}"
            report.faults.append(Fault(copy.object_path, reason))
            continue
        deleted.append(copy.object_path)
    catalog.set_states(wanted.dataset, wanted.store, deleted + gone, "vanished")
    report.deleted = len(deleted)


def _predicted(
    catalog: Catalog, stores: tuple[Store, Store], sizes: list[int], threads: int
) -> tuple[float, bool]:
    """Say how long copying takes, and whether the stores were measured.

    Reading and writing go on at the same time, so the slower store counts. Where writing was not
    measured it is taken to cost what reading does.
    """
    if not sizes:
        return 0.0, True
    source, target = stores
    reading, read = _reading(catalog, source)
    writing = _writing(catalog, target)
    requests = sum(max(1, -(-size // PART_BYTES)) for size in sizes)
    largest = min(max(sizes), PART_BYTES)
    slowest = max(
        float(known.read_s(sum(sizes), requests, min(threads, requests), largest))
        for known in (reading, writing or _reading(catalog, target)[0])
    )
    return slowest, read and writing is not None


def _reading(catalog: Catalog, store: Store) -> tuple[Costs, bool]:
    """Give what reading costs, and whether that was measured."""
    for root in _roots(store):
        if (profile := catalog.profile(root, this_host())) is not None:
            return Costs.from_dict(profile.costs), True
    local = store.url.startswith("file://")
    return Costs.from_dict(json.loads(_swathe.assumed_costs(local))), False


def _writing(catalog: Catalog, store: Store) -> Costs | None:
    """Give what writing costs, if that was measured."""
    for root in _roots(store):
        samples = [
            Sample("write", kept.bytes, kept.seconds, kept.requests, kept.streams)
            for kept in catalog.samples(root, this_host(), ["write"])
        ]
        if (costs := writing_costs(samples)) is not None:
            return costs
    return None


def _roots(store: Store) -> tuple[str, ...]:
    """Give the roots by which what was measured of a store may be filed."""
    return (store.key, LOCAL_ROOT) if store.url.startswith("file://") else (store.key,)
