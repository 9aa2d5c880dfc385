"""From samples to a profile: `fit` after a probe, `refit` as real reads go on.

Rules of this module:

- Medians and bounded losses only: one sample in twenty may be anything.
- Errors count relative to the time, so that a request of 1 KiB weighs as much as one of 16 MiB.
- A parameter that the samples do not tell is not guessed from noise: it gets a default that
  does not bind, and a note.
- What comes out is finite and positive whatever goes in.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.profile import Costs, Profile, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

COPY_BYTES_PER_S = 2e11
"""No host copies memory faster: bandwidth above it was never measured, whatever the clock says."""

LEAST_S, MOST_S = 1e-9, 1e6
"""No request is faster than the one, and none was waited for longer than the other: 12 days."""

TIE = 0.05
"""Differences below this are none, even where the noise is smaller."""

NOISE = 0.1
"""Assumed where no size was measured three times."""

PRICE_OF_LIMIT = 4.0
"""How much better, in log-likelihood, the samples must fit before a limit is believed in."""

CLEAR = 1.2
"""A limit binds clearly where it takes this much longer than anything else would."""

HUBER = 1.5

HALF_LIFE_SAMPLES = 12.0
HISTORY_SAMPLES = 4.0
"""How many samples the profile counts for in a refit, against all the new ones together."""


def fit(samples: Iterable[Sample], copy_bytes_per_s: float = COPY_BYTES_PER_S) -> Profile:
    """Fit the model to the samples of a probe.

    Raises
    ------
    ValueError
        If no sample of a read is usable.

    """
    kept, rejected = screen(samples, copy_bytes_per_s)
    reads = [sample for sample in kept if sample.kind == "read"]
    if not reads:
        raise ValueError(f"no usable sample of a read; rejected: {rejected or 'none'}")
    notes: list[str] = []
    spread: dict[str, float] = {}

    curve = _fit_curve(reads, copy_bytes_per_s, notes)
    spread["request"] = curve.spread
    limits = _fit_limits(reads, curve, notes)
    streams = _most_useful_streams(reads, curve, limits, notes)
    total, served = limits.total_bytes_per_s, limits.requests_per_s
    if math.isfinite(total):
        spread["total_bytes_per_s"] = limits.total_spread
    if math.isfinite(served):
        spread["requests_per_s"] = limits.requests_spread
    # Limits that were not reached: what the streams take when nothing is shared.
    seen = max(sample.bytes / sample.seconds for sample in reads)
    most = max(sample.streams for sample in reads)
    if not math.isfinite(total):
        total = min(max(most * curve.bytes_per_s, seen), copy_bytes_per_s)
        notes.append(
            f"total_bytes_per_s: no limit was reached, {seen / 1e6:.3g} MB/s were seen; "
            f"{total / 1e6:.3g} MB/s is {most} streams that do not share"
        )
    if not math.isfinite(served):
        served = most / float(curve.seconds[0])
        notes.append(
            f"requests_per_s: no limit was reached; {served:.3g} is {most} streams of "
            "empty requests"
        )
    opening = {}
    for kind in ("connect", "open"):
        times = np.array([sample.seconds for sample in kept if sample.kind == kind])
        if len(times):
            opening[kind], spread[f"{kind}_s"] = float(np.median(times)), _spread_of(times)
        else:
            opening[kind] = 0.0
            notes.append(f"{kind}_s: not measured; 0 s")

    points = zip(curve.sizes.tolist(), curve.seconds.tolist(), strict=True)
    costs = Costs(
        connect_s=opening["connect"],
        open_s=opening["open"],
        request=tuple((round(size), seconds) for size, seconds in points),
        total_bytes_per_s=min(max(total, 1.0), copy_bytes_per_s),
        requests_per_s=min(served, 1 / LEAST_S),
        streams=streams,
    )
    spread["model"] = _spread_of(_ratios(costs, reads))
    newest = max(sample.at for sample in kept)
    return Profile(costs, spread, tuple(notes), rejected, len(kept), newest)


def screen(
    samples: Iterable[Sample], copy_bytes_per_s: float = COPY_BYTES_PER_S
) -> tuple[list[Sample], dict[str, int]]:
    """Part the possible samples from the impossible, which are counted by reason."""
    kept, rejected = [], Counter[str]()
    for sample in samples:
        reason = _impossible(sample, copy_bytes_per_s)
        if reason:
            rejected[reason] += 1
        else:
            kept.append(sample)
    return kept, dict(rejected)


def _impossible(sample: Sample, copy_bytes_per_s: float) -> str | None:
    first, seconds = sample.first_byte_s, sample.seconds
    if not LEAST_S <= seconds <= MOST_S:
        return "time not possible"
    if first is not None and not 0 <= first <= seconds:
        return "first byte before the start or after the end"
    if sample.bytes < 0 or sample.requests < 1 or sample.streams < 1:
        return "senseless size or count"
    if sample.asked_bytes is not None and sample.bytes != sample.asked_bytes:
        return "size is not what was asked for"
    if sample.bytes > copy_bytes_per_s * seconds:
        return "faster than a copy in memory"
    return None


# The request curve ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Curve:
    """The curve t() as fitted."""

    sizes: Array
    seconds: Array
    bytes_per_s: float
    noise: float
    spread: float

    def __call__(self, size: Array) -> Array:
        slope = 1 / self.bytes_per_s
        beyond = np.maximum(size - self.sizes[-1], 0)
        return np.asarray(np.interp(size, self.sizes, self.seconds) + slope * beyond)


def _fit_curve(reads: Sequence[Sample], copy_bytes_per_s: float, notes: list[str]) -> _Curve:
    """Fit the time of one request against its size, from requests that were alone.

    A straight line first, robustly; then each size may leave it as far as its own samples are
    beyond doubt about it; then the whole is made to rise.
    """
    alone = [sample for sample in reads if sample.streams == 1]
    if not alone:
        notes.append("request: never measured alone; taken from requests that shared the line")
        alone = list(reads)
    size = np.round([sample.bytes / sample.requests for sample in alone])
    taken = np.array(
        [sample.seconds / math.ceil(sample.requests / sample.streams) for sample in alone]
    )
    sizes, seconds, counts, deviations = _by_size(size, taken)
    noise = _noise(deviations)
    errors = np.hypot(1.25 * noise / np.sqrt(counts), 0.01)

    latency, slope = _line(sizes, seconds, errors, 1 / copy_bytes_per_s)
    slope_known = slope * sizes[-1] > 2 * errors[-1] * latency and len(sizes) > 1
    line = latency + slope * sizes
    off = np.log(seconds / line)
    trust = np.maximum(0, 1 - (2 * errors / np.maximum(np.abs(off), 1e-12)) ** 2)
    fitted = _rising(line * np.exp(trust * off), counts)
    if slope_known and trust[-3:].any() and len(sizes) > 3:
        # Not a line at the end: its slope from the largest sizes.
        slope = float(np.clip(_median_slope(sizes[-4:], fitted[-4:]), slope / 3, slope * 3))
    if not slope_known:
        # As much as the noise could hide.
        slope = max(slope, float(errors[-1] * latency / max(sizes[-1], 1.0)))
        notes.append(
            "request: the bandwidth of one stream does not show against the latency; "
            f"{1e-6 / slope:.3g} MB/s is used beyond the largest size"
        )
    slope = max(slope, 1 / copy_bytes_per_s)

    # From nothing to twice the largest, so that both ends are of the fit and not of two samples.
    if sizes[0] > 0:
        empty = fitted[0] * latency / (latency + slope * sizes[0])
        sizes, fitted = np.append(0, sizes), np.append(empty, fitted)
    sizes = np.append(sizes, max(2 * sizes[-1], 1.0))
    fitted = np.append(fitted, fitted[-1] + slope * (sizes[-1] - sizes[-2]))
    fitted = np.maximum(fitted, LEAST_S)
    for point in range(1, len(sizes)):
        least = fitted[point - 1] + (sizes[point] - sizes[point - 1]) / copy_bytes_per_s
        fitted[point] = max(fitted[point], least)
    if len(counts) == 1:
        notes.append("request: one size only was measured")
    pooled = np.exp(np.concatenate(deviations))
    return _Curve(sizes, fitted, 1 / slope, noise, _spread_of(pooled))


def _by_size(size: Array, seconds: Array) -> tuple[Array, Array, Array, list[Array]]:
    """Medians of size and time in half octaves, counts, and logarithms of time over median."""
    octave = np.round(2 * np.log2(size + 1))
    groups = [octave == value for value in np.unique(octave)]
    middles = np.array([_middle(size[group]) for group in groups])
    medians = np.array([_middle(seconds[group]) for group in groups])
    counts = np.array([float(group.sum()) for group in groups])
    deviations = [
        np.log(seconds[group] / median) for group, median in zip(groups, medians, strict=True)
    ]
    return middles, medians, counts, deviations


def _middle(values: Array) -> float:
    """The median; of two in the middle the smaller, for what is odd about a time makes it long."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def _noise(deviations: Sequence[Array]) -> float:
    """Relative noise of one sample, from groups of at least three that should be alike."""
    # A median of three hides one of them: the deviations of the rest are that much smaller.
    scales = [
        1.4826 * float(np.median(np.abs(group))) * math.sqrt(len(group) / (len(group) - 1))
        for group in deviations
        if len(group) >= 3
    ]
    return max(float(np.median(scales)), 0.003) if scales else NOISE


