"""Estimate of a job's cost: reading and cutting in the engine, and other work per row.

The first is predicted as everywhere (`swathe.predict`). The second is learned from earlier jobs of
the same kind.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe.core.errors import NoSuchArrayError, SwatheError
from swathe.core.host import cores
from swathe.core.row_record import plane_spans
from swathe.costs.array_work import ArrayWork
from swathe.costs.engine_job import to_engine_job
from swathe.costs.predict_list import predict_job
from swathe.costs.prediction import Prediction, times, total_of
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any, open_from_cache
from swathe.files.hdu import BLOCK, whole_blocks
from swathe.files.targets.hdus import hdu_key
from swathe.operations.array_results import is_of_array
from swathe.stores.registry import compute_costs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from swathe.catalog.records.jobs import PastJob
    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import DictColumn, RowTable
    from swathe.jobs.granules import GranuleReads
    from swathe.jobs.types import Options
    from swathe.operations.operation import ResultFormat

MOST_INSPECTIONS = 16
"""Objects per store that a prediction opens; the others are assumed to be similar."""
MOST_TRIES = 4 * MOST_INSPECTIONS
"""Objects tried per store to find MOST_INSPECTIONS readable ones: any file may be missing."""
CARD_BYTES = 80
ADDED_CARDS = 6
"""Cards that a cutout has more than its image: HISTORY, CHECKSUM, DATASUM, END and the like."""
HEADER_BYTES = 2 * BLOCK
"""Assumed size of the header of a result that is no cutout as the engine writes it."""
PIXEL_BYTES = 4
"""Bytes per pixel of combined results whose format does not say."""
PREDICTED_ROWS = 100_000
"""Rows that are predicted together: of a long list all at once take much memory."""
PAST = 200
"""Earlier jobs to learn from."""
SPREAD = 2.0
LEAST_S = 1e-6
BELIEF = 0.3
"""Weight of the assumed times, relative to one finished job."""


def predict_rows(
    rows: RowTable,
    results: int,
    options: Options,
    past_jobs: Sequence[PastJob],
    reads: GranuleReads | None = None,
) -> Prediction | None:
    """Predict the cost of rows that can be cut; `None` if there are none.

    Args:
        rows: rows that can be cut.
        results: number of combined results.
        options: options of the job.
        past_jobs: earlier jobs of any kind, to learn from.
        reads: what is read of the first granules, if the rows are granules.
    """
    prediction = _of_engine(rows if reads is None else reads.arrays, options)
    if prediction is not None and reads is not None:
        prediction = times(prediction, len(rows) / reads.count) if len(rows) else None
    if prediction is None:
        return None
    kind = options.operation, options.format
    alike = [job for job in past_jobs if (job.operation, job.format) == kind]
    outside_s, low_s, high_s = overhead_s(alike, options.results.file_format, len(rows) + results)
    low, high = prediction.interval_s
    return replace(
        prediction,
        median_s=prediction.median_s + outside_s,
        interval_s=(low + low_s, high + high_s),
        overhead_s=outside_s,
    )


def overhead_s(
    past_jobs: Sequence[PastJob], file_format: ResultFormat, rows: int
) -> tuple[float, float, float]:
    """Return the seconds a job takes outside the engine: median, 10th and 90th percentile.

    They are a time per job and a time per row. If few jobs with such results have run, the assumed
    times count.
    """
    import numpy as np
    from scipy.optimize import least_squares  # type: ignore[import-untyped]  # as in stacking

    usual_s = np.array((file_format.job_s, file_format.row_s))
    terms = np.array([(1.0, job.rows) for job in past_jobs]).reshape(-1, 2)
    took = np.array([max(0.0, job.work_s - job.engine_s) for job in past_jobs])
    scale = terms @ usual_s

    def residuals(times: Any) -> Any:
        return np.concatenate([(terms @ times - took) / scale, BELIEF * (times / usual_s - 1)])

    # Some take far longer: the first job of a process, and jobs that run beside others.
    times = least_squares(residuals, usual_s, bounds=(0, np.inf), loss="soft_l1").x
    median = float(times @ (1.0, rows))
    ratios = [*(took / (terms @ times + LEAST_S)), 1 / SPREAD, SPREAD]
    low, high = np.percentile(ratios, (10, 90))
    return median, median * min(1.0, float(low)), median * max(1.0, float(high))


def _of_engine(rows: RowTable, options: Options) -> Prediction | None:
    """Predict the cost of reading and cutting."""
    if not len(rows):
        return None
    return total_of([_of_part(part, options) for part in _in_parts(rows)])


def _of_part(rows: RowTable, options: Options) -> Prediction:
    """Predict the cost of reading and cutting some rows, those by libraries of formats, too."""
    work = ArrayWork.of(rows, compute_costs())
    job = to_engine_job(rows.take(~work.is_apart), mode=options.mode, threads=cores())
    return work.add_to(work.widen(predict_job(job, MOST_INSPECTIONS)))


def _in_parts(rows: RowTable) -> Iterator[RowTable]:
    """Yield rows in parts of about PREDICTED_ROWS, those of one object together."""
    import numpy as np

    if len(rows) <= PREDICTED_ROWS:
        yield rows
        return
    order = np.argsort(rows.source.codes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(rows.source.codes[order])) + 1, len(rows))
    first = 0
    while first < len(rows):
        object_end = min(int(np.searchsorted(ends, first + PREDICTED_ROWS)), len(ends) - 1)
        last = int(ends[object_end])
        yield rows.take(order[first:last])
        first = last


def bytes_out(rows: RowTable, options: Options, off_disk: Collection[str] = ()) -> int:
    """Estimate the total size of the results of some rows from the images that were opened.

    Those of `off_disk` are taken to be like the others.
    """
    import numpy as np

    if (each_bytes := options.results.kind.result_bytes(options.own)) is not None:
        if not options.is_combined:
            return each_bytes * len(rows)
        return each_bytes * (0 if rows.group is None else len(rows.group.few().values))
    per_pixel: list[float] = []
    header_bytes: list[int] = []
    _, first_of_file = np.unique(rows.source.codes, return_index=True)
    firsts = np.sort(first_of_file)
    if off_disk:
        files = rows.source.values
        firsts = firsts[[files[code] not in off_disk for code in rows.source.codes[firsts]]]
    for row in rows.take(firsts[:MOST_TRIES]):
        if len(per_pixel) == MOST_INSPECTIONS:
            break
        try:
            if is_of_array(row):
                per_pixel.append(_element_bytes(row))
                header_bytes.append(HEADER_BYTES)
                continue
            image = open_from_cache(row.source).image(hdu_key(row.hdu))
            lengths = image.shape[-3::-1]
            spans = plane_spans(row.planes)
            plane_counts = [last - first for first, last in spans], lengths[len(spans) :]
            header = image.header
            per_pixel.append(math.prod(chain(*plane_counts)) * abs(header["BITPIX"]) / 8)
            header_bytes.append(whole_blocks((len(header) + ADDED_CARDS) * CARD_BYTES))
        except SwatheError:
            continue  # reported with its rows
    if not per_pixel:
        return 0
    mean = sum(per_pixel) / len(per_pixel)
    if rows.group is not None:
        return _bytes_of_results(rows, rows.group, options)
    areas = rows.box[:, 2].astype(float) * rows.box[:, 3]
    each = options.results.file_format.pixel_bytes
    if not options.results.file_format.is_plain:
        return int(areas.sum() * (each or mean)) + len(rows) * HEADER_BYTES
    pixels = whole_blocks(np.ceil(areas * mean)).sum()
    return int(pixels + len(rows) * sum(header_bytes) / len(header_bytes))


def _element_bytes(row: RowRecord) -> float:
    """Return the bytes of a result of an array for each pixel of its box.

    Raises:
        SwatheError: If the file or its array cannot be opened.
    """
    file = open_any(row.source)
    if not isinstance(file, ArrayFile):
        raise NoSuchArrayError(f"{row.source}: expected a file of arrays, found FITS")
    array = file.array(row.hdu)
    others = [each for axis, each in enumerate(array.shape) if axis not in (array.plane or ())]
    lengths = [last - first for first, last in plane_spans(row.planes)] or others
    return float(math.prod(lengths) * array.dtype.itemsize)


def _bytes_of_results(rows: RowTable, group: DictColumn[str], options: Options) -> int:
    """Estimate the size of results that combine images."""
    import numpy as np

    from swathe.operations.grid import ROTATION_FACTOR

    _, first_of_group = np.unique(group.codes, return_index=True)
    each = options.results.file_format.pixel_bytes or PIXEL_BYTES
    sides = rows.box[first_of_group, 2] / ROTATION_FACTOR
    return int((sides**2 * each).sum()) + len(first_of_group) * HEADER_BYTES


def to_stored_prediction(prediction: Prediction | None) -> dict[str, Any] | None:
    """Return a prediction as it is stored with the job."""
    if prediction is None:
        return None
    return {
        "median_s": prediction.median_s,
        "interval_s": list(prediction.interval_s),
        "bytes": prediction.bytes,
        "requests": prediction.requests,
        "root": prediction.root,
        "compute_s": prediction.compute_s + prediction.overhead_s,
        "overhead_s": prediction.overhead_s,
    }
