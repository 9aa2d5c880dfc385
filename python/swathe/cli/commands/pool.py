"""The commands `swathe pool`: worker machines that run a portal's jobs."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Certificates, Insecure, Json, PortalConfig, Url, connect_portal
from swathe.cli.output import print_json, print_table
from swathe.cli.sandbox_options import Folders, Python, Users, box_settings
from swathe.cli.units import size_option, time_option
from swathe.cli.usage import Group
from swathe.core.format import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed.security import Security

    from swathe.catalog import Catalog
    from swathe.catalog.reservations import ReservationRecord
    from swathe.portal.config import WorkersSettings
    from swathe.workers.dask.certificates import Role
    from swathe.workers.dask.tls import Address

app = typer.Typer(
    help="Run the jobs of a portal on other machines: scheduler, workers, certificates.",
    no_args_is_help=True,
)

reservation = typer.Typer(
    help="Reserve workers of an autoscaling pool for a time.", no_args_is_help=True
)
DAY_S = 86400.0
MISSING = "{}; try: pip install 'swathe[cluster]'"


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the certificates.")],
    long: Annotated[
        float,
        time_option("--for", least_s=DAY_S, help="Validity of the certificates; by default 825d."),
    ] = 825 * DAY_S,
    as_json: Json = False,
) -> None:
    """Create the certificates of a pool: authority, scheduler, workers, portal."""
    from swathe.core.errors import SettingsError

    try:
        from swathe.workers.dask.certificates import make_certificates

        paths = make_certificates(folder, round(long / DAY_S))
    except ImportError as error:
        raise SettingsError(MISSING.format(error)) from error
    if as_json:
        print_json({"made": [str(path) for path in paths]})
        return
    for path in paths:
        typer.echo(path)


@app.command()
def scheduler(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (0 = any free port).")
    ] = 8786,
    certificates: Certificates = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Run the scheduler of a pool, until SIGTERM or Ctrl-C."""
    own_certificates = certificates is None and not insecure
    if any_port := own_certificates and not port:
        port = _free_port(host)
    address, security = _at((host, port), certificates, "scheduler", insecure)
    from swathe.workers.dask.processes import serve_scheduler
    from swathe.workers.dask.tls import certificate_folder

    try:
        serve_scheduler(address, security, _address_printer("scheduler", as_json))
    finally:
        # The next run takes another port, so these certificates would not be used again.
        if any_port and (folder := certificate_folder(address, None)) is not None:
            shutil.rmtree(folder, ignore_errors=True)


