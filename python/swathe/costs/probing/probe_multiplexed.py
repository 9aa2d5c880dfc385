"""Learn how a server answers requests that share one connection of HTTP/2: whether, at what cost.

More and more small requests are sent at the same time, then some large ones. The study has a
deadline of its own, as a server may hold such requests back.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.core.errors import AccessError, SourceError
from swathe.core.format import MIB, rate_text, size_text
from swathe.costs.cost_model import MultiplexCosts
from swathe.costs.probing.row_ranges import LEAST_STRIDE_BYTES, row_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.costs.cost_model import Costs
    from swathe.costs.probing.reader_protocol import MultiplexTiming, OpenedObject

COUNTS = (1, 20, 50, 100, 200)
QUICK_COUNTS = (1, 100)
"""Numbers of requests tried at the same time; the first opens the connection, too."""
HEADER_BYTES = 300
"""Assumed bytes of the headers of an answer."""
REPEATS = 3
"""Measurements of each number of requests; the quickest of them counts."""
GAIN = 1.1
"""Least gain in the time of each request for which more requests are sent at the same time."""
LARGE_REQUESTS, LARGE_BYTES, LARGE_S = 4, 4 * MIB, 0.25
"""Large requests at the same time, the most bytes of each, and the seconds they may take."""
DEADLINE_S, QUICK_DEADLINE_S = 4.0, 2.0


@dataclass
class MultiplexStudy:
    """What was learned of a server.

    Attributes:
        answers: number of requests at the same time, and the quickest answer to all of them.
        bytes_per_s: bandwidth of the connection; 0 if it was not measured.
        refusal: reason for which such requests are of no use; None if they were answered.
        requests: number of requests.
        bytes_moved: bytes of the study, those of opening included.
    """

    answers: list[tuple[int, MultiplexTiming]] = field(default_factory=list)
    bytes_per_s: float = 0.0
    refusal: str | None = None
    requests: int = 0
    bytes_moved: int = 0
    object_bytes: int = 0

    def costs(self) -> MultiplexCosts | None:
        """Return the costs of such requests; None if they are of no use."""
        if len(self.answers) < 2 or not self.bytes_per_s:
            return None
        _, alone = self.answers[0]
        most, timing = self.answers[0]
        for count, answer in self.answers[1:]:
            if answer.seconds / count * GAIN < timing.seconds / most:
                most, timing = count, answer
        if most < 2:
            return None
        header_bytes = alone.header_bytes
        more_bytes = timing.bytes - alone.bytes + (most - 1) * header_bytes
        more_s = timing.seconds - alone.seconds - more_bytes / self.bytes_per_s
        return MultiplexCosts(
            requests=most,
            latency_s=max(alone.seconds - alone.bytes / self.bytes_per_s, 1e-9),
            request_s=max(more_s, 0.0) / (most - 1),
            bytes_per_s=self.bytes_per_s,
            header_bytes=header_bytes,
        )

    def notes(self, costs: Costs) -> list[str]:
        """Return what a user should know of it, beside the costs over HTTP/1.1."""
        least = COUNTS[1] * LEAST_STRIDE_BYTES
        if self.refusal is not None:
            return [f"HTTP/2 is not used: {self.refusal}"]
        if self.object_bytes < least:
            return [f"HTTP/2 is not used: not tried, as no object has {size_text(least)}"]
        result = self.costs()
        if result is None:
            return ["HTTP/2 is not used: requests at the same time are answered no faster"]
        return [
            f"HTTP/2: one connection carries {rate_text(result.bytes_per_s)}, "
            f"{costs.streams} of HTTP/1.1 {rate_text(costs.total_bytes_per_s)}"
        ]

    def large_ranges(self, most_bytes: float) -> list[tuple[int, int]]:
        """Return the ranges of large requests, `most_bytes` in all, if the object is so large."""
        size = min(most_bytes, self.object_bytes) // LARGE_REQUESTS
        size = int(min(max(size, 1), LARGE_BYTES))
        return [(number * size, size) for number in range(LARGE_REQUESTS)]


def study_multiplexing(
    source: OpenedObject,
    costs: Costs,
    *,
    quick: bool,
    max_time_s: float = math.inf,
    max_bytes: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> MultiplexStudy:
    """Send more and more requests on one connection, until a budget is used up.

    Args:
        source: object to read.
        costs: costs over HTTP/1.1.
        quick: whether to try only a few numbers of requests.
        max_time_s: limit of seconds, beside the study's own.
        max_bytes: limit of bytes moved.
        clock: clock of the source, in seconds.
    """
    object_bytes = source.size
    study = MultiplexStudy(object_bytes=object_bytes)
    if object_bytes < COUNTS[1] * LEAST_STRIDE_BYTES:
        return study
    deadline = clock() + min(QUICK_DEADLINE_S if quick else DEADLINE_S, max_time_s)

    def measure(ranges: list[tuple[int, int]]) -> MultiplexTiming | None:
        """Measure once; None if the budget is used up, or the server refuses."""
        left_s = deadline - clock()
        likely_bytes = sum(length + HEADER_BYTES for _, length in ranges)
        if left_s <= 0 or study.bytes_moved + likely_bytes > max_bytes:
            return None
        try:
            timing = source.measure_multiplexed(ranges, len(ranges), left_s)
        except (AccessError, SourceError) as error:
            study.refusal = str(error)
            return None
        if timing.refusal is not None:
            # Later ones may be refused only because the time is up.
            if not study.answers:
                study.refusal = timing.refusal
            return None
        study.requests += len(ranges)
        study.bytes_moved += timing.bytes + len(ranges) * timing.header_bytes
        return timing

    if measure(row_ranges(object_bytes, 1)) is None:
        return study
    for count in QUICK_COUNTS if quick else COUNTS:
        if object_bytes // count < LEAST_STRIDE_BYTES:
            break
        timings = [
            timing for _ in range(REPEATS) if (timing := measure(row_ranges(object_bytes, count)))
        ]
        if not timings:
            break
        study.answers.append((count, min(timings, key=lambda timing: timing.seconds)))
    likely = min(costs.total_bytes_per_s * LARGE_S, (max_bytes - study.bytes_moved) / REPEATS / 2)
    for _ in range(REPEATS):
        if timing := measure(study.large_ranges(likely)):
            sending_s = max(timing.seconds - timing.first_byte_s, 1e-9)
            study.bytes_per_s = max(study.bytes_per_s, timing.bytes / sending_s)
    return study
