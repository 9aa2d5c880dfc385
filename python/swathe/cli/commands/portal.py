"""The commands `swathe portal`: run a portal, manage its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.commands import token
from swathe.cli.options import Certificates, Insecure, Json
from swathe.cli.output import print_json
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


app.add_typer(token.app, cls=Group, name="token")
