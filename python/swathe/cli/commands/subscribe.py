"""The command `swathe subscribe`: run an algorithm on all that comes to a dataset of a portal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from swathe.cli.commands.order import parameters_of
from swathe.cli.commands.subscription import REDUCE, json_of, print_subscription
from swathe.cli.options import Json, OpenTimes, Url, connect_portal, open_ends, values_by_name
from swathe.cli.output import print_json, print_text
from swathe.cli.units import time_option
from swathe.core.grouping import GroupBy
from swathe.datasets.search_times import read_until


def subscribe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME[@VERSION]",
            help="Algorithm; by NAME the newest version at each run. Or reduce.",
        ),
    ],
    collection: Annotated[
        str, typer.Option("--collection", metavar="DATASET", help="Dataset of the portal.")
    ],
    bbox: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(
            "--bbox",
            metavar="W S E N",
            help="Box of longitude and latitude, degrees; W > E crosses the dateline.",
        ),
    ] = None,
    time: OpenTimes = None,
    condition: Annotated[
        str | None,
        typer.Option("--filter", metavar="CQL2", help="Condition, as \"platform = 'Terra'\"."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Parameter of the algorithm, or option of reduce."
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="NAME=STORE:PATH", help="File of another input, by name."),
    ] = None,
    group: Annotated[
        GroupBy | None,
        typer.Option(help="Groups of granules for reduce; else each. An algorithm declares them."),
    ] = None,
    wait_s: Annotated[
        float,
        time_option(
            "--wait",
            help="Wait after the last granule of a group that is not complete, as 6h; default 0.",
        ),
    ] = 0.0,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End, as 2027-01-01 (UTC, the whole day); else none."),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Server that events are sent to.")
    ] = None,
    mail: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Address that events are mailed to, once it is confirmed."
        ),
    ] = None,
    present: Annotated[
        bool, typer.Option("--present", help="Granules that are there already count, too.")
    ] = False,
    register_as: Annotated[
        str,
        typer.Option(
            metavar="DATASET", help="Dataset of yours that the outputs are added to; else none."
        ),
    ] = "",
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Subscribe to a dataset of a portal: each group of granules that comes becomes a job."""
    portal = connect_portal(url)
    options: dict[str, Any] = dict(values_by_name("--set", values))
    if name != REDUCE or files or register_as:
        parameters = parameters_of(portal, name, values)
        options = {"parameters": parameters, "files": values_by_name("--file", files)}
        options |= {"register_as": register_as} if register_as else {}
    subscription, secret = portal.subscribe(
        name,
        collection,
        bbox=bbox,
        time=open_ends(time),
        condition=condition,
        group=group,
        wait_s=wait_s,
        until=None if until is None else read_until(until),
        webhook=webhook,
        mail=mail,
        takes_present=present,
        **options,
    )
    if as_json:
        print_json({**json_of(subscription), "secret": secret})
        return
    print_subscription(subscription)
    if secret:
        print_text(f"secret of the webhook, shown once: {secret}")
