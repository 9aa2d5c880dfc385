"""Learn how a server answers requests for many ranges: whether, how many, and at what cost.

The ranges are as the rows of a cut. Their number grows until a request is refused. The study has a
deadline of its own, as some servers never answer such a request.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.core.errors import AccessError, SourceError
from swathe.core.format import size_text
from swathe.costs.cost_model import MultiRange
from swathe.costs.probing.row_ranges import (
    LEAST_STRIDE_BYTES,
    ROW_BYTES,
    row_ranges,
    stride_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.costs.cost_model import Costs
    from swathe.costs.probing.reader_protocol import OpenedObject, VectorTiming

COUNTS = (2, 20, 100, 200, 400, 1000)
QUICK_COUNTS = (2, 100, 400)
"""Numbers of ranges tried. The header of 400 is within what nginx takes, also for large objects."""
PART_BYTES = 300
"""Assumed bytes of the headers of a part."""
REPEATS = 3
"""Requests with each number of ranges; the quickest of them counts."""
DEADLINE_S, QUICK_DEADLINE_S = 4.0, 2.0
LEAST_S = 0.5
"""Each number of ranges is tried once for this long, though the time of the study is up: a number
that was not tried would be taken as refused, and regions read whole."""
HEADER_BYTES = 7000
"""Longest `Range` header that is sent even if no longer one was tried: nginx takes 8 KiB."""


@dataclass
class VectorStudy:
    """What was learned of a server.

    Attributes:
        answers: number of ranges, and the quickest answer with all of them.
        header_bytes: length of the longest `Range` header that was honoured.
        refusal: number of ranges that were refused, and why; None if none were.
        requests: number of requests for many ranges.
        bytes_moved: bytes of the study.
    """

    answers: list[tuple[int, VectorTiming]] = field(default_factory=list)
    header_bytes: int = 0
    refusal: tuple[int, str] | None = None
    requests: int = 0
    bytes_moved: int = 0
    object_bytes: int = 0

    def multi_range(self, costs: Costs) -> MultiRange | None:
        """Return the costs of ranges, beside those of requests; None if they are not honoured."""
        if not self.answers:
            return None
        (few, first), (most, last) = self.answers[0], self.answers[-1]

        def range_s(count: int, timing: VectorTiming) -> float:
            # The time of the bytes is in the curve.
            for_bytes_s = float(costs.request_s(timing.bytes) - costs.request_s(first.bytes))
            return max(timing.seconds - first.seconds - for_bytes_s, 0.0) / (count - few)

        # Whatever disturbs an answer makes it slower.
        many = [answer for answer in self.answers if answer[0] >= min(most, COUNTS[2])]
        least_range_s = min((range_s(*answer) for answer in many if answer[0] > few), default=0.0)
        is_merged = last.parts < most
        part_bytes = 0 if is_merged else max(last.bytes - most * ROW_BYTES, 0) / most
        return MultiRange(
            ranges=most,
            header_bytes=max(HEADER_BYTES, self.header_bytes),
            range_s=least_range_s,
            part_bytes=math.ceil(part_bytes),
            gap_bytes=stride_bytes(self.object_bytes, most) - ROW_BYTES if is_merged else 0,
        )

    def notes(self) -> list[str]:
        """Return what a user should know of it."""
        least = COUNTS[0] * LEAST_STRIDE_BYTES
        if self.object_bytes < least:
            return [
                f"requests for many ranges: not tried, as no object has {size_text(least)}; "
                "ranges are requested one by one"
            ]
        notes = []
        if self.answers:
            most, last = self.answers[-1]
            notes += [f"the server merges ranges: {most} came as {last.parts}"] * (
                last.parts < most
            )
            notes += ["the server reorders ranges"] * (not last.is_ordered)
        if self.refusal is not None:
            count, why = self.refusal
            begin = "requests for many ranges are not honoured"
            if self.answers:
                begin = f"requests for {self.answers[-1][0]} ranges are honoured, not for {count}"
            notes.append(f"{begin}: {why}")
        return notes


def study_vectors(
    source: OpenedObject,
    *,
    quick: bool,
    max_time_s: float = math.inf,
    max_bytes: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> VectorStudy:
    """Request more and more ranges of an object, until that is refused or a budget is used up.

    Args:
        source: object to read.
        quick: whether to try only a few numbers of ranges.
        max_time_s: limit of seconds, beside the study's own.
        max_bytes: limit of bytes moved.
        clock: clock of the source, in seconds.
    """
    object_bytes = source.size
    study = VectorStudy(object_bytes=object_bytes)
    deadline = clock() + min(QUICK_DEADLINE_S if quick else DEADLINE_S, max_time_s)
    for count in QUICK_COUNTS if quick else COUNTS:
        if object_bytes // count < LEAST_STRIDE_BYTES:
            break
        ranges = row_ranges(object_bytes, count)
        timings: list[VectorTiming] = []
        for turn in range(REPEATS):
            left_s = max(deadline - clock(), 0.0 if turn else LEAST_S)
            likely_bytes = count * (ROW_BYTES + PART_BYTES)
            if left_s <= 0 or study.bytes_moved + likely_bytes > max_bytes:
                break
            study.requests += 1
            try:
                timing = source.measure_vector(ranges, left_s)
            except (AccessError, SourceError) as error:
                study.refusal = count, str(error)
                return study
            study.bytes_moved += timing.bytes
            if timing.refusal is not None and not timings:
                study.refusal = count, timing.refusal
                return study
            if timing.refusal is not None:
                break  # as when the time is up
            timings.append(timing)
        if not timings:
            break
        study.answers.append((count, min(timings, key=lambda timing: timing.seconds)))
        header = ",".join(f"{start}-{start + length - 1}" for start, length in ranges)
        study.header_bytes = len("bytes=") + len(header)
    return study