def _line(sizes: Array, seconds: Array, errors: Array, least_slope: float) -> tuple[float, float]:
    """Latency and slope of the line through the medians, in relative errors, Huber's loss."""
    latency = max(float(seconds[0]), LEAST_S)
    slope = max(float(seconds[-1] - latency) / max(float(sizes[-1]), 1.0), least_slope)
    if len(sizes) == 1:
        return latency, least_slope
    for _ in range(30):
        line = latency + slope * sizes
        off = np.abs(seconds / line - 1) / errors
        weight = np.minimum(1, HUBER / np.maximum(off, 1e-12)) / (errors * line) ** 2
        mean_size, mean_time = np.average([sizes, seconds], axis=1, weights=weight)
        variance = np.average((sizes - mean_size) ** 2, weights=weight)
        covariance = np.average((sizes - mean_size) * (seconds - mean_time), weights=weight)
        slope = max(float(covariance / max(variance, 1e-12)), least_slope)
        latency = float(mean_time - slope * mean_size)
        if latency < LEAST_S or latency < 1e-3 * seconds[0]:
            latency = max(LEAST_S, 1e-3 * float(seconds[0]))
            heavy = weight * sizes
            slope = max(
                float((heavy * (seconds - latency)).sum() / (heavy * sizes).sum()), least_slope
            )
    return latency, slope


