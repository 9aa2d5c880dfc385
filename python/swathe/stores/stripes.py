"""Striped stores: the state of their servers and objects, repair, rebalance, and plans of new ones.

An object of a striped store is a part on each server, and a record that says how the parts fit
together. `docs/stripes.md` explains the words.
"""

from __future__ import annotations

import json
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from swathe.catalog.store_urls import STRIPE_URL
from swathe.core.argument_checks import check_count, check_text
from swathe.core.errors import OptionError, SourceError, SwatheError
from swathe.core.format import count_text
from swathe.core.progress import progress_bar
from swathe.stores.copies import (
    MOST_THREADS,
    THREADS,
    CopyPair,
    CopyReport,
    FaultReport,
    copy_pairs,
)
from swathe.stores.listing import UnlistedObject
from swathe.stores.objects import list_objects
from swathe.stores.registry import known_stores, to_native
from swathe.stores.stripe_memory import remember_stripe
from swathe.stores.stripe_progress import Progress, ProgressRecord, RepairBytes
from swathe.stores.stripe_reports import (
    CheckReport,
    Leftover,
    ObjectCheck,
    PieceStatus,
    RepairReport,
    ServerStatus,
    StripeStatus,
    space_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swathe._swathe import Stores
    from swathe.catalog import Store

T = TypeVar("T")
POLL_S = 0.2
"""Time from one look at the bytes that are done to the next."""


class ByteWatch(NamedTuple):
    """Bytes of all objects, and a function that returns those that are done."""

    total_bytes: int
    done_bytes: Callable[[], int]


def stripe_status(name: str, *, count: bool = True) -> StripeStatus:
    """Return the servers of a striped store: whether each answers, what is on it, and its room.

    Repairs and rebalances that run now are in `work`, also those of other processes and machines
    that use this catalogue.

    Example:
        >>> [each.server for each in swathe.stores.stripe_status("wide").servers]

    Args:
        name: name of the store.
        count: whether to list each server and count parts and records; else they are 0.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped.
    """
    from swathe.catalog import Catalog

    store, engine = _stripe_of(name)
    with Catalog.open() as catalog:
        work = catalog.stripe_work(store.name)
    servers = _servers_of(engine, store, count=count)
    block_bytes = int(store.options["block_bytes"])
    width = len(store.over) - store.parity
    return StripeStatus(store.name, width, store.parity, block_bytes, servers, work)


def server_status(name: str, server: str) -> ServerStatus | None:
    """Return one server of a striped store without what is on it; `None`: it has no such server.

    Args:
        name: name of the store.
        server: name of the server, as `NAME:prefix`.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped.
    """
    store, engine = _stripe_of(name)
    report = json.loads(engine.stripe_server(store.name, server))
    return None if report is None else _server_of(report)


def _servers_of(engine: Stores, store: Store, *, count: bool) -> list[ServerStatus]:
    return [_server_of(each) for each in json.loads(engine.stripe_servers(store.name, count))]


def _server_of(report: Mapping[str, Any]) -> ServerStatus:
    space = report["space"]
    return ServerStatus(**{**report, "space": None if space is None else space_of(space)})


def check_stripes(
    place: str,
    *,
    deep: bool = False,
    pattern: str | None = None,
    threads: int = THREADS,
    progress: bool = True,
) -> CheckReport:
    """Check the objects of a striped store: parts and records on every server.

    Example:
        >>> swathe.stores.check_stripes("wide", deep=True).is_whole

    Args:
        place: the store, or `NAME:folder` of it. Parts that belong to no object are reported only
            for the whole store.
        deep: whether to read all parts and verify each block; else sizes and versions are compared.
        pattern: names of objects to check, as `*.fits`.
        threads: number of objects checked at the same time.
        progress: whether to show a bar.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped.
        NotFoundError, AccessError, SourceError: If it cannot be listed.
    """
    began_s = time.perf_counter()
    store, engine = _stripe_of(place)
    engine.ask_failed_servers(store.name)
    report = CheckReport()
    names = list(_sizes_of(place, pattern, report, report.notes))
    report.objects = report.failed
    check = _checking(engine, deep)
    for name, outcome in _each_object("checking", names, check, threads, progress):
        if isinstance(outcome, SwatheError):
            report.objects += 1
            _add_error(report, name, outcome)
        else:
            report.add_check(outcome)
    if _is_all(place, pattern):
        report.leftovers = _leftovers(engine, store, remove=False)
    if report.moves:
        what = count_text(report.moves, "object")
        report.notes.append(
            f"{what}: parts on other servers than they were written to: {report.first_move}"
        )
    remember_stripe(engine, store.name)
    report.elapsed_s = time.perf_counter() - began_s
    return report


def repair_stripes(
    place: str,
    *,
    deep: bool = False,
    remove_leftovers: bool | None = None,
    pattern: str | None = None,
    threads: int = THREADS,
    progress: bool = True,
) -> RepairReport:
    """Make parts and records again that are missing, damaged or of an earlier version.

    An object that is whole is skipped, so that a repair that was stopped can be called again. An
    object that cannot be repaired does not stop the others. An empty server is used as a new one if
    the whole store is repaired.

    Example:
        >>> swathe.stores.repair_stripes("wide").repairs

    Args:
        place: as in `check_stripes`.
        deep: whether to read all parts to find damaged blocks; else sizes and versions are
            compared.
        remove_leftovers: whether to remove parts that belong to no object and were begun more than
            a day ago, of versions that were replaced or removed, and of writes that did not end;
            `None`: if the whole store is repaired.
        pattern: as in `check_stripes`.
        threads: number of objects repaired at the same time.
        progress: whether to show a bar.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped, or `remove_leftovers` is for a part of it.
        NotFoundError, AccessError, SourceError: If it cannot be listed.
    """
    began_s = time.perf_counter()
    store, engine = _stripe_of(place)
    if remove_leftovers and not _is_all(place, pattern):
        raise OptionError(
            f"remove_leftovers: expected the whole store {store.name}, found a part of it"
        )
    engine.ask_failed_servers(store.name)
    report = RepairReport(notes=_admit_servers(engine, store, place, pattern))
    sizes = _sizes_of(place, pattern, report, report.notes)
    amounts = RepairBytes()

    def repair(name: str) -> dict[str, Any]:
        return dict(json.loads(engine.repair_stripe(name, deep, amounts.begin(name, sizes[name]))))

    def progress_now() -> Progress:
        done = report.repairs + report.skipped + report.failed
        written_bytes = report.written_bytes + amounts.written_bytes
        return Progress(done, report.failed, written_bytes, amounts.done_bytes)

    all_sizes = [*sizes.values(), *([0] * report.failed)]
    watch = ByteWatch(sum(all_sizes), lambda: amounts.done_bytes)
    with ProgressRecord(store.name, "repair", place, all_sizes, progress_now) as record:
        for name, outcome in _each_object(
            "repairing", list(sizes), repair, threads, progress, watch
        ):
            amounts.end(name)
            if isinstance(outcome, SwatheError):
                _add_error(report, name, outcome)
            else:
                _add_repair(report, name, outcome)
        if _is_all(place, pattern) and remove_leftovers is not False:
            report.leftovers = _leftovers(engine, store, remove=True)
    remember_stripe(engine, store.name)
    report.notes += record.notes
    report.elapsed_s = time.perf_counter() - began_s
    return report


def _add_repair(report: RepairReport, name: str, outcome: Mapping[str, Any]) -> None:
    report.parts += len(outcome["rebuilt_parts"])
    report.records += len(outcome["rebuilt_records"])
    report.bytes_read += outcome["bytes_read"]
    report.written_bytes += outcome["bytes_written"]
    if outcome["failed"]:
        servers: dict[str, list[str]] = {}
        for each in outcome["failed"]:
            servers.setdefault(_reason_for(name, each["why"]), []).append(
                each["server"].rstrip(":")
            )
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in servers.items()]
        report.add_fault(name, "SourceError", "; ".join(reasons))
    elif outcome["rebuilt_parts"] or outcome["rebuilt_records"]:
        report.repairs += 1
    else:
        report.skipped += 1


