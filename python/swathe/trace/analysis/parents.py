"""Nesting of stages across threads, processes and hosts, by ids and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.columns import codes_of, join_codes
from swathe.trace.analysis.stages import AROUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]
    Mask = NDArray[np.bool_]

BESIDE = (
    *("FETCH", "UPLOAD", "PEER", "CONNECT", "STRIPE", "STRIPE_WRITE", "PART", "SERVE"),
    *("DISK_READ", "DISK_WRITE", "DISK_SYNC", "VERIFY", "SEND"),
)
"""Stages that run beside the stages that wait for them, unless in the same thread."""
TRIES = 8
"""Earlier stages examined, the latest first."""
HERE = ("HOST", "PID")


def parents_of(events: Events, spans: Spans) -> Rows:
    """Return the parent of each stage, -1 for none; a parent always has a smaller number.

    The parent is the enclosing stage of the thread, if there is one. Otherwise it is the last begun
    stage that encloses it in time, the first that exists of: a stage of the same target and
    process; of the same object and process, without target; a batch of the same job and process, or
    of the same job and worker; the job; any stage of the same object; the request to a portal. The
    parent is never part of another request.
    """
    parent = spans.parent.copy()
    codes = {
        name: codes_of(events, name)[0][spans.start]
        for name in (*HERE, "PORTAL", "JOB", "TARGET", "OBJECT", "WORKER")
    }

    def are(*names: str) -> Mask:
        return np.isin(spans.stage, [n for n, name in enumerate(spans.names) if name in names])

    # One thread of a portal answers many requests in turn.
    portal_code = codes["PORTAL"]
    parent[(parent >= 0) & (portal_code >= 0) & (portal_code != portal_code[parent])] = -1
    has_no_target = codes["TARGET"] < 0
    jobs, batches, works = are("JOB"), are("BATCH"), ~are(*AROUND)
    waits = works & ~are(*BESIDE)
    own = (*HERE, "PORTAL", "JOB")
    ways = (
        (waits, works, (*own, "TARGET", "OBJECT"), ("TARGET",)),
        (waits & has_no_target, works & has_no_target, (*own, "OBJECT"), ("OBJECT",)),
        (batches, works, (*HERE, "JOB"), ("JOB",)),
        (batches, works, ("JOB", "WORKER"), ("JOB", "WORKER")),
        (jobs, works | batches, ("JOB",), ("JOB",)),
        (waits, works, (*own, "OBJECT"), ("OBJECT",)),
        (are("PORTAL"), works, (*HERE, "PORTAL"), ("PORTAL",)),
    )
    for holders, child_mask, same, needs in ways:
        key = join_codes([codes[name] for name in same])
        has = np.logical_and.reduce([codes[name] >= 0 for name in needs])
        orphans = np.flatnonzero((parent < 0) & child_mask & has)
        if len(orphans) and (holders & has).any():
            parent[orphans] = _around(spans, key, np.flatnonzero(holders & has), orphans)
    return parent


def _around(spans: Spans, key: Rows, holders: Rows, orphans: Rows) -> Rows:
    """Return for each of `orphans` the last begun holder of the same key that encloses it."""
    order = holders[np.lexsort((holders, key[holders]))]
    # Numbers are in order of time: a binary search by key and number finds it.
    rank = np.unique(key, return_inverse=True)[1] * np.int64(len(key)) + np.arange(len(key))
    at = np.searchsorted(rank[order], rank[orphans]) - 1
    parents = np.full(len(orphans), -1, np.int64)
    for _ in range(TRIES):
        candidate = order[np.maximum(at, 0)]
        fits = (at >= 0) & (key[candidate] == key[orphans]) & (parents < 0)
        fits &= spans.end_ns[candidate] >= spans.end_ns[orphans]
        parents[fits] = candidate[fits]
        at -= 1
    return parents


def roots_of(parent: Rows) -> Rows:
    """Return the outermost stage around each; itself if there is none."""
    root = np.where(parent < 0, np.arange(len(parent)), parent)
    while True:
        further = root[root]
        if (further == root).all():
            return root
        root = further


def owners_of(events: Events, spans: Spans, rows: Rows) -> Rows:
    """Return the stage that the thread was in at each of these points, -1 for none."""
    track = join_codes([codes_of(events, name)[0] for name in (*HERE, "THREAD")])
    inside = np.flatnonzero(spans.is_nested)
    if not (len(inside) and len(rows)):
        return np.full(len(rows), -1, np.int64)
    count = np.int64(len(events.time_ns))
    codes = np.unique(track, return_inverse=True)[1]
    order = inside[np.lexsort((spans.start[inside], codes[spans.start[inside]]))]
    rank = codes[spans.start[order]] * count + spans.start[order]
    at = np.searchsorted(rank, codes[rows] * count + rows) - 1
    owner = np.where(at >= 0, order[np.maximum(at, 0)], -1)
    owner[(owner >= 0) & (codes[spans.start[owner]] != codes[rows])] = -1
    while True:
        over = np.flatnonzero((owner >= 0) & (spans.end[owner] < rows))
        if not len(over):
            return owner
        owner[over] = spans.parent[owner[over]]
