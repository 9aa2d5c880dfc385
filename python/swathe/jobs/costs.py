"""What a job will cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.environment import cores
from swathe.errors import SwatheError
from swathe.objects import opened
from swathe.predict import Prediction, expected, job_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.jobs.expansion import Work
    from swathe.jobs.values import Options

LOOKED_INTO = 16
"""Objects of each storage that a prediction looks into; the rest are like them."""
HEADER_BYTES = 2 * 2880
UNKNOWN_SIDE = 100
"""Pixels, of targets in the sky none of whose images could be read yet."""


def predicted(work: Work, options: Options, threads: int | None = None) -> Prediction | None:
    """Say what the rows that can be cut will cost; `None` where there are none."""
    rows = work.todo()
    if not rows:
        return None
    _place_like_others(work, rows)
    parts: dict[tuple[int, int] | None, list[int]] = {}
    for row in rows:
        parts.setdefault(work.planes[row], []).append(row)
    found = [
        expected(
            job_of(work.read, part, mode=options.mode, planes=planes, threads=threads or cores()),
            LOOKED_INTO,
        )
        for planes, part in parts.items()
    ]
    if len(found) == 1:
        return found[0]
    low, high = (sum(each.interval_s[end] for each in found) for end in (0, 1))
    per_store = {root: cost for each in found for root, cost in each.per_store.items()}
    return Prediction(
        sum(each.seconds for each in found),
        (low, high),
        sum(each.bytes for each in found),
        sum(each.requests for each in found),
        per_store,
    )


def _place_like_others(work: Work, rows: Sequence[int]) -> None:
    """Give targets whose images were not read yet boxes like those of the others."""
    import numpy as np

    later = set(work.read.unplaced)
    if not later:
        return
    placed = work.read.boxes[[row for row in rows if row not in later]]
    like = np.median(placed, axis=0) if len(placed) else [0, 0, UNKNOWN_SIDE, UNKNOWN_SIDE]
    work.read.boxes[sorted(later)] = np.array(like).astype(np.int64)


def bytes_out(work: Work, options: Options) -> int:
    """Say how large results will be together, by the images that are looked into."""
    rows = work.todo()
    _place_like_others(work, rows)
    per_pixel: list[float] = []
    seen: set[int] = set()
    for row in rows:
        if len(per_pixel) == LOOKED_INTO:
            break
        if (file := int(work.read.file[row])) not in seen:
            seen.add(file)
            try:
                image = opened(work.read.files[file]).image(work.read.hdus[work.read.hdu[row]])
                first, last = work.planes[row] or (
                    0,
                    image.shape[-3] if len(image.shape) > 2 else 1,
                )
                per_pixel.append((last - first) * abs(image.header["BITPIX"]) / 8)
            except SwatheError:
                continue  # its rows will say so
    if not per_pixel:
        return 0
    mean = sum(per_pixel) / len(per_pixel)
    if work.group is not None:
        return _bytes_of_results(work, rows, options)
    areas = work.read.boxes[rows, 2].astype(float) * work.read.boxes[rows, 3]
    if options.format == "png":
        return int(areas.sum())
    return int(areas.sum() * mean) + len(rows) * HEADER_BYTES


def _bytes_of_results(work: Work, rows: Sequence[int], options: Options) -> int:
    """Say how large pictures of three bands, or sums with the counts behind them, will be."""
    from swathe.jobs.expansion import TURNED

    assert work.group is not None
    first = {work.group[row]: row for row in reversed(rows)}
    each = 3 if options.format == "rgb" else 8
    sides = work.read.boxes[list(first.values()), 2] / TURNED
    return int((sides**2 * each).sum()) + len(first) * HEADER_BYTES


def as_kept(prediction: Prediction | None) -> dict[str, Any] | None:
    """Give a prediction as a job keeps it."""
    if prediction is None:
        return None
    return {
        "seconds": prediction.seconds,
        "interval_s": list(prediction.interval_s),
        "bytes": prediction.bytes,
        "requests": prediction.requests,
        "root": prediction.root,
    }
