"""The commands `swathe stripe`: serve disks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json
from swathe.cli.units import size_option

app = typer.Typer(help="Serve disks to stripes.", no_args_is_help=True)


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
            help="Folder of a lost disk to give up, with its objects; may be repeated.",
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