def _rising(values: Array, weights: Array) -> Array:
    """The nearest values that never fall (isotonic regression, of logarithms)."""
    blocks: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(np.log(values).tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, length = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += length
    rising = np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])
    return np.asarray(np.exp(rising), dtype=np.float64)


def _median_slope(sizes: Array, seconds: Array) -> float:
    """Median of the slopes of all pairs (Theil and Sen)."""
    one, other = np.triu_indices(len(sizes), 1)
    return float(np.median((seconds[other] - seconds[one]) / (sizes[other] - sizes[one])))


# What the streams share -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Limits:
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
        median = _middle(seconds)
        deviations.append(np.log(seconds / median))
        size = float(np.median([sample.bytes for sample in alike]))
        rows.append((size, alike[0].requests, alike[0].streams, median, len(alike)))
    table = np.array(rows, dtype=float).reshape(-1, 5).T
    own = _noise(deviations) if any(len(group) >= 3 for group in deviations) else noise
    # Beyond the noise of samples, the model is not better than this.
    errors = np.hypot(1.25 * own / np.sqrt(table[4]), 0.03)
    return _Together(table[0], table[1], table[2], table[3], errors)


def _fit_limits(reads: Sequence[Sample], curve: _Curve, notes: list[str]) -> _Limits:
    """Find what all streams share, from what many of them took beyond the curve.

    Either limit, both or none: the best of the four explanations, where a limit has its price
    and must show in two kinds of batch at least. At the crossing of two limits reads take longer
    than either says, which a third would explain: so it has to show where nothing else is near.
    """
    batch = _together(reads, curve.noise)
    if not len(batch.size):
        notes.append("streams: never more than one was measured")
        return _Limits(math.inf, math.inf, 0.0, 0.0)
    empty = float(curve.seconds[0])
    queue = np.ceil(batch.requests / batch.streams) * curve(batch.size / batch.requests)
    totals = batch.size / np.maximum(batch.seconds - empty, 0.05 * batch.seconds)
    served = batch.requests / batch.seconds

    def loss(total: Array, rate: Array) -> Array:
        """Misfit of each pair of limits, shape (totals, rates)."""
        line = empty + batch.size[:, None] / total
        calls = batch.requests[:, None] / rate
        model = np.maximum(np.maximum(line, queue[:, None])[:, :, None], calls[:, None, :])
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
        line, calls = empty + batch.size / its_total, batch.requests / its_rate
        shows = [
            limit == math.inf or (own > CLEAR * np.maximum(queue, other)).sum() >= 2
            for limit, own, other in ((its_total, line, calls), (its_rate, calls, line))
        ]
        misfit += PRICE_OF_LIMIT * (math.isfinite(its_total) + math.isfinite(its_rate))
        if all(shows) and misfit < best:
            best, total, rate = misfit, its_total, its_rate
    line, calls = empty + batch.size / total, batch.requests / rate
    return _Limits(
        total,
        rate,
        _spread_of(totals[line >= np.maximum(queue, calls)]),
        _spread_of(served[calls >= np.maximum(queue, line)]),
    )


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


