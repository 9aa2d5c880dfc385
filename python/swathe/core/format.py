"""Format sizes, rates, durations and moments as text: for the shell, the pages and errors."""

from __future__ import annotations

from datetime import UTC, datetime

KIB, MIB, GIB, TIB, PIB = (1 << power for power in (10, 20, 30, 40, 50))
NOISE_S = 0.1
"""Times below this, in seconds, are mostly noise: their predictions are not compared."""


def size_text(size_bytes: float, form: str = ".4g") -> str:
    """Return a size with a binary unit, such as `1.5 MiB`."""
    units = ((PIB, "PiB"), (TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
    for unit, name in units:
        # Change units from 1000 of the smaller one, so that at most three digits precede the point.
        if size_bytes >= 0.9995 * unit * 1000 / 1024:
            return f"{size_bytes / unit:{form}} {name}"
    return f"{size_bytes:.0f} B"


def decimal_size_text(size_bytes: float) -> str:
    """Return a size with a decimal unit, such as `1.5 GB`, as users declare sizes."""
    units = iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while size_bytes >= 1000 and unit != "TB":
        size_bytes, unit = size_bytes / 1000, next(units)
    return f"{size_bytes:.4g} {unit}"


def rate_text(bytes_per_s: float) -> str:
    """Return a rate with a decimal unit, such as `117 MB/s`."""
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bytes_per_s >= 0.9995 * unit:
            return f"{bytes_per_s / unit:.3g} {name}"
    return f"{bytes_per_s:.0f} B/s"


def number_text(number: float) -> str:
    """Return a number with three digits, or all before the point: `0.0123`, `1,234`."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def count_text(number: int, noun: str) -> str:
    """Return a count with its noun: `1 image`, `1,200 images`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def seconds_text(seconds: float) -> str:
    """Return a duration: `1.3 µs`, `12.5 ms`, `3.41 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    for least, unit, name in ((0.9995, 1, "s"), (0.9995e-3, 1e-3, "ms"), (0, 1e-6, "µs")):
        if least < seconds < 99.95:
            return f"{seconds / unit:.3g} {name}"
    rounded_s = round(seconds)
    for larger, smaller, one, other in ((86400, 3600, "d", "h"), (3600, 60, "h", "min")):
        if rounded_s >= larger:
            rest = rounded_s % larger // smaller
            return f"{rounded_s // larger:,} {one}" + (f" {rest} {other}" if rest else "")
    parts = ((rounded_s // 60, "min"), (rounded_s % 60, "s"))
    return " ".join(f"{count} {name}" for count, name in parts if count) or "0 s"


def forecast_text(seconds: float) -> str:
    """Return a predicted time as text; times below NOISE_S are `under 0.1 s`."""
    return seconds_text(seconds) if seconds >= NOISE_S else f"under {NOISE_S:g} s"


def clock_text(seconds: float) -> str:
    """Return a duration as a clock shows it: `0:08`, `1:50`, `3:20:00`."""
    total = max(round(seconds), 0)
    minutes = f"{total // 60 % 60}:{total % 60:02}"
    return f"{total // 3600}:{total // 60 % 60:02}:{total % 60:02}" if total >= 3600 else minutes


def time_left_text(median_s: float, interval_s: tuple[float, float]) -> str:
    """Return the time left, with its interval: `1 min 20 s left (1:00 to 1:50)`.

    An interval of less than a second is left out.
    """
    low, high = map(clock_text, interval_s)
    if median_s < 0.5:
        return "under 1 s left"
    rounded_s = round(median_s)
    text = (
        f"{rounded_s // 60} min {rounded_s % 60} s"
        if 60 <= rounded_s < 100
        else seconds_text(rounded_s)
    )
    return f"{text} left" if low == high else f"{text} left ({low} to {high})"


def moment_text(at: datetime, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a moment in UTC, such as `2026-11-21 13:04:09 UTC`."""
    return f"{at.astimezone(UTC):{form}} UTC"


def harmless_text(text: str, controls: str = "\n\t") -> str:
    r"""Return a text with control characters as `\x1b`: a terminal would obey them.

    Args:
        text: text that may contain names of files, or text from a server.
        controls: control characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in controls else ascii(char)[1:-1] for char in text
    )
