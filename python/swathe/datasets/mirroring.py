"""Copy the objects of a dataset to another store, verify them, and catalogue the copies.

An object is copied only at the version in the catalogue, so that its catalogued metadata hold for
the copy. A copy gets its name when it is complete, and is catalogued when it is verified. So a
killed run leaves nothing to repair, and the next run continues it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.catalog import Replica
from swathe.core.errors import SwatheError
from swathe.datasets.mirror_plan import FILE_TAG, THREADS
from swathe.datasets.scan import SkippedObject
from swathe.stores.copies import count_detour
from swathe.stores.registry import to_native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.catalog import Catalog
    from swathe.datasets.mirror_plan import MirrorPlan

POLL_S = 0.1


@dataclass
class MirrorReport:
    """Outcome of mirroring.

    Attributes:
        dataset: name of the dataset.
        store: name of the store of the copies.
        prefix: folder of the copies.
        copied: number of objects copied.
        bytes: number of bytes written.
        by_servers: number of objects that servers copied from one to the other.
        detours: number of objects that passed through this machine, though both ends are servers,
            by reason.
        read_back: number of copies that were read to compare them, since their store reports no
            checksum.
        there: number of copies that were already up to date.
        deleted: number of copies deleted, since their objects no longer exist.
        skipped: as in the plan.
        faults: objects that could not be copied or deleted, with the reason.
        outdated: whether some objects differ from the catalogue.
        elapsed_s: duration.
    """

    dataset: str
    store: str
    prefix: str
    copied: int = 0
    bytes: int = 0
    by_servers: int = 0
    detours: dict[str, int] = field(default_factory=dict)
    read_back: int = 0
    there: int = 0
    deleted: int = 0
    skipped: int = 0
    faults: list[SkippedObject] = field(default_factory=list)
    outdated: bool = False
    elapsed_s: float = 0.0


def copy_objects(
    catalog: Catalog,
    mirror_plan: MirrorPlan,
    *,
    delete: bool = False,
    threads: int = THREADS,
    show: Callable[[int], None] = lambda _done: None,
) -> MirrorReport:
    """Copy the missing and stale objects of a plan; one failed object does not stop the others.

    Args:
        catalog: catalogue of the dataset and of the copies.
        mirror_plan: plan that `plan_mirror` returned.
        delete: whether to delete copies of objects that no longer exist.
        threads: number of objects copied at the same time.
        show: function called with the number of finished objects.
    """
    start_s = time.monotonic()
    report = MirrorReport(
        mirror_plan.dataset,
        mirror_plan.store,
        mirror_plan.prefix,
        there=mirror_plan.there,
        skipped=mirror_plan.skipped,
        faults=list(mirror_plan.faults),
    )
    stores = [catalog.store(name) for name in (mirror_plan.source, mirror_plan.store)]
    engine = to_native(stores)
    if delete:
        _delete(catalog, mirror_plan, engine, report)
    if not mirror_plan.copies:
        report.elapsed_s = time.monotonic() - start_s
        return report
    orders = [
        (f"{mirror_plan.source}:{path}", version, f"{mirror_plan.store}:{to}", replaces)
        for (path, to), version, replaces in zip(
            mirror_plan.copies, mirror_plan.versions, mirror_plan.replaces, strict=True
        )
    ]
    earlier_copies = _begin(catalog, mirror_plan)
    copies = _swathe.Copies(orders, threads, engine)
    count = 0
    try:
        while (outcomes := copies.poll(POLL_S)) is not None:
            if outcomes:
                replicas = [
                    _replica_of(mirror_plan, copy, report, earlier_copies) for copy in outcomes
                ]
                # Recorded at once: an object that is not recorded is copied again.
                catalog.put_objects(
                    mirror_plan.dataset,
                    mirror_plan.store,
                    [(replica, None) for replica in replicas],
                )
            count += len(outcomes)
            show(count)
    finally:
        copies.cancel()
    report.bytes = copies.bytes
    report.elapsed_s = time.monotonic() - start_s
    return report


def _begin(catalog: Catalog, work: MirrorPlan) -> dict[str, Replica]:
    """Record copies before they are made, so that files of a killed run are known.

    Returns:
        The copies that were recorded before, by path.
    """
    copies = {copy.object_path: copy for copy in catalog.replicas(work.dataset, work.store)}
    reason = "its copy was begun, and not finished"
    catalog.put_objects(
        work.dataset,
        work.store,
        [
            (Replica(path, to, None, None, None, "failed", reason), None)
            for path, to in work.copies
            if path not in copies or copies[path].path != to
        ],
    )
    return copies


def _replica_of(
    work: MirrorPlan,
    outcome: _swathe.CopyOutcome,
    report: MirrorReport,
    earlier_copies: Mapping[str, Replica],
) -> Replica:
    """Return the record of an object that was copied, or could not be."""
    path, to = work.copies[outcome.number]
    if outcome.kind is None:
        report.copied += 1
        report.read_back += outcome.read_back
        report.by_servers += outcome.by_servers
        if outcome.detour is not None:
            count_detour(report.detours, outcome.detour)
        size, _, tag = outcome.version.partition(" ")
        return Replica(path, to, int(size), _mark(tag), outcome.version, "ok")
    reason = f"{work.source}:{path} to {work.store}:{to}: {outcome.reason}"
    report.faults.append(SkippedObject(path, reason))
    report.outdated |= outcome.kind in ("ChangedError", "NotFoundError")
    before = earlier_copies.get(path)
    if before is not None and before.path == to:  # the earlier copy is still there
        return replace(before, state="failed", reason=reason)
    return Replica(path, to, None, None, None, "failed", reason)


def _mark(tag: str) -> str:
    """Return the mark of a version in a listing: nanoseconds for a file, else an ETag."""
    if tag.startswith(FILE_TAG):
        return tag.removeprefix(FILE_TAG).partition("-ino:")[0].replace(".", "")
    return tag.strip('"')


def _delete(
    catalog: Catalog, work: MirrorPlan, engine: _swathe.Stores, report: MirrorReport
) -> None:
    deleted_paths, missing = [], [copy.object_path for copy in work.gone]
    for copy in work.untold:
        reason = f"{work.store}:{copy.path}: not deleted: its store cannot tell whether it exists"
        report.faults.append(SkippedObject(copy.object_path, reason))
    for copy in work.changed:
        reason = f"{work.store}:{copy.path}: not deleted: it is not the copy that was made"
        report.faults.append(SkippedObject(copy.object_path, reason))
    for copy in work.vanished:
        try:
            engine.remove(f"{work.store}:{copy.path}")
        except SwatheError as error:
            reason = f"{work.store}:{copy.path}: it cannot be deleted: {error}"
            report.faults.append(SkippedObject(copy.object_path, reason))
            continue
        deleted_paths.append(copy.object_path)
    catalog.set_states(work.dataset, work.store, deleted_paths + missing, "vanished")
    report.deleted = len(deleted_paths)
