"""The command `swathe trace view`: draw the events of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure

    from swathe.trace.viewer.lifelines import TracedEvents
    from swathe.trace.viewer.live import LiveView
    from swathe.trace.viewer.loads import LoadLine

PIXELS = 20_000


def view(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN.ulm", help="Files of events; several are shown as one run."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for a self-contained page, *.html."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="File for a picture, *.png or *.svg."),
    ] = None,
    width: Annotated[
        int, typer.Option(min=200, max=PIXELS, help="Width of the picture, pixels.")
    ] = 1600,
    height: Annotated[
        int, typer.Option(min=200, max=PIXELS, help="Height of the picture, pixels.")
    ] = 1000,
    kind: Annotated[
        Literal["target", "object", "request", "portal", "job", "stage"] | None,
        typer.Option(
            help="Kind of line; request: to a store, portal: request to a portal; else the first "
            "in use."
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Event types to show, from the bottom up; else all."),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Load-lines to show, as `CUT done`; else the first."),
    ] = None,
    clocks: Annotated[
        Literal["aligned", "written"],
        typer.Option(help="Clocks: aligned to that of the collector, or as written."),
    ] = "aligned",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the files as they grow.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the served page (0 = any free port).")
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Show the page in a browser.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw recorded events: lifelines, load-lines and points on one time axis.

    Without --output and --plot the page is served on this machine until Ctrl-C.
    """
    from swathe.core.outputs import check_output
    from swathe.trace.viewer.live import LiveView

    if follow and (output or picture):
        raise typer.BadParameter(
            "--follow serves a page: expected neither --output nor --plot with it"
        )
    for path_to_check in filter(None, (output, picture)):
        check_output(path_to_check, overwrite=overwrite, sources=runs)
    live_run = LiveView(runs, align=clocks == "aligned", grows=follow)
    title = ", ".join(run.name for run in runs)
    settings: dict[str, Any] = {}
    if kind:
        settings["kind"] = kind
    if events:
        settings["events"] = _names(events)
    if loads:
        settings["loads"] = _names(loads)
    if not (output or picture):
        _serve(live_run, title, port, open_, as_json, {**settings, "follow": follow})
        return
    traced = live_run.traced()
    requested_loads = _requested_loads(traced, settings)
    summary: dict[str, Any] = {"events": len(traced.events.time_ns)}
    if output:
        summary["page"] = str(_page(traced, output, title, settings, overwrite))
    if picture:
        from swathe.trace.viewer.figure import save

        plot = _draw(traced, title, settings, requested_loads, (width, height))
        save(plot, picture, overwrite=overwrite)
        summary["picture"] = str(picture)
    summary["damaged"] = traced.events.damaged_count
    if as_json:
        print_json(summary)
    else:
        for path in (summary.get("page"), summary.get("picture")):
            if path:
                typer.echo(f"{path}: {summary['events']:,} events")
        for each in traced.events.damaged[:5]:
            typer.echo(f"  line {each.line}: {each.reason}", err=True)
        if (more := summary["damaged"] - 5) > 0:
            typer.echo(f"  and {more:,} more damaged lines", err=True)
    if open_ and output:
        typer.launch(str(output))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _page(
    traced: TracedEvents, output: Path, title: str, settings: dict[str, Any], overwrite: bool
) -> Path:
    from swathe.core.errors import OutputError
    from swathe.core.outputs import write_file
    from swathe.trace.viewer.encode import encode_view
    from swathe.trace.viewer.page import page

    if output.suffix.lower() != ".html":
        raise OutputError(f"{output}: expected a name ending in .html")
    content = page(title, encode_view(traced).whole(), **settings)
    write_file(output, lambda file: file.write(content), overwrite=overwrite)
    return output


def _requested_loads(traced: TracedEvents, settings: dict[str, Any]) -> list[LoadLine] | None:
    """Return the requested load-lines. Check that requested events and load-lines exist."""
    from swathe.trace.viewer.loads import loads

    _check("events", settings.get("events", ()), traced.lanes)
    if "loads" not in settings:
        return None
    loads_by_name = {load.name: load for load in loads(traced)}
    _check("loads", settings["loads"], list(loads_by_name))
    return [loads_by_name[name] for name in settings["loads"]]


def _check(option: str, names: Iterable[str], available: Sequence[str]) -> None:
    for name in names:
        if name not in available:
            raise typer.BadParameter(
                f"expected one of {', '.join(available)}, found {name!r}", param_hint=f"--{option}"
            )


def _draw(
    traced: TracedEvents,
    title: str,
    settings: dict[str, Any],
    chosen: list[LoadLine] | None,
    size: tuple[int, int],
) -> Figure:
    from swathe.trace.viewer.figure import figure

    return figure(
        traced,
        title,
        kind=settings.get("kind"),
        events=settings.get("events"),
        chosen=chosen,
        width=size[0],
        height=size[1],
    )


def _serve(
    live_run: LiveView, title: str, port: int, open_: bool, as_json: bool, settings: dict[str, Any]
) -> None:
    import threading

    from swathe.core.errors import OutputError
    from swathe.trace.viewer.server import HOST, server

    try:
        serving = server(live_run, title, port, **settings)
    except OSError as error:
        raise OutputError(f"{HOST}:{port}: {error.strerror}") from error
    url = f"http://{HOST}:{serving.server_address[1]}/"
    if as_json:
        print_json({"view": url})
    else:
        typer.echo(f"view: {url}")
    if open_:
        typer.launch(url)
    with serving:
        # The browser loads the page while the events are read.
        answering = threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True)
        answering.start()
        try:
            if not settings["follow"]:
                # Errors in reading are reported here too, not only on the page.
                live_run.data("")
            answering.join()
        finally:
            serving.shutdown()
