"""Outputs of a job of an algorithm: one file of each group, from the archives of the groups."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.jobs.group_archives import OutputFile, outputs_in
from swathe.portal.http.ranges import PART

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from swathe.algorithms.definition import Algorithm
    from swathe.jobs import Job, Row
    from swathe.portal.context import Portal

PAGE_ROWS = 1000
MODE = stat.S_IFREG | 0o644


def definition_of(portal: Portal, job: Job) -> Algorithm:
    """Return the definition of the version that a job runs, also of one that was removed."""
    label = job.options.own["algorithm"]
    return algorithm_version(portal.catalog, label, all_versions=True).definition


def result_rows(portal: Portal, job: Job, limit: int, start: int = 0) -> list[Row]:
    """Return rows of a job that have results, from a number on."""
    # Before them are the images or granules that results are combined from.
    first = portal.catalog.job(job.id).inputs if job.options.is_combined else 0
    return portal.jobs.rows(job.id, start=max(first, start), limit=limit, status="ok")


def members_as_zip(portal: Portal, job: Job, member: str, suffix: str) -> Iterator[bytes]:
    """Yield a zip with a file of each group, named by the group, as it is made."""
    from stream_zip import NO_COMPRESSION_64, stream_zip

    now = datetime.now(UTC)

    def members() -> Iterator[tuple[Any, ...]]:
        for row in _every_row(portal, job):
            result = portal.jobs.result(job.id, row.name)
            with result.open() as file:
                output = next((each for each in outputs_in(file) if each.name == member), None)
            if output is None:  # it is optional
                continue
            form = NO_COMPRESSION_64(output.size, output.crc)
            with OutputFile.opener(result.open, output)() as content:
                name = f"{row.name.removesuffix('.zip')}{suffix}"
                yield name, now, MODE, form, pieces(content)

    yield from stream_zip(members(), chunk_size=PART)


def _every_row(portal: Portal, job: Job) -> Iterator[Row]:
    start = 0
    while rows := result_rows(portal, job, PAGE_ROWS, start):
        yield from rows
        start = rows[-1].number + 1


def pieces(content: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file."""
    while piece := content.read(PART):
        yield piece
