"""The commands `swathe trace`: collect events, watch this machine, tell where the time went."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.commands.view import view
from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_table
from swathe.core.format import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swathe.trace import Events
    from swathe.trace.analysis.report import Report
    from swathe.trace.analysis.slow_targets import Slow
    from swathe.trace.analysis.stalls import Stall
    from swathe.trace.host_monitor import Pinged

app = typer.Typer(
    help="Record what happens, from many machines, and see where the time went.",
    no_args_is_help=True,
)
app.command()(view)

Run = Annotated[list[Path], typer.Argument(metavar="RUN.ulm", help="Events; rotated files too.")]
MOST_STALLS = 5
OTEL = "{}; try: pip install 'swathe[otel]'"


@app.command()
def collect(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen there; 0: a free one.")] = 0,
    host: Annotated[str, typer.Option(help="And here.")] = "127.0.0.1",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Appended to; -: to stdout.")
    ] = "run.ulm",
    rotate_mb: Annotated[
        float | None,
        typer.Option(min=0.1, help="A file that would grow beyond becomes FILE.1, that FILE.2."),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, max=9999, help="So many of these.")] = 5,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Holds what senders must say; needed beyond loopback."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Collect the events of many senders into one file, until the process is told to end."""
    from swathe.core.errors import OutputError
    from swathe.trace.collect import Collector

    with _told_to_end() as ending:
        collector = Collector(
            None if output == "-" else Path(output),
            host=host,
            port=port,
            token=None if token_file is None else _token(token_file),
            rotate_bytes=None if rotate_mb is None else round(rotate_mb * 1e6),
            keep=keep,
            warn=lambda text: typer.echo(f"swathe: {text}", err=True),
        )
        # Standard output may be where the events go.
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
    interval: Annotated[float, typer.Option(min=0.05, max=86400, help="Seconds between.")] = 1.0,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="PLACE",
            help="A file, tcp://HOST:PORT (not $SWATHE_TRACE, too); -: stdout.",
        ),
    ] = "-",
    long: Annotated[
        float | None, typer.Option("--for", min=0, metavar="S", help="End after so many seconds.")
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(help="Ask it for an object's size each time: a name, NAME:path or URL."),
    ] = None,
) -> None:
    """Watch this machine: processors, memory, swap, disks, network, stores."""
    from swathe.core.errors import OutputError
    from swathe.trace import start, stop
    from swathe.trace.host_monitor import Monitor, Point

    stores = [_pinged(name) for name in store or ()]
    failed: list[OSError] = []

    def tell(point: Point) -> None:
        if output != "-":
            return
        try:
            sys.stdout.write(point.as_line() + "\n")
            sys.stdout.flush()
        except OSError as error:
            # The thread that reads has nobody to raise it to.
            failed.append(error)
            ending.set()

    if output != "-":
        # What is said here is meant, not what all commands record to.
        stop()
        start(output)
    with _told_to_end() as ending, Monitor(interval, stores=stores, tell=tell):
        ending.wait(long)
    for error in failed:
        if isinstance(error, BrokenPipeError):
            raise error
        # What is left in its buffer cannot be written either, of which Python would tell anew.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"standard output: {error.strerror}") from error


@app.command()
def report(run: Run, as_json: Json = False) -> None:
    """Tell where the time of a run went: stages, slow targets, stalls, stores."""
    from swathe.trace.analysis.report import make_report
    from swathe.trace.ulm import read_trace

    events = read_trace(run)
    made = make_report(events, _profiles(events))
    if as_json:
        print_json(asdict(made))
    else:
        _show(made)


@app.command()
def export(
    run: Run,
    chrome: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it for Perfetto: trace.json.")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="Send it to an OpenTelemetry receiver.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Give a run to other programs: as a trace of Chrome's, or to OpenTelemetry."""
    from swathe.core.errors import SettingsError
    from swathe.trace.ulm import read_trace

    if (chrome is None) == (otlp is None):
        raise typer.BadParameter("give either --chrome or --otlp")
    events = read_trace(run)
    if chrome is not None:
        from swathe.core.outputs import write_file
        from swathe.trace.export.chrome import chrome_trace

        def save(file: Any) -> None:
            for piece in chrome_trace(events):
                file.write(piece.encode())

        write_file(chrome, save, overwrite=overwrite, sources=run)
        if as_json:
            told = {"chrome": str(chrome), "events": len(events.time_ns)}
            print_json({**told, "damaged": events.damaged_count})
        else:
            typer.echo(f"{chrome}: {len(events.time_ns)} events; open it at ui.perfetto.dev")
            _tell_damaged(events)
        return
    assert otlp is not None
    try:
        from swathe.trace.export.otlp import send
    except ImportError as error:
        raise SettingsError(OTEL.format(error)) from error
    sent = send(events, otlp)
    if as_json:
        print_json({**asdict(sent), "damaged": events.damaged_count})
    else:
        typer.echo(
            f"{sent.spans} spans with {sent.points} points, in {sent.requests} requests; left out: "
            f"{sent.unfinished} stages without an end, {sent.unowned} points in no stage"
        )
        _tell_damaged(events)


def _tell_damaged(events: Events) -> None:
    if events.damaged_count:
        typer.echo(f"  note: {events.damaged_count} damaged lines left out", err=True)


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """Give what is set by SIGTERM and Ctrl-C."""
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


def _token(path: Path) -> str:
    from swathe.core.errors import SettingsError

    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--token-file: {path}: {error}") from error
    if not (token.isascii() and token.isprintable() and 8 <= len(token) <= 1000) or " " in token:
        raise SettingsError(
            f"--token-file: {path}: expected 8 to 1000 characters of ASCII without spaces"
        )
    return token


def _pinged(name: str) -> Pinged:
    from swathe.costs.probing.resolve_target import find_place
    from swathe.trace.host_monitor import Pinged

    place = find_place(name)
    return Pinged(name, place.objects[0], place.stores)


def _profiles(events: Events) -> Mapping[str, Mapping[str, Any]]:
    """Give costs of stores as the hosts of a run saw them, by name and by root."""
    from swathe.catalog import Catalog
    from swathe.core.paths import default_url
    from swathe.trace import Coded

    url = default_url()
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).exists():
        return {}
    hosts = events.fields.get("HOST")
    seen = set(hosts.words) if isinstance(hosts, Coded) else set()
    with Catalog.open(url) as catalog:
        found = {each.root: each.costs for each in catalog.profiles() if each.host in seen}
        named = {store.name: store.key for store in catalog.stores()}
    return found | {name: found[root] for name, root in named.items() if root in found}


