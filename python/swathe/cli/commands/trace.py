"""The commands `swathe trace`: collect events, monitor this machine, report where time is spent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.commands.view import view
from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_table, print_text
from swathe.cli.units import size_option, time_option
from swathe.core.format import moment_text, number_text, rate_text, size_text
from swathe.core.format import seconds_text as _s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swathe.trace.analysis.bottlenecks import Bottleneck
    from swathe.trace.analysis.report import TraceReport
    from swathe.trace.analysis.slow_targets import SlowTarget
    from swathe.trace.analysis.stalls import Stall
    from swathe.trace.host_monitor import PingTarget, Point

app = typer.Typer(
    help="Collect events of many machines, and see where the time is spent.",
    no_args_is_help=True,
)
app.command()(view)

Run = Annotated[
    list[Path],
    typer.Argument(metavar="RUN.ulm", help="Files of events; name rotated files as well."),
]
MOST_STALLS = 5


@app.command()
def collect(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (0 = any free port).")
    ] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to append to (- = standard output)."
        ),
    ] = "run.ulm",
    rotate: Annotated[
        int | None,
        size_option(
            least_bytes=100_000,
            help="Size of FILE at which it is renamed FILE.1, FILE.1 to FILE.2, ...; else no "
            "rotation.",
        ),
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, max=9999, help="Number of rotated files to keep.")
    ] = 5,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the token that senders must present; needed beyond loopback.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Collect the events of many senders into one file, until SIGTERM or Ctrl-C."""
    from swathe.core.errors import OutputError
    from swathe.core.token_file import read_token
    from swathe.trace.collect import Collector

    with _signal_event() as ending:
        collector = Collector(
            None if output == "-" else Path(output),
            host=host,
            port=port,
            token=None if token_file is None else read_token(token_file, "--token-file"),
            rotate_bytes=rotate,
            keep=keep,
            warn=lambda text: typer.echo(f"swathe: {text}", err=True),
        )
        # The events may go to standard output.
        if as_json and output != "-":
            print_json({"collector": collector.address})
        else:
            typer.echo(f"collector: {collector.address}", err=output == "-")
        ending.wait()
        counts = collector.stop()
    if as_json and output != "-":
        print_json(asdict(counts))
    else:
        typer.echo(f"collector: {counts}", err=output == "-")
    if counts.lost:
        raise OutputError(f"{output}: {counts.lost} events could not be written")