@app.command()
def worker(
    url: Annotated[
        str, typer.Argument(metavar="dask://HOST:PORT", help="Address of the scheduler.")
    ],
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Number of parallel batches; else the number of cores."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the worker; else its address.")] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; else the one from which the scheduler is reached."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the block cache; else $SWATHE_CACHE_DIR."),
    ] = None,
    cache_size: Annotated[
        int | None,
        size_option(help="Size limit of the block cache; else $SWATHE_CACHE_BYTES."),
    ] = None,
    lifetime: Annotated[
        float | None,
        time_option(help="Time after which the worker drains and exits; else never."),
    ] = None,
    grace: Annotated[
        float,
        time_option(
            help="Maximum time to drain (finish batches, copy the cache to other workers); by "
            "default 80s."
        ),
    ] = 80.0,
    is_attached: Annotated[
        bool, typer.Option("--attached", help="Exit when standard input is closed.")
    ] = False,
    programs: Annotated[
        bool,
        typer.Option("--programs", help="Run of users' programs, if a sandbox holds here."),
    ] = False,
    users: Users = None,
    python: Python = None,
    folders: Folders = None,
    certificates: Certificates = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Run a worker of a pool, until SIGTERM or Ctrl-C."""
    from swathe.core.host import cores

    for option, value in (("--users", users), ("--python", python), ("--folder", folders)):
        if value and not programs:
            raise typer.BadParameter("goes with --programs", param_hint=option)
    if users is not None and users.count < (threads or cores()):
        raise typer.BadParameter(
            f"expected an id for each of {threads or cores()} batches, found {users.count}",
            param_hint="--users",
        )
    # The engine reads these once per process, later than here.
    if cache is not None:
        os.environ["SWATHE_CACHE_DIR"] = str(cache.absolute())
    if cache_size is not None:
        os.environ["SWATHE_CACHE_BYTES"] = str(cache_size)
    address, security = _at(url, certificates, "worker", insecure)
    from swathe.workers.dask.processes import serve_worker

    if programs:
        from swathe.workers.dask.worker import here

        here.allow_programs(box_settings(users, python, folders))
    with tempfile.TemporaryDirectory(prefix="swathe-worker-") as folder:
        serve_worker(
            address,
            security,
            threads=threads or cores(),
            name=name,
            host=host,
            folder=folder,
            lifetime_s=lifetime,
            grace_s=grace,
            is_attached=is_attached,
            tell=_address_printer("worker", as_json),
            warn=lambda text: typer.echo(f"swathe: {text}", err=True),
        )


@app.command()
def status(
    url: Url = None,
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Show the workers of a portal, their load and their cached objects.

    If the portal does not answer, show the cached objects last recorded in the catalogue.
    """
    from swathe.core.errors import SourceError

    try:
        with connect_portal(url) as portal:
            pool = portal.pool()
    except SourceError as error:
        _print_record(config, as_json, error)
        return
    if as_json:
        print_json(pool)
        return
    where = pool["address"] or ("this process" if pool["kind"] == "local" else "a scheduler")
    typer.echo(f"{pool['kind']}: {where}, {pool['batches']} batches in flight")
    if pool["trouble"]:
        typer.echo(f"  {pool['trouble']}", err=True)
    if (growth := pool["growth"]) is not None:
        typer.echo(
            f"  {growth['by']}: {growth['target']} requested, {growth['starting']} starting, "
            f"{growth['minimum']} to {growth['maximum']} allowed"
        )
        if growth["trouble"]:
            typer.echo(f"  {growth['trouble']}", err=True)
        for each in growth["reserved"]:
            typer.echo(
                "  reservation {number}: {workers} from {starts_at} to {ends_at}".format(**each)
            )
    for each in pool["hand_overs"]:
        typer.echo(f"  {each['summary']}")
    titles = ("worker", "host", "threads", "busy", "waiting", "cached", "limit", "refused")
    print_table(titles, map(_row, pool["workers"]))
    if pool["held"]:
        cached_objects = [
            (one["worker"], one["object"], size_text(one["bytes"])) for one in pool["held"]
        ]
        print_table(("worker", "object", "cached"), cached_objects)


def _print_record(config: Path | None, as_json: bool, error: Exception) -> None:
    """Show the cached objects of workers, as last recorded in the catalogue."""
    from swathe.catalog import Catalog
    from swathe.portal.config import read_config

    with Catalog.open(read_config(config).catalog.database) as catalog:
        replicas = catalog.worker_replicas()
    if not replicas:
        raise error
    typer.echo(f"swathe: {error}; last recorded in the catalogue:", err=True)
    if as_json:
        print_json({"kept": [{**asdict(each), "told_at": _iso(each.told_at)} for each in replicas]})
        return
    for each in replicas:
        typer.echo(
            f"{each.address} at {_iso(each.told_at)}: {each.workers} workers, "
            f"{size_text(each.bytes)} of {each.held} objects"
        )
        rows = [(worker, source, size_text(size)) for worker, source, size in each.replicas]
        print_table(("worker", "object", "cached"), rows)
        if each.held > len(rows):
            typer.echo(f"and {each.held - len(rows)} more")


