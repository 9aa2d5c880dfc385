"""The command `swathe trace view`: draw the events of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_text
from swathe.trace.viewer.kinds import Clocks, Kind

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
        Kind | None,
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
        Clocks,
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
    if follow and (output or picture):
        raise typer.BadParameter(
            "--follow serves a page: expected neither --output nor --plot with it"
        )
    data: dict[str, Any] = {
        "kind": kind,
        "events": None if events is None else _names(events),
        "loads": None if loads is None else _names(loads),
    }
    if not (output or picture):
        _serve(runs, port, open_, as_json, clocks == "aligned", follow, data)
        return
    from swathe.trace import view as write_view

    trace = write_view(
        runs,
        page=output,
        plot=picture,
        width=width,
        height=height,
        clocks=clocks,
        overwrite=overwrite,
        **data,
    )
    count, damaged_count = len(trace.time_ns), trace.damaged_count
    if as_json:
        files = {"page": output, "picture": picture}
        paths = {name: str(path) for name, path in files.items() if path}
        print_json({"events": count, **paths, "damaged": damaged_count})
    else:
        for path in filter(None, (output, picture)):
            print_text(f"{path}: {count:,} events")
        for each in trace.damaged[:5]:
            typer.echo(f"  line {each.line}: {each.reason}", err=True)
        if (more := damaged_count - 5) > 0:
            typer.echo(f"  and {more:,} more damaged lines", err=True)
    if open_ and output:
        typer.launch(str(output))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _serve(
    runs: list[Path],
    port: int,
    open_: bool,
    as_json: bool,
    align: bool,
    follow: bool,
    data: dict[str, Any],
) -> None:
    import threading

    from swathe.core.errors import OutputError
    from swathe.trace.viewer.live import LiveView
    from swathe.trace.viewer.server import HOST, server
    from swathe.trace.viewer.views import title_of

    live_run = LiveView(runs, align=align, grows=follow)
    settings = {name: value for name, value in data.items() if value}
    try:
        serving = server(live_run, title_of(runs), port, **settings, follow=follow)
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
            if not follow:
                # Errors in reading are reported here too, not only on the page.
                live_run.data("")
            answering.join()
        finally:
            serving.shutdown()
