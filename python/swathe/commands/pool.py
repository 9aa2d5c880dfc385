"""The commands `swathe pool`: machines that do the work of a portal's jobs."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.commands.options import Certificates, Json
from swathe.commands.output import print_json, print_table
from swathe.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed.security import Security

    from swathe.workers.security import Address, Role

app = typer.Typer(
    help="Let other machines do the work of a portal: scheduler, workers, certificates.",
    no_args_is_help=True,
)

MISSING = "{}; try: pip install 'swathe[cluster]'"


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put certificates.")],
    days: Annotated[int, typer.Option(min=1, max=36500, help="They are good for so long.")] = 825,
    as_json: Json = False,
) -> None:
    """Make certificates for a pool: an authority, and one each for scheduler, workers, portal."""
    from swathe.errors import SettingsError

    try:
        from swathe.workers.security import make_certificates

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
    as_json: Json = False,
) -> None:
    """Be the scheduler of a pool, until the process is told to end."""
    address, security = _at((host, port), certificates, "scheduler")
    from swathe.workers.nodes import serve_scheduler

    serve_scheduler(address, security, _teller("scheduler", as_json))


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
    certificates: Certificates = None,
    as_json: Json = False,
) -> None:
    """Be a worker of a pool, until the process is told to end."""
    # Read by the engine once per process, and not before this.
    if cache is not None:
        os.environ["SWATHE_CACHE_DIR"] = str(cache.absolute())
    if cache_gb is not None:
        os.environ["SWATHE_CACHE_BYTES"] = str(round(cache_gb * 1e9))
    address, security = _at(url, certificates, "worker")
    from swathe.environment import cores, is_loopback
    from swathe.workers.nodes import serve_worker

    if host is None and security is None and is_loopback(address.host):
        host = address.host
    with tempfile.TemporaryDirectory(prefix="swathe-worker-") as folder:
        serve_worker(
            address,
            security,
            threads=threads or cores(),
            name=name,
            host=host,
            folder=folder,
            tell=_teller("worker", as_json),
            warn=lambda text: typer.echo(f"swathe: {text}", err=True),
        )


@app.command()
def status(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of the portal.")],
    as_json: Json = False,
) -> None:
    """Show the workers of a portal, what they do and what they hold."""
    from swathe.client import connect

    with connect(url) as portal:
        found = portal.pool()
    if as_json:
        print_json(found)
        return
    where = found["address"] or "this process"
    typer.echo(f"{found['kind']}: {where}, {found['batches']} batches in flight")
    if found["trouble"]:
        typer.echo(f"  {found['trouble']}", err=True)
    titles = ("worker", "host", "threads", "busy", "waiting", "holds", "of", "refused")
    print_table(titles, map(_row, found["workers"]))
    if found["held"]:
        held = [(one["worker"], one["object"], size_text(one["bytes"])) for one in found["held"]]
        print_table(("worker", "object", "holds"), held)


def _row(worker: dict[str, Any]) -> tuple[str, ...]:
    numbers = [str(worker[name]) for name in ("threads", "busy", "waiting")]
    sizes = [size_text(worker[name]) for name in ("held_bytes", "cache_bytes")]
    return worker["name"], worker["host"], *numbers, *sizes, worker["refused"]


def _at(
    where: str | tuple[str, int], certificates: Path | None, role: Role
) -> tuple[Address, Security | None]:
    """Give an address, and the certificates to be used there.

    Raises:
        SettingsError: where it is none, or they are of no use, or Dask is not installed.
    """
    from swathe.errors import SettingsError

    try:
        import distributed  # noqa: F401 - whether it is there

        from swathe.workers.security import Address, read_address, security_for

        address = read_address(where) if isinstance(where, str) else Address("dask", *where)
        return address, security_for(address, certificates, role)
    except ImportError as error:
        raise SettingsError(MISSING.format(error)) from error


def _teller(what: str, as_json: bool) -> Callable[[str], None]:
    def tell(address: str) -> None:
        if as_json:
            print_json({what: address})
        else:
            typer.echo(f"{what}: {address}")
        sys.stdout.flush()

    return tell
