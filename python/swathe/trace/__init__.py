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
    from swathe.trace.export.exports import export_chrome, export_otlp
    from swathe.trace.host_monitor import Monitor
    from swathe.trace.viewer.views import view

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
    "export_chrome",
    "export_otlp",
    "from_environment",
    "point",
    "read",
    "recorded_file",
    "recording",
    "report",
    "scope",
    "start",
    "stop",
    "view",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Collector": "swathe.trace.collect",
        "Monitor": "swathe.trace.host_monitor",
        "TraceReport": "swathe.trace.analysis.report",
        "export_chrome": "swathe.trace.export.exports",
        "export_otlp": "swathe.trace.export.exports",
        "report": "swathe.trace.analysis.run_report",
        "view": "swathe.trace.viewer.views",
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
