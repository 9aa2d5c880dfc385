"""Rows of jobs in the database: blocks of a thousand, by position.

The request part of a block never changes; its result part is rewritten with each chunk. Block
number n also holds the positions of the n-th thousand rows of the user's list, and of the names
that hash to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import bindparam, func, insert, select, update

from swathe.catalog.jobs.encoding import (
    BLOCK_ROWS,
    mark_of,
    pack_names,
    pack_outcomes,
    pack_places,
    pack_requests,
    positions_by_name,
    statuses_bits,
    statuses_of,
    unpack,
    unpack_places,
    unpack_rows,
)
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import JobBlockTable
from swathe.core.errors import CatalogError
from swathe.core.row_table import CODES, DictColumn, RowTable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlalchemy.orm import Session

    from swathe.core.row_record import RowRecord, RowStatus

LONGEST_REASON = 1_000
LONGEST_NAME = 1_000
LONGEST_SOURCE = 10_000
READ_AT_ONCE = 100
"""Blocks per read."""
WRITTEN_AT_ONCE = 100
"""Blocks of a new job per write."""


def insert_rows(session: Session, job: int, rows: RowTable) -> None:
    """Store the rows of a new job, in order of position."""
    rows = _plain(rows)
    count = -(-len(rows) // BLOCK_ROWS)
    place = np.empty(len(rows), np.int64)
    place[rows.number] = rows.position
    names = pack_names(rows.name, count)

    def block_of(number: int) -> dict[str, Any]:
        part = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
        block = rows[part]
        return {
            "job": job,
            "number": number,
            "statuses": statuses_of(block),
            "places": pack_places(place[part]),
            "names": names[number],
            "asked": pack_requests(block),
            "became": pack_outcomes(block),
        }

    for first in range(0, count, WRITTEN_AT_ONCE):
        numbers = range(first, min(first + WRITTEN_AT_ONCE, count))
        session.execute(insert(JobBlockTable), list(map(block_of, numbers)))


def _plain(rows: RowTable) -> RowTable:
    """Return rows with texts that every database accepts."""
    return replace(
        rows,
        id=_plain_texts(rows.id, LONGEST_NAME),
        source=DictColumn(_plain_texts(rows.source.values, LONGEST_SOURCE), rows.source.codes),
        hdu=DictColumn(
            [hdu if hdu is None else plain_text(hdu, LONGEST_NAME) for hdu in rows.hdu.values],
            rows.hdu.codes,
        ),
        reason=DictColumn(_plain_texts(rows.reason.values, LONGEST_REASON), rows.reason.codes),
    )


def _plain_texts(texts: list[str], longest: int) -> list[str]:
    together = "".join(texts)
    if (
        together.isascii()
        and "\0" not in together
        and len(max(texts, key=len, default="")) <= longest
    ):
        return texts
    return [plain_text(text, longest) for text in texts]


def rows_between(session: Session, job: int, first: int, last: int) -> RowTable:
    """Return the rows from one position to another, the last included."""
    return RowTable.concatenate(list(parts_between(session, job, first, last)))


def parts_between(session: Session, job: int, first: int, last: int) -> Iterator[RowTable]:
    """Yield the same block by block."""
    numbers = range(first // BLOCK_ROWS, last // BLOCK_ROWS + 1)
    for block in _blocks(session, job, numbers):
        yield block.take((block.position >= first) & (block.position <= last))


def rows_at(session: Session, job: int, positions: NDArray[np.int64]) -> RowTable:
    """Return the rows at some positions, in that order."""
    order = np.argsort(positions, kind="stable")
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return RowTable.concatenate(list(parts_at(session, job, positions[order]))).take(back)


def parts_at(session: Session, job: int, positions: NDArray[np.int64]) -> Iterator[RowTable]:
    """Yield the rows at ascending positions, block by block."""
    for block, part in _blocks_of(session, job, positions):
        yield block.take(positions[part] - block.position[0])


def rows_from(session: Session, job: int, first: int, count: int) -> RowTable:
    """Return at most `count` rows of the user's list, starting at a number."""
    if count <= 0:
        return RowTable.of([])
    last = first + count - 1
    query = (
        select(JobBlockTable.number, JobBlockTable.places)
        .where(
            JobBlockTable.job == job,
            JobBlockTable.number.between(first // BLOCK_ROWS, last // BLOCK_ROWS),
        )
        .order_by(JobBlockTable.number)
    )
    parts = []
    for number, places in session.execute(query):
        begins = number * BLOCK_ROWS
        parts.append(unpack_places(places)[max(0, first - begins) : last + 1 - begins])
    return rows_at(session, job, np.concatenate(parts)) if parts else RowTable.of([])


def rows_with_status(
    session: Session, job: int, statuses: Sequence[RowStatus], start: int = 0, most: int = 1
) -> RowTable:
    """Return rows with some statuses in the user's order, starting at a number."""
    query = _having(job, statuses).with_only_columns(
        JobBlockTable.number, JobBlockTable.asked, JobBlockTable.became
    )
    codes = [CODES[status] for status in statuses]
    # Numbers and positions of the first rows so far: memory holds no more, and few blocks.
    first = np.empty((2, 0), np.int64)
    for blocks in session.execute(query.execution_options(yield_per=READ_AT_ONCE)).partitions():
        firsts = [first]
        for block, request, became in blocks:
            number = unpack(request, "number")["number"].astype(np.int64)
            mask = number >= start
            if became is not None:
                mask &= np.isin(unpack(became, "status")["status"], codes)
            at = np.flatnonzero(mask)
            firsts.append(np.stack((number[at], at + block * BLOCK_ROWS)))
        together = np.concatenate(firsts, axis=1)
        first = together[:, np.argsort(together[0])[: max(0, most)]]
    return rows_at(session, job, first[1])


def all_with_status(session: Session, job: int, *statuses: RowStatus) -> Iterator[RowTable]:
    """Yield all rows with one of some statuses, block by block."""
    numbers = list(session.scalars(_having(job, statuses)))
    for block in _blocks(session, job, numbers):
        yield block.take(block.has(*statuses))


def _having(job: int, statuses: Sequence[RowStatus]) -> Any:
    """Return the query for blocks that contain rows with one of some statuses."""
    bits = statuses_bits(CODES[status] for status in statuses)
    return (
        select(JobBlockTable.number)
        .where(JobBlockTable.job == job, JobBlockTable.statuses.bitwise_and(bits) != 0)
        .order_by(JobBlockTable.number)
    )


def rows_into(session: Session, job: int, results: Sequence[int]) -> RowTable:
    """Return the input rows of some combined results, in the user's order."""
    query = select(JobBlockTable.number, JobBlockTable.asked).where(JobBlockTable.job == job)
    positions = [np.empty(0, np.int64)]
    for block, request in session.execute(query.execution_options(yield_per=READ_AT_ONCE)):
        columns = unpack(request, "result")
        if "result" in columns:
            at = np.flatnonzero(np.isin(columns["result"], results))
            positions.append(at + block * BLOCK_ROWS)
    rows = rows_at(session, job, np.concatenate(positions))
    return rows.take(np.argsort(rows.number))


def row_by_name(session: Session, job: int, name: str) -> RowRecord | None:
    """Return the row with a file name."""
    count = session.scalar(
        select(func.count()).select_from(JobBlockTable).where(JobBlockTable.job == job)
    )
    if not count:
        return None
    query = select(JobBlockTable.names).where(
        JobBlockTable.job == job, JobBlockTable.number == mark_of(name) % count
    )
    candidates = positions_by_name(session.scalars(query).one(), name)
    rows = rows_at(session, job, np.array(candidates, np.int64))
    return next((row for row in rows if row.name == name), None)


def end_of_object(session: Session, job: int, at: int, most: int) -> int:
    """Return the last position from `at` to `most` of the same object.

    Raises:
        CatalogError: If there is no row at `at`.
    """
    rows = rows_between(session, job, at, most)
    if not len(rows) or rows.position[0] != at:
        raise CatalogError(
            f"job {job}: the database is damaged: expected a row at position {at}, found none"
        )
    same = rows.source.codes == rows.source.codes[0]
    return at + int(np.flatnonzero(same)[-1])


def mark_rows(session: Session, job: int, rows: RowTable) -> None:
    """Store the results of rows."""
    rows = _plain(rows.take(np.argsort(rows.position)))
    _mark(session, job, rows.position, lambda _block, part: rows[part])


def mark_waiting(session: Session, job: int, positions: NDArray[np.int64]) -> None:
    """Reset the rows at ascending positions to waiting."""

    def waiting(block: RowTable, part: slice) -> RowTable:
        return block.take(positions[part] - block.position[0]).end("waiting")

    _mark(session, job, positions, waiting)


def _mark(
    session: Session,
    job: int,
    positions: NDArray[np.int64],
    became: Callable[[RowTable, slice], RowTable],
) -> None:
    """Update the rows at ascending positions, block by block; `became` returns the new values."""
    values = []
    for block, part in _blocks_of(session, job, positions):
        new_block = _with_results(block, became(block, part))
        values.append(
            {
                "of_job": job,
                "of_number": int(block.position[0]) // BLOCK_ROWS,
                "statuses": statuses_of(new_block),
                "became": pack_outcomes(new_block),
            }
        )
    if values:
        session.connection().execute(
            update(JobBlockTable).where(
                JobBlockTable.job == bindparam("of_job"),
                JobBlockTable.number == bindparam("of_number"),
            ),
            values,
        )


def _with_results(block: RowTable, rows: RowTable) -> RowTable:
    """Return a block with updated rows."""
    together = RowTable.concatenate([block, rows])
    newest = np.arange(len(block))
    newest[rows.position - block.position[0]] = len(block) + np.arange(len(rows))
    return together.take(newest)


def _blocks_of(
    session: Session, job: int, positions: NDArray[np.int64]
) -> Iterator[tuple[RowTable, slice]]:
    """Yield the blocks of ascending positions, and the slice of positions in each."""
    for block in _blocks(session, job, np.unique(positions // BLOCK_ROWS).tolist()):
        begins = block.position[0]
        yield block, slice(*np.searchsorted(positions, (begins, begins + BLOCK_ROWS)).tolist())


def _blocks(session: Session, job: int, numbers: Sequence[int]) -> Iterator[RowTable]:
    """Yield blocks, in order."""
    columns = select(JobBlockTable.number, JobBlockTable.asked, JobBlockTable.became)
    for at in range(0, len(numbers), READ_AT_ONCE):
        query = columns.where(
            JobBlockTable.job == job, JobBlockTable.number.in_(numbers[at : at + READ_AT_ONCE])
        )
        for number, request, became in session.execute(query.order_by(JobBlockTable.number)):
            yield unpack_rows(number, request, became)
