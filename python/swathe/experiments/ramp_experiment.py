"""Ramp experiment: clients that join over time, on stores or a portal."""

from __future__ import annotations

import io
import os
import warnings
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote

import numpy as np

from swathe import _swathe
from swathe.core.errors import NotFoundError, SourceError
from swathe.core.host import this_host
from swathe.core.toml_settings import read_toml, value_error
from swathe.experiments.clients.frames_in_store import FramesInStore, frames_in_stores
from swathe.experiments.clients.ramp_schedule import (
    FAILED,
    OK,
    UNSENT,
    Schedule,
    SteadyClock,
    each_client,
    lags,
    over_time,
    peak,
)
from swathe.experiments.clients.remote_hosts import (
    LEAD_S,
    RemoteHost,
    as_array,
    correct_records,
    gather_hosts,
    run_here,
)
from swathe.experiments.results.environment_record import circumstances
from swathe.experiments.results.report import number
from swathe.experiments.results.result import Study
from swathe.experiments.settings import RampSettings, check, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

MANY = 100_000
BUSY_PERCENT = 90.0
"""CPU use above which a host may be the limit."""
SENT_SHARE = 0.98
"""Fraction of the due requests that a machine sends if it keeps up."""
OWN = 0.1
"""Fraction of response times that clients' own delays may reach."""
MOST_READS = 2000
"""Different requests."""
IMAGES = 1000
OVER_TIME = {
    "time": "s",
    **dict.fromkeys(("median", "p95", "lag"), "ms"),
    **dict.fromkeys(("offered", "sent", "throughput", "late", "failed", "unsent"), "1/s"),
}
OF_CLIENTS = {"rate": "1/s", **dict.fromkeys(("q1", "median", "q3"), "ms")}
"""Units of columns."""


class Host(TypedDict):
    """A host with clients: its clock offset, the offset's error, and its load."""

    offset_s: float
    spread_s: float
    cpu_percent: float
    failure: str


def ramp(
    settings: RampSettings, scratch: Path | None = None, tell: Callable[[str], None] | None = None
) -> Study:
    """Run the experiment: one ramp per store, or one for the portal.

    Raises:
        SettingsError: If settings do not fit together.
        SwatheError: If a store or portal cannot be read, or hosts do not join.
    """
    check("ramp", settings)
    say = tell or (lambda _text: None)
    offsets = _offsets(settings.offsets)
    nobody: AbstractContextManager[list[RemoteHost]] = nullcontext([])
    waiting = gather_hosts(settings.listen, settings.hosts, say) if settings.hosts else nobody
    results: dict[str, tuple[Schedule, NDArray[Any], dict[str, Host]]] = {}
    hosts: dict[str, Host] = {}
    conditions = circumstances(settings.stores)
    with _works(settings, scratch) as works, waiting as remote_hosts:
        for title, work in works.items():
            say(f"{title}: {settings.clients} clients join, {settings.model} model")
            results[title] = _one(settings, work, remote_hosts, offsets)
            hosts.update(results[title][2])
        for each in remote_hosts:
            each.end()
    clocks = {
        name: {key: each[key] for key in ("offset_s", "spread_s")} for name, each in hosts.items()
    }
    return _study(settings, conditions | {"clocks": clocks}, results)


