"""The commands `swathe portal token`: manage the tokens of a portal's users."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, PortalConfig
from swathe.cli.output import print_json, print_table
from swathe.cli.units import time_option
from swathe.core.format import moment_text

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Token

app = typer.Typer(help="Add, remove and list the tokens of a portal's users.", no_args_is_help=True)


class TokenScope(StrEnum):
    """Permission of a token."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"


@app.command()
def add(
    name: Annotated[
        str, typer.Argument(help="Name of the user, who owns the jobs submitted with the token.")
    ],
    scope: Annotated[
        list[TokenScope] | None,
        typer.Option(help="Scope of the token; may be repeated; else read and submit."),
    ] = None,
    long: Annotated[
        float | None,
        time_option("--for", least_s=1, help="Validity, as 90d; else until removed."),
    ] = None,
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Add a token. It is shown once and stored only as a hash."""
    expires_at = None if long is None else datetime.now(UTC) + timedelta(seconds=long)
    with _catalog(config) as catalog:
        secret, token = catalog.add_token(name, scope or ["read", "submit"], expires_at)
    if as_json:
        print_json({**_as_dict(token), "token": secret})
    else:
        typer.echo(secret)
        expiry = "never" if token.expires_at is None else moment_text(token.expires_at)
        typer.echo(f"token {token.number} of {token.user} expires: {expiry}", err=True)


@app.command("list")
def list_tokens(config: PortalConfig = None, as_json: Json = False) -> None:
    """List the tokens, without their secrets."""
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
    print_table(("number", "user", "scopes", "created", "expires", "removed"), rows)


@app.command()
def remove(
    which: Annotated[
        str, typer.Argument(help="Number of a token, or name of a user for all their tokens.")
    ],
    config: PortalConfig = None,
    as_json: Json = False,
) -> None:
    """Remove tokens. They become invalid within two seconds."""
    with _catalog(config) as catalog:
        revoked_tokens = catalog.revoke_tokens(which)
    if as_json:
        print_json({"removed": [token.number for token in revoked_tokens]})
    else:
        typer.echo(f"{which}: {len(revoked_tokens)} removed")


def _catalog(config: Path | None) -> Catalog:
    from swathe.catalog import Catalog
    from swathe.portal.config import read_config

    return Catalog.open(read_config(config).catalog.database)


def _as_dict(token: Token) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at")
    moments = {name: getattr(token, name) for name in times}
    return {
        "number": token.number,
        "user": token.user,
        "scopes": list(token.scopes),
        **{name: None if at is None else at.isoformat() for name, at in moments.items()},
    }


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"
