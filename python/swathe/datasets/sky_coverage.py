"""The sky that a dataset covers, as a MOC (Multi-Order Coverage map, IVOA).

It is made of the HEALPix cells of the footprints in the catalogue, which are a part of a footprint
in size: no outline is read. A cell that an image touches belongs to it.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Literal

import numpy as np

from swathe.catalog.records.datasets import MOC_ORDER, MOST_MOC_ORDER, ORDER
from swathe.core.errors import DatasetError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mocpy import MOC
    from numpy.typing import NDArray

    from swathe.catalog import Catalog

MocFormat = Literal["fits", "json", "ascii"]
PART_CELLS = 1 << 20
"""Ranges that are joined to those before at once."""


def moc_of(catalog: Catalog, dataset: str, order: int = MOC_ORDER) -> MOC:
    """Return the sky that the readable images of a dataset cover.

    Memory depends on the sky that is covered, not on the number of images.

    Args:
        catalog: the catalogue.
        dataset: name of the dataset.
        order: HEALPix order of the smallest cells, 0 to 11.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
        DatasetError: If none of its images is on the sky, or the order is invalid.
        OptionError: If mocpy is not installed.
    """
    if not 0 <= order <= MOST_MOC_ORDER:
        raise DatasetError(f"order: expected 0 to {MOST_MOC_ORDER}, found {order}")
    try:
        from mocpy import MOC
    except ImportError as error:
        raise OptionError(f"{error}; try: pip install 'swathe[moc]'") from error
    ranges = join_ranges(catalog.sky_ranges(dataset), order)
    if not len(ranges):
        raise DatasetError(f"{dataset}: expected images on the sky, found none")
    shift = 2 * (ORDER - order)
    # The end of a range of a MOC does not belong to it.
    whole = np.stack([ranges[:, 0], ranges[:, 1] + 1], axis=1).astype(np.uint64) << np.uint64(shift)
    return MOC.from_depth29_ranges(order, whole)


def moc_content(moc: MOC, form: MocFormat) -> bytes:
    """Return a MOC as the content of a file: FITS, JSON (lists of cells by order), or ASCII."""
    if form == "ascii":
        return f"{moc.to_string()}\n".encode()
    if form == "json":
        return json.dumps(moc.serialize("json")).encode()
    content = io.BytesIO()
    moc.serialize("fits").writeto(content)
    return content.getvalue()


def join_ranges(parts: Iterable[NDArray[np.int64]], order: int) -> NDArray[np.int64]:
    """Return ranges of cells of the finest order as ranges of an order, sorted and apart.

    Args:
        parts: ranges, first and last cell.
        order: order of the result.
    """
    shift = 2 * (ORDER - order)
    ranges = np.empty((0, 2), np.int64)
    waiting: list[NDArray[np.int64]] = []
    count = 0
    for part in parts:
        waiting.append(_join(part >> shift))
        count += len(waiting[-1])
        if count > max(PART_CELLS, len(ranges)):
            ranges, waiting, count = _join(np.concatenate([ranges, *waiting])), [], 0
    return _join(np.concatenate([ranges, *waiting]))


def _join(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges sorted, with those joined that touch or overlap."""
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    is_start = np.append(True, ranges[1:, 0] > ends[:-1] + 1)
    starts = ranges[is_start, 0]
    lasts = ends[np.append(np.flatnonzero(is_start)[1:] - 1, len(ranges) - 1)]
    return np.stack([starts, lasts], axis=1)