def rebalance_stripes(
    place: str,
    *,
    pattern: str | None = None,
    threads: int = THREADS,
    progress: bool = True,
) -> CopyReport:
    """Write objects again that are on other servers, or on another number, than the store is now.

    Each object is written as a new version of itself, so it is whole before and after, and a
    rebalance that was stopped can be called again. If the whole store is rebalanced, leftovers are
    removed as by `repair_stripes`.

    Example:
        >>> swathe.stores.rebalance_stripes("wide").copied

    Args:
        place: as in `check_stripes`.
        pattern: as in `check_stripes`.
        threads: number of objects written at the same time.
        progress: whether to show a bar.

    Returns:
        The number of objects written (`copied`), and of those that needed nothing (`skipped`).

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped.
        NotFoundError, AccessError: If it cannot be listed.
        SourceError: If it cannot be listed, or a server is away.
    """
    began_s = time.perf_counter()
    store, engine = _stripe_of(place)
    engine.ask_failed_servers(store.name)
    report = CopyReport(notes=_admit_servers(engine, store, place, pattern))
    _check_servers(engine, store)
    sizes = _sizes_of(place, pattern, report, report.notes)
    servers = {each.name for each in store.over}
    pairs = []
    check = _checking(engine, deep=False)

    skipped_bytes = 0

    def progress_now() -> Progress:
        done = report.copied + report.skipped + report.failed
        return Progress(done, report.failed, None, skipped_bytes + report.bytes)

    all_sizes = [*sizes.values(), *([0] * report.failed)]
    with ProgressRecord(store.name, "rebalance", place, all_sizes, progress_now) as record:
        for name, outcome in _each_object("checking", list(sizes), check, threads, progress):
            if isinstance(outcome, SwatheError):
                _add_error(report, name, outcome)
                skipped_bytes += sizes[name]
            elif _is_balanced(outcome, servers, store):
                report.skipped += 1
                skipped_bytes += sizes[name]
            else:
                pairs.append(CopyPair(name, name, sizes[name]))
        if pairs:
            copy_pairs(engine, pairs, True, threads, report, progress)
        if _is_all(place, pattern):
            leftovers = _leftovers(engine, store, remove=True)
            count = sum(each.is_removed for each in leftovers)
            if count:
                report.notes.append(
                    f"removed {count_text(count, 'part')} that belonged to no object"
                )
    report.notes += record.notes
    report.elapsed_s = time.perf_counter() - began_s
    return report