def _one_stream(curve: _Curve) -> float:
    """The best bandwidth that one stream was seen to have, latency set aside if it is clear."""
    sizes, seconds = curve.sizes[1:-1], curve.seconds[1:-1]
    body = seconds - curve.seconds[0]
    return float((sizes / np.where(body > 0.5 * curve.seconds[0], body, seconds)).max())


def _most_useful_streams(
    reads: Sequence[Sample], curve: _Curve, limits: _Limits, notes: list[str]
) -> int:
    """The fewest streams that none of the larger numbers measured beat beyond the noise."""
    batch = _together(reads, curve.noise)
    tried = np.unique(np.append(1.0, batch.streams))
    size = np.append(batch.size / np.maximum(batch.requests, 1), curve.sizes[1:-1])
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

    if len(tried) > 1 and int(tried[-1]) > 1:
        for enough in tried:
            if modelled(enough) or (measured(enough) and (enough > 1 or len(batch.size) > 0)):
                found = int(enough)
                break
        if found == int(tried[-1]):
            notes.append(f"streams: {found} were the most tried, and they helped")
        return found
    return 1


# As reads go on ---------------------------------------------------------------------------------


def refit(
    profile: Profile,
    samples: Sequence[Sample],
    copy_bytes_per_s: float = COPY_BYTES_PER_S,
) -> Profile:
    """Follow what real reads took, oldest first; all that are kept may be given each time.

    Latency, bandwidth of a stream, bandwidth of all and requests per second may each change by
    a factor. The factors are those of least absolute error, where the profile counts as
    HISTORY_SAMPLES samples that say "no change" and a sample counts half as much as one
    HALF_LIFE_SAMPLES later. So a single sample never moves anything, however odd; a lasting
    change is followed as soon as it is the weightier part; and of two explanations the one
    with fewer changes is taken.
    """
    kept, rejected = screen(samples, copy_bytes_per_s)
    if not kept:
        return replace(profile, rejected=rejected)
    costs = profile.costs
    for name in ("connect", "open"):
        times = np.array([sample.seconds for sample in kept if sample.kind == name])
        old = getattr(costs, f"{name}_s")
        if len(times):
            values, weights = np.append(old, times), np.append(HISTORY_SAMPLES, _recency(times))
            changed: dict[str, Any] = {f"{name}_s": _weighted_median(values, weights)}
            costs = replace(costs, **changed)
    reads = [sample for sample in kept if sample.kind == "read"]
    spread = dict(profile.spread)
    if reads:
        costs = _follow(costs, reads, copy_bytes_per_s)
        if len(reads) >= 10:
            spread["model"] = _spread_of(_ratios(costs, reads[-60:]))
    newest = max(profile.fitted_at, *(sample.at for sample in kept))
    return replace(
        profile, costs=costs, spread=spread, rejected=rejected, samples=len(kept), fitted_at=newest
    )


