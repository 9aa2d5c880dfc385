"""Batches: rows of a job, with all that is needed to execute them here or elsewhere.

A batch needs no database, and can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.group_run import AlgorithmCall, algorithm_call
from swathe.core.errors import AlgorithmError
from swathe.core.row_table import RowTable
from swathe.jobs.types import Options
from swathe.operations.operation import ProgramOperation

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import Chunk
    from swathe.core.row_record import RowRecord

Work = Literal["cut", "long", "program"]
"""Kinds of work: batches of cuts take about a second; whole granules that are read and combined
results that are made may take minutes, and a program of a user hours."""


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
        program: the algorithm that makes the results, with its values, if one does.
        program_fault: why the algorithm cannot run; empty if it can.
        on_disk: objects, `NAME:path`, that have come from tape and stay on disk meanwhile.
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
    on_disk: Sequence[str] = ()
    program: AlgorithmCall | None = None
    program_fault: str = ""

    @property
    def work(self) -> Work:
        """Return its kind of work."""
        return work_of(self.options, self.makes)


def work_of(options: Options, makes: bool) -> Work:
    """Return the kind of work of rows.

    Args:
        options: options of the job.
        makes: whether the rows are combined results.
    """
    kind = options.results.kind
    if makes and isinstance(kind, ProgramOperation):
        return "program"
    return "long" if makes or kind.reads_granules else "cut"


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
    options = Options.from_catalog(job.options)
    program, program_fault = None, ""
    if work_of(options, makes) == "program":
        try:
            program = _program(catalog, options)
        except AlgorithmError as error:
            program_fault = str(error)
    return Batch(
        job=job.id,
        first=chunk.first,
        options=options,
        rows=rows,
        makes=makes,
        results=dict(zip(numbers, catalog.job_results(job.number, numbers), strict=True)),
        inputs={
            number: inputs.take(inputs.result == number) for number in rows.number.tolist() if makes
        },
        row_bytes=prediction.get("bytes", 0) / max(1, job.inputs),
        # Chunks of older versions lack it.
        row_s=prediction.get("compute_s", 0.0) / max(1, job.inputs),
        program=program,
        program_fault=program_fault,
    )


def _program(catalog: Catalog, options: Options) -> AlgorithmCall:
    """Return the algorithm of a job, with its values, its libraries and its interpreter.

    Raises:
        AlgorithmError: If a library or the environment is missing.
    """
    own = options.own
    version = algorithm_version(catalog, own["algorithm"], all_versions=True)
    owner = version.record.owner
    return algorithm_call(version.definition, version.source, {}, own["parameters"], catalog, owner)


def add_pairs(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add two pairs of (bytes, requests)."""
    return one[0] + other[0], one[1] + other[1]
