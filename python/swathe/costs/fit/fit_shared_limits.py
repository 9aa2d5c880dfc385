"""What many streams share, and how many of them are of use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.costs.cost_model import line_s, queue_s, waited_for
from swathe.costs.fit.robust_stats import HUBER, TIE, middle, noise_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from swathe.costs.cost_model import Sample
    from swathe.costs.fit.fit_request_curve import Curve

    Array = NDArray[np.float64]

NO_TIME = 1e300
"""Bytes per second of a server for which bytes are nothing."""

PRICE_OF_LIMIT = 4.0
"""How much better, in log-likelihood, the samples must fit before a limit is believed in."""

PRICE_OF_WORK = 12.0
"""The same of the bytes that a server works through, for which those of a line can be taken: in 2
of 100 simulated stores that have none they were better by 7 and 9, of nginx by 13 to 58."""

CLEAR_LINE, CLEAR_RATE, VERY_CLEAR = 1.15, 1.2, 1.6
"""A limit binds clearly where it takes this much longer than anything else would; of a rate, less
than that is seen where computers are busy."""


@dataclass(frozen=True)
class Limits:
    """What all streams share; infinite where no limit shows."""

    total_bytes_per_s: float = math.inf
    requests_per_s: float = math.inf
    served_bytes_per_s: float = math.inf
    total_spread: float = 0.0
    requests_spread: float = 0.0
    served_spread: float = 0.0


@dataclass(frozen=True)
class _Together:
    """Medians of samples with several requests in flight, an entry per kind of batch."""

    size: Array
    requests: Array
    streams: Array
    seconds: Array
    errors: Array
    counts: Array


def _together(reads: Sequence[Sample], noise: float) -> _Together:
    """Group samples of several streams that were alike."""
    groups: dict[tuple[float, int, int], list[Sample]] = {}
    for sample in reads:
        if sample.streams > 1 and sample.requests > 1:
            octave = round(4 * math.log2(sample.bytes / sample.requests + 1))
            groups.setdefault((octave, sample.requests, sample.streams), []).append(sample)
    deviations, rows = [], []
    for alike in groups.values():
        seconds = np.array([sample.seconds for sample in alike])
        median = middle(seconds)
        deviations.append(np.log(seconds / median))
        size = float(np.median([sample.bytes for sample in alike]))
        rows.append((size, alike[0].requests, alike[0].streams, median, len(alike)))
    table = np.array(rows, dtype=float).reshape(-1, 5).T
    own = noise_of(deviations) if any(len(group) >= 3 for group in deviations) else noise
    # Beyond the noise of samples, the model is not better than this.
    errors = np.hypot(1.25 * own / np.sqrt(table[4]), 0.03)
    return _Together(table[0], table[1], table[2], table[3], errors, table[4])


class _Explained:
    """What each kind of batch took, and what limits say it should have taken.

    A limit is infinite where there is none. Three of them: bytes per second of the line, requests
    per second of the server, and the bytes per second that it works through beside them.
    """

    def __init__(self, batch: _Together, curve: Curve) -> None:
        self.batch = batch
        self.rounds = np.ceil(batch.requests / batch.streams)
        self.wait_s = float(curve.seconds[0])
        self.sizes = batch.size / batch.requests
        self.each = curve(self.sizes)
        self.queue = self.rounds * self.each
        self.others = [
            waited_for(batch.requests, batch.streams, works)[:, :, None] for works in (False, True)
        ]

    def line_s(self, total: Array | float) -> Array:
        """Seconds on the line, shape (kinds, totals)."""
        sending_s = np.divide.outer(self.batch.size, np.atleast_1d(total))
        batch = self.batch.requests[:, None], self.batch.streams[:, None]
        return line_s(self.wait_s, sending_s, *batch)

    def served_s(self, rate: Array | float, work: Array | float) -> Array:
        """Seconds with the line left out, shape (kinds, rates times works)."""
        works = bool(np.isfinite(work).all())
        others_s = self.others[works] * _serve_s(self.sizes, rate, work)
        each = own = self.each[:, None]
        if works:
            own = self.wait_s + _serve_s(self.sizes, np.full(np.shape(rate), np.inf), work)
        return queue_s(self.rounds[:, None], each, own, others_s)

    def loss(self, total: Array, rate: Array, work: Array) -> Array:
        """Misfit of each three limits, shape (totals, rates, works)."""
        calls = self.served_s(rate, work).reshape(-1, 1, len(rate), len(work))
        model = np.maximum(self.line_s(total)[:, :, None, None], calls)
        off = np.log(self.batch.seconds[:, None, None, None] / model)
        off /= self.batch.errors[:, None, None, None]
        # Slower is what outliers are. Faster than a limit is a proof against it.
        bound = np.where(off > 0, HUBER, 4 * HUBER)
        off = np.abs(off)
        misfit = np.where(off < bound, off**2 / 2, bound * off - bound**2 / 2)
        return np.asarray(misfit.sum(axis=0), dtype=np.float64)

    def takes(self, total: float, rate: float, work: float) -> tuple[Array, Array, Array]:
        """Seconds of each kind on the line, and at the server without its bytes and with them."""
        plain = NO_TIME if math.isfinite(work) else math.inf
        return (
            self.line_s(total)[:, 0],
            self.served_s(rate, plain)[:, 0],
            self.served_s(rate, work)[:, 0],
        )

    def shows(self, total: float, rate: float, work: float) -> bool:
        """Whether each of the limits that there are takes clearly longer than all else."""
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


def fit_limits(reads: Sequence[Sample], curve: Curve, notes: list[str]) -> Limits:
    """Find what all streams share, from what many of them took beyond the curve.

    The line, what the server takes for a request, both or none; and beside the latter, what it
    takes for a byte: the best of the six explanations, where a limit has its price and must show,
    see `_shows`. At the crossing of two limits reads take longer than either says, which a third
    would explain: so it has to show where nothing else is near.
    """
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        notes.append("streams: never more than one was measured")
        return Limits()
    told = _Explained(batch, curve)
    empty_s = told.line_s(math.inf)[:, 0]
    totals = batch.size / np.maximum(batch.seconds - empty_s, 0.05 * batch.seconds)
    none = np.array([math.inf])
    # One stream alone has been seen to carry this.
    some_totals = _grid(totals, 90, least=0.95 * _one_stream(curve))
    some_rates = _grid(batch.requests / batch.seconds, 60)
    some_works = np.geomspace(totals.max() / 4, 32 * totals.max(), 22)
    explanations = [_best_three(told.loss, (some_totals, none, none))]
    for lines in (some_totals, none):
        without = _best_three(told.loss, (lines, some_rates, none))
        # What bytes take was part of what a request takes.
        faster = without[1][1] * np.geomspace(1 / 1.2, 16, 16)
        explanations += [without, _best_three(told.loss, (lines[::6], faster, some_works))]
    best, found = float(told.loss(none, none, none)[0, 0, 0]), (math.inf, math.inf, math.inf)
    for misfit, limits in explanations:
        prices = (PRICE_OF_LIMIT, PRICE_OF_LIMIT, PRICE_OF_WORK)
        paid = sum(
            price for price, limit in zip(prices, limits, strict=True) if math.isfinite(limit)
        )
        if misfit + paid < best and told.shows(*limits):
            best, found = misfit + paid, limits
    line, plain, calls = told.takes(*found)
    over = calls / batch.seconds
    return Limits(
        *found,
        spread_of(totals[line >= np.maximum(told.queue, calls)]),
        spread_of(over[calls >= CLEAR_RATE * np.maximum(told.queue, line)]),
        spread_of(over[calls >= CLEAR_RATE * np.maximum(plain, line)]),
    )


def _serve_s(sizes: Array, rate: Array | float, work: Array | float) -> Array:
    """Seconds of serving a request of each size, shape (sizes, rates times works)."""
    each = np.add.outer(1 / np.atleast_1d(rate), np.divide.outer(sizes, np.atleast_1d(work)).T)
    return np.asarray(each.transpose(2, 0, 1).reshape(len(sizes), -1), dtype=np.float64)


def _shows(times: Array, counts: Array, clear: float) -> bool:
    """Whether a limit shows, which takes so many times as long as all else.

    It does in batches of two kinds, or in one that was repeated, if it is beyond doubt there.
    """
    return bool((times > clear).sum() >= 2 or counts[times > VERY_CLEAR].sum() >= 2)


def _grid(values: Array, count: int, least: float = 0.0) -> Array:
    low, high = max(float(values.min()) / 1.5, least), float(values.max()) * 1.5
    return np.geomspace(low, max(high, low * 1.01), count)


def _best_three(
    loss: Callable[[Array, Array, Array], Array], grids: tuple[Array, Array, Array]
) -> tuple[float, tuple[float, float, float]]:
    """The least loss and its limits: over the grid, then finer twice."""
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


def _one_stream(curve: Curve) -> float:
    """The best bandwidth that one stream was seen to have, latency set aside if it is clear."""
    sizes, seconds = curve.sizes[1:-1], curve.seconds[1:-1]
    # Of a few round trips, the first bytes come in bursts.
    body = seconds - curve.seconds[0]
    return float((sizes / np.where(body > 8 * curve.seconds[0], body, seconds)).max())


def most_useful_streams(
    reads: Sequence[Sample], curve: Curve, limits: Limits, notes: list[str]
) -> int:
    """The fewest streams that none of the larger numbers measured beat beyond the noise."""
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        return 1
    tried = np.unique(np.append(1.0, batch.streams))
    size = np.append(batch.size / batch.requests, curve.sizes[1:-1])
    rate = np.append(batch.requests / batch.seconds, 1 / curve.seconds[1:-1])
    streams = np.append(batch.streams, np.ones(len(curve.sizes) - 2))
    errors = np.append(batch.errors, np.full(len(curve.sizes) - 2, 0.03))
    octave = np.round(4 * np.log2(size + 1))

    def modelled_rate(enough: float) -> Array:
        """Requests in a second of each size that was measured, by the model."""
        line = np.maximum(size, 1) / limits.total_bytes_per_s
        served = _serve_s(size, limits.requests_per_s, limits.served_bytes_per_s)[:, 0]
        return 1 / np.maximum(np.maximum(line, served), curve(size) / enough)

    def measured(enough: float) -> bool:
        """Whether, at every size measured with more, no more were faster.

        Where so many were not, which few measurements of a far store leave out, the model says
        what they do: else two would be enough where nothing else was measured.
        """
        likely = modelled_rate(enough)
        for value in np.unique(octave[streams > enough]):
            here, more = octave == value, (octave == value) & (streams > enough)
            own = here & (streams == enough)
            best = np.argmax(np.where(more, rate, 0))
            reached, its_error = (
                (rate[own].max(), errors[own].max()) if own.any() else (likely[best], 0.03)
            )
            if rate[best] > reached * (1 + max(TIE, 2 * np.hypot(errors[best], its_error))):
                return False
        return True

    def modelled(enough: float) -> bool:
        """Whether the model gains nothing from more, at any size measured."""
        return bool((modelled_rate(tried[-1]) / modelled_rate(enough) <= 1 + TIE).all())

    found = next(int(enough) for enough in tried if modelled(enough) or measured(enough))
    if found == int(tried[-1]):
        notes.append(f"streams: {found} were the most tried, and they helped")
    return found