@app.command("host")
def watch_host(
    interval: Annotated[
        float,
        time_option(least_s=0.05, most_s=86400, help="Interval between samples; by default 1s."),
    ] = 1.0,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="PLACE",
            help="Destination instead of $SWATHE_TRACE: a file or tcp://HOST:PORT (- = standard "
            "output).",
        ),
    ] = "-",
    long: Annotated[
        float | None,
        time_option("--for", help="Duration, as 10min; else until Ctrl-C."),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(
            help="Store to ping by a size request: a name, NAME:path or URL; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Monitor this machine: processors, memory, swap, disks, network, stores."""
    from swathe.trace import start, stop
    from swathe.trace.host_monitor import Monitor

    stores = [_ping_target(name) for name in store or ()]
    if output != "-":
        # --output replaces the destination that all commands record to.
        stop()
        start(output)
    with _signal_event() as ending:
        printer = _PointPrinter(output == "-", as_json, ending)
        with Monitor(interval, stores=stores, tell=printer.tell):
            ending.wait(long)
    printer.raise_error()
    if as_json and output != "-":
        print_json({"output": output, "events": printer.counts})


@dataclass
class _PointPrinter:
    """Counts what the monitor measures, and prints it if it goes to standard output.

    The monitor's thread cannot raise to the main thread: an error is kept, and ends the wait.
    """

    is_printing: bool
    as_json: bool
    ending: threading.Event
    counts: Counter[str] = field(default_factory=Counter)
    error: OSError | None = None

    def tell(self, point: Point) -> None:
        self.counts[point.name] += 1
        if not self.is_printing or self.error is not None:
            return
        try:
            if self.as_json:
                print_json({"time_ns": point.time_ns, "event": point.name, **point.fields})
            else:
                sys.stdout.write(point.as_line() + "\n")
                sys.stdout.flush()
        except OSError as error:
            self.error = error
            self.ending.set()

    def raise_error(self) -> None:
        from swathe.core.errors import OutputError

        if self.error is None:
            return
        if isinstance(self.error, BrokenPipeError):
            raise self.error
        # The rest of the buffer cannot be written either; Python would report that again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"standard output: {self.error.strerror}") from self.error


@app.command()
def report(run: Run, as_json: Json = False) -> None:
    """Report where the time of a run was spent: stages, slow targets, stalls, stores."""
    from swathe import trace

    run_report = trace.report(run)
    if as_json:
        print_json(asdict(run_report))
    else:
        _show(run_report)


@app.command()
def export(
    run: Run,
    chrome: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write for Perfetto, as trace.json.")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenTelemetry receiver to send to.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Export a run: as a Chrome trace, or to an OpenTelemetry receiver."""
    from swathe import trace

    if chrome is not None and otlp is None:
        events = trace.export_chrome(run, chrome, overwrite=overwrite)
        count, damaged_count = len(events.time_ns), events.damaged_count
        fields: dict[str, Any] = {"chrome": str(chrome), "events": count}
        text = f"{chrome}: {count} events; open it at ui.perfetto.dev"
    elif otlp is not None and chrome is None:
        counts = trace.export_otlp(run, otlp)
        fields, damaged_count = asdict(counts), counts.damaged
        text = (
            f"{counts.spans} spans with {counts.points} points, in {counts.requests} requests; "
            f"skipped: {counts.unfinished} stages without an end, {counts.unowned} points outside "
            "any stage"
        )
    else:
        raise typer.BadParameter("expected one of --chrome and --otlp")
    if as_json:
        print_json({**fields, "damaged": damaged_count})
        return
    typer.echo(text)
    if damaged_count:
        typer.echo(f"  note: {damaged_count} damaged lines skipped", err=True)


@contextmanager
def _signal_event() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and Ctrl-C set."""
    ending = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ending.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ping_target(name: str) -> PingTarget:
    from swathe.costs.probing.resolve_target import find_place
    from swathe.trace.host_monitor import PingTarget

    place = find_place(name)
    return PingTarget(name, place.objects[0], place.stores)


def _show(run_report: TraceReport) -> None:
    start = moment_text(datetime.fromtimestamp(run_report.begun_ns / 1e9, UTC))
    typer.echo(f"{run_report.events:,} events in {_s(run_report.elapsed_s)} from {start}\n")
    print_table(
        ("stage", "count", "total", "own", "share", "median", "95 %", "longest", "bytes", "failed"),
        [
            (
                stage.name,
                str(stage.count),
                *(_s(seconds) for seconds in (stage.total_s, stage.own_s)),
                "" if stage.share is None else f"{stage.share:.1%}",
                *(_s(seconds) for seconds in (stage.median_s, stage.p95_s, stage.max_s)),
                size_text(stage.bytes) if stage.bytes else "",
                str(stage.failed or ""),
            )
            for stage in run_report.stages
        ],
    )
    if run_report.slowest:
        typer.echo("\nslowest targets")
    for slow in run_report.slowest:
        typer.echo(_slow(slow))
    for stall in run_report.stalls[:MOST_STALLS]:
        typer.echo(_stall(stall))
    if len(run_report.stalls) > MOST_STALLS:
        typer.echo(f"\n{len(run_report.stalls) - MOST_STALLS} shorter stalls, see --json")
    if run_report.stores:
        typer.echo("\nMB/s from stores")
        rows = [
            (
                store.name or "(no name)",
                number_text(store.bytes_per_s / 1e6),
                _mb(store.expected_bytes_per_s),
                _mb(store.profiled_bytes_per_s),
                f"{store.requests} of {size_text(store.bytes / max(store.requests, 1))}",
                f"{store.in_flight:.3g}",
                _s(store.median_s),
                str(store.failed or ""),
            )
            for store in run_report.stores
        ]
        titles = ("store", "achieved", "expected", "profile", "requests", "in flight", "median")
        print_table((*titles, "failed"), rows)
    _show_servers(run_report)
    _show_rest(run_report)


def _show_servers(run_report: TraceReport) -> None:
    """Show the servers of striped objects, and what slows these."""
    if run_report.servers:
        typer.echo("\nservers of striped objects (medians of requests)")
        rows = [
            (
                each.server,
                each.disk,
                f"{each.requests} of {size_text(each.bytes / max(each.requests, 1))}",
                *map(_s, (each.latency_s, each.transfer_s)),
                *("" if value is None else _s(value) for value in (each.server_s, each.disk_s)),
                str(each.failed or ""),
            )
            for each in run_report.servers
        ]
        titles = ("server", "disk", "requests", "link", "transfer", "at server", "for disk")
        print_table((*titles, "failed"), rows)
    for each in run_report.bottlenecks:
        loss = f"{_s(each.lost_s)} lost"
        print_text(f"slow: {_place(each)}: {each.symptom}, {loss}: {each.why}")


def _place(bottleneck: Bottleneck) -> str:
    match bottleneck.part:
        case "client":
            return "client"
        case "disk":
            return f"disk {bottleneck.disk or '(unknown)'} of {bottleneck.server}"
        case "link":
            return f"link of {bottleneck.server}"
        case "server":
            return f"server {bottleneck.server}"


def _show_rest(run_report: TraceReport) -> None:
    for host, figures in run_report.hosts.items():
        typer.echo(f"\n{host or '(no host)'}: {_figures(figures)}")
    for offset in run_report.offsets:
        typer.echo(
            f"clock of {offset.sender}: {_s(abs(offset.offset_s))} "
            f"{'ahead' if offset.offset_s > 0 else 'behind'}, to ± {_s(offset.spread_s)}, "
            f"subtracted from {offset.events} events"
        )
    for name, count in run_report.unfinished.items():
        typer.echo(f"  note: {count} {name} without an end", err=True)
    for text, count in (
        ("ends without a beginning", run_report.orphans),
        ("events dropped while recording", run_report.dropped),
        ("damaged lines skipped", run_report.damaged),
    ):
        if count:
            typer.echo(f"  note: {count} {text}", err=True)
    for note in run_report.notes:
        typer.echo(f"  note: {note}", err=True)


def _slow(slow: SlowTarget) -> str:
    text = f"  {slow.target} of {slow.object or 'no object'}: {_s(slow.elapsed_s)}"
    if slow.job:
        text += f", job {slow.job}"
    text += f", at {_s(slow.begun_s)}: {slow.stage} {_s(slow.stage_s)}, usually {_s(slow.usual_s)}"
    if slow.waiting_in:
        beside = (f"{name} {_s(seconds)}" for name, seconds in slow.waiting_in.items())
        text += f"; in parallel {', '.join(beside)}"
    for each in slow.requests[:1]:
        label = " ".join(word for word in (each["stage"], each["request"], each["from"]) if word)
        text += f" (the longest: {label}, {size_text(each['bytes'])} in {_s(each['elapsed_s'])})"
    if slow.others_in:
        others = (f"{name} {_s(seconds)}" for name, seconds in list(slow.others_in.items())[:3])
        text += f"; its thread worked for others: {', '.join(others)}"
    if slow.alike:
        text += f"; {slow.alike} more of this object"
    return text


def _stall(stall: Stall) -> str:
    text = (
        f"\nstall at {_s(stall.begun_s)} for {_s(stall.duration_s)}: {stall.targets} targets in "
        f"progress, {stall.end_count} ended, usually {stall.usual_count:.0f}"
    )
    if stall.stages:
        stages = (f"{name} {_s(seconds)}" for name, seconds in list(stall.stages.items())[:3])
        text += f"; in {', '.join(stages)}"
    for host, figures in stall.hosts.items():
        text += f"\n  {host or '(no host)'}: {_figures(figures)}"
    return text


def _figures(figures: Mapping[str, float]) -> str:
    """Return the figures that may show a bottleneck, without idle ones."""
    texts = []
    for name, value in figures.items():
        what = name.rpartition(".")[2]
        if what.endswith("_PERCENT") and value >= 0.5:
            texts.append(f"{name.removesuffix('_PERCENT')} {value:.0f} %")
        elif what.endswith("BYTES_PER_S") and value >= 1000:
            texts.append(f"{name.removesuffix('_BYTES_PER_S')} {rate_text(value)}")
        elif what == "RTT_S":
            texts.append(f"{name.removesuffix('_S')} {_s(value)}")
        elif what == "RETRANSMITS_PER_S" and value:
            texts.append(f"TCP.RETRANSMITS {value:.3g} /s")
    return ", ".join(texts)


def _mb(bytes_per_s: float | None) -> str:
    return "not probed" if bytes_per_s is None else number_text(bytes_per_s / 1e6)