@reservation.command()
def add(
    workers: Annotated[int, typer.Option(min=1, help="Number of workers.")],
    long: Annotated[float, time_option("--for", least_s=1, help="Length, as 2h or 7d.")],
    at: Annotated[
        str | None, typer.Option(metavar="DATE", help="Start, ISO 8601, UTC; else now.")
    ] = None,
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Reserve workers of an autoscaling pool, which the portal starts in time."""
    from swathe.core.errors import SettingsError

    starts_at = datetime.now(UTC) if at is None else _moment(at)
    try:
        ends_at = starts_at + timedelta(seconds=long)
    except OverflowError as error:
        raise SettingsError(
            f"--for: expected an end before the year 10000, found {long:g} s from {starts_at:%Y}"
        ) from error
    if ends_at <= datetime.now(UTC):
        raise SettingsError(f"--at: expected a reservation that ends in the future, found {at!r}")
    with _catalog(config) as (catalog, settings):
        if workers > settings.maximum:
            raise SettingsError(
                f"--workers: expected at most workers.maximum, {settings.maximum}, found {workers}"
            )
        record = catalog.reserve(workers, starts_at, ends_at)
    fields = _as_dict(record)
    if as_json:
        print_json(fields)
    else:
        typer.echo("reservation {number}: {workers} from {starts_at} to {ends_at}".format(**fields))


@reservation.command("list")
def list_reservations(config: PortalConfig = None, as_json: Json = False) -> None:
    """List the reservations that have not ended, the earliest first."""
    with _catalog(config) as (catalog, _):
        rows = [_as_dict(each) for each in catalog.reservations()]
    if as_json:
        print_json({"reservations": rows})
        return
    names = ("number", "workers", "starts_at", "ends_at")
    titles = ("number", "workers", "start (UTC)", "end (UTC)")
    print_table(titles, [[str(row[name]) for name in names] for row in rows])


@reservation.command()
def remove(
    number: Annotated[int, typer.Argument(min=1, max=2**62, help="Number of the reservation.")],
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Remove a reservation."""
    from swathe.core.errors import SettingsError

    with _catalog(config) as (catalog, _):
        if not catalog.release(number):
            raise SettingsError(
                f"expected a reservation number, found {number}; see: swathe pool reservation list"
            )
    if as_json:
        print_json({"removed": number})
    else:
        typer.echo(f"reservation {number}: removed")


@contextmanager
def _catalog(config: Path | None) -> Iterator[tuple[Catalog, WorkersSettings]]:
    """Open the catalogue of a portal with an autoscaling pool. Yield it with the worker settings.

    Raises:
        SettingsError: If the pool has no autoscaling.
    """
    from swathe.catalog import Catalog
    from swathe.core.errors import SettingsError
    from swathe.portal.config import read_config

    settings = read_config(config)
    if not settings.workers.grow:
        where = "name the settings of the portal: --config FILE" if config is None else str(config)
        raise SettingsError(
            f"workers.grow: expected a setting, found none, so a reservation has no effect: {where}"
        )
    with Catalog.open(settings.catalog.database) as catalog:
        yield catalog, settings.workers


def _as_dict(record: ReservationRecord) -> dict[str, Any]:
    times = {"starts_at": _iso(record.starts_at), "ends_at": _iso(record.ends_at)}
    return {**asdict(record), **times}


def _moment(text: str) -> datetime:
    from swathe.core.errors import SettingsError

    try:
        moment = datetime.fromisoformat(text.strip()[:50])
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"--at: expected a time as 2026-12-01T20:00, found {text!r}") from error


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _row(worker: dict[str, Any]) -> tuple[str, ...]:
    numbers = [str(worker[name]) for name in ("threads", "busy", "waiting")]
    sizes = [size_text(worker[name]) for name in ("held_bytes", "cache_bytes")]
    return worker["name"], worker["host"], *numbers, *sizes, worker["refused"]


def _free_port(host: str) -> int:
    """Return a free port of a host.

    Raises:
        SettingsError: If the host is not an address of this machine.
    """
    from swathe.core.errors import SettingsError

    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server((host, 0), family=family) as server:
            port: int = server.getsockname()[1]
            return port
    except OSError as error:
        raise SettingsError(
            f"--host {host}: expected an address of this machine: {error}"
        ) from error


def _at(
    where: str | tuple[str, int], certificates: Path | None, role: Role, insecure: bool
) -> tuple[Address, Security | None]:
    """Return an address, and the TLS settings to use there.

    Raises:
        SettingsError: If the address or the certificates are invalid, or Dask is not installed.
    """
    from swathe.core.errors import SettingsError

    try:
        import distributed  # noqa: F401 - checks that it is installed

        from swathe.workers.dask.tls import Address, insecure_warning, read_address, security_for

        address = read_address(where) if isinstance(where, str) else Address("dask", *where)
        security = security_for(address, certificates, role, insecure=insecure)
        if security is None:
            typer.echo(f"swathe: {insecure_warning(address)}", err=True)
        return address, security
    except ImportError as error:
        raise SettingsError(MISSING.format(error)) from error


def _address_printer(what: str, as_json: bool) -> Callable[[str], None]:
    def tell(address: str) -> None:
        if as_json:
            print_json({what: address})
        else:
            typer.echo(f"{what}: {address}")

    return tell


app.add_typer(reservation, cls=Group, name="reservation")
