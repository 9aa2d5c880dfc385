"""Processes whose clock is wrong, as that of another host may be."""

from __future__ import annotations

from pathlib import Path


def wrong_by(seconds: float) -> dict[str, str] | None:
    """Give the variables of a process whose clocks are so much ahead of those of this machine.

    They are for libfaketime; None where that is not installed. The monotonic clock is ahead too:
    left alone, sleeps until a time of it fail (0.9.10).
    """
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not libraries:
        return None
    return {"LD_PRELOAD": str(libraries[0]), "FAKETIME": f"{seconds:+f}s"}
