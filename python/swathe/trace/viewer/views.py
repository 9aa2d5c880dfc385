"""Draw a run into files: `swathe.trace.view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError, SettingsError
from swathe.core.outputs import check_output, write_file
from swathe.trace.run_files import run_files
from swathe.trace.viewer.kinds import KINDS, Clocks, Kind
from swathe.trace.viewer.live import LiveView

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from swathe.trace.run_files import Run
    from swathe.trace.ulm import Events
    from swathe.trace.viewer.lifelines import TracedEvents
    from swathe.trace.viewer.loads import LoadLine


def view(
    run: Run,
    *,
    page: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    width: int = 1600,
    height: int = 1000,
    kind: Kind | None = None,
    events: Sequence[str] | None = None,
    loads: Sequence[str] | None = None,
    clocks: Clocks = "aligned",
    overwrite: bool = False,
) -> Events:
    """Draw recorded events: lifelines, load-lines and points on one time axis.

    Example:
        >>> swathe.trace.view("run.ulm", page="run.html", plot="run.png")

    Args:
        run: file of events, or several that are shown as one run.
        page: self-contained page to write, `*.html`.
        plot: picture to draw, `*.png` or `*.svg`.
        width: width of the picture, pixels.
        height: height of the picture, pixels.
        kind: kind of line; `request` is to a store, `portal` a request to a portal; by default the
            first in use.
        events: event types to show, from the bottom up; by default all.
        loads: load-lines to show, as `CUT done`; by default the first.
        clocks: `aligned` to the clock of the collector, or as `written`.
        overwrite: whether existing files may be replaced.

    Returns:
        The events of the run.

    Raises:
        SettingsError: If there is no file to write, or no such kind, event type or load-line.
        OutputExistsError: If a file exists, and `overwrite` is false.
        OutputError: If a file cannot be written.
        NotFoundError: If there is no such run.
        FormatError: If the lines are not events.
    """
    runs = run_files(run)
    outputs = [Path(each) for each in (page, plot) if each is not None]
    if not outputs:
        raise SettingsError("trace.view: expected page or plot, found neither")
    _check("kind", [kind] if kind else [], KINDS)
    _check("clocks", [clocks], ("aligned", "written"))
    for output in outputs:
        check_output(output, overwrite=overwrite, sources=runs)
    trace = LiveView(runs, align=clocks == "aligned", grows=False).trace()
    choice = _chosen_loads(trace, events, loads)
    title = title_of(runs)
    if page is not None:
        settings = {"kind": kind, "events": events, "loads": loads}
        chosen_settings = {name: value for name, value in settings.items() if value}
        _write_page(trace, Path(page), title, chosen_settings, overwrite)
    if plot is not None:
        from swathe.trace.viewer.figure import figure, save

        drawing = figure(
            trace, title, kind=kind, events=events, load_lines=choice, width=width, height=height
        )
        save(drawing, plot, overwrite=overwrite)
    return trace.events


def title_of(runs: Iterable[Path]) -> str:
    """Return the title of a page that shows runs."""
    return ", ".join(run.name for run in runs)


def _write_page(
    trace: TracedEvents, output: Path, title: str, settings: dict[str, Any], overwrite: bool
) -> None:
    from swathe.trace.viewer.encode import encode_view
    from swathe.trace.viewer.page import page

    if output.suffix.lower() != ".html":
        raise OutputError(f"{output}: expected a name ending in .html")
    content = page(title, encode_view(trace).content(), **settings)
    write_file(output, lambda file: file.write(content), overwrite=overwrite)


def _chosen_loads(
    trace: TracedEvents, events: Sequence[str] | None, load_names: Sequence[str] | None
) -> list[LoadLine] | None:
    """Return the load-lines of these names. Check that they and the event types exist."""
    from swathe.trace.viewer.loads import loads

    _check("events", events or (), trace.lanes)
    if not load_names:
        return None
    loads_by_name = {load.name: load for load in loads(trace)}
    _check("loads", load_names, list(loads_by_name))
    return [loads_by_name[name] for name in load_names]


def _check(what: str, names: Iterable[str], available: Sequence[str]) -> None:
    for name in names:
        if name not in available:
            raise SettingsError(f"{what}: expected one of {', '.join(available)}, found {name!r}")
