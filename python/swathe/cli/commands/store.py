"""The commands `swathe store`: register storages by name."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.catalog.cache_settings import WriteMode
from swathe.catalog.staging_settings import StagingKind
from swathe.catalog.store_settings import LEAST_BLOCK_BYTES, MOST_SERVERS, Tier
from swathe.cli.options import Json
from swathe.cli.output import cost_rows, print_json, print_table, print_text, report_wait
from swathe.cli.units import size_option, time_option
from swathe.core.format import count_text, moment_text, size_text

if TYPE_CHECKING:
    from swathe.catalog import ProfileRecord, Store
    from swathe.catalog.records.caches import CacheUsage

app = typer.Typer(help="Register the storages that files are read from.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the store.")]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over",
        metavar="SERVER",
        help="Server of a striped store: NAME or NAME:folder of a store, a folder, or a URL "
        "(http:// is taken for dav://); may be repeated, up to 32 times. Of a cache: the near "
        "store, NAME, NAME:folder or a folder.",
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
            "or striped: for one over others, cache: for one in front of another; "
            "db:sqlite:///..., db:postgresql://user@host/name; or a URL of a kind that a package "
            "adds."
        ),
    ],
    tier: Annotated[
        Tier | None,
        typer.Option(
            help="Distance of the store; else local for folders and SQLite, lan for others."
        ),
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
            "from it are sent its token); of tier tape: staging, staging_command, "
            "staging_endpoint, staging_lifetime (seconds on disk) and staging_tier (of S3). Kinds "
            "of stores that packages add have options of their own.",
        ),
    ] = None,
    staging: Annotated[
        StagingKind | None,
        typer.Option(help="How objects of tier tape are staged before they are read."),
    ] = None,
    command: Annotated[
        Path | None, typer.Option(help="Program of the site, for --staging command.")
    ] = None,
    over: Over = None,
    parity: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_SERVERS - 1,
            help="Number of parts of an object of a striped store that may be lost; else 1. With 0 "
            "the loss of a server is the loss of all objects.",
        ),
    ] = None,
    block: Annotated[
        int | None,
        size_option(
            least_bytes=LEAST_BLOCK_BYTES, help="Size of a block of a striped store; else 1MiB."
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(metavar="STORE", help="Store that a cache is of: NAME or NAME:folder."),
    ] = None,
    limit: Annotated[
        int | None, size_option(least_bytes=1, help="Bytes that a cache keeps at most.")
    ] = None,
    write: Annotated[
        WriteMode | None,
        typer.Option(
            help="When a cache writes to the store that it is of: through, before writing ends; "
            "back, later."
        ),
    ] = None,
    check_s: Annotated[
        float | None,
        time_option(
            "--check",
            least_s=0.0,
            help="Time for which a cache takes an object to be unchanged after it looked at it; "
            "else it looks each time.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a store. Credentials are not stored: they stay in the environment.

    A striped store is one store over several: swathe store add wide striped: --over lake
    --over disk:folder --over dav://host:8430 --parity 1

    A cache keeps whole objects of a slow store on a near one: swathe store add hot cache:
    --of tape --over wide --limit 2TB
    """
    from swathe import stores

    options = _options(option or [])
    if staging is not None:
        options["staging"] = staging
    if command is not None:
        options["staging_command"] = str(command.expanduser().absolute())
    with report_wait("the catalogue", _is_locked):
        store = stores.add(
            name,
            url,
            tier=tier,
            options=options,
            over=over or (),
            parity=parity,
            block_bytes=block,
            of=of,
            limit_bytes=limit,
            write=write,
            check_s=check_s,
        )
    if store.over and store.parity == 0:
        typer.echo(
            "  note: parity 0 is unsafe: the loss of one server is the loss of all objects",
            err=True,
        )
    if store.parity > store.loss_limit:
        typer.echo(
            f"  note: parity {store.parity} over {len(store.over)} servers: if more than "
            f"{store.loss_limit} are lost, no object can be read, whatever the parity",
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
    if (
        "://" not in url
        and "://" not in store.url.removeprefix("file://")
        and not Path(url).expanduser().is_dir()
    ):
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
                "usage": None if costs.usage is None else asdict(costs.usage),
            }
        )
        return
    print_text(f"{store.name}: {store.url} ({store.tier})")
    if store.options:
        print_text(f"  options: {_options_text(store)}")
    if costs.usage is not None:
        print_text(f"  {_usage_text(store, costs.usage)}")
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
def flush(name: Name, as_json: Json = False) -> None:
    """Write the objects of a cache to the store that it is of, if they are not there yet."""
    from swathe import stores

    report = stores.flush(name)
    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(f"{name}: {count_text(report.done, 'object')} written to its store")
        for object_name, reason in report.faults.items():
            print_text(f"  {object_name}: {reason}", err=True)
    if report.faults:
        raise typer.Exit(1)


@app.command()
def clear(name: Name, as_json: Json = False) -> None:
    """Remove what a cache keeps near, but for what is pinned, being read or not written yet."""
    from swathe import stores

    report = stores.clear(name)
    if as_json:
        print_json(asdict(report))
    else:
        left = f"; {count_text(report.left, 'object')} stay" if report.left else ""
        typer.echo(f"{name}: {count_text(report.done, 'object')} removed{left}")


@app.command()
def export(as_json: Json = False) -> None:
    """Print the stores as JSON, for programs that use libswathe. It has no credentials."""
    from swathe.stores.registry import stores_json

    text = stores_json()
    if as_json:
        print_json(json.loads(text))  # as all commands print it
    else:
        typer.echo(text)


def _usage_text(store: Store, usage: CacheUsage) -> str:
    limit = size_text(int(store.options["limit"]))
    texts = [f"{count_text(usage.objects, 'object')}, {size_text(usage.bytes)} of {limit}"]
    if usage.pinned_bytes:
        texts.append(f"{size_text(usage.pinned_bytes)} pinned or being read")
    if usage.unwritten_objects:
        texts.append(
            f"{count_text(usage.unwritten_objects, 'object')} not written back yet, "
            f"{size_text(usage.unwritten_bytes)}"
        )
    texts.append(f"{usage.hits:,} hits, {usage.misses:,} misses, {usage.evictions:,} evictions")
    return "; ".join(texts)


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
