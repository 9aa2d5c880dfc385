"""Fit the limits that all streams share, and the useful number of streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.costs.cost_model import line_s, queue_s
from swathe.costs.fit.robust_stats import HUBER, TIE, lower_median, noise_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from swathe.costs.cost_model import Sample
    from swathe.costs.fit.fit_request_curve import RequestCurve

    Array = NDArray[np.float64]

NO_TIME = 1e300
"""Throughput of a server whose time does not depend on bytes, in bytes per second."""

PRICE_OF_LIMIT = 4.0
"""Least gain in log-likelihood before a limit is accepted."""

PRICE_OF_WORK = 12.0
"""The same for a server's throughput, which can be confused with a line's. In 2 of 100 simulated
stores without it the gain was 7 and 9; for nginx it was 13 to 58."""

CLEAR_LINE, CLEAR_RATE, VERY_CLEAR = 1.15, 1.2, 1.6
"""A limit binds clearly if it takes this many times as long as everything else. For a rate the
factor is smaller, since busy computers hide more of it."""


@dataclass(frozen=True)
class SharedLimits:
    """Limits that all streams share; infinite if a limit does not show.

    Attributes:
        least_bytes_per_s: rate of the line at least, if it shows no limit.
    """

    total_bytes_per_s: float = math.inf
    requests_per_s: float = math.inf
    served_bytes_per_s: float = math.inf
    total_spread: float = 0.0
    requests_spread: float = 0.0
    served_spread: float = 0.0
    least_bytes_per_s: float = 0.0


@dataclass(frozen=True)
class _Together:
    """Medians of samples with several requests in flight, one entry per kind of batch."""

    size: Array
    requests: Array
    streams: Array
    seconds: Array
    errors: Array
    counts: Array


def _together(reads: Sequence[Sample], noise: float) -> _Together:
    """Group similar samples of several streams."""
    groups: dict[tuple[float, int, int], list[Sample]] = {}
    for sample in reads:
        if sample.streams > 1 and sample.requests > 1:
            octave = round(4 * math.log2(sample.bytes / sample.requests + 1))
            groups.setdefault((octave, sample.requests, sample.streams), []).append(sample)
    deviations, rows = [], []
    for alike in groups.values():
        seconds = np.array([sample.elapsed_s for sample in alike])
        median = lower_median(seconds)
        deviations.append(np.log(seconds / median))
        size = float(np.median([sample.bytes for sample in alike]))
        rows.append((size, alike[0].requests, alike[0].streams, median, len(alike)))
    table = np.array(rows, dtype=float).reshape(-1, 5).T
    own = noise_of(deviations) if any(len(group) >= 3 for group in deviations) else noise
    # Apart from the noise of samples, the model is not better than this.
    errors = np.hypot(1.25 * own / np.sqrt(table[4]), 0.03)
    return _Together(table[0], table[1], table[2], table[3], errors, table[4])


class _Explanation:
    """Time of each kind of batch, measured and explained by limits.

    There are three limits, infinite if absent: bytes per second of the line, requests per second of
    the server, and bytes per second of the server.
    """

    def __init__(self, batch: _Together, curve: RequestCurve) -> None:
        self.batch = batch
        self.wait_s = float(curve.seconds[0])
        self.sizes = batch.size / batch.requests
        self.each = curve(self.sizes)
        self.queue = np.ceil(batch.requests / batch.streams) * self.each

    def line_s(self, total: Array | float) -> Array:
        """Return the seconds on the line, shape (kinds, totals)."""
        sending_s = np.divide.outer(self.batch.size, np.atleast_1d(total))
        return line_s(self.batch.requests, self.batch.streams, self.wait_s, sending_s)

    def served_s(self, rate: Array | float, work: Array | float) -> Array:
        """Return the seconds without the line, shape (kinds, rates times works)."""
        works = bool(np.isfinite(work).all())
        serve_s = _serve_s(self.sizes, rate, work)
        each = own = self.each[:, None]
        if works:
            own = self.wait_s + _serve_s(self.sizes, np.full(np.shape(rate), np.inf), work)
        return queue_s(self.batch.requests, self.batch.streams, each, own, serve_s, works)

    def loss(self, total: Array, rate: Array, work: Array) -> Array:
        """Return the misfit of each combination of limits, shape (totals, rates, works)."""
        calls = self.served_s(rate, work).reshape(-1, 1, len(rate), len(work))
        model = np.maximum(self.line_s(total)[:, :, None, None], calls)
        off = np.log(self.batch.seconds[:, None, None, None] / model)
        off /= self.batch.errors[:, None, None, None]
        # Outliers are slow. A sample faster than a limit is evidence against the limit.
        bound = np.where(off > 0, HUBER, 4 * HUBER)
        off = np.abs(off)
        misfit = np.where(off < bound, off**2 / 2, bound * off - bound**2 / 2)
        return np.asarray(misfit.sum(axis=0), dtype=np.float64)

    def takes(self, total: float, rate: float, work: float) -> tuple[Array, Array, Array]:
        """Return seconds of each kind on the line, and at the server without and with its bytes."""
        plain = NO_TIME if math.isfinite(work) else math.inf
        return (
            self.line_s(total)[:, 0],
            self.served_s(rate, plain)[:, 0],
            self.served_s(rate, work)[:, 0],
        )

    def shows(self, total: float, rate: float, work: float) -> bool:
        """Check whether each finite limit takes clearly longer than everything else."""
        line, plain, calls = self.takes(total, rate, work)
        return all(
            limit == math.inf
            or _shows(own / np.maximum(self.queue, other), self.batch.counts, clear)
            for limit, own, other, clear in (
                (total, line, calls, CLEAR_LINE),
                (rate, self.served_s(rate, math.inf)[:, 0], line, CLEAR_RATE),
                (work, calls, np.maximum(line, plain), CLEAR_RATE),
            )
        )


def fit_limits(reads: Sequence[Sample], curve: RequestCurve, notes: list[str]) -> SharedLimits:
    """Fit the limits that all streams share, from the excess of batches over the curve.

    There are six explanations: the line, the server's time per request, both or none, and the
    server's time per byte in addition to that per request. The best one wins; each limit has a
    price and must show, see `_shows`. Where two limits cross, reads take longer than either limit
    alone, and a third would explain that. So a limit must show where no other is near.
    """
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        notes.append("streams: only one was measured")
        return SharedLimits()
    explanation = _Explanation(batch, curve)
    empty_s = explanation.line_s(math.inf)[:, 0]
    totals = batch.size / np.maximum(batch.seconds - empty_s, 0.05 * batch.seconds)
    none = np.array([math.inf])
    # One stream alone has reached this.
    some_totals = _grid(totals, 90, least=0.95 * _one_stream(curve))
    some_rates = _grid(batch.requests / batch.seconds, 60)
    some_works = np.geomspace(totals.max() / 4, 32 * totals.max(), 22)
    explanations = [_best_three(explanation.loss, (some_totals, none, none))]
    for lines in (some_totals, none):
        without = _best_three(explanation.loss, (lines, some_rates, none))
        # The time per request found above included that for bytes.
        faster = without[1][1] * np.geomspace(1 / 1.2, 16, 16)
        explanations += [without, _best_three(explanation.loss, (lines[::6], faster, some_works))]
    best, limits_best = (
        float(explanation.loss(none, none, none)[0, 0, 0]),
        (math.inf, math.inf, math.inf),
    )
    for misfit, limits in explanations:
        prices = (PRICE_OF_LIMIT, PRICE_OF_LIMIT, PRICE_OF_WORK)
        cost = sum(
            price for price, limit in zip(prices, limits, strict=True) if math.isfinite(limit)
        )
        if misfit + cost < best and explanation.shows(*limits):
            best, limits_best = misfit + cost, limits
    line, plain, calls = explanation.takes(*limits_best)
    over = calls / batch.seconds
    return SharedLimits(
        *limits_best,
        spread_of(totals[line >= np.maximum(explanation.queue, calls)]),
        spread_of(over[calls >= CLEAR_RATE * np.maximum(explanation.queue, line)]),
        spread_of(over[calls >= CLEAR_RATE * np.maximum(plain, line)]),
        # Beside the waits, and what the noise could hide, there was so much time for the bytes.
        float(
            (batch.size / np.maximum(batch.seconds - empty_s, batch.errors * batch.seconds)).max()
        ),
    )


def _serve_s(sizes: Array, rate: Array | float, work: Array | float) -> Array:
    """Return the seconds to serve a request of each size, shape (sizes, rates times works)."""
    each = np.add.outer(1 / np.atleast_1d(rate), np.divide.outer(sizes, np.atleast_1d(work)).T)
    return np.asarray(each.transpose(2, 0, 1).reshape(len(sizes), -1), dtype=np.float64)


def _shows(times: Array, counts: Array, clear: float) -> bool:
    """Check whether a limit shows: it takes this many times as long as everything else.

    It must do so in batches of two kinds, or beyond doubt in one kind that was repeated.
    """
    return bool((times > clear).sum() >= 2 or counts[times > VERY_CLEAR].sum() >= 2)


def _grid(values: Array, count: int, least: float = 0.0) -> Array:
    low, high = max(float(values.min()) / 1.5, least), float(values.max()) * 1.5
    return np.geomspace(low, max(high, low * 1.01), count)


def _best_three(
    loss: Callable[[Array, Array, Array], Array], grids: tuple[Array, Array, Array]
) -> tuple[float, tuple[float, float, float]]:
    """Return the least loss and its limits: over the grid, then refined twice."""
    for _ in range(3):
        misfits = loss(*grids)
        x, y, z = (int(at) for at in np.unravel_index(np.argmin(misfits), misfits.shape))
        totals, rates, works = grids
        best = float(misfits[x, y, z]), (float(totals[x]), float(rates[y]), float(works[z]))
        grids = _finer(totals, x), _finer(rates, y), _finer(works, z)
    return best


def _finer(values: Array, place: int) -> Array:
    if len(values) == 1:
        return values
    return np.geomspace(values[max(place - 1, 0)], values[min(place + 1, len(values) - 1)], 15)


def _one_stream(curve: RequestCurve) -> float:
    """Return the best bandwidth of one stream, without the latency if that is clear."""
    sizes, seconds = curve.sizes[1:-1], curve.seconds[1:-1]
    # With few round trips, the first bytes come in bursts.
    body = seconds - curve.seconds[0]
    return float((sizes / np.where(body > 8 * curve.seconds[0], body, seconds)).max())


def most_useful_streams(
    reads: Sequence[Sample], curve: RequestCurve, limits: SharedLimits, notes: list[str]
) -> int:
    """Return the least number of streams that no larger number beats beyond the noise."""
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        return 1
    stream_counts = np.unique(np.append(1.0, batch.streams))
    size = np.append(batch.size / batch.requests, curve.sizes[1:-1])
    rate = np.append(batch.requests / batch.seconds, 1 / curve.seconds[1:-1])
    streams = np.append(batch.streams, np.ones(len(curve.sizes) - 2))
    errors = np.append(batch.errors, np.full(len(curve.sizes) - 2, 0.03))
    octave = np.round(4 * np.log2(size + 1))

    def modelled_rate(enough: float) -> Array:
        """Return requests per second of each measured size, by the model."""
        line = np.maximum(size, 1) / limits.total_bytes_per_s
        serve_s = _serve_s(size, limits.requests_per_s, limits.served_bytes_per_s)[:, 0]
        return 1 / np.maximum(np.maximum(line, serve_s), curve(size) / enough)

    def has_samples(enough: float) -> bool:
        """Check whether, for every size measured with more streams, no more were faster.

        A far store leaves time for few measurements. If a number was not measured, the model's
        value is used; otherwise two streams would suffice whenever nothing else was measured.
        """
        likely = modelled_rate(enough)
        for value in np.unique(octave[streams > enough]):
            here, more = octave == value, (octave == value) & (streams > enough)
            own = here & (streams == enough)
            best = np.argmax(np.where(more, rate, 0))
            own_rate, its_error = (
                (rate[own].max(), errors[own].max()) if own.any() else (likely[best], 0.03)
            )
            if rate[best] > own_rate * (1 + max(TIE, 2 * np.hypot(errors[best], its_error))):
                return False
        return True

    def is_enough(enough: float) -> bool:
        """Check whether the model gains nothing from more streams at any measured size."""
        return bool((modelled_rate(stream_counts[-1]) / modelled_rate(enough) <= 1 + TIE).all())

    fewest = next(
        int(enough) for enough in stream_counts if is_enough(enough) or has_samples(enough)
    )
    if fewest == int(stream_counts[-1]):
        notes.append(f"streams: {fewest} was the largest number tried, and the fastest")
    return fewest
