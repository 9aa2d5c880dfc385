"""The commands `swathe stripe`: check, repair and plan striped stores; serve disks to them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swathe.catalog.store_settings import MOST_SERVERS
from swathe.cli.commands.objects import SHOWN_FAULTS, Pattern, Threads, show_copies
from swathe.cli.options import Json
from swathe.cli.output import print_json, print_line, print_table
from swathe.cli.units import quantity_option, size_option
from swathe.core.format import (
    count_text,
    moment_text,
    number_text,
    rate_text,
    seconds_text,
    size_text,
)
from swathe.stores.copies import THREADS
from swathe.stores.stripe_plan import DISK_TB, LEAST_QUANTITY, MOST_QUANTITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog.records.stripes import StripeWork
    from swathe.stores.copies import CopyFault
    from swathe.stores.stripe_plan import StripePlan
    from swathe.stores.stripe_reports import CheckReport, DiskSpace, Leftover

app = typer.Typer(
    help="Check, repair and plan striped stores; serve disks to them.", no_args_is_help=True
)

Place = Annotated[str, typer.Argument(help="Striped store, or NAME:folder of it.")]
Deep = Annotated[
    bool,
    typer.Option(
        "--deep", help="Read all parts and verify each block; else compare sizes and versions."
    ),
]

_quantity = partial(quantity_option, least=LEAST_QUANTITY, most=MOST_QUANTITY)


@app.command()
def serve(
    disk: Annotated[
        list[Path], typer.Option(metavar="FOLDER", help="Folder of a disk; may be repeated.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (0 = any free port).")
    ] = 8430,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Numeric address to listen on.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option(help="File of the token for reading and writing.")
    ] = None,
    read_token_file: Annotated[
        Path | None, typer.Option(help="File of the token for reading only.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate of the server, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate, PEM.")] = None,
    max_bytes: Annotated[
        int | None, size_option(help="Space limit of each disk, as 500GB; else its free space.")
    ] = None,
    forget_disk: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of a lost disk to give up, with its objects, at this start only.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve disks of this machine by HTTP and WebDAV, until SIGTERM or Ctrl-C."""
    from swathe.core.errors import SettingsError
    from swathe.core.token_file import read_token
    from swathe.stores.block_server import serve_disks

    if (tls_cert is None) != (tls_key is None):
        raise SettingsError("--tls-cert, --tls-key: expected both or none, found one")

    def tell(url: str, notes: list[str]) -> None:
        for note in notes:
            typer.echo(f"swathe: {note}", err=True)
        if as_json:
            print_json({"server": url, "notes": notes})
        else:
            typer.echo(f"server: {url}")

    serve_disks(
        disk,
        tell,
        host=listen,
        port=port,
        write_token=read_token(token_file, "--token-file") if token_file else None,
        read_token=read_token(read_token_file, "--read-token-file") if read_token_file else None,
        certificate=(tls_cert, tls_key) if tls_cert and tls_key else None,
        max_bytes=max_bytes,
        forget=forget_disk,
    )


@app.command()
def status(
    name: Annotated[str, typer.Argument(help="Name of the striped store.")], as_json: Json = False
) -> None:
    """Show the servers of a striped store: which can be reached, and what they hold."""
    from swathe import stores

    state = stores.stripe_status(name)
    if as_json:
        print_json({**asdict(state), "work": [_work_fields(each) for each in state.work]})
    else:
        rows = [
            (
                each.server,
                each.state,
                f"{each.parts:,}",
                f"{each.records:,}",
                size_text(each.bytes),
                size_text(free)
                if each.space and (free := each.space.free_bytes) is not None
                else "-",
                each.url,
            )
            for each in state.servers
        ]
        print_table(("server", "state", "parts", "records", "size", "free", "url"), rows)
        for each in state.servers:
            for disk in each.space.disks if each.space else ():
                print_line(f"{_bare(each.server)} disk {disk.name}: {_room_text(disk)}")
            if why := each.why or each.space_error:
                print_line(f"{_bare(each.server)}: {why}", err=True)
            if each.same_as:
                print_line(
                    f"{_bare(each.server)}: the same place as {each.same_as}; expected servers "
                    "apart from each other",
                    err=True,
                )
        typer.echo(
            f"{state.data} data + {state.parity} parity, blocks of {size_text(state.block_bytes)}"
        )
        for work in state.work:
            print_line(_work_text(work))
    if state.lost_count:
        raise typer.Exit(1)


