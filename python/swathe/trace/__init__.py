"""Events: what happened, when, and to which object, target or job; recorded, and read as columns.

>>> with swathe.trace.recording("run.ulm"):
...     swathe.cut_many("targets.csv", output="cutouts/")
>>> events = swathe.trace.read("run.ulm")
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names
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

if TYPE_CHECKING:
    from swathe.trace.analysis.report import TraceReport
    from swathe.trace.analysis.run_report import report
    from swathe.trace.collect import Collector
    from swathe.trace.host_monitor import Monitor

__all__ = [
    "VARIABLE",
    "CodedColumn",
    "Collector",
    "DamagedLine",
    "Events",
    "Monitor",
    "Numbers",
    "RecordingCounts",
    "TraceReport",
    "event",
    "from_environment",
    "point",
    "read",
    "recorded_file",
    "recording",
    "report",
    "scope",
    "start",
    "stop",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Collector": "swathe.trace.collect",
        "Monitor": "swathe.trace.host_monitor",
        "TraceReport": "swathe.trace.analysis.report",
        "report": "swathe.trace.analysis.run_report",
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
