"""The command `swathe trace view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure

    from swathe.trace.viewer.lifelines import Traced
    from swathe.trace.viewer.live import Shown
    from swathe.trace.viewer.loads import Load

PIXELS = 20_000


def view(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN.ulm...", help="What was recorded; several: as one.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a page, *.html, that needs nothing else."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Draw a picture, *.png or *.svg.")
    ] = None,
    width: Annotated[int, typer.Option(min=200, max=PIXELS, help="Of the picture, pixels.")] = 1600,
    height: Annotated[
        int, typer.Option(min=200, max=PIXELS, help="Of the picture, pixels.")
    ] = 1000,
    kind: Annotated[
        str | None,
        typer.Option(
            help="A line for each target, object, request to a store, one to a portal (portal), "
            "job or stage; else the first."
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these types of events, from below; else all."),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="These load-lines, as `CUT done`; else the first."),
    ] = None,
    clocks: Annotated[
        str, typer.Option(help="aligned: to that of the collector; written: as they are.")
    ] = "aligned",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as the files grow.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve the page there; 0: any free one.")
    ] = 0,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Show the page in a browser.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show what was recorded: lifelines, load-lines and points on one axis of time.

    Without --output and --png the page is served on this machine until Ctrl-C.
    """
    from swathe.core.outputs import check_output
    from swathe.trace.viewer.lifelines import KINDS
    from swathe.trace.viewer.live import Shown

    if kind not in (None, *KINDS):
        raise typer.BadParameter(f"must be {', '.join(KINDS)}, not {kind!r}", param_hint="--kind")
    if clocks not in ("aligned", "written"):
        raise typer.BadParameter(
            f"must be aligned or written, not {clocks!r}", param_hint="--clocks"
        )
    if follow and (output or png):
        raise typer.BadParameter("what is written does not go on: --follow serves the page")
    for made in filter(None, (output, png)):
        check_output(made, overwrite=overwrite, sources=runs)
    shown = Shown(runs, align=clocks == "aligned", grows=follow)
    title = ", ".join(run.name for run in runs)
    settings: dict[str, Any] = {}
    if kind:
        settings["kind"] = kind
    if events:
        settings["events"] = _names(events)
    if loads:
        settings["loads"] = _names(loads)
    if not (output or png):
        _serve(shown, title, port, open_, as_json, {**settings, "follow": follow})
        return
    traced = shown.traced()
    chosen = _chosen(traced, settings)
    told: dict[str, Any] = {"events": len(traced.events.time_ns)}
    if output:
        told["page"] = str(_page(traced, output, title, settings, overwrite))
    if png:
        from swathe.trace.viewer.figure import save

        drawn = _drawn(traced, title, settings, chosen, (width, height))
        save(drawn, png, overwrite=overwrite)
        told["picture"] = str(png)
    told["damaged"] = traced.events.damaged_count
    if as_json:
        print_json(told)
    else:
        for path in (told.get("page"), told.get("picture")):
            if path:
                typer.echo(f"{path}: {told['events']:,} events")
        for each in traced.events.damaged[:5]:
            typer.echo(f"  line {each.line}: {each.reason}", err=True)
        if (more := told["damaged"] - 5) > 0:
            typer.echo(f"  and {more:,} more damaged lines", err=True)
    if open_ and output:
        typer.launch(str(output))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _page(
    traced: Traced, output: Path, title: str, settings: dict[str, Any], overwrite: bool
) -> Path:
    from swathe.core.errors import OutputError
    from swathe.core.outputs import write_file
    from swathe.trace.viewer.encode import packed
    from swathe.trace.viewer.page import page

    if output.suffix.lower() != ".html":
        raise OutputError(f"{output}: a page is *.html")
    made = page(title, packed(traced).whole(), **settings)
    write_file(output, lambda file: file.write(made), overwrite=overwrite)
    return output


def _chosen(traced: Traced, settings: dict[str, Any]) -> list[Load] | None:
    """Give the load-lines that were asked for; what there is not is an error, of events, too."""
    from swathe.trace.viewer.loads import loads

    _check("events", settings.get("events", ()), traced.lanes)
    if "loads" not in settings:
        return None
    known = {load.name: load for load in loads(traced)}
    _check("loads", settings["loads"], list(known))
    return [known[name] for name in settings["loads"]]


def _check(option: str, names: Iterable[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            raise typer.BadParameter(
                f"there is no {name!r}; there are: {', '.join(there)}", param_hint=f"--{option}"
            )


def _drawn(
    traced: Traced,
    title: str,
    settings: dict[str, Any],
    chosen: list[Load] | None,
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
    shown: Shown, title: str, port: int, open_: bool, as_json: bool, settings: dict[str, Any]
) -> None:
    import threading

    from swathe.core.errors import OutputError
    from swathe.trace.viewer.server import HOST, server

    try:
        serving = server(shown, title, port, **settings)
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
        # The browser fetches and begins the page while the events are read.
        answering = threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True)
        answering.start()
        try:
            if not settings["follow"]:
                # What cannot be read is told here, not on the page alone.
                shown.data("")
            answering.join()
        finally:
            serving.shutdown()
