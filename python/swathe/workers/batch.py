"""Batches: rows of a job with all that is needed to do them, here or on another machine.

A batch needs no database, and can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.jobs.row_table import RowTable
from swathe.jobs.types import Options

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import Chunk, RowRecord


@dataclass(frozen=True)
class Batch:
    """Rows of a job that are done together.

    Attributes:
        job: its id.
        first: position of the first row.
        options: of the job.
        rows: to do.
        makes: whether the rows are results that are made of others, not cut.
        results: by number, those that the rows go into.
        inputs: by number of a result, the rows that go into it.
        row_bytes: that are expected to be read for each row.
        row_s: predicted seconds of computing each, once its bytes are there; 0: none were.
        cutout_bytes: pixels of one cutout at most, where that is limited.
    """

    job: str
    first: int
    options: Options
    rows: RowTable
    makes: bool = False
    results: Mapping[int, RowRecord] = field(default_factory=dict)
    inputs: Mapping[int, RowTable] = field(default_factory=dict)
    row_bytes: float = 0.0
    row_s: float = 0.0
    cutout_bytes: int | None = None


def batch_of(catalog: Catalog, chunk: Chunk) -> Batch:
    """Give what a chunk still has to do, with all that is needed for it.

    Raises:
        CatalogError: where the database cannot be used.
    """
    job = chunk.job
    rows = catalog.chunk_rows(chunk)
    makes = chunk.first >= job.inputs
    wanted = [] if makes else np.unique(rows.result[rows.result >= 0]).tolist()
    inputs = catalog.rows_into(job.number, rows.number.tolist()) if makes else RowTable.of([])
    predicted = job.predicted or {}
    return Batch(
        job=job.id,
        first=chunk.first,
        options=Options.checked(job.options),
        rows=rows,
        makes=makes,
        results=dict(zip(wanted, catalog.job_results(job.number, wanted), strict=True)),
        inputs={
            number: inputs.take(inputs.result == number) for number in rows.number.tolist() if makes
        },
        row_bytes=predicted.get("bytes", 0) / max(1, job.inputs),
        # Those of older versions lack it.
        row_s=predicted.get("compute_s", 0.0) / max(1, job.inputs),
    )


def summed(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add bytes to bytes, and requests to requests."""
    return one[0] + other[0], one[1] + other[1]
