"""The commands `swathe portal`: run a portal, manage its tokens."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.commands import token
from swathe.cli.options import Certificates, Insecure, Json, PortalConfig
from swathe.cli.output import print_json, print_line
from swathe.cli.usage import Group

app = typer.Typer(help="Run a portal, and manage the tokens of its users.", no_args_is_help=True)


@app.command()
def serve(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings file, as swathe.toml; see the docs."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; else from the settings.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to listen on (0 = any free port); else from the settings."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="dask://HOST:PORT", help="Address of a pool; else from the settings."),
    ] = None,
    certificates: Certificates = None,
    insecure: Insecure = False,
    check: Annotated[bool, typer.Option("--check", help="Check the settings, and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Run a portal: web pages, REST interface, Virtual Observatory services."""
    from swathe.core.errors import SettingsError
    from swathe.portal.config import read_config

    settings = read_config(config).at(
        host, port, workers=scheduler, certificates=certificates, insecure=insecure
    )
    if settings.workers.insecure:
        from swathe.workers.dask.tls import insecure_warning, read_address

        typer.echo(f"swathe: {insecure_warning(read_address(settings.workers.url))}", err=True)
    if check:
        if as_json:
            print_json({"settings": str(config or "defaults"), "in_order": True})
        else:
            typer.echo(
                f"{config or 'defaults'}: the settings are valid; folders, stores and the database "
                "are tried when the portal starts"
            )
        return
    try:
        from swathe.portal.serve import serve as run
    except ImportError as error:
        raise SettingsError(f"{error}; try: pip install 'swathe[portal]'") from error

    def tell(url: str) -> None:
        if as_json:
            print_json({"portal": url})
        else:
            typer.echo(f"portal: {url}")

    run(settings, tell)


@app.command()
def doctor(config: PortalConfig = None, as_json: Json = False) -> None:
    """Check settings, disk, database, clock, stores, certificates, sandbox and pool of a portal.

    The exit code is 1 if one of them fails.
    """
    from swathe.core.errors import SettingsError

    try:
        from swathe.portal.doctor import examine
    except ImportError as error:
        raise SettingsError(f"{error}; try: pip install 'swathe[portal]'") from error
    checks = []
    for check in examine(config):
        checks.append(check)
        if not as_json:
            remedy = f"; {check.remedy}" if check.remedy else ""
            print_line(f"{check.state:4} {check.name}: {check.text}{remedy}")
    failing = any(check.state == "FAIL" for check in checks)
    if as_json:
        print_json({"works": not failing, "checks": [asdict(check) for check in checks]})
    if failing:
        raise typer.Exit(1)


app.add_typer(token.app, cls=Group, name="token")