def _room_text(disk: DiskSpace) -> str:
    if not disk.is_up:
        return "missing"
    if disk.free_bytes is None or disk.total_bytes is None:
        return "room unknown"
    return f"{size_text(disk.free_bytes)} of {size_text(disk.total_bytes)} free"


def _work_fields(work: StripeWork) -> dict[str, object]:
    times = {"began_at": work.began_at.isoformat(), "told_at": work.told_at.isoformat()}
    return {**asdict(work), **times, "left_s": work.left_s}


def _work_text(work: StripeWork) -> str:
    progress = f"{work.done:,} of {count_text(work.objects, 'object')} done"
    if work.failed:
        progress += f", {work.failed:,} of them failed"
    if work.written_bytes is not None:
        progress += f", {size_text(work.written_bytes)} written"
    if work.done_bytes is not None and work.total_bytes:
        progress += f", {size_text(work.done_bytes)} of {size_text(work.total_bytes)} done"
    if work.bytes_per_s is not None and work.left_s is not None:
        progress += f" at {rate_text(work.bytes_per_s)}, {seconds_text(work.left_s)} left"
    state = "" if work.is_running else f"; stopped, last told {moment_text(work.told_at)}"
    return (
        f"{work.kind} of {work.place} on {work.host}, process {work.pid}, since "
        f"{moment_text(work.began_at)}: {progress}{state}"
    )


@app.command()
def check(
    place: Place,
    deep: Deep = False,
    pattern: Pattern = None,
    threads: Threads = THREADS,
    as_json: Json = False,
) -> None:
    """Check the objects of a striped store. The exit code is 1 if one is not whole."""
    from swathe import stores

    report = stores.check_stripes(
        place, deep=deep, pattern=pattern, threads=threads, progress=not as_json
    )
    if as_json:
        print_json({**asdict(report), "faults": [each._asdict() for each in report.faults]})
    else:
        _show_check(report)
    if not report.is_whole:
        raise typer.Exit(1)


def _show_check(report: CheckReport) -> None:
    for each in report.checks[:SHOWN_FAULTS]:
        state = "incomplete, readable" if each.is_readable else "NOT readable"
        print_line(f"{each.path}: {state}: {each.reason()}", err=True)
    _show_others(report.incomplete + report.lost)
    _show_faults(report.faults)
    _show_leftovers(report.leftovers, "that belong to no object; repair removes those a day old")
    parts = [f"checked {count_text(report.objects, 'object')}: {report.whole:,} whole"]
    if report.incomplete:
        parts.append(f"{report.incomplete:,} incomplete but readable")
    if report.lost:
        parts.append(f"{report.lost:,} not readable")
    if report.failed:
        parts.append(f"{report.failed:,} could not be checked")
    typer.echo(f"{', '.join(parts)}; in {seconds_text(report.elapsed_s)}")
    _show_notes(report.notes)


@app.command()
def repair(
    place: Place,
    deep: Deep = False,
    remove_leftovers: Annotated[
        bool | None,
        typer.Option(
            "--remove-leftovers/--keep-leftovers",
            help="Remove parts of no object that are a day old; default for a whole store.",
        ),
    ] = None,
    pattern: Pattern = None,
    threads: Threads = THREADS,
    as_json: Json = False,
) -> None:
    """Make missing, damaged and outdated parts again. Objects that are whole are skipped."""
    from swathe import stores

    report = stores.repair_stripes(
        place,
        deep=deep,
        remove_leftovers=remove_leftovers,
        pattern=pattern,
        threads=threads,
        progress=not as_json,
    )
    if as_json:
        print_json({**asdict(report), "faults": [each._asdict() for each in report.faults]})
    else:
        _show_faults(report.faults)
        removals = [each for each in report.leftovers if each.is_removed]
        _show_leftovers(removals, "removed")
        others = [each for each in report.leftovers if not each.is_removed]
        _show_leftovers(others, "not removed: less than a day old, or a server is away")
        parts = [
            f"repaired {count_text(report.repairs, 'object')}: "
            f"{count_text(report.parts, 'part')}, {count_text(report.records, 'record')}, "
            f"{size_text(report.written_bytes)} written, in {seconds_text(report.elapsed_s)}"
        ]
        if report.skipped:
            read = "" if deep else " (their bytes were not read: --deep)"
            parts.append(f"{report.skipped:,} were whole{read}")
        if report.failed:
            parts.append(f"{report.failed:,} failed")
        typer.echo("; ".join(parts))
        _show_notes(report.notes)
    if report.failed:
        raise typer.Exit(1)


