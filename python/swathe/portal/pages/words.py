"""Formatting of numbers, times and positions for the pages, always with units."""

from __future__ import annotations

import math
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from swathe.core.format import moment_text, rate_text, seconds_text, size_text, time_left_text
from swathe.core.times import MJD_EPOCH
from swathe.operations.operation import ProgramOperation

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.jobs import Job

NOTHING = "\N{EN DASH}"
THIN = "\N{NARROW NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"
MINUTES, SECONDS = "\N{PRIME}", "\N{DOUBLE PRIME}"
MINUS = "\N{MINUS SIGN}"


def count(number: float | None) -> str:
    """Format a count: `12,345`."""
    return NOTHING if number is None else f"{number:,.0f}"


def size(size_bytes: float | None) -> str:
    """Format a size: `1.5 MiB`."""
    return NOTHING if size_bytes is None else size_text(size_bytes, ".3g").replace(" ", THIN)


def seconds(time_s: float | None) -> str:
    """Format a duration: `12 ms`, `3.4 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    return NOTHING if time_s is None else seconds_text(time_s).replace(" ", THIN)


def time_left(left: dict[str, Any] | None) -> str:
    """Format the time left of a job: `1 min 20 s left (1:00 to 1:50)`."""
    return NOTHING if left is None else time_left_text(**left)


def rate(bytes_per_s: float | None) -> str:
    """Format a bandwidth: `117 MB/s`."""
    return NOTHING if bytes_per_s is None else rate_text(bytes_per_s).replace(" ", THIN)


def percent(part: float | None) -> str:
    """Format a fraction: `12 %`."""
    return NOTHING if part is None else f"{part * 100:.0f}{THIN}%".replace("-", MINUS)


def signed_percent(part: float | None) -> str:
    """Format a relative difference: `+12 %`."""
    return NOTHING if part is None else f"{part * 100:+,.0f}{THIN}%".replace("-", MINUS)


def instant(at: datetime | None) -> str:
    """Format a time: `2026-11-21 13:04 UTC`."""
    return NOTHING if at is None else moment_text(at, "%Y-%m-%d %H:%M")


def day(mjd: float | None) -> str:
    """Format the day of a modified Julian date: `2000-09-26`."""
    if mjd is None or not math.isfinite(mjd):
        return NOTHING
    try:
        return f"{MJD_EPOCH + timedelta(days=mjd):%Y-%m-%d}"
    except OverflowError:
        return f"MJD {mjd:.0f}"


def days(t_min: float | None, t_max: float | None) -> str:
    """Format a range of days: `2000-09-26 to 2001-01-03`."""
    first, last = day(t_min), day(t_max)
    return first if first == last else f"{first} to {last}"


def moment(mjd: float | None) -> str:
    """Format a modified Julian date to the second: `2000-09-26 03:04:05`."""
    if mjd is None or not math.isfinite(mjd):
        return NOTHING
    try:
        return f"{MJD_EPOCH + timedelta(days=mjd):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"MJD {mjd:.5f}"


def degrees(angle: float | None, places: int = 4) -> str:
    """Format an angle: `12.3456°`."""
    return NOTHING if angle is None else f"{angle:.{places}f}°".replace("-", MINUS)


def angle(angle_deg: float | None) -> str:
    """Format the size of a field, in degrees, minutes or seconds of arc."""
    if angle_deg is None:
        return NOTHING
    for unit, sign in ((1, "°"), (1 / 60, MINUTES)):
        if angle_deg >= 0.9995 * unit:
            return f"{angle_deg / unit:.3g}{sign}"
    return f"{angle_deg * 3600:.3g}{SECONDS}"


def shape(axes: tuple[int, ...]) -> str:
    """Format a shape in the order of FITS, NAXIS1 first."""
    return f" {TIMES} ".join(map(str, axes[::-1]))


def plural(number: int, one: str, many: str = "") -> str:
    """Format a count with its noun: `1 image`, `12 images`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def job_title(job: Job) -> str:
    """Return the name of a job, else `4 targets in dr17, 23 Nov 2026`."""
    if job.name:
        return job.name
    date = job.created_at.astimezone(UTC)
    when = f"{date.day} {date:%b %Y}"
    if isinstance(job.options.results.kind, ProgramOperation):
        return f"{job.options.own['algorithm']}, {when}"
    where = f" in {job.options.dataset}" if job.options.dataset else ""
    return f"{plural(job.rows, 'target')}{where}, {when}"


def row_status(status: str) -> str:
    """Return the status of rows in words."""
    return {"ok": "done", "no-overlap": "no overlap", "missing": "file missing"}.get(status, status)


STARTERS = {
    "processes": "as processes",
    "slurm": "by Slurm",
    "pbs": "by PBS",
    "htcondor": "by HTCondor",
}
"""How workers are started, by the setting `grow`."""


def starter(grow: str) -> str:
    """Return how workers are started: `by Slurm`."""
    return STARTERS[grow]


FILTERS = {
    function.__name__: function
    for function in (
        count,
        size,
        seconds,
        time_left,
        rate,
        percent,
        signed_percent,
        instant,
        day,
        days,
        moment,
        degrees,
        angle,
        shape,
        plural,
        job_title,
        row_status,
        starter,
    )
}
