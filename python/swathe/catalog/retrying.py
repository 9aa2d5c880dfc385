"""Failed rows that are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from swathe.catalog.chunks import LARGEST_CHUNK
from swathe.catalog.tables import JobChunkTable, JobRowTable, JobTable
from swathe.catalog.work import FAILED


def retry(session: Session, job: JobTable) -> None:
    """Make failed rows, of which a second try may come out otherwise, wait again."""
    again = (
        JobRowTable.job == job.number,
        JobRowTable.status.in_(FAILED),
        # What the list itself had wrong stays wrong.
        (JobRowTable.x0.is_not(None)) | (JobRowTable.size_deg.is_not(None)),
    )
    failed: list[Any] = list(
        session.execute(
            select(JobRowTable.position, JobRowTable.status, JobRowTable.result).where(*again)
        )
    )
    into = {result for _, _, result in failed if result is not None}
    if into:
        failed += _retry_results(session, job, into, {position for position, _, _ in failed})
    session.execute(update(JobRowTable).where(*again).values(status="waiting", reason=""))
    counts = Counter(status for _, status, _ in failed)
    job.waiting += len(failed)
    job.error -= counts["error"]
    job.missing -= counts["missing"]
    job.ok -= counts["ok"]
    job.no_overlap -= counts["no-overlap"]
    covered = session.execute(
        select(JobChunkTable.first, JobChunkTable.last).where(JobChunkTable.job == job.number)
    ).all()
    left = [
        position
        for position, _, _ in failed
        if position < job.cursor and not any(first <= position <= last for first, last in covered)
    ]
    for first, last in _runs(sorted(left), job.inputs):
        session.add(JobChunkTable(job=job.number, first=first, last=last, state="free"))


def _retry_results(
    session: Session, job: JobTable, results: set[int], counted: set[int]
) -> list[Any]:
    """Make the results wait that rows go into which are tried again."""
    made = [
        row
        for row in session.execute(
            select(
                JobRowTable.position,
                JobRowTable.status,
                JobRowTable.result,
                JobRowTable.number,
                JobRowTable.bytes,
            ).where(JobRowTable.job == job.number, JobRowTable.position >= job.inputs)
        )
        if row.number in results and row.status != "waiting"
    ]
    waiting = update(JobRowTable).where(
        JobRowTable.job == job.number, JobRowTable.number == bindparam("number_of")
    )
    if made:
        session.connection().execute(
            waiting.values(status="waiting", reason="", bytes=0),
            [{"number_of": row.number} for row in made],
        )
    job.bytes -= sum(row.bytes for row in made)
    return [(row.position, row.status, None) for row in made if row.position not in counted]


def _runs(positions: Sequence[int], inputs: int) -> list[tuple[int, int]]:
    """Give few stretches that hold all positions: at most so many, none over the first result."""
    runs: list[tuple[int, int]] = []
    count = 0
    for position in positions:
        begins = not runs or count == LARGEST_CHUNK or (runs[-1][0] < inputs <= position)
        if begins:
            runs.append((position, position))
            count = 0
        runs[-1] = (runs[-1][0], position)
        count += 1
    return runs
