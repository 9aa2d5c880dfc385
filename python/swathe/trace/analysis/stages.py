"""Stages: their names, their order in lifelines, and the pairing of events.

A stage is two events, `NAME_START` and `NAME_END`; any other event is a point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from swathe.trace.analysis.columns import codes_of, event_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.trace.ulm import Events

Index = NDArray[np.int64]

FIRST = (
    *("PORTAL_START", "SUBMITTED", "JOB_START", "BATCH_START", "OPEN_START", "OPEN_END"),
    *("PLAN_START", "PLAN_END"),
)
MOVING = (
    *("CACHE_MISS", "STRIPE_START", "PART_START", "CONNECT_START", "CONNECT_END", "PEER_START"),
    *("STRIPE_WRITE_START", "FETCH_START", "UPLOAD_START", "SERVE_START"),
    *("DISK_READ_START", "DISK_READ_END", "DISK_WRITE_START", "DISK_WRITE_END"),
    *("VERIFY_START", "VERIFY_END", "DISK_SYNC_START", "DISK_SYNC_END", "SEND_START"),
    *("FETCH_ANSWER", "SEND_END", "SERVE_END", "FETCH_END", "UPLOAD_END", "PART_END"),
    *("REBUILD_START", "REBUILD_END", "STRIPE_END", "STRIPE_WRITE_END", "PEER_END", "CACHE_HIT"),
)
"""Stages of moving bytes; in the trace they come before a cut or while it waits."""
CUTTING = ("CUT_START", "READ_START")
WORKING = (
    *("SEEK_START", "SEEK_END", "READ_END", "DECODE_START", "DECODE_END"),
    *("ASSEMBLE_START", "ASSEMBLE_END"),
    *("HASH_START", "HASH_END", "WRITE_START", "WRITE_END", "CUT_END"),
)
"""Lanes from below. Users' event types come next: they act on a cutout."""
ABOVE = ("BATCH_END", "JOB_END", "PORTAL_END")
AROUND = ("PORTAL", "JOB", "BATCH")
"""Stages that enclose a target in time: they wait while others work."""
WITHIN = ("READ", "SEEK", "DECODE", "ASSEMBLE", "HASH", "WRITE")
"""Stages within a cut; if several targets share one, it begins with the first of them."""
MONITOR = (
    *("CPU", "MEMORY", "SWAP", "DISK", "NET", "TCP", "PING", "SERVER_LATE"),
    *("CLOCK", "TRACE_END"),
)
"""Events of machines, the collector and the recorder; not part of any lifeline."""
IDS = (
    *("HOST", "PID", "PORTAL", "JOB", "TARGET", "OBJECT", "REQUEST"),
    *("WORKER", "STORE", "PEER", "PART", "WINDOW"),
)
START, END, POINT = 1, 2, 0


def stage_of(event: str) -> tuple[str, int]:
    """Return the stage of an event type, and whether it is its START, its END or a POINT."""
    if event.endswith("_START"):
        return event[:-6], START
    if event.endswith("_END"):
        return event[:-4], END
    return event, POINT


def lanes(events: Events) -> list[str]:
    """Return the event types that lifelines go through, from below."""
    codes = np.flatnonzero(np.bincount(events.event.codes, minlength=len(events.event.words)))
    present = [events.event.words[code] for code in codes]
    first = {word: _first(events.event.codes, events.event.words.index(word)) for word in present}
    others: dict[str, int] = {}
    for word in present:
        if word not in {*FIRST, *MOVING, *CUTTING, *WORKING, *ABOVE, *MONITOR}:
            stage = stage_of(word)[0]
            others[stage] = min(others.get(stage, first[word]), first[word])
    middle = [
        word
        for stage in sorted(others, key=lambda stage: others[stage])
        for word in (stage, f"{stage}_START", f"{stage}_END")
    ]
    below = (*MOVING, *CUTTING) if _moved_before(events) else (*CUTTING, *MOVING)
    return [word for word in (*FIRST, *below, *WORKING, *middle, *ABOVE) if word in first]


