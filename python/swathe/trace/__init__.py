"""Events: what happened, when, and to which object, target or job; recorded, and read as columns.

>>> with swathe.trace.recording("run.ulm"):
...     swathe.cut_many("targets.csv", output="cutouts/")
>>> events = swathe.trace.read("run.ulm")
"""

from swathe.trace.record import (
    VARIABLE,
    RecordingCounts,
    event,
    from_environment,
    point,
    recorded_file,
    recording,
    scope,
    start,
    stop,
)
from swathe.trace.ulm import CodedColumn, DamagedLine, Events, Numbers, read

__all__ = [
    "VARIABLE",
    "CodedColumn",
    "DamagedLine",
    "Events",
    "Numbers",
    "RecordingCounts",
    "event",
    "from_environment",
    "point",
    "read",
    "recorded_file",
    "recording",
    "scope",
    "start",
    "stop",
]
