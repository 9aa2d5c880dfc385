"""Batches: rows of a job, with all that is needed to execute them here or elsewhere.

A batch needs no database, and can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.row_table import RowTable
from swathe.jobs.types import Options

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import Chunk
    from swathe.core.row_record import RowRecord


@dataclass(frozen=True)
class Batch:
    """Rows of a job that are executed together.

    Attributes:
        job: id of the job.
        first: position of the first row.
        options: options of the job.
        rows: rows to execute.
        makes: whether the rows are combined results rather than cutouts.
        results: combined results of the rows, by number.
        inputs: input rows of each combined result, by its number.
        row_bytes: expected bytes to read per row.
        row_s: predicted compute seconds per row, without reading; 0: not predicted.
        cutout_bytes: size limit of one cutout's pixels, if there is one.
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
    """Return the unfinished rows of a chunk as a batch.

    Raises:
        CatalogError: If the database cannot be used.
    """
    job = chunk.job
    rows = catalog.chunk_rows(chunk)
    makes = chunk.first >= job.inputs
    numbers = [] if makes else np.unique(rows.result[rows.result >= 0]).tolist()
    inputs = catalog.rows_into(job.number, rows.number.tolist()) if makes else RowTable.of([])
    prediction = job.predicted or {}
    return Batch(
        job=job.id,
        first=chunk.first,
        options=Options.from_catalog(job.options),
        rows=rows,
        makes=makes,
        results=dict(zip(numbers, catalog.job_results(job.number, numbers), strict=True)),
        inputs={
            number: inputs.take(inputs.result == number) for number in rows.number.tolist() if makes
        },
        row_bytes=prediction.get("bytes", 0) / max(1, job.inputs),
        # Chunks of older versions lack it.
        row_s=prediction.get("compute_s", 0.0) / max(1, job.inputs),
    )


def add_pairs(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add two pairs of (bytes, requests)."""
    return one[0] + other[0], one[1] + other[1]
