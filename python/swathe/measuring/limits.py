"""What many streams share, and how many of them are of use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.measuring.costs import waited_for, waits
from swathe.measuring.robust import HUBER, TIE, middle, noise_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from swathe.measuring.costs import Sample
    from swathe.measuring.curve import Curve

    Array = NDArray[np.float64]

PRICE_OF_LIMIT = 4.0
"""How much better, in log-likelihood, the samples must fit before a limit is believed in."""

CLEAR_LINE, CLEAR_RATE, VERY_CLEAR = 1.15, 1.2, 1.6
"""A limit binds clearly where it takes this much longer than anything else would; of a rate, less
than that is seen where computers are busy."""


@dataclass(frozen=True)
class Limits:
    """What all streams share; infinite where no limit shows."""

    total_bytes_per_s: float
    requests_per_s: float
    total_spread: float
    requests_spread: float


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


def fit_limits(reads: Sequence[Sample], curve: Curve, notes: list[str]) -> Limits:
    """Find what all streams share, from what many of them took beyond the curve.

    Either limit, both or none: the best of the four explanations, where a limit has its price
    and must show, see `_shows`. At the crossing of two limits reads take longer
    than either says, which a third would explain: so it has to show where nothing else is near.
    """
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        notes.append("streams: never more than one was measured")
        return Limits(math.inf, math.inf, 0.0, 0.0)
    rounds = np.ceil(batch.requests / batch.streams)
    empty = waits(rounds) * float(curve.seconds[0])
    each = curve(batch.size / batch.requests)
    queue, later = rounds * each, ((rounds - 1) * each)[:, None]
    others = waited_for(batch.requests, batch.streams)[:, :, None]
    totals = batch.size / np.maximum(batch.seconds - empty, 0.05 * batch.seconds)
    served = batch.requests / batch.seconds

    def served_s(rate: Array | float) -> Array:
        """Seconds of each kind of batch at each rate, the line left out."""
        in_rounds, in_all = each[:, None] + others / rate
        return np.asarray(np.maximum(in_rounds + later, in_all), dtype=np.float64)

    def loss(total: Array, rate: Array) -> Array:
        """Misfit of each pair of limits, shape (totals, rates)."""
        line = empty[:, None] + batch.size[:, None] / total
        calls = served_s(rate)
        model = np.maximum(line[:, :, None], calls[:, None, :])
        off = np.log(batch.seconds[:, None, None] / model) / batch.errors[:, None, None]
        # Slower is what outliers are. Faster than a limit is a proof against it.
        bound = np.where(off > 0, HUBER, 4 * HUBER)
        off = np.abs(off)
        each = np.where(off < bound, off**2 / 2, bound * off - bound**2 / 2)
        return np.asarray(each.sum(axis=0), dtype=np.float64)

    none = np.array([math.inf])
    # One stream alone has been seen to carry this.
    some_totals = _grid(totals, 90, least=0.95 * _one_stream(curve))
    some_rates = _grid(served, 60)
    best, total, rate = float(loss(none, none)[0, 0]), math.inf, math.inf
    for tried in ((some_totals, none), (none, some_rates), (some_totals, some_rates)):
        misfit, its_total, its_rate = _best_pair(loss, *tried)
        line, calls = empty + batch.size / its_total, served_s(its_rate)[:, 0]
        shows = [
            limit == math.inf or _shows(own / np.maximum(queue, other), batch.counts, clear)
            for limit, own, other, clear in (
                (its_total, line, calls, CLEAR_LINE),
                (its_rate, calls, line, CLEAR_RATE),
            )
        ]
        misfit += PRICE_OF_LIMIT * (math.isfinite(its_total) + math.isfinite(its_rate))
        if all(shows) and misfit < best:
            best, total, rate = misfit, its_total, its_rate
    line, calls = empty + batch.size / total, served_s(rate)[:, 0]
    return Limits(
        total,
        rate,
        spread_of(totals[line >= np.maximum(queue, calls)]),
        spread_of((calls / batch.seconds)[calls >= CLEAR_RATE * np.maximum(queue, line)]),
    )


def _shows(times: Array, counts: Array, clear: float) -> bool:
    """Whether a limit shows, which takes so many times as long as all else.

    It does in batches of two kinds, or in one that was repeated, if it is beyond doubt there.
    """
    return bool((times > clear).sum() >= 2 or counts[times > VERY_CLEAR].sum() >= 2)


def _grid(values: Array, count: int, least: float = 0.0) -> Array:
    low, high = max(float(values.min()) / 1.5, least), float(values.max()) * 1.5
    return np.geomspace(low, max(high, low * 1.01), count)


def _best_pair(
    loss: Callable[[Array, Array], Array], totals: Array, rates: Array
) -> tuple[float, float, float]:
    """The least loss and its pair: over the grid, then finer twice."""
    for _ in range(3):
        misfits = loss(totals, rates)
        row, column = np.unravel_index(np.argmin(misfits), misfits.shape)
        best = float(misfits[row, column]), float(totals[row]), float(rates[column])
        totals, rates = _finer(totals, int(row)), _finer(rates, int(column))
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

    def measured(enough: float) -> bool:
        """Whether, at every size measured with so many streams, no more were faster."""
        for value in np.unique(octave[streams == enough]):
            here, more = octave == value, (octave == value) & (streams > enough)
            if not more.any():
                continue
            best = np.argmax(np.where(more, rate, 0))
            doubt = 2 * np.hypot(errors[best], errors[here & (streams == enough)].max())
            if rate[best] > rate[here & (streams == enough)].max() * (1 + max(TIE, doubt)):
                return False
        return True

    def modelled(enough: float) -> bool:
        """Whether the model gains nothing from more, at any size measured."""
        at = curve(size)
        line = limits.total_bytes_per_s / np.maximum(size, 1)
        ceiling = np.minimum(line, limits.requests_per_s)
        gain = np.minimum(tried[-1] / at, ceiling) / np.minimum(enough / at, ceiling)
        return bool((gain <= 1 + TIE).all())

    found = next(int(enough) for enough in tried if modelled(enough) or measured(enough))
    if found == int(tried[-1]):
        notes.append(f"streams: {found} were the most tried, and they helped")
    return found
