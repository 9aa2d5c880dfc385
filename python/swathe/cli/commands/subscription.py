"""The commands `swathe subscription`: list, show, pause, resume and remove; read the feed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import OPEN, Json, Url, connect_portal
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import count_text, moment_text, seconds_text
from swathe.core.times import utc_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.catalog.records.subscriptions import Subscription

app = typer.Typer(help="Follow your subscriptions in a portal.", no_args_is_help=True)

REDUCE = "reduce"
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the subscription.")]


@app.command("list")
def list_(url: Url = None, as_json: Json = False) -> None:
    """List your subscriptions, newest first."""
    rows = connect_portal(url).subscriptions()
    if as_json:
        print_json({"subscriptions": [json_of(each) for each in rows]})
        return
    print_table(
        ("subscription", "algorithm", "collection", "state", "events", "created"),
        (
            (
                each.id,
                each.algorithm,
                each.collection,
                each.state,
                str(each.events),
                moment_text(each.created_at),
            )
            for each in rows
        ),
    )


@app.command()
def show(subscription_id: Id, url: Url = None, as_json: Json = False) -> None:
    """Show a subscription: what it matches, and its state."""
    _print(connect_portal(url).subscription(subscription_id), as_json)


@app.command()
def pause(subscription_id: Id, url: Url = None, as_json: Json = False) -> None:
    """Pause a subscription. What comes meanwhile runs when it is resumed."""
    _print(connect_portal(url).pause_subscription(subscription_id), as_json)


@app.command()
def resume(subscription_id: Id, url: Url = None, as_json: Json = False) -> None:
    """Resume a subscription that is paused or failed, and its webhook if that is disabled."""
    _print(connect_portal(url).resume_subscription(subscription_id), as_json)


@app.command()
def remove(subscription_id: Id, url: Url = None, as_json: Json = False) -> None:
    """Remove a subscription with its feed. Its jobs stay."""
    connect_portal(url).remove_subscription(subscription_id)
    if as_json:
        print_json({"removed": subscription_id})
    else:
        print_text(f"removed: {subscription_id}")


@app.command()
def feed(
    subscription_id: Id,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Cursor of an earlier page; else none.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Largest number of events.")] = 100,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Print events of a subscription, and the cursor after them."""
    page = connect_portal(url).feed(subscription_id, after, limit)
    if as_json:
        print_json(page)
        return
    print_table(
        ("time", "event", "group", "data"),
        (
            (
                str(each.get("time", "")),
                str(each.get("type", "")).removeprefix("org.swathe."),
                str(each.get("subject", "")),
                json.dumps({k: v for k, v in each.get("data", {}).items() if k != "granules"}),
            )
            for each in page["events"]
        ),
    )
    if page.get("has_gap"):
        print_text("note: events that were not read have been removed", err=True)
    print_text(f"cursor: {page['cursor']}")


def _print(subscription: Subscription, as_json: bool) -> None:
    if as_json:
        print_json(json_of(subscription))
    else:
        print_subscription(subscription)


def print_subscription(subscription: Subscription) -> None:
    """Print a subscription, a line for each fact that it has."""
    print_text(f"subscription: {subscription.id}")
    for name, text in _facts(subscription):
        if text:
            print_text(f"{name}: {text}")
    print_text(f"events: {subscription.events}")


def _facts(subscription: Subscription) -> Iterator[tuple[str, str]]:
    """Yield names and values; empty ones say nothing."""
    search, options = subscription.search, subscription.job_options
    yield "algorithm", subscription.algorithm
    yield "state", ", ".join(filter(None, (subscription.state, subscription.reason)))
    yield "collection", subscription.collection
    if "bbox" in search:
        yield "bbox", " ".join(f"{each:g}" for each in search["bbox"]) + " degrees (W S E N)"
    if "time" in search:
        start, end = (OPEN if each is None else _time_text(each) for each in search["time"])
        yield "time", f"{start} to {end}"
    yield "filter", json.dumps(search["condition"]) if "condition" in search else ""
    yield "groups", _groups_text(subscription.grouping)
    for kind in ("parameters", "files"):
        yield kind, ", ".join(f"{name}={value}" for name, value in options.get(kind, {}).items())
    yield "outputs added to", options.get("register_as", "")
    if subscription.algorithm == REDUCE:
        others = {name: each for name, each in options.items() if each and name != "operation"}
        yield "options", ", ".join(f"{name}={value}" for name, value in others.items())
    yield "until", "" if subscription.until is None else moment_text(subscription.until)
    for kind, place, fault in (
        ("webhook", subscription.webhook, subscription.webhook_fault),
        ("mail", subscription.mail, subscription.mail_fault),
    ):
        yield kind, "" if place is None else f"{place}{f' ({fault})' if fault else ''}"


def _time_text(mjd: float) -> str:
    """Return a time, MJD, as text; as a number if it is beyond the calendar."""
    try:
        return moment_text(utc_of(mjd))
    except OverflowError:
        return f"MJD {mjd:.5f}"


def _groups_text(grouping: dict[str, Any]) -> str:
    """Return how granules form groups, and when a group runs."""
    least, most, by = grouping["least"], grouping["most"], grouping["by"]
    if by == "each" and most == 1:
        return "each granule"
    count = count_text(most, "granule") if least == most else f"{least} to {most:,} granules"
    wait = seconds_text(grouping["wait_s"]) if grouping["wait_s"] else "no time"
    return f"by {by}, {count}; one that is not complete waits {wait}"


def json_of(subscription: Subscription) -> dict[str, Any]:
    """Return a subscription as values of JSON."""
    values = asdict(subscription)
    for name in ("created_at", "until"):
        values[name] = values[name] and values[name].isoformat()
    return values