_PARTS = ("latency", "stream", "total", "rate")
_STEPS = np.append(0.0, np.log(np.geomspace(1 / 32, 32, 201)))
_DIRECTIONS = np.array(
    [
        (1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 1),
        (0, 1, 1, 0),  # the line
        (1, 0, 0, 1),  # the server
        (1, 1, 1, 1),  # the host
    ]
)
"""Which of _PARTS may change, alone or together."""


def _follow(costs: Costs, reads: Sequence[Sample], copy_bytes_per_s: float) -> Costs:
    """Slow down or speed up the parts of the model that the reads tell of."""
    weights = _recency(np.array(reads))
    taken = np.log([sample.seconds for sample in reads])
    size, requests, streams = _counts(reads)
    empty = costs.request[0][1]
    rounds = np.ceil(requests / streams)
    body = costs.request_s(size / requests) - empty
    line, calls = size / costs.total_bytes_per_s, requests / costs.requests_per_s

    def loss(factors: Array) -> Array:
        """Absolute error and the history's of each row: logarithms of a time factor a part."""
        latency, stream, total, rate = np.exp(factors).T[:, :, None]
        queue = rounds * (empty * latency + body * stream)
        model = np.maximum(np.maximum(queue, empty * latency + line * total), calls * rate)
        moved = np.abs(factors)
        history = HISTORY_SAMPLES * (0.75 * moved.max(axis=1) + 0.25 * moved.sum(axis=1))
        missed = (weights * np.abs(taken - np.log(model))).sum(axis=1)
        return np.asarray(missed + history, dtype=np.float64)

    best = np.zeros(len(_PARTS))
    least = float(loss(best[None])[0])
    for _ in range(4):
        before = least
        for direction in _DIRECTIONS:
            tried = best + _STEPS[:, None] * direction
            misses = loss(tried)
            if misses.min() < least - 1e-9:
                least, best = float(misses.min()), tried[np.argmin(misses)]
        if least == before:
            break
    if not best.any():
        return costs
    return _changed(costs, dict(zip(_PARTS, best.tolist(), strict=True)), copy_bytes_per_s)


def _changed(costs: Costs, factors: dict[str, float], copy_bytes_per_s: float) -> Costs:
    """Costs with times multiplied by the exponentials of these factors."""
    times = {name: math.exp(min(max(factor, -20), 20)) for name, factor in factors.items()}
    empty = costs.request[0][1]
    request: list[tuple[int, float]] = []
    last = 0, 0.0
    for size, seconds in costs.request:
        new = empty * times["latency"] + (seconds - empty) * times["stream"]
        if request:
            new = max(new, last[1] + (size - last[0]) / copy_bytes_per_s)
        last = (size, max(new, LEAST_S))
        request.append(last)
    return replace(
        costs,
        request=tuple(request),
        total_bytes_per_s=min(costs.total_bytes_per_s / times["total"], copy_bytes_per_s),
        requests_per_s=min(costs.requests_per_s / times["rate"], 1 / LEAST_S),
    )


def _recency(samples: NDArray[np.generic]) -> Array:
    """Weights of samples, the newest last: 1, halved every HALF_LIFE_SAMPLES."""
    return np.asarray(0.5 ** (np.arange(len(samples))[::-1] / HALF_LIFE_SAMPLES))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return float(values[order][half])


# Shared -----------------------------------------------------------------------------------------


def _predicted(costs: Costs, reads: Sequence[Sample]) -> Array:
    """Seconds the model gives for each sample."""
    return costs.read_s(*_counts(reads))


def _counts(reads: Sequence[Sample]) -> tuple[Array, Array, Array]:
    """Bytes, requests and streams of samples."""
    table = [(sample.bytes, sample.requests, sample.streams) for sample in reads]
    size, requests, streams = np.array(table, dtype=float).T
    return size, requests, streams


def _ratios(costs: Costs, reads: Sequence[Sample]) -> Array:
    """Measured over predicted time."""
    return np.array([sample.seconds for sample in reads]) / _predicted(costs, reads)


def _spread_of(values: Array) -> float:
    """Half the range of the middle 80 %, relative to the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return float((high - low) / 2 / middle) if middle > 0 else 0.0
