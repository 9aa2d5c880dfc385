"""The commands `swathe pool`: machines that do the work of a portal's jobs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Certificates, Insecure, Json
from swathe.cli.output import print_json, print_table
from swathe.core.format import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed.security import Security

    from swathe.catalog import Catalog
    from swathe.portal.config import Workers
    from swathe.workers.dask.certificates import Role
    from swathe.workers.dask.tls import Address

app = typer.Typer(
    help="Let other machines do the work of a portal: scheduler, workers, certificates.",
    no_args_is_help=True,
)

Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Settings of the portal; else the defaults.")
]
MISSING = "{}; try: pip install 'swathe[cluster]'"


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put certificates.")],
    days: Annotated[int, typer.Option(min=1, max=36500, help="They are good for so long.")] = 825,
    as_json: Json = False,
) -> None:
    """Make certificates for a pool: an authority, and one each for scheduler, workers, portal."""
    from swathe.core.errors import SettingsError

    try:
        from swathe.workers.dask.certificates import make_certificates

        made = make_certificates(folder, days)
    except ImportError as error:
        raise SettingsError(MISSING.format(error)) from error
    if as_json:
        print_json({"made": [str(path) for path in made]})
        return
    for path in made:
        typer.echo(path)


@app.command()
def scheduler(
    host: Annotated[str, typer.Option(help="Listen here.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="And there; 0: a free one.")] = 8786,
    certificates: Certificates = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Be the scheduler of a pool, until the process is told to end."""
    own = certificates is None and not insecure
    if any_port := own and not port:
        port = _free_port(host)
    address, security = _at((host, port), certificates, "scheduler", insecure)
    from swathe.workers.dask.processes import serve_scheduler
    from swathe.workers.dask.tls import certificate_folder

    try:
        serve_scheduler(address, security, _teller("scheduler", as_json))
    finally:
        # Nobody will look for this port again.
        if any_port and (folder := certificate_folder(address, None)) is not None:
            shutil.rmtree(folder, ignore_errors=True)


@app.command()
def worker(
    url: Annotated[str, typer.Argument(metavar="dask://HOST:PORT", help="The scheduler.")],
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Batches at a time; else as many as cores.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What it is called; else its address.")] = None,
    host: Annotated[
        str | None, typer.Option(help="Listen here; else where the scheduler is reached from.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Its block cache; else $SWATHE_CACHE_DIR.")
    ] = None,
    cache_gb: Annotated[
        float | None, typer.Option(min=0, help="Limit of it, 10^9 bytes; else $SWATHE_CACHE_BYTES.")
    ] = None,
    lifetime: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after which it takes nothing more, and ends."),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(min=0, help="Seconds it may take to end: it finishes, and hands over."),
    ] = 80.0,
    attached: Annotated[
        bool, typer.Option("--attached", help="End when standard input does.")
    ] = False,
    certificates: Certificates = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Be a worker of a pool, until the process is told to end."""
    # Read by the engine once per process, and not before this.
    if cache is not None:
        os.environ["SWATHE_CACHE_DIR"] = str(cache.absolute())
    if cache_gb is not None:
        os.environ["SWATHE_CACHE_BYTES"] = str(round(cache_gb * 1e9))
    address, security = _at(url, certificates, "worker", insecure)
    from swathe.core.host import cores
    from swathe.workers.dask.processes import serve_worker

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
            attached=attached,
            tell=_teller("worker", as_json),
            warn=lambda text: typer.echo(f"swathe: {text}", err=True),
        )


@app.command()
def status(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of the portal.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show the workers of a portal, what they do and what they hold.

    Where it does not answer, what they held as the catalogue has it.
    """
    from swathe.client.portal import connect
    from swathe.core.errors import SourceError

    try:
        with connect(url) as portal:
            found = portal.pool()
    except SourceError as error:
        _kept(config, as_json, error)
        return
    if as_json:
        print_json(found)
        return
    where = found["address"] or ("this process" if found["kind"] == "local" else "a scheduler")
    typer.echo(f"{found['kind']}: {where}, {found['batches']} batches in flight")
    if found["trouble"]:
        typer.echo(f"  {found['trouble']}", err=True)
    if (grown := found["grown"]) is not None:
        typer.echo(
            f"  {grown['by']}: {grown['target']} wanted, {grown['starting']} on the way, "
            f"{grown['minimum']} to {grown['maximum']} allowed"
        )
        if grown["trouble"]:
            typer.echo(f"  {grown['trouble']}", err=True)
        for each in grown["reserved"]:
            typer.echo(
                "  reservation {number}: {workers} from {starts_at} to {ends_at}".format(**each)
            )
    for each in found["hand_overs"]:
        typer.echo(f"  {each['summary']}")
    titles = ("worker", "host", "threads", "busy", "waiting", "holds", "of", "refused")
    print_table(titles, map(_row, found["workers"]))
    if found["held"]:
        held = [(one["worker"], one["object"], size_text(one["bytes"])) for one in found["held"]]
        print_table(("worker", "object", "holds"), held)


