"""The command `swathe probe`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from swathe.decode import Speed
    from swathe.probe import Probe


def probe(
    store: Annotated[
        str, typer.Argument(metavar="NAME_OR_URL", help="A store, a folder or one object.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Some seconds, not half a minute.")
    ] = False,
    object_: Annotated[
        list[str] | None,
        typer.Option("--object", help="What to read; needed where a store cannot be listed."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also put small files there (local folders only).")
    ] = False,
    decode: Annotated[bool, typer.Option(help="Also measure this host's decoding.")] = True,
    budget_s: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds it may take; else 30, or 5.")
    ] = None,
    budget_mb: Annotated[
        float | None,
        typer.Option(min=0.1, help="MB it may move; else 537, or 67; eight times that locally."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the order of reads.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: *.png or *.html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure what a store costs: latency, bandwidth, how many requests at once."""
    from dataclasses import asdict

    from swathe import probe as probing

    result = probing.probe(
        store,
        objects=object_ or (),
        quick=quick,
        budget_s=budget_s,
        budget_bytes=None if budget_mb is None else round(budget_mb * 1e6),
        seed=seed,
        write=write,
        tell=lambda text: typer.echo(text, err=True),
    )
    _keep(result)
    speeds: dict[str, Speed] = {}
    if decode:
        from swathe.decode import decode_speeds

        speeds = decode_speeds(quick)
    if plot is not None:
        from swathe.plots import probe_figure, save

        title = f"{result.root} from {result.host}"
        drawn = probe_figure(result.samples, result.profile.costs, title)
        save(drawn, plot, "\n".join(result.profile.notes))
    if as_json:
        told = {**result.as_dict(), "decode": {kind: asdict(of) for kind, of in speeds.items()}}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        _show(result, speeds)


def _keep(result: Probe) -> None:
    """Enter a probe into the performance database."""


def _show(result: Probe, speeds: dict[str, Speed]) -> None:
    from rich.console import Console
    from rich.table import Table

    from swathe.probe import read_table

    console = Console()
    profile, costs = result.profile, result.profile.costs
    rows = read_table(result.samples, costs)
    streams = sorted({count for row in rows.values() for count in row})
    table = Table(
        "size",
        *(f"{count}" for count in streams),
        title="MB/s by size and number at once (the model's)",
    )
    for size, row in rows.items():
        cells = (f"{_rate(row[c][0])} ({_rate(row[c][1])})" if c in row else "" for c in streams)
        table.add_row(_size(size), *cells)
    console.print(table)

    found = Table("", "cost", "spread of 80 %", title=f"{result.root} from {result.host}")
    for name, text in (
        ("connect_s", f"{1e3 * costs.connect_s:.3g} ms"),
        ("open_s", f"{1e3 * costs.open_s:.3g} ms"),
        ("request", f"{1e3 * costs.request[0][1]:.3g} ms"),
        ("", f"{costs.stream_bytes_per_s() / 1e6:.4g} MB/s, one stream"),
        ("total_bytes_per_s", f"{costs.total_bytes_per_s / 1e6:.4g} MB/s"),
        ("requests_per_s", f"{costs.requests_per_s:.4g}"),
        ("streams", f"{costs.streams}"),
        ("model", "measured over predicted"),
    ):
        spread = profile.spread.get(name)
        found.add_row(name, text, "" if spread is None else f"± {spread:.1%}")
    console.print(found)
    if speeds:
        host = Table("this host", "µs a cut", "MB/s", title="decoding")
        for kind, speed in speeds.items():
            host.add_row(kind, f"{1e6 * speed.s_per_cut:.3g}", f"{1e-6 / speed.s_per_byte:.4g}")
        console.print(host)
    typer.echo(
        f"{len(result.samples)} samples, {result.requests} requests, "
        f"{result.bytes_moved / 1e6:.0f} MB in {result.seconds:.1f} s "
        f"({result.cache}; ended: {result.stopped})"
    )
    for note in (*profile.notes, *result.notes):
        typer.echo(f"  note: {note}", err=True)


def _rate(mb_per_s: float) -> str:
    return f"{mb_per_s:.0f}" if mb_per_s >= 100 else f"{mb_per_s:.3g}"


def _size(size: int) -> str:
    return f"{size // 1048576} MiB" if size >= 1048576 else f"{size / 1024:g} KiB"
