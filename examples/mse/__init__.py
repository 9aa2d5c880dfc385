"""How much a dataset of a run changes from one dump to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

import swathe
from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from swathe.runs.reading.stored_array import StoredDump
    from swathe.runs.writing.ranks import Ranks

SLAB_BYTES = 8 << 20
"""What is read of a dump at a time, about: at least one plane of the first axis."""


@dataclass(frozen=True)
class Difference:
    """The difference of two dumps.

    Attributes:
        first: iteration of the earlier one.
        second: iteration of the later one.
        mean: mean of the squared differences.
    """

    first: int
    second: int
    mean: float


def differences(label: str, array: str, ranks: Ranks) -> Iterator[Difference]:
    """Yield the mean squared difference of each dump from the one before; all ranks call it.

    Each rank reads some slabs of both dumps, and has two slabs in memory.

    Args:
        label: `NAME@NUMBER` of a run, or `NAME` for the newest of an application.
        array: name of the dataset.
        ranks: who shares the work.

    Raises:
        NoSuchRunError: If there is no such run or dataset.
        OptionError: If it has fewer than two dumps.
        NotFoundError, AccessError, SourceError, FormatError: If a dump cannot be read.
    """
    dumps = swathe.open_run(label)[array]
    if len(dumps) < 2:
        raise OptionError(f"{label}, {array}: expected two dumps or more, found {len(dumps)}")
    for first, second in pairwise(sorted(dumps)):
        sums = dict(_sums(dumps[first], dumps[second], ranks))
        # Added in the order of slabs, so any number of ranks has the same result.
        of_ranks = {at: value for each in ranks.gather(sums) for at, value in each.items()}
        total = math.fsum(of_ranks[at] for at in sorted(of_ranks))
        yield Difference(first, second, total / math.prod(dumps[first].shape))


def _sums(one: StoredDump, other: StoredDump, ranks: Ranks) -> Iterator[tuple[int, float]]:
    """Yield the first plane and the sum of squares of each slab of a rank."""
    row_bytes = math.prod(one.shape[1:]) * one.dtype.itemsize
    planes = max(1, SLAB_BYTES // row_bytes)
    starts = range(0, one.shape[0], planes)
    for start in starts[ranks.rank :: ranks.size]:
        part = slice(start, min(start + planes, one.shape[0]))
        difference = other[part].astype(np.float64)
        difference -= one[part]
        yield start, float(np.vdot(difference, difference))