@app.command()
def rebalance(
    place: Place, pattern: Pattern = None, threads: Threads = THREADS, as_json: Json = False
) -> None:
    """Write objects again that are not on the servers that the store has now."""
    from swathe import stores

    report = stores.rebalance_stripes(place, pattern=pattern, threads=threads, progress=not as_json)
    show_copies(report, as_json)


@app.command()
def plan(
    mb_s: Annotated[float, _quantity("--mb-s", metavar="MB/S", help="Rate of reading, MB/s.")],
    tb: Annotated[float, _quantity("--tb", metavar="TB", help="Size of the objects, TB.")],
    name: Annotated[
        str | None,
        typer.Argument(help="Striped store whose servers are meant; else all measured stores."),
    ] = None,
    parity: Annotated[
        int | None,
        typer.Option(
            min=0, max=MOST_SERVERS - 1, help="Number of servers that may be lost; else 1."
        ),
    ] = None,
    disk_tb: Annotated[
        float, _quantity("--disk-tb", metavar="TB", help="Size of a disk, TB.")
    ] = DISK_TB,
    server_price: Annotated[
        float | None, _quantity(metavar="PRICE", help="Price of a server without disks.")
    ] = None,
    disk_price: Annotated[float | None, _quantity(metavar="PRICE", help="Price of a disk.")] = None,
    as_json: Json = False,
) -> None:
    """Plan the servers and disks for a rate and a size, from the probes of stores."""
    from swathe import stores

    unit_prices = {"server": server_price, "disk": disk_price}
    prices = {what: price for what, price in unit_prices.items() if price is not None}
    result = stores.plan_stripe(
        mb_s, tb, store=name, parity=parity, disk_tb=disk_tb, prices=prices or None
    )
    if as_json:
        print_json(asdict(result))
    else:
        _show_plan(result, prices)


def _show_plan(result: StripePlan, prices: dict[str, float]) -> None:
    data = result.servers - result.parity
    stores_text = count_text(len(result.measured), "store")
    typer.echo(
        f"{count_text(result.servers, 'server')}, {data} data + {result.parity} parity, each of "
        f"{rate_text(result.server_bytes_per_s)} (median of {stores_text} measured)"
    )
    typer.echo(
        f"{count_text(result.disks, 'disk')} of {result.disk_tb:g} TB for {result.raw_tb:.4g} TB "
        "with parity"
    )
    losses = count_text(min(result.parity, result.servers // 2), "server")
    # A write needs the records of a majority, and one part more than a reader where two are spare.
    most_losses = min(result.parity - (result.parity > 1), (result.servers - 1) // 2)
    typer.echo(
        f"expected: reading {rate_text(result.read_bytes_per_s)}, with {losses} lost "
        f"{rate_text(result.degraded_bytes_per_s)}; writing {rate_text(result.write_bytes_per_s)}, "
        f"with {f'at most {most_losses}' if most_losses else 'none'} lost"
    )
    if result.store_bytes_per_s is not None:
        typer.echo(f"expected of the store as it is: reading {rate_text(result.store_bytes_per_s)}")
    if result.price is not None:
        counts = {"server": result.servers, "disk": result.disks}
        terms = " + ".join(f"{counts[what]} x {price:,g}" for what, price in prices.items())
        typer.echo(f"price {terms} = {number_text(result.price)}")


def _show_faults(faults: Sequence[CopyFault]) -> None:
    for fault in faults[:SHOWN_FAULTS]:
        print_line(f"{fault.name}: {fault.reason}", err=True)
    _show_others(len(faults))


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print_line(f"note: {note}", err=True)


def _show_others(count: int) -> None:
    """Print how many of a list are not shown."""
    if count > SHOWN_FAULTS:
        typer.echo(f"and {count_text(count - SHOWN_FAULTS, 'other')}", err=True)


def _bare(server: str) -> str:
    """Return the name of a server before a colon: a store has one at its end."""
    return server.rstrip(":")


def _show_leftovers(leftovers: Sequence[Leftover], text: str) -> None:
    if leftovers:
        size = size_text(sum(each.bytes or 0 for each in leftovers))
        typer.echo(f"{count_text(len(leftovers), 'part')} of {size} {text}", err=True)
