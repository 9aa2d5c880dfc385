"""The commands `swathe store`: register storages by name."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.catalog.store_settings import LEAST_BLOCK_BYTES, MOST_SERVERS, Tier
from swathe.cli.options import Json
from swathe.cli.output import cost_rows, print_json, print_table, print_text, report_wait
from swathe.cli.units import size_option
from swathe.core.format import moment_text

if TYPE_CHECKING:
    from swathe.catalog import ProfileRecord, Store

app = typer.Typer(help="Register the storages that files are read from.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the store.")]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over",
        metavar="SERVER",
        help="Server of a striped store: NAME or NAME:folder of a store, a folder, or a URL "
        "(http:// is taken for dav://); may be repeated, up to 32 times.",
    ),
]


@app.command()
def add(
    name: Annotated[
        str,
        typer.Argument(help="Name of the store: at least two of letters, digits, '_', '.', '-'."),
    ],
    url: Annotated[
        str,
        typer.Argument(
            help="Root of the store: a folder, or file, http(s), s3, gs, az, root(s), dav(s)://... "
            "or striped: for one over others."
        ),
    ],
    tier: Annotated[
        Tier | None,
        typer.Option(help="Distance of the store; else local for folders, lan for others."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of the store; may be repeated. endpoint, region, profile (AWS), account "
            "(Azure), anonymous (true or false), door (HTTP door of a root:// store), token_file "
            "(file of a bearer token), probe_object (object that a probe reads), roots (/a:/b, "
            "further folders that links of a local store may point to), http2 (auto, always or "
            "never: requests that share a connection), delegation (true: other servers that copy "
            "from it are sent its token).",
        ),
    ] = None,
    over: Over = None,
    parity: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_SERVERS - 1,
            help="Number of servers of a striped store that may be lost; else 1. With 0 the loss "
            "of a server is the loss of all objects.",
        ),
    ] = None,
    block: Annotated[
        int | None,
        size_option(
            least_bytes=LEAST_BLOCK_BYTES, help="Size of a block of a striped store; else 1MiB."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a store. Credentials are not stored: they stay in the environment.

    A striped store is one store over several: swathe store add wide striped: --over lake
    --over disk:folder --over dav://host:8430 --parity 1
    """
    from swathe import stores

    options = _options(option or [])
    with report_wait("the catalogue", _is_locked):
        store = stores.add(
            name,
            url,
            tier=tier,
            options=options,
            over=over or (),
            parity=parity,
            block_bytes=block,
        )
    if store.over and store.parity == 0:
        typer.echo(
            "  note: parity 0 is unsafe: the loss of one server is the loss of all objects",
            err=True,
        )
    if as_json:
        print_json(asdict(store))
    else:
        _print_new(store, url)


def _print_new(store: Store, url: str) -> None:
    if store.over:
        print_text(f"{store.name}: {store.url} ({store.tier}) over {_servers_text(store)}")
        return
    typer.echo(f"{store.name}: {store.url} ({store.tier})")
    if "://" not in url and not Path(url).expanduser().is_dir():
        typer.echo(f"  note: {url}: no such folder on this machine", err=True)


def _is_locked() -> bool:
    from swathe.catalog.database import is_locked
    from swathe.core.errors import CatalogError

    try:
        return is_locked()
    except CatalogError:
        return False  # the command itself reports it


def _options(texts: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            # The message does not repeat the text, as it may be a credential.
            raise typer.BadParameter("expected NAME=VALUE, found no '='", param_hint="--option")
        if name in options:
            raise typer.BadParameter(f"{name}: expected once, found twice", param_hint="--option")
        options[name] = value
    return options


@app.command("list")
def list_stores(as_json: Json = False) -> None:
    """List the stores."""
    from swathe import stores

    records = stores.list()
    if as_json:
        print_json({"stores": [asdict(store) for store in records]})
    elif records:
        rows = [(store.name, store.tier, store.url, _options_text(store)) for store in records]
        print_table(("name", "tier", "url", "options"), rows)
    else:
        typer.echo("no stores yet; add one: swathe store add NAME URL", err=True)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="Store: a name, or a path or URL as `swathe probe` takes it.")
    ],
    as_json: Json = False,
) -> None:
    """Show the settings of a store, and its costs measured from this machine."""
    from swathe import stores

    costs = stores.show(name)
    store, profile, probed_at = costs.store, costs.profile, costs.probed_at
    if as_json:
        print_json(
            {
                **asdict(store),
                "host": costs.host,
                "probed_at": None if probed_at is None else probed_at.isoformat(),
                "profile": None if profile is None else _profile_as_dict(profile),
            }
        )
        return
    print_text(f"{store.name}: {store.url} ({store.tier})")
    if store.options:
        print_text(f"  options: {_options_text(store)}")
    typer.echo(
        f"  probed from {costs.host}: {'never' if probed_at is None else moment_text(probed_at)}"
    )
    if profile is not None:
        typer.echo(f"  profile, fitted {moment_text(profile.fitted_at)}:")
        for row in cost_rows(profile.costs, profile.spread):
            typer.echo(f"    {' '.join(row)}".rstrip())


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a store from the catalogue. Its files and measured costs are kept."""
    from swathe import stores

    stores.remove(name)
    if as_json:
        print_json({"removed": name})
    else:
        typer.echo(f"{name}: removed")


@app.command()
def export(as_json: Json = False) -> None:
    """Print the stores as JSON, for programs that use libswathe. It has no credentials."""
    from swathe.stores.registry import stores_json

    text = stores_json()
    if as_json:
        print_json(json.loads(text))  # as all commands print it
    else:
        typer.echo(text)


def _profile_as_dict(profile: ProfileRecord) -> dict[str, Any]:
    return {
        "costs": profile.costs,
        "spread": profile.spread,
        "fitted_at": profile.fitted_at.isoformat(),
    }


def _options_text(store: Store) -> str:
    texts = [f"{name}={value}" for name, value in store.options.items()]
    return " ".join([*texts, f"over={_servers_text(store)}"] if store.over else texts)


def _servers_text(store: Store) -> str:
    return ",".join(server.place for server in store.over)