def _admit_servers(engine: Stores, store: Store, place: str, pattern: str | None) -> list[str]:
    """Use the empty servers of a store if all of it is repaired; return a note for each.

    Raises:
        SourceError: If more servers are empty or away than the parity, or more than half of
            them. Then these may be the only ones that have the newest version of an object.
    """
    if not _is_all(place, pattern):
        return []
    names = json.loads(engine.admit_empty_servers(store.name))
    return [f"{name.rstrip(':')} was empty, and is used as a new server" for name in names]


def _check_servers(engine: Stores, store: Store) -> None:
    """Check that all servers can take parts: objects written anew without one are worse protected.

    Raises:
        SourceError: If one cannot.
    """
    servers = _servers_of(engine, store, count=False)
    away = [each for each in servers if not each.is_reachable]
    if away:
        faults = "; ".join(f"{each.server.rstrip(':')}: {each.why or each.state}" for each in away)
        raise SourceError(
            f"{store.name}: expected all {len(servers)} servers, so that no object loses its "
            f"parity, found {faults}; start them or mount their disks, make new folders, or add "
            f"the store without them"
        )


def _is_balanced(check: ObjectCheck, servers: set[str], store: Store) -> bool:
    """Check whether an object is on all servers; what those have that are away does not count."""
    # A part on a server that is away may be called missing: its disk is not mounted.
    away = {each.server for each in check.records if each.state == "unreachable"}
    is_there = all(each.state == "whole" or each.server in away for each in check.parts)
    is_spread = {part.server for part in check.parts} == servers
    return check.parity == store.parity and is_spread and is_there


