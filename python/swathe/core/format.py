"""Format sizes in bytes and times in seconds as text."""

KIB, MIB, GIB, TIB, PIB = (1 << power for power in (10, 20, 30, 40, 50))


def size_text(size_bytes: float, form: str = ".4g") -> str:
    """Return a size with a binary unit, such as `1.5 MiB`."""
    units = ((PIB, "PiB"), (TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
    for unit, name in units:
        # Change units from 1000 of the smaller one, so that at most three digits precede the point.
        if size_bytes >= 0.9995 * unit * 1000 / 1024:
            return f"{size_bytes / unit:{form}} {name}"
    return f"{size_bytes:.0f} B"


def megabytes(size_bytes: float) -> str:
    """Return a number of bytes in MB, such as `67 MB`; below 10 MB with two digits."""
    count = size_bytes / 1e6
    return f"{count:.0f} MB" if count >= 10 else f"{count:.2g} MB"


NOISE_S = 0.1
"""Times below this, in seconds, are mostly noise: their predictions are not compared."""


def forecast_text(seconds: float) -> str:
    """Return a predicted time as text; times below NOISE_S are `under 0.1 s`."""
    return seconds_text(seconds) if seconds >= NOISE_S else f"under {NOISE_S:g} s"


def seconds_text(seconds: float) -> str:
    """Return a time as text: `12.5 ms`, `3.41 s`, `4.2 min`."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:,.1f} min"
