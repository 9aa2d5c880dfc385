"""The commands `swathe token`: who may come into a portal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Token

app = typer.Typer(
    help="Make and revoke the tokens that let users into a portal.", no_args_is_help=True
)

Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Settings of the portal; else the defaults.")
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the user; their jobs are under it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, submit or admin; more than once for more; else read and submit."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36500, help="Good for so long; else until revoked.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make a token. It is shown once and kept nowhere."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with _catalog(config) as catalog:
        secret, token = catalog.add_token(name, scope or ["read", "submit"], expires_at)
    if as_json:
        print_json({**_as_dict(token), "token": secret})
    else:
        typer.echo(secret)


@app.command("list")
def list_tokens(config: Config = None, as_json: Json = False) -> None:
    """List the tokens, not what they are."""
    with _catalog(config) as catalog:
        tokens = catalog.tokens()
    if as_json:
        print_json({"tokens": [_as_dict(token) for token in tokens]})
        return
    rows = [
        (
            str(token.number),
            token.user,
            " ".join(token.scopes),
            _day(token.created_at),
            _day(token.expires_at) or "never",
            _day(token.revoked_at) or ("" if token.is_good() else "expired"),
        )
        for token in tokens
    ]
    print_table(("number", "user", "scopes", "made", "expires", "revoked"), rows)


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(help="Number of a token, or name of a user: all theirs.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make tokens useless, within two seconds."""
    with _catalog(config) as catalog:
        gone = catalog.revoke_tokens(which)
    if as_json:
        print_json({"revoked": [token.number for token in gone]})
    else:
        typer.echo(f"{which}: {len(gone)} revoked")


def _catalog(config: Path | None) -> Catalog:
    from swathe.catalog import Catalog
    from swathe.portal.config import read_config

    return Catalog.open(read_config(config).catalog.database)


def _as_dict(token: Token) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at")
    told = {name: getattr(token, name) for name in times}
    return {
        "number": token.number,
        "user": token.user,
        "scopes": list(token.scopes),
        **{name: None if at is None else at.isoformat() for name, at in told.items()},
    }


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
