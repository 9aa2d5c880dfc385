"""Fit a profile to samples: `fit` after a probe, `refit` from later real reads.

Rules of this module:

- Medians and bounded losses only: one sample in twenty may have any value.
- Errors are relative to the time, so a request of 1 KiB weighs as much as one of 16 MiB.
- A parameter that the samples do not determine is not guessed from noise. It gets a default that
  has no effect, and a note.
- Results are finite and positive for any input.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.format import rate_text
from swathe.costs.cost_model import NO_LIMIT, Costs, Profile, Sample
from swathe.costs.fit.fit_request_curve import RequestCurve, fit_curve, fit_line
from swathe.costs.fit.fit_shared_limits import fit_limits, most_useful_streams
from swathe.costs.fit.robust_stats import COPY_BYTES_PER_S, lower_median, ratios, screen, spread_of
from swathe.costs.fit.unseen import unseen_of

if TYPE_CHECKING:
    from collections.abc import Iterable

MB = 1_000_000
LEAST_PREAD_S, MOST_PREAD_S, LEAST_PREAD_BYTES_PER_S = 5e-8, 10.0, 1e5
"""Least time to read a file by position: one system call."""


def fit(samples: Iterable[Sample]) -> Profile:
    """Fit the model to the samples of a probe.

    Raises:
        ValueError: If no sample of a read is usable.
    """
    sound_samples, rejections = screen(samples)
    reads = [sample for sample in sound_samples if sample.kind == "read"]
    if not reads:
        raise ValueError(f"no usable sample of a read; rejected: {rejections or 'none'}")
    notes: list[str] = []
    spread: dict[str, float] = {}

    connects = np.array([sample.elapsed_s for sample in sound_samples if sample.kind == "connect"])
    connect_s = lower_median(connects) if len(connects) else 0.0
    opens = [sample for sample in sound_samples if sample.kind == "open"]
    curve = fit_curve(_with_openings(reads, opens, notes), notes)
    spread["request"] = curve.spread
    limits = fit_limits(reads, curve, notes)
    streams = most_useful_streams(reads, curve, limits, notes)
    total_limit = total = limits.total_bytes_per_s
    rate = limits.requests_per_s
    works = math.isfinite(limits.served_bytes_per_s)
    if math.isfinite(total):
        spread["total_bytes_per_s"] = limits.total_spread
    if math.isfinite(rate):
        spread["requests_per_s"] = limits.requests_spread
    if works:
        spread["served_bytes_per_s"] = limits.served_spread
    best_bytes_per_s = max(sample.bytes / sample.elapsed_s for sample in reads)
    most = max(sample.streams for sample in reads)
    if not math.isfinite(total):
        # A limit that was not reached is unknown: between the least by what was seen, and streams
        # that share nothing.
        apart = min(max(most * curve.bytes_per_s, best_bytes_per_s), COPY_BYTES_PER_S)
        least = max(best_bytes_per_s, curve.bytes_per_s, limits.least_bytes_per_s)
        total = math.sqrt(apart * min(least, apart))
        notes.append(
            "total_bytes_per_s: no limit was reached, "
            f"{rate_text(best_bytes_per_s)} were measured; {rate_text(apart)} is {most} streams "
            f"that share nothing; {rate_text(total)} is assumed"
        )
    if not math.isfinite(rate):
        notes.append(f"requests_per_s: no limit was reached with {most} streams")
    if len(connects):
        spread["connect_s"] = spread_of(connects)
    else:
        notes.append("connect_s: not measured; 0 s")
    open_s, spread["open_s"] = _opening(opens, curve)
    if not opens:
        notes.append("open_s: not measured; 0 s")

    points = zip(curve.sizes.tolist(), curve.seconds.tolist(), strict=True)
    costs = Costs(
        connect_s=connect_s,
        open_s=open_s,
        request=tuple((round(size), seconds) for size, seconds in points),
        total_bytes_per_s=min(max(total, 1.0), COPY_BYTES_PER_S),
        requests_per_s=min(rate, NO_LIMIT),
        streams=streams,
        served_bytes_per_s=limits.served_bytes_per_s if works else None,
    )
    spread["model"] = spread_of(ratios(costs, reads))
    sizes = len({sample.bytes // sample.requests for sample in reads if sample.streams == 1})
    spread["unseen_faster"], spread["unseen_slower"] = unseen_of(
        sizes, most, math.isfinite(total_limit)
    )
    return Profile(costs, spread, tuple(notes), rejections)


def fit_local(samples: Iterable[Sample]) -> Profile:
    """Fit latency and bandwidth of one reader; reading files by position needs nothing else.

    The engine has a fast path for a straight line without other limits. If some reads were from
    memory and some not, the more frequent kind is used.

    Raises:
        ValueError: If no sample of a read is usable, or the result is impossible for a local file.
    """
    sound_samples, rejections = screen(samples)
    alone = [sample for sample in sound_samples if sample.kind == "read" and sample.streams == 1]
    warm = [sample for sample in alone if sample.in_memory]
    cold = [sample for sample in alone if sample.in_memory is False]
    notes = []
    if warm and cold:
        alone = warm if len(warm) >= len(cold) else cold
        of = "in memory" if alone is warm else "not in memory"
        notes.append(f"request: fitted only to the {len(alone)} reads that were {of}")
    if not alone:
        raise ValueError(f"no usable sample of a read; rejected: {rejections or 'none'}")
    latency_s, bytes_per_s, model = fit_line(alone)
    if latency_s < LEAST_PREAD_S:
        # A line through short reads from memory and long ones from the disk would begin below zero.
        size = np.array([float(sample.bytes) for sample in alone])
        seconds = np.array([sample.elapsed_s for sample in alone])
        latency_s = lower_median(seconds[size == size.min()])
        model = spread_of(seconds / (latency_s + size / bytes_per_s))
        notes.append("request: long reads are slower than short ones suggest")
    if not (LEAST_PREAD_S <= latency_s <= MOST_PREAD_S and bytes_per_s >= LEAST_PREAD_BYTES_PER_S):
        raise ValueError(
            f"expected a local file, found {latency_s:.3g} s and {bytes_per_s:.3g} bytes/s"
        )
    opens = np.array([sample.elapsed_s for sample in sound_samples if sample.kind == "open"])
    costs = Costs(
        connect_s=0.0,
        open_s=lower_median(opens) if len(opens) else 0.0,
        request=((0, latency_s), (MB, latency_s + MB / bytes_per_s)),
        # A little above the rate of one reader, so that these limits never bind.
        total_bytes_per_s=1.01 * bytes_per_s,
        requests_per_s=1.01 / latency_s,
        streams=1,
    )
    spread = {"request": model, "model": model, "open_s": spread_of(opens)}
    return Profile(costs, spread, tuple(notes), rejections)


def _with_openings(reads: list[Sample], opens: list[Sample], notes: list[str]) -> list[Sample]:
    """Return the reads; if no single one was as large as opening an object, with the openings.

    Over a slow link these are the only large requests that a probe has time for.
    """
    alone = [sample.bytes for sample in reads if sample.streams == 1]
    larger = [sample for sample in opens if sample.bytes > max(alone, default=0)]
    if not alone or not larger:
        return reads
    notes.append("request: the time to open an object counts as that of its bytes")
    return reads + [replace(sample, kind="read") for sample in larger]


def _opening(opens: list[Sample], curve: RequestCurve) -> tuple[float, float]:
    """Return the time to open an object beyond a request of its bytes, and its spread."""
    if not opens:
        return 0.0, 0.0
    seconds = np.array([sample.elapsed_s for sample in opens])
    size = np.array([float(sample.bytes) for sample in opens])
    # Include the error of the line: between distant points the curve may be too low.
    request_s = np.maximum(curve(size), curve.seconds[0] + size / curve.bytes_per_s)
    beyond = seconds - request_s
    doubt = 2 * math.hypot(curve.noise / math.sqrt(len(opens)), 0.05) * float(np.median(request_s))
    extra_s = lower_median(beyond)
    return (extra_s, spread_of(beyond)) if extra_s > doubt else (0.0, 0.0)
