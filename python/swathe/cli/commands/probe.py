"""The command `swathe probe`: measure the costs of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, MeasureTarget, Overwrite, Plot, Seed
from swathe.cli.output import cost_rows, print_json, print_line, print_table
from swathe.cli.units import size_option, time_option
from swathe.core.format import count_text, number_text, rate_text, seconds_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swathe.costs.probing.probe_result import Probe, ServerRate, StripeProbe
    from swathe.costs.probing.write_stages import WriteStages
    from swathe.costs.store_times import StoreTimes

END_TEXTS = {
    "precise": "ended as all costs are precise enough",
    "rounds": "ended after all rounds",
    "seconds": "ended as the time limit was reached",
    "bytes": "ended as the byte limit was reached",
}
"""Reason why a probe ended, as shown to users."""


def probe(
    store: MeasureTarget,
    quick: Annotated[bool, typer.Option("--quick", help="Take 5 seconds instead of 30.")] = False,
    object_: Annotated[
        list[str] | None,
        typer.Option("--object", help="Object to read, or folder to list; may be repeated."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Measure writing too: write and remove objects (folders, buckets, dav(s):// and "
            "root:// stores).",
        ),
    ] = False,
    host: Annotated[
        bool, typer.Option("--host", help="Measure this machine again (decoding, writing).")
    ] = False,
    max_time: Annotated[
        float | None,
        time_option(least_s=0.1, help="Maximum duration; else 30s, or 5s with --quick."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        size_option(
            least_bytes=1_000_000,
            help="Maximum transfer; else 512MiB, or 64MiB with --quick; eight times that for "
            "local stores.",
        ),
    ] = None,
    seed: Seed = None,
    plot: Plot = None,
    overwrite: Overwrite = False,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Print a table of all stores measured from here: connection, open, seek, rates "
            "and close.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the costs of a store: latency, bandwidth, useful number of parallel requests."""
    from swathe.costs.recorded_probe import probe as measure

    result = measure(
        store,
        objects=object_ or (),
        quick=quick,
        write=write,
        host=host,
        max_time_s=max_time,
        max_bytes=max_bytes,
        seed=seed,
        plot=plot,
        overwrite=overwrite,
        tell=lambda text: typer.echo(text, err=True),
    )
    times = _measured_times() if table else []
    if as_json:
        print_json(
            result.as_dict() | ({"table": [each.as_dict() for each in times]} if table else {})
        )
        return
    _show(result)
    _show_host(result.compute or {})
    if table:
        _show_times(times)


def _measured_times() -> list[StoreTimes]:
    from swathe.catalog import Catalog
    from swathe.costs.store_times import store_times

    with Catalog.open() as catalog:
        return list(store_times(catalog))


def _show_times(times: Iterable[StoreTimes]) -> None:
    from swathe.costs.store_times import SIZES

    typer.echo()
    print_table(
        ("store", "", "connection", "open", "seek", *map(size_text, SIZES), "close"),
        (
            [
                *(each.store, each.direction, seconds_text(each.connect_s)),
                *(seconds_text(each.open_s), seconds_text(each.seek_s)),
                *(rate_text(each.rates[size]) if size in each.rates else "" for size in SIZES),
                seconds_text(each.close_s),
            ]
            for each in times
        ),
    )


def _show(result: Probe) -> None:
    from swathe.costs.probing.probe_result import read_table

    profile, costs = result.profile, result.profile.costs
    rows = read_table(result.samples, costs)
    streams = sorted({count for row in rows.values() for count in row})
    typer.echo("MB/s by size and number of parallel requests (in brackets: the model's)")
    print_table(
        ("size", *map(str, streams)),
        [
            (
                size_text(size),
                *(
                    f"{number_text(row[c][0])} ({number_text(row[c][1])})" if c in row else ""
                    for c in streams
                ),
            )
            for size, row in rows.items()
        ],
    )
    typer.echo(f"\n{result.label} ({result.root}) from {result.host}")
    print_table(("cost", "", "spread of 80 %"), cost_rows(costs.as_dict(), profile.spread))
    if (writing := result.writing) is not None:
        typer.echo(
            f"writing: {seconds_text(writing.request[0][1])} per object, "
            f"{rate_text(writing.stream_bytes_per_s())} per stream, "
            f"in total {rate_text(writing.total_bytes_per_s)}"
        )
    if result.stages is not None:
        _show_stages(result.stages)
    typer.echo(
        f"{count_text(len(result.samples), 'sample')}, {count_text(result.requests, 'request')}, "
        f"{size_text(result.bytes_moved)} in {seconds_text(result.elapsed_s)} "
        f"({result.cache}; {END_TEXTS[result.end_reason]})"
    )
    if result.stripe is not None:
        _show_stripe(result.stripe)
    for note in (*profile.notes, *result.notes):
        print_line(f"  note: {note}", err=True)


def _show_stages(stages: WriteStages) -> None:
    for each in stages.sizes:
        parts = ", ".join(f"{name} {seconds_text(value)}" for name, value in each.stages.items())
        streams = f", {each.streams} at once" if each.streams > 1 else ""
        print_line(f"  {size_text(each.size)}{streams}: {parts}")
    for note in stages.notes:
        print_line(f"  note: {note}", err=True)


def _show_stripe(stripe: StripeProbe) -> None:
    typer.echo("\nservers, MB/s")
    rows = [
        (
            each.server,
            _server_rate(each, each.alone_bytes_per_s),
            _server_rate(each, each.together_bytes_per_s) if each.why is None else "",
            _server_bound(each),
        )
        for each in stripe.servers
    ]
    print_table(("server", "alone", "together", "bound by"), rows)
    for each in stripe.servers:
        if each.why is not None:
            print_line(f"{each.server.rstrip(':')}: {each.why}", err=True)
    alone, together, store, by_sum = (
        "not measured" if rate is None else rate_text(rate)
        for rate in (
            stripe.sum_bytes_per_s,
            stripe.together_bytes_per_s,
            stripe.stripe_bytes_per_s,
            stripe.expected_bytes_per_s,
        )
    )
    typer.echo(f"sum {alone}; together {together}; as one store {store}, expected {by_sum}")
    print_line(f"bound: {stripe.text}")


def _server_rate(server: ServerRate, bytes_per_s: float) -> str:
    if not server.is_reachable:
        return "no answer"
    if server.why is not None or not bytes_per_s:
        return "not measured"
    return number_text(bytes_per_s / 1e6)


def _server_bound(server: ServerRate) -> str:
    if server.disk:
        return f"disk {server.disk}"
    if server.bound == "server" and not server.is_block_server:
        return "unknown"
    return server.bound or ""


def _show_host(compute: dict[str, Any]) -> None:
    speeds = {name: seconds for name, seconds in compute.items() if "_byte_s" in name}
    tiles = speeds.pop("tile_byte_s", {})
    speed_texts = [
        f"{name.removesuffix('_s').removesuffix('_byte')} {1e-6 / speeds[name]:.0f}"
        for name in speeds
    ]
    tile_texts = [f"{codec} {1e-6 / seconds:.0f}" for codec, seconds in tiles.items()]
    typer.echo(
        f"this host: {seconds_text(compute['object_s'])} per object, "
        f"{seconds_text(compute['cut_s'])} per cut; MB/s of whole files: "
        f"{', '.join(speed_texts)}; of tiles and chunks: {', '.join(tile_texts)}"
    )