def _kept(config: Path | None, as_json: bool, error: Exception) -> None:
    """Show what workers held, as the catalogue has it."""
    from swathe.catalog import Catalog
    from swathe.portal.config import read_config

    with Catalog.open(read_config(config).catalog.database) as catalog:
        found = catalog.worker_replicas()
    if not found:
        raise error
    typer.echo(f"swathe: {error}; as the catalogue has it:", err=True)
    if as_json:
        print_json({"kept": [{**asdict(each), "told_at": _iso(each.told_at)} for each in found]})
        return
    for each in found:
        typer.echo(
            f"{each.address} at {_iso(each.told_at)}: {each.workers} workers, "
            f"{size_text(each.bytes)} of {each.held} objects"
        )
        rows = [(worker, source, size_text(size)) for worker, source, size in each.replicas]
        print_table(("worker", "object", "holds"), rows)
        if each.held > len(rows):
            typer.echo(f"and {each.held - len(rows)} more")


@app.command()
def reserve(
    workers: Annotated[int, typer.Option(min=1, help="So many are to be there.")],
    long: Annotated[str, typer.Option("--for", metavar="2h", help="For so long: s, m, h, d.")],
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="From then on, ISO 8601, UTC; else now.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Reserve workers of a pool that grows: its portal has them ready in time."""
    from swathe.core.errors import SettingsError

    length = _length(long)
    starts_at = datetime.now(UTC) if at is None else _moment(at)
    try:
        ends_at = starts_at + length
    except OverflowError as error:
        raise SettingsError(f"--for: that is too long, {long!r}") from error
    if ends_at <= datetime.now(UTC):
        raise SettingsError(f"--at: expected what is not over yet, found {at!r}")
    with _catalog(config) as (catalog, settings):
        if workers > settings.maximum:
            raise SettingsError(
                f"--workers: expected at most workers.maximum, {settings.maximum}, found {workers}"
            )
        made = catalog.reserve(workers, starts_at, ends_at)
    told = {**asdict(made), "starts_at": _iso(made.starts_at), "ends_at": _iso(made.ends_at)}
    if as_json:
        print_json(told)
    else:
        typer.echo("reservation {number}: {workers} from {starts_at} to {ends_at}".format(**told))


@app.command()
def release(
    number: Annotated[int, typer.Argument(min=1, max=2**62, help="Of the reservation.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Give back a reservation."""
    from swathe.core.errors import SettingsError

    with _catalog(config) as (catalog, _):
        if not catalog.release(number):
            raise SettingsError(f"there is no reservation {number}; see: swathe pool status")
    if as_json:
        print_json({"released": number})
    else:
        typer.echo(f"reservation {number}: released")


@contextmanager
def _catalog(config: Path | None) -> Iterator[tuple[Catalog, Workers]]:
    """Open the catalogue of a portal whose pool grows.

    Raises:
        SettingsError: where it does not.
    """
    from swathe.catalog import Catalog
    from swathe.core.errors import SettingsError
    from swathe.portal.config import read_config

    settings = read_config(config)
    if not settings.workers.grow:
        where = "give those of the portal by --config FILE" if config is None else str(config)
        raise SettingsError(f"workers.grow: is not set, a reservation has no effect: {where}")
    with Catalog.open(settings.catalog.database) as catalog:
        yield catalog, settings.workers


def _length(text: str) -> timedelta:
    from swathe.core.errors import SettingsError

    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smhd])", text.strip())
    if found is None or not float(found[1]):
        raise SettingsError(f"--for: expected a length as 45s, 90m, 2h or 1d, found {text!r}")
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[found[2]]
    return timedelta(**{unit: float(found[1])})


def _moment(text: str) -> datetime:
    from swathe.core.errors import SettingsError

    try:
        found = datetime.fromisoformat(text.strip()[:50])
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"--at: expected a time as 2026-12-01T20:00, found {text!r}") from error


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _row(worker: dict[str, Any]) -> tuple[str, ...]:
    numbers = [str(worker[name]) for name in ("threads", "busy", "waiting")]
    sizes = [size_text(worker[name]) for name in ("held_bytes", "cache_bytes")]
    return worker["name"], worker["host"], *numbers, *sizes, worker["refused"]


def _free_port(host: str) -> int:
    """Return a port of a host that nobody listens at.

    Raises:
        SettingsError: If the host is no address of this machine.
    """
    from swathe.core.errors import SettingsError

    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server((host, 0), family=family) as server:
            port: int = server.getsockname()[1]
            return port
    except OSError as error:
        raise SettingsError(f"--host {host}: cannot listen there: {error}") from error


def _at(
    where: str | tuple[str, int], certificates: Path | None, role: Role, insecure: bool
) -> tuple[Address, Security | None]:
    """Give an address, and the certificates to be used there.

    Raises:
        SettingsError: where it is none, or they are of no use, or Dask is not installed.
    """
    from swathe.core.errors import SettingsError

    try:
        import distributed  # noqa: F401 - whether it is there

        from swathe.workers.dask.tls import Address, insecure_warning, read_address, security_for

        address = read_address(where) if isinstance(where, str) else Address("dask", *where)
        security = security_for(address, certificates, role, insecure=insecure)
        if security is None:
            typer.echo(f"swathe: {insecure_warning(address)}", err=True)
        return address, security
    except ImportError as error:
        raise SettingsError(MISSING.format(error)) from error


def _teller(what: str, as_json: bool) -> Callable[[str], None]:
    def tell(address: str) -> None:
        if as_json:
            print_json({what: address})
        else:
            typer.echo(f"{what}: {address}")

    return tell