@contextmanager
def _works(settings: RampSettings, scratch: Path | None) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the requests for each store, or for the portal."""
    if settings.portal:
        work = {"kind": "portal", "url": settings.portal.rstrip("/"), "seed": settings.seed}
        yield {_swathe.redact_url(settings.portal): {**work, "what": portal_paths(settings)}}
        return
    with frames_in_stores(settings, scratch) as stores:
        yield {place.label: _cuts(settings, place) for place in stores}


def _cuts(settings: RampSettings, place: FramesInStore) -> dict[str, Any]:
    rng = np.random.default_rng(settings.seed)
    numbers = rng.integers(settings.frames, size=MOST_READS)
    boxes = place.boxes(MOST_READS, settings.size, rng)
    what = [(place.frame(int(at) + 1), box) for at, box in zip(numbers, boxes, strict=True)]
    return {"kind": "cut", "what": what, "seed": settings.seed}


def portal_paths(settings: RampSettings) -> list[str]:
    """Query a portal for its images; return random requests for cuts from them.

    Raises:
        NotFoundError: If it has no images.
        SourceError: If it does not answer with a table of images.
    """
    import httpx
    from astropy.io.votable import parse_single_table

    token = os.environ.get("SWATHE_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    query = {"MAXREC": str(IMAGES), "COLLECTION": settings.dataset}
    url = f"{settings.portal.rstrip('/')}/vo/query"
    portal, shown_url = _swathe.redact_url(settings.portal), _swathe.redact_url(url)
    try:
        answer = httpx.get(
            url, params={k: v for k, v in query.items() if v}, headers=headers, timeout=60
        )
    except httpx.HTTPError as error:
        raise SourceError(f"{portal}: {error}") from error
    except httpx.InvalidURL:
        # httpx's message contains parts of the URL, perhaps a password.
        raise SourceError(f"{portal}: not a valid URL") from None
    if answer.status_code != 200:
        raise SourceError(f"{shown_url}: answered {answer.status_code}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = parse_single_table(io.BytesIO(answer.content)).to_table()
        # The comparison is false for a masked shape.
        images = [
            row
            for row in table["obs_publisher_did", "s_xel1", "s_xel2"]
            if row["s_xel1"] >= settings.size and row["s_xel2"] >= settings.size
        ]
    except Exception as error:  # astropy's reader raises many types
        raise SourceError(f"{shown_url}: expected a table of images: {error}") from error
    if not images:
        raise NotFoundError(
            f"{portal}: expected images of at least {settings.size} pixels, found none"
        )
    rng = np.random.default_rng(settings.seed)
    paths = []
    for at in rng.integers(len(images), size=MOST_READS):
        row = images[int(at)]
        x, y = (int(rng.integers(int(row[f"s_xel{axis}"]) - settings.size + 1)) for axis in (1, 2))
        box = f"[{x + 1}:{x + settings.size},{y + 1}:{y + settings.size}]"
        did = quote(str(row["obs_publisher_did"]), safe="")
        paths.append(f"/vo/sync?ID={did}&SUB={quote(box)}")
    return paths


def _offsets(path: str) -> dict[str, float]:
    if not path:
        return {}
    table = read_toml(Path(path))
    for host, seconds in table.items():
        if type(seconds) not in (int, float):
            raise value_error(f"{path}: {host}", "a number of seconds", seconds)
    return {host: float(seconds) for host, seconds in table.items()}


def _one(
    settings: RampSettings,
    work: dict[str, Any],
    remote_hosts: list[RemoteHost],
    offsets: dict[str, float],
) -> tuple[Schedule, NDArray[Any], dict[str, Host]]:
    """Run one ramp here or on the hosts that joined; return records in our time, and the hosts."""
    all_s = (settings.clients - 1) * settings.join_s
    length = all_s + settings.stay_s
    rate = settings.rate if settings.model == "open" else 0.0
    order: dict[str, Any] = {"join_s": settings.join_s, "length_s": length, "rate": rate}
    order |= {"all_s": all_s, "work": work, "kind": settings.kind}
    numbers = list(range(settings.clients))
    if not remote_hosts:
        start, result = run_here({**order, "clients": numbers})
        schedule = Schedule(start, settings.join_s, start + length, rate)
        here = Host(
            offset_s=0.0, spread_s=0.0, cpu_percent=result.cpu_percent, failure=result.failure
        )
        return schedule, as_array(result.records), {this_host(): here}
    # Clients are distributed in turn over the hosts.
    for at, each in enumerate(remote_hosts):
        each.prepare({**order, "clients": numbers[at :: len(remote_hosts)]})
    for each in remote_hosts:
        each.ready()
    start = SteadyClock().now() + LEAD_S
    for each in remote_hosts:
        each.go(start)
    schedule = Schedule(start, settings.join_s, start + length, rate)
    parts, hosts = [], {}
    for at, each in enumerate(remote_hosts):
        records, offset = each.records()
        records["host"] = at
        ahead = offsets.get(each.host, offset.offset_s)
        hosts[each.host] = Host(
            offset_s=ahead,
            spread_s=offset.spread_s,
            cpu_percent=each.cpu_percent,
            failure=each.failure,
        )
        parts.append(correct_records(records, ahead))
    return schedule, np.concatenate(parts), hosts


def _study(
    settings: RampSettings,
    circumstances: dict[str, Any],
    results: dict[str, tuple[Schedule, NDArray[Any], dict[str, Host]]],
) -> Study:
    from astropy.table import Table

    from swathe.experiments.results import figures

    rows, samples, drawings, sentences, notes = [], [], {}, [], []
    more: dict[str, Table] = {}
    for place, (name, (schedule, records, hosts)) in enumerate(results.items(), 1):
        at = over_time(records, schedule, settings.clients, settings.window_s)
        lags_s = lags(records, schedule)
        row = _row(settings, name, schedule, records, hosts, at, lags_s)
        rows.append(row)
        samples += _samples(f"{name} {settings.model}", at)
        clients = Table(rows=each_client(records, schedule, settings.clients), units=OF_CLIENTS)
        host_names = list(hosts)
        clients["host"] = [host_names[at] if at >= 0 else "" for at in clients["host"]]
        good = records[records["status"] == OK]
        observations = {"due": good["due"] - schedule.start, "response": good["done"] - good["due"]}
        drawings[f"ramp-{place}"] = figures.ramp(name, at, observations)
        drawings[f"clients-{place}"] = figures.per_client(name, clients)
        more[f"Over time: {name}"] = Table(at, units=OVER_TIME)
        more[f"Each client: {name}"] = clients
        sentences.append(_sentence(row))
        notes += [f"{name}: {each}" for each in _notes(row, *lags_s, hosts)]
    units = {"offered": "1/s", "sent": "1/s", "peak": "1/s", "all_rate": "1/s", "many": "s"}
    units |= {"lag": "ms", "cpu": "%", "peak_response": "ms", "all_response": "ms"}
    return Study(
        "ramp",
        f"{settings.clients} clients join, {settings.model} model",
        plain(settings),
        circumstances,
        Table(rows=rows, units=units),
        samples,
        drawings,
        sentences,
        notes,
        more,
    )


def _row(
    settings: RampSettings,
    name: str,
    schedule: Schedule,
    records: NDArray[Any],
    hosts: dict[str, Host],
    at: dict[str, NDArray[Any]],
    lags_s: tuple[NDArray[Any], NDArray[Any]],
) -> dict[str, Any]:
    """Return one ramp as a row of the table."""
    best = peak(at)
    status = records["status"]
    good = records[status == OK]
    requests, lag_s = lags_s
    length = schedule.end - schedule.start
    return {
        "target": name,
        "model": settings.model,
        "clients": settings.clients,
        "answers": len(good),
        "late": int((good["done"] > schedule.end).sum()),
        "failed": int((status == FAILED).sum()),
        "unsent": int((status == UNSENT).sum()),
        "offered": len(records) / length,
        "sent": float((requests["sent"] <= schedule.end).sum()) / length,
        "lag": 1e3 * float(np.quantile(lag_s, 0.95)) if len(lag_s) else np.nan,
        "cpu": max(each["cpu_percent"] for each in hosts.values()),
        "peak": best.rate,
        "peak_clients": best.clients,
        "peak_response": best.response_ms,
        "all_response": best.all_ms,
        "all_rate": best.all_rate,
        "many": MANY / best.rate if best.rate else np.nan,
    }


def _samples(name: str, at: dict[str, NDArray[Any]]) -> list[tuple[str, int, float, str, str]]:
    """Return the samples for comparing runs: windows with all clients."""
    everyone = at["clients"] == at["clients"].max()
    rates, medians = at["throughput"][everyone], at["median"][everyone]
    return [(f"{name} throughput", 0, float(rate), "1/s", "higher") for rate in rates] + [
        (f"{name} response", 0, float(ms), "ms", "lower") for ms in medians if np.isfinite(ms)
    ]


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"{row['target']}: {number(row['peak'])} crops/s at most, reached with "
        f"{row['peak_clients']} clients at {row['peak_response']:.3g} ms; with all "
        f"{row['clients']}: {number(row['all_rate'])} crops/s at {row['all_response']:.3g} ms. At "
        f"that peak 100,000 crops would take {number(row['many'])} s (extrapolated, not run)."
    )


def _notes(
    row: dict[str, Any], requests: NDArray[Any], lag_s: NDArray[Any], hosts: dict[str, Host]
) -> Iterator[str]:
    """Yield notes on failures, and on what limits the measurement."""
    if row["failed"] or row["unsent"]:
        yield f"{row['failed']} failed, {row['unsent']} could not be sent"
    if reasons := [each["failure"] for each in hosts.values() if each["failure"]]:
        yield f"one of the failures: {reasons[0]}"
    yield from _limits(row, requests, lag_s, hosts)
    if row["late"]:
        yield f"{row['late']} were answered after the end"


def _limits(
    row: dict[str, Any], requests: NDArray[Any], lag_s: NDArray[Any], hosts: dict[str, Host]
) -> Iterator[str]:
    """Yield notes if the client machines limit the measurement, or not all requests were sent."""
    if row["sent"] < SENT_SHARE * row["offered"]:
        yield (
            f"{row['offered']:.4g} requests/s were due, {row['sent']:.4g} were sent in time: "
            "clients waited for answers"
        )
    for host, each in hosts.items():
        if each["cpu_percent"] >= BUSY_PERCENT:
            yield (
                f"the processors of {host}, which runs clients, were busy for "
                f"{each['cpu_percent']:.0f} % of the time with all of them: they may be the limit"
            )
    good = requests["status"] == OK
    late_s = float(lag_s[good].sum())
    waited_s = float((requests["done"] - requests["due"])[good].sum())
    if waited_s > 0 and late_s > OWN * waited_s:
        part = f"{100 * late_s / waited_s:.0f} %"
        # In the closed model a response counts from the sending: the client's delay is not part of
        # it.
        total = (
            f"{part} of all response times is delay of the clients themselves"
            if row["model"] == "open"
            else f"clients themselves were late by {part} of all response times (not included)"
        )
        yield f"{total}; 5 % of requests by more than {row['lag']:.3g} ms"