def _show(made: Report) -> None:
    begun = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(made.begun_ns / 1e9))
    typer.echo(f"{made.events} events in {_s(made.seconds)} from {begun} UTC\n")
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
            for stage in made.stages
        ],
    )
    if made.slowest:
        typer.echo("\nslowest targets")
    for slow in made.slowest:
        typer.echo(_slow(slow))
    for stall in made.stalls[:MOST_STALLS]:
        typer.echo(_stall(stall))
    if len(made.stalls) > MOST_STALLS:
        typer.echo(f"\n{len(made.stalls) - MOST_STALLS} shorter stalls, see --json")
    if made.stores:
        typer.echo("\nMB/s from stores")
        rows = [
            (
                store.name or "(no name)",
                f"{store.bytes_per_s / 1e6:.4g}",
                _mb(store.expected_bytes_per_s),
                _mb(store.profiled_bytes_per_s),
                f"{store.requests} of {size_text(store.bytes / max(store.requests, 1))}",
                f"{store.in_flight:.3g}",
                _s(store.median_s),
                str(store.failed or ""),
            )
            for store in made.stores
        ]
        titles = ("store", "achieved", "expected", "profile", "requests", "at once", "median")
        print_table((*titles, "failed"), rows)
    _show_rest(made)


def _show_rest(made: Report) -> None:
    for host, figures in made.hosts.items():
        typer.echo(f"\n{host or '(no host)'}: {_figures(figures)}")
    for offset in made.offsets:
        typer.echo(
            f"clock of {offset.sender}: {_s(abs(offset.offset_s))} "
            f"{'ahead' if offset.offset_s > 0 else 'behind'}, to ± {_s(offset.spread_s)}, "
            f"taken off {offset.events} events"
        )
    for name, count in made.unfinished.items():
        typer.echo(f"  note: {count} {name} began and did not end", err=True)
    for text, count in (
        ("ends without a beginning", made.orphans),
        ("events dropped while recording", made.dropped),
        ("damaged lines left out", made.damaged),
    ):
        if count:
            typer.echo(f"  note: {count} {text}", err=True)
    for note in made.notes:
        typer.echo(f"  note: {note}", err=True)


def _slow(slow: Slow) -> str:
    text = f"  {slow.target} of {slow.object or 'no object'}: {_s(slow.seconds)}"
    if slow.job:
        text += f", job {slow.job}"
    text += f", at {_s(slow.begun_s)}: {slow.stage} {_s(slow.stage_s)}, usually {_s(slow.usual_s)}"
    if slow.waiting_in:
        beside = (f"{name} {_s(seconds)}" for name, seconds in slow.waiting_in.items())
        text += f"; beside it {', '.join(beside)}"
    for each in slow.requests[:1]:
        called = " ".join(word for word in (each["stage"], each["request"], each["from"]) if word)
        text += f" (the longest: {called}, {size_text(each['bytes'])} in {_s(each['seconds'])})"
    if slow.others_in:
        others = (f"{name} {_s(seconds)}" for name, seconds in list(slow.others_in.items())[:3])
        text += f"; its thread did for others {', '.join(others)}"
    if slow.alike:
        text += f"; {slow.alike} more of this object"
    return text


def _stall(stall: Stall) -> str:
    text = (
        f"\nstall at {_s(stall.begun_s)} for {_s(stall.seconds)}: {stall.targets} targets under "
        f"way, {stall.ended} ended, usually {stall.usual_ended:.0f}"
    )
    if stall.stages:
        spent = (f"{name} {_s(seconds)}" for name, seconds in list(stall.stages.items())[:3])
        text += f"; in {', '.join(spent)}"
    for host, figures in stall.hosts.items():
        text += f"\n  {host or '(no host)'}: {_figures(figures)}"
    return text


def _figures(figures: Mapping[str, float]) -> str:
    """Tell those that say what ran out, but for what did nothing."""
    told = []
    for name, value in figures.items():
        what = name.rpartition(".")[2]
        if what.endswith("_PERCENT") and value >= 0.5:
            told.append(f"{name.removesuffix('_PERCENT')} {value:.0f} %")
        elif what.endswith("BYTES_PER_S") and value >= 1000:
            told.append(f"{name.removesuffix('_BYTES_PER_S')} {value / 1e6:.3g} MB/s")
        elif what == "RTT_S":
            told.append(f"{name.removesuffix('_S')} {_s(value)}")
        elif what == "RETRANSMITS_PER_S" and value:
            told.append(f"TCP.RETRANSMITS {value:.3g} /s")
    return ", ".join(told)


def _mb(bytes_per_s: float | None) -> str:
    return "not probed" if bytes_per_s is None else f"{bytes_per_s / 1e6:.4g}"


def _s(seconds: float) -> str:
    """Give a time as people say it."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if abs(seconds) * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