def _moved_before(events: Events) -> bool:
    """Check whether bytes of most objects were requested before their first cut."""

    def firsts(*words: str) -> tuple[NDArray[np.uint64], Index]:
        """Return objects, and the first of these events for each."""
        at = np.flatnonzero(np.isin(events.event.codes, event_codes(events, words)))
        ids = [codes_of(events, name)[0][at] for name in ("HOST", "PID", "OBJECT")]
        keys, begins = np.unique(hash_codes(ids, len(at)), return_index=True)
        return keys, at[begins]

    cut, cut_at = firsts("CUT_START")
    first_move, moved_at = firsts("FETCH_START", "PEER_START")
    both, of_cut, of_move = np.intersect1d(cut, first_move, True, return_indices=True)
    before = np.count_nonzero(moved_at[of_move] < cut_at[of_cut])
    return bool(2 * before > len(both))


def _first(codes: NDArray[np.int32], code: int) -> int:
    return int(np.argmax(codes == code))


def hash_codes(columns: Sequence[NDArray[np.int32]], count: int) -> NDArray[np.uint64]:
    """Return one number for the codes of several columns: equal if all codes are equal."""
    hashes = np.full(count, 1, np.uint64)
    for column in columns:
        hashes ^= column.astype(np.uint64)
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def number_codes(columns: Sequence[NDArray[np.int32]], count: int) -> tuple[Index, int]:
    """Number the combinations of codes from 0 on; return also how many there are."""
    key = np.zeros(count, np.int64)
    many = 1
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        key = key * width + (column + 1)
        many *= width
        if many <= 4 * count + 1000:
            # No need to sort.
            is_combined = np.zeros(many, bool)
            is_combined[key] = True
            order = np.cumsum(is_combined) - 1
            key, many = order[key], int(order[-1]) + 1 if many else 0
        else:
            distinct, key = np.unique(key, return_inverse=True)
            many = len(distinct)
    return key, many if count else 0


def _group(keys: NDArray[np.uint64]) -> Index:
    """Return an order that puts equal keys side by side, the first of them first.

    Key and index are sorted as one number, which is far faster than a stable sort. Keys that differ
    only in their last bits may be mixed: the caller must compare them.
    """
    bits = np.uint64(len(keys).bit_length())
    both = (keys >> bits << bits) | np.arange(len(keys), dtype=np.uint64)
    both.sort()
    order: Index = (both & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    return order


def partners(events: Events) -> Index:
    """Return for each START the index of its END and the reverse; -1 if there is none.

    A pair has the same name, process and ids. Among several candidates those of one thread come
    first, and of these the innermost.
    """
    kinds = np.array([stage_of(word)[1] for word in events.event.words], np.int8)
    names = {name: n for n, name in enumerate({stage_of(word)[0] for word in events.event.words})}
    stages = np.array([names[stage_of(word)[0]] for word in events.event.words], np.int32)
    count = len(events.time_ns)
    partner = np.full(count, -1, np.int64)
    if not count:
        return partner
    remaining = np.flatnonzero(kinds[events.event.codes] != POINT)
    ids = [stages[events.event.codes], *(codes_of(events, name)[0] for name in IDS)]
    key = hash_codes(ids, count)
    threads = hash_codes([codes_of(events, "THREAD")[0]], count)
    for keys in (key ^ threads, key):
        # Repeated, because stages may be nested in others of the same name.
        while len(remaining):
            order = remaining[_group(keys[remaining])]
            kind = kinds[events.event.codes[order]]
            same = keys[order[:-1]] == keys[order[1:]]
            begins = np.flatnonzero(same & (kind[:-1] == START) & (kind[1:] == END))
            if not len(begins):
                break
            starts, ends = order[begins], order[begins + 1]
            partner[starts], partner[ends] = ends, starts
            remaining = remaining[partner[remaining] < 0]
    return partner
