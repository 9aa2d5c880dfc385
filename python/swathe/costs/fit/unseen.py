"""How far jobs may be from their prediction, for what a probe has not seen.

The scatter of a probe's own reads says nothing of a limit that they did not reach. So the bounds
are those of jobs over links drawn at random (`benches/random_links.py`; links 600 to 613 after a
full and after a quick probe): natural logarithms of actual over predicted time, about at the 10th
and the 90th percentile.
"""

from __future__ import annotations

ONE_SIZE = (0.45, 1.4)
"""Requests of one size only: latency and bandwidth cannot be told apart."""
ONE_STREAM = (0.6, 0.3)
"""Never several at once: what the line carries together is unknown."""
NO_TOTAL = (0.35, 0.6)
"""More streams were always faster: they may share a limit that was not reached, and may not."""
MANY_STREAMS, NO_TOTAL_OF_MANY = 64, (0.2, 0.35)
"""As many streams as a full probe tries did not reach it, either."""
ALL_LIMITS = (0.1, 0.25)
"""All limits were reached."""


def unseen_of(sizes: int, streams: int, is_total_seen: bool) -> tuple[float, float]:
    """Return logarithms of how much faster and slower 80 of 100 jobs are at most.

    Args:
        sizes: number of sizes of requests that were measured alone.
        streams: most requests that were in flight together.
        is_total_seen: whether the rate of all streams together reached a limit.
    """
    if sizes <= 1:
        return ONE_SIZE
    if streams <= 1:
        return ONE_STREAM
    if is_total_seen:
        return ALL_LIMITS
    return NO_TOTAL_OF_MANY if streams >= MANY_STREAMS else NO_TOTAL