def _stripe_of(place: str) -> tuple[Store, Stores]:
    """Return the striped store of a place, and the engine's stores.

    Raises:
        NoSuchStoreError: If there is no such store.
        OptionError: If it is not striped.
    """
    from swathe.catalog import Catalog

    name = check_text("place", place).partition(":")[0]
    with Catalog.open() as catalog:
        store = catalog.store(name)
    if not store.over:
        raise OptionError(f"{name}: expected a striped store, found {store.url}")
    return store, known_stores() or to_native([store])


def _is_all(place: str, pattern: str | None) -> bool:
    """Check whether a place is a whole store."""
    return pattern is None and not place.partition(":")[2].strip("/")


def _sizes_of(
    place: str, pattern: str | None, report: FaultReport, notes: list[str]
) -> dict[str, int]:
    """Return the names of the objects of a place, with their sizes in bytes; 0 if unknown.

    Entries that cannot be listed are faults. Warnings are added to `notes`.
    """
    sizes = {}
    folder = place if ":" in place else f"{place}:"
    for entry in list_objects(folder, pattern=pattern, notes=notes, dot_names=True):
        if isinstance(entry, UnlistedObject):
            report.add_fault(entry.path, "SourceError", _reason_for(entry.path, entry.reason))
        else:
            sizes[entry.path] = entry.size or 0
    return sizes


def _checking(engine: Stores, deep: bool) -> Callable[[str], ObjectCheck]:
    def check(name: str) -> ObjectCheck:
        values = json.loads(engine.check_stripe(name, deep))
        pieces = {
            kind: [PieceStatus(**each) for each in values[kind]] for kind in ("parts", "records")
        }
        return ObjectCheck(**{**values, **pieces, "path": name})

    return check


def _each_object(
    label: str,
    names: Sequence[str],
    work: Callable[[str], T],
    threads: int,
    progress: bool,
    watch: ByteWatch | None = None,
) -> Iterator[tuple[str, T | SwatheError]]:
    """Yield each object in order, with the result of `work` or its error; show a bar.

    With `watch` the bar is of bytes, unless there are none.
    """
    count = check_count("threads", threads, MOST_THREADS)

    def attempt(name: str) -> T | SwatheError:
        try:
            return work(name)
        except SwatheError as error:
            return error

    are_bytes = watch is not None and watch.total_bytes > 0
    total = watch.total_bytes if watch is not None and are_bytes else len(names)
    waiting: deque[tuple[str, Future[T | SwatheError]]] = deque()
    pool = ThreadPoolExecutor(count, "swathe-stripes")
    try:
        with progress_bar(label, progress, total, are_bytes=are_bytes) as show:

            def result_of(future: Future[T | SwatheError]) -> T | SwatheError:
                while watch is not None and are_bytes and not wait([future], POLL_S).done:
                    show(watch.done_bytes())
                return future.result()

            for number, name in enumerate(names):
                waiting.append((name, pool.submit(attempt, name)))
                if len(waiting) > 2 * count:
                    first, future = waiting.popleft()
                    yield first, result_of(future)
                    show(watch.done_bytes() if watch and are_bytes else number + 1 - len(waiting))
            while waiting:
                first, future = waiting.popleft()
                yield first, result_of(future)
                show(watch.done_bytes() if watch and are_bytes else len(names) - len(waiting))
    finally:
        pool.shutdown(cancel_futures=True)


def _add_error(report: FaultReport, name: str, error: SwatheError) -> None:
    report.add_fault(name, type(error).__name__, _reason_for(name, str(error)))


def _reason_for(name: str, text: str) -> str:
    """Return the text of an error of an object without the name of the object, or of its store."""
    store = name.partition(":")[0]
    reason = text.replace(f"{STRIPE_URL}//{store}/", f"{store}:")
    return reason.removeprefix(f"{name}: ").removeprefix(f"{store}:: ")


def _leftovers(engine: Stores, store: Store, *, remove: bool) -> list[Leftover]:
    return [Leftover(**each) for each in json.loads(engine.stripe_leftovers(store.name, remove))]
