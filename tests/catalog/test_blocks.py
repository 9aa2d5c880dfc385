"""Rows of jobs, by the thousand in the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from swathe.catalog import Catalog
from swathe.catalog.jobs.blocks import rows_at, rows_between
from swathe.catalog.jobs.encoding import BLOCK_ROWS, pack_outcomes, pack_requests, unpack_rows
from swathe.catalog.records.jobs import Chunk, ChunkResult, JobRecord
from swathe.catalog.tables import JobBlockTable, JobChunkTable
from swathe.core.row_record import STATUSES, RowRecord
from swathe.core.row_table import RowTable
from tests.support.row_records import RECORDS


@given(st.lists(RECORDS, min_size=1, max_size=20), st.integers(0, 100))
def test_what_is_packed_comes_back(kept: list[RowRecord], block: int) -> None:
    begins = block * BLOCK_ROWS
    kept = [row._replace(position=begins + at) for at, row in enumerate(kept)]
    # Of what waits, nothing is known yet.
    kept = [row if row.status != "waiting" else _new(row) for row in kept]
    rows = RowTable.of(kept)
    assert list(unpack_rows(block, pack_requests(rows), pack_outcomes(rows))) == kept


def _new(row: RowRecord) -> RowRecord:
    return row._replace(reason="", bytes=0, version="", sha256="")


COUNT = 2 * BLOCK_ROWS + 345


def shuffled(count: int = COUNT) -> list[RowRecord]:
    """Rows in the order of their positions, which is not that of the list."""
    numbers = np.random.default_rng(7).permutation(count).tolist()
    return [
        RowRecord(
            number, at, None, f"t{number}", f"t{number}", f"s:{at // 700}", None, (at, 0, 5, 5),
            None, None,
        )
        for at, number in enumerate(numbers)
    ]  # fmt: skip


def ended(rows: list[RowRecord]) -> list[RowRecord]:
    """The same when they are done: every tenth failed, every fourth is missing."""
    done = []
    for row in rows:
        if row.number % 10 == 0:
            done.append(row._replace(status="error", reason=f"because of {row.id}"))
        elif row.number % 4 == 0:
            done.append(row._replace(status="missing", reason="is not there"))
        else:
            digest = f"{row.number + 1:064x}"
            done.append(row._replace(status="ok", bytes=row.number, version="v", sha256=digest))
    return done


def job_of(rows: list[RowRecord], inputs: int | None = None) -> JobRecord:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    counts = dict.fromkeys(STATUSES, 0) | {"waiting": len(rows)}
    return JobRecord(
        0, "a" * 22, "me", "", "QUEUED", {}, [], now, None, None, now, len(rows),
        len(rows) if inputs is None else inputs, counts, 0, None, 0.0, 0, 0, None, [], 1,
    )  # fmt: skip


def taken(catalog: Catalog, size: int) -> Chunk:
    chunk = catalog.take_chunk("r", 60.0, lambda _job, _results: size)
    assert chunk is not None
    return chunk


def test_a_new_job_is_written_a_few_blocks_at_a_time(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.jobs.blocks.WRITTEN_AT_ONCE", 2)
    rows = shuffled()
    job = catalog.add_job(job_of(rows), RowTable.of(rows), lambda _held: None)
    assert list(catalog.job_rows(job.number, start=0, limit=COUNT)) == sorted(rows)


def test_rows_are_found_by_number_status_and_name(catalog: Catalog) -> None:
    kept = shuffled()
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    by_number = sorted(kept)
    for start, limit in ((0, 10), (995, 10), (1000, 1000), (0, COUNT), (COUNT - 3, 9), (COUNT, 5)):
        assert catalog.job_rows(job.number, start=start, limit=limit) == by_number[start:][:limit]
    # In chunks that end within blocks.
    done = ended(kept)
    while (chunk := catalog.take_chunk("r", 60.0, lambda _job, _results: 130)) is not None:
        assert list(catalog.chunk_rows(chunk)) == kept[chunk.first : chunk.last + 1]
        catalog.finish_chunk(chunk, ChunkResult(done[chunk.first : chunk.last + 1]))
    by_number = sorted(done)
    assert list(catalog.job_rows(job.number, limit=COUNT)) == by_number
    for status in STATUSES:
        expected = [row for row in by_number if row.status == status]
        assert list(catalog.job_rows(job.number, status=status, limit=COUNT)) == expected
        expected = [row for row in expected if row.number >= 1234][:17]
        found = catalog.job_rows(job.number, start=1234, limit=17, status=status)
        assert list(found) == expected
    for row in done[::97]:
        assert catalog.row_by_name(job.number, row.name) == row
    assert catalog.row_by_name(job.number, "t") is None
    assert catalog.row_by_name(job.number + 1, "t1") is None
    counts = catalog.job(job.id).counts
    assert counts == {status: sum(row.status == status for row in done) for status in STATUSES}
    assert catalog.job(job.id).bytes == sum(row.bytes for row in done)


def test_names_with_the_same_mark_are_told_apart(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.jobs.encoding.mark_of", lambda name: len(name))
    monkeypatch.setattr("swathe.catalog.jobs.blocks.mark_of", lambda name: len(name))
    kept = shuffled()
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    for row in kept[::311]:
        assert catalog.row_by_name(job.number, row.name) == row


def test_a_chunk_done_in_parts_is_marked_once(catalog: Catalog) -> None:
    kept = shuffled()
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    chunk = taken(catalog, 1500)
    done = ended(kept)[chunk.first : chunk.last + 1]
    catalog.finish_chunk(chunk, ChunkResult(done[100:700], complete=False))
    assert catalog.job(job.id).counts["waiting"] == COUNT - 600
    again = taken(catalog, 1500)
    assert (again.first, again.last) == (chunk.first, chunk.last)
    left = [row for row in kept[: chunk.last + 1] if not 100 <= row.position < 700]
    assert list(catalog.chunk_rows(again)) == left


def test_failed_rows_of_many_blocks_wait_again(catalog: Catalog) -> None:
    kept = shuffled()
    kept[7] = kept[7]._replace(box=None)  # the list had it wrong
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    done = [row._replace(status="error", reason="x") if row.position == 7 else row
            for row in ended(kept)]  # fmt: skip
    while (chunk := catalog.take_chunk("r", 60.0, lambda _job, _results: 5000)) is not None:
        catalog.finish_chunk(chunk, ChunkResult(done[chunk.first : chunk.last + 1]))
    before = catalog.job(job.id)
    assert before.phase == "COMPLETED"
    after = catalog.resume_job(job.id, lambda _held: None)
    again = before.counts["error"] + before.counts["missing"] - 1
    wanted = {"waiting": again, "ok": before.counts["ok"], "error": 1, "missing": 0,
              "no-overlap": 0}  # fmt: skip
    assert after.counts == wanted
    assert after.bytes == before.bytes
    found: list[int] = []
    while (chunk := catalog.take_chunk("r", 60.0, lambda _job, _results: 5000)) is not None:
        rows = catalog.chunk_rows(chunk)
        found += rows.position.tolist()
        catalog.finish_chunk(chunk, ChunkResult(rows.end("ok")))
    failed = [row.position for row in done if row.status in ("error", "missing")]
    assert found == [position for position in failed if position != 7]
    assert catalog.job(job.id).counts["ok"] == COUNT - 1


def test_texts_that_no_database_takes_are_made_plain(catalog: Catalog) -> None:
    row = shuffled(1)[0]._replace(id="a\0b\ud800", source="s:\0x", hdu="h\ud800", box=None,
                                  status="error", reason="r\0\udfff")  # fmt: skip
    job = catalog.add_job(job_of([row]), RowTable.of([row]), lambda _held: None)
    found = catalog.job_rows(job.number)[0]
    assert (found.id, found.source, found.reason) == ("ab\\ud800", "s:x", "r\\udfff")
    assert found.hdu == "h\\ud800"


def test_rows_of_many_blocks_keep_no_values_of_others(catalog: Catalog) -> None:
    kept = [row._replace(source=f"s:{row.position}") for row in shuffled()]
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    with catalog._reading() as session:
        few = rows_at(session, job.number, np.array([7, 1200, 2100]))
    assert few.source.values == ["s:7", "s:1200", "s:2100"]


def test_a_page_of_a_status_is_found_a_few_blocks_at_a_time(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.jobs.blocks.READ_AT_ONCE", 1)
    kept = [row._replace(result=COUNT - 1 if row.number % 100 == 0 else None)
            for row in shuffled()]  # fmt: skip
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    by_number = sorted(kept)
    for start, limit in ((0, 1), (500, 30), (1200, 1000), (COUNT - 2, 9), (COUNT, 9), (3, 0)):
        found = catalog.job_rows(job.number, start=start, limit=limit, status="waiting")
        assert list(found) == by_number[start:][:limit]
    assert list(catalog.rows_into(job.number, [COUNT - 1])) == by_number[::100]


def test_what_is_read_together_is_of_one_time(catalog: Catalog) -> None:
    kept = shuffled()
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    chunk = taken(catalog, 100)
    with catalog._reading() as session:
        assert list(rows_between(session, job.number, 0, 9)) == kept[:10]
        catalog.finish_chunk(chunk, ChunkResult(ended(kept)[: chunk.last + 1]))
        assert list(rows_between(session, job.number, 0, 9)) == kept[:10]
    assert list(catalog.job_rows(job.number, start=kept[0].number, limit=1)) == ended(kept)[:1]


def test_a_damaged_job_ends_and_others_go_on(catalog: Catalog) -> None:
    kept = shuffled()
    damaged = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    sound = catalog.add_job(
        replace(job_of(kept), id="b" * 22), RowTable.of(kept), lambda _held: None
    )
    with catalog._writing() as session:
        session.execute(sqlalchemy.delete(JobBlockTable).where(JobBlockTable.job == damaged.number))
    assert taken(catalog, 10).job.id == sound.id
    job = catalog.job(damaged.id)
    assert job.phase == "ERROR"
    assert f"job {damaged.number}: " in str(job.failure)
    assert "expected a row at position 9, found none" in str(job.failure)


def test_no_row_that_is_tried_again_is_in_two_chunks(catalog: Catalog) -> None:
    kept = shuffled(300)
    for at, row in enumerate(kept):
        kept[at] = row._replace(source=f"s:{at}")
    job = catalog.add_job(job_of(kept), RowTable.of(kept), lambda _held: None)
    first, second, third = (taken(catalog, 100) for _ in range(3))
    for failed in (first, third):
        rows = catalog.chunk_rows(failed).end("error", "x")
        catalog.finish_chunk(failed, ChunkResult(rows))
    catalog.cancel_job(job.id)
    # The one in the middle is given back, as the job was cancelled.
    catalog.finish_chunk(second, ChunkResult([], complete=False))
    after = catalog.resume_job(job.id, lambda _held: None)
    assert after.counts["waiting"] == 300
    with catalog._reading() as session:
        chunks = session.execute(
            sqlalchemy.select(JobChunkTable.first, JobChunkTable.last).order_by(JobChunkTable.first)
        ).all()
    assert [tuple(each) for each in chunks] == [(0, 99), (100, 199), (200, 299)]
    while (chunk := catalog.take_chunk("r", 60.0, lambda _job, _results: 5000)) is not None:
        catalog.finish_chunk(chunk, ChunkResult(catalog.chunk_rows(chunk).end("ok")))
    counts = catalog.job(job.id).counts
    assert (counts["waiting"], counts["ok"]) == (0, 300)
