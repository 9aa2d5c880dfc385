"""Report on a run, beside the measured costs of its stores: `swathe.trace.report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.trace.analysis.report import make_report
from swathe.trace.run_files import run_files
from swathe.trace.ulm import CodedColumn, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.trace.analysis.report import TraceReport
    from swathe.trace.run_files import Run
    from swathe.trace.ulm import Events


def report(run: Run) -> TraceReport:
    """Report where the time of a run was spent: stages, slow targets, stalls, stores.

    Example:
        >>> report = swathe.trace.report("run.ulm")
        >>> [(stage.name, stage.own_s) for stage in report.stages[:2]]
        [('FETCH', 12.4), ('DECODE', 3.1)]

    Args:
        run: file of events, or several: rotated files are named as well.

    Returns:
        Times in seconds, rates in bytes per second. Stores that were probed from the hosts of the
        run are compared with the profile of the probe.

    Raises:
        NotFoundError: If there is no such file.
        FormatError: If the lines are not events.
        CatalogError: If there is a catalogue that cannot be read.
    """
    events = read_trace(run_files(run))
    return make_report(events, _profiles(events))


def _profiles(events: Events) -> Mapping[str, Mapping[str, Any]]:
    """Return the costs of stores as measured from the hosts of a run, by name and by root."""
    from swathe.catalog import Catalog
    from swathe.core.paths import default_url

    url = default_url()
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).exists():
        return {}
    hosts = events.fields.get("HOST")
    host_names = set(hosts.words) if isinstance(hosts, CodedColumn) else set()
    with Catalog.open(url) as catalog:
        costs = {each.root: each.costs for each in catalog.profiles() if each.host in host_names}
        keys = {store.name: store.key for store in catalog.stores()}
    return costs | {name: costs[root] for name, root in keys.items() if root in costs}
