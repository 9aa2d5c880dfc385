"""Copies of objects: between stores, or between a store and this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, unquote

from swathe import _swathe
from swathe.core import errors
from swathe.core.argument_checks import check_count, check_text, check_texts
from swathe.core.errors import NotFoundError, OptionError, OutputError, SwatheError
from swathe.core.format import count_text
from swathe.core.outputs import EXISTS, refuse_if_sources
from swathe.core.progress import can_show_progress, progress_bar
from swathe.stores.listing import UnlistedObject, is_folder, matches
from swathe.stores.near_names import open_to_look
from swathe.stores.objects import list_tree, object_identity, store_of, top_of
from swathe.stores.registry import native_stores
from swathe.stores.stripe_memory import remember_stripe

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.1
THREADS = 8
"""Objects copied at the same time; each holds at most 40 MiB in memory."""
MOST_THREADS = 64
MOST_FAULTS = 1_000
"""Objects that a report lists by name as not copied."""
IS_FOLDER = (
    "expected an object, found a folder; a folder of a store is copied with -r (recursive=True in "
    "Python)"
)
SERVERS = ("http:", "https:", "dav:", "davs:")
MOST_DETOURS = 100
"""Reasons that a report has why objects passed through this machine."""


class CopyFault(NamedTuple):
    """An object that was not copied.

    Attributes:
        name: name of the object.
        kind: class of the error.
        reason: what went wrong.
    """

    name: str
    kind: str
    reason: str


@dataclass
class FaultReport:
    """What work on many objects could not do.

    Attributes:
        failed: number of objects that it could not be done with.
        faults: why; of the first 1,000.
    """

    failed: int = 0
    faults: list[CopyFault] = field(default_factory=list)

    def add_fault(self, name: str, kind: str, reason: str) -> None:
        """Count an object that it could not be done with."""
        self.failed += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(CopyFault(name, kind, reason))


@dataclass
class CopyReport(FaultReport):
    """What became of copies; with the faults of a `FaultReport`.

    Attributes:
        copied: number of objects copied, and verified.
        bytes: bytes written, by this machine or by servers.
        by_servers: number of those objects that servers copied from one to the other: their bytes
            did not pass through this machine.
        detours: for the objects that did pass through, though both ends are servers: number of
            objects by reason; at most 100 reasons.
        skipped: number of objects that `resume` found complete.
        notes: warnings, as when a striped store could not write all parts; the first 1,000.
        elapsed_s: seconds that it took.
    """

    copied: int = 0
    bytes: int = 0
    by_servers: int = 0
    detours: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    notes: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0

    def add_copy(self, outcome: _swathe.CopyOutcome) -> None:
        """Count an object that was copied."""
        self.copied += 1
        self.by_servers += outcome.by_servers
        if outcome.detour is not None:
            count_detour(self.detours, outcome.detour)
        self.notes.extend(outcome.notes[: MOST_FAULTS - len(self.notes)])


def count_detour(detours: dict[str, int], reason: str) -> None:
    """Count an object that passed through this machine though both ends are servers."""
    if len(detours) >= MOST_DETOURS:
        reason = reason if reason in detours else "other reasons"
    detours[reason] = detours.get(reason, 0) + 1


class CopyPair(NamedTuple):
    """An object, the name of its copy, and its size if a listing gave it."""

    source: str
    target: str
    size: int | None = None


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
        if report.copied and (store := store_of(os.fspath(target))):
            remember_stripe(engine, store)
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
    into_folder = recursive or len(names) > 1 or target.endswith(("/", ":"))
    if not into_folder:
        into_folder = is_folder(engine, target) if local is None else local.is_dir()
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
            pairs.append(CopyPair(name, name_below(base) if into_folder else target))
            continue
        top = top_of(name)
        first = len(pairs)
        for entry in list_tree(name, pattern):
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
        source = _local_path(engine, name)
        if source is not None and source.is_dir():
            sources = {pair.source.removeprefix(top) for pair in pairs[first:]}
            if count := _count_of_dotfiles(source, pattern, sources):
                report.notes.append(
                    f"{name}: {count_text(count, 'file')} not copied: names of files or their "
                    "folders begin with a dot"
                )
    return pairs


def _count_of_dotfiles(folder: Path, pattern: str | None, sources: Collection[str]) -> int:
    """Return how many files below a folder are left out since names begin with a dot."""
    count = 0
    for place, _, files in os.walk(folder):
        parts = Path(place).relative_to(folder).parts
        for name in files:
            below = "/".join((*parts, name))
            is_hidden = any(part.startswith(".") for part in (*parts, name))
            count += is_hidden and below not in sources and matches(below, "", pattern)
    return count


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
        copy_bytes = open_to_look(engine, pair.target).size
    except NotFoundError:
        return "missing"
    except SwatheError as error:
        # A file is not replaced when it is written, and says then what is wrong.
        return error if engine.local_path(pair.target) is None else "missing"
    if not resume:
        return "other"
    try:
        size = open_to_look(engine, pair.source).size if pair.size is None else pair.size
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
    if progress and can_show_progress():
        pairs = _with_sizes(engine, pairs, threads)
    copies = _swathe.Copies(orders, threads, engine)
    # Of one large object, too, the bar says how far it is.
    total_bytes = sum(pair.size or 0 for pair in pairs)
    are_bytes = total_bytes > 0 and all(pair.size is not None for pair in pairs)
    total = total_bytes if are_bytes else len(pairs)
    with progress_bar("copying", progress, total, are_bytes=are_bytes) as show:
        try:
            _collect(copies, pairs, report, show, are_bytes)
        finally:
            copies.cancel()
            report.bytes = copies.bytes


def _with_sizes(engine: _swathe.Stores, pairs: Sequence[CopyPair], threads: int) -> list[CopyPair]:
    """Return the pairs with sizes as far as they are known soon.

    Servers are asked only for a few objects: of many, their number says how far the copies are.
    """
    unknown = [pair for pair in pairs if pair.size is None]
    if sum(engine.local_path(pair.source) is None for pair in unknown) > threads:
        return list(pairs)

    def with_size(pair: CopyPair) -> CopyPair:
        try:
            return (
                pair
                if pair.size is not None
                else pair._replace(size=open_to_look(engine, pair.source).size)
            )
        except SwatheError:
            # Its copy says what is wrong.
            return pair

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(with_size, pairs))


def _collect(
    copies: _swathe.Copies,
    pairs: Sequence[CopyPair],
    report: CopyReport,
    show: Callable[[int], object],
    are_bytes: bool,
) -> None:
    failed_bytes = 0
    while (outcomes := copies.poll(POLL_S)) is not None:
        for outcome in outcomes:
            if outcome.kind is None:
                report.add_copy(outcome)
            else:
                pair = pairs[outcome.number]
                report.add_fault(pair.source, outcome.kind, outcome.reason)
                failed_bytes += pair.size or 0
        report.bytes = copies.bytes
        show(report.bytes + failed_bytes if are_bytes else report.copied + report.failed)
