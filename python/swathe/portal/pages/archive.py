"""Pages on the archive: datasets, stores, workers and the accuracy of predictions."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swathe.catalog import this_host
from swathe.core.errors import NotFoundError
from swathe.core.format import NOISE_S, harmless_text, seconds_text
from swathe.costs.cost_model import NO_LIMIT
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages import plots
from swathe.portal.pages.archive_counts import ArchiveCounts
from swathe.portal.pages.earthmap import earth_map
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.skymap import part_map, scale_svg
from swathe.portal.vo.identifiers import did_of
from swathe.stores.stripe_plan import server_rates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from swathe.catalog import ProfileRecord, Store
    from swathe.portal.pages.stripe_servers import StripeServers
    from swathe.portal.users import User
    from swathe.stores.stripe_reports import DiskSpace, ServerStatus

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
ROWS = 50
"""Number of rows on one page of a table."""
OUTLINES = 500
"""Maximum number of images and arrays whose outlines are on a map."""
OUTCOMES = 500
CLOSE, NEAR = 0.10, 0.25
"""Relative errors up to which a prediction counts as good, and as fair."""

Start = Annotated[int, Query(ge=0, le=10**9)]


def archive_counts_of(request: Request) -> ArchiveCounts:
    """Return the cached counts and maps of this portal's archive."""
    return cast("ArchiveCounts", request.app.state.holdings)


@router.api_route("/", methods=READ)
def front(request: Request, _user: Reader) -> Response:
    """Show an overview of the archive."""
    holdings = archive_counts_of(request)
    dataset_counts = holdings.all()
    times = [(each.summary.t_min, each.summary.t_max) for each in dataset_counts]
    starts = [start for start, _ in times if start is not None]
    ends = [end for _, end in times if end is not None]
    return page(
        request,
        "front.html",
        held=dataset_counts,
        images=sum(each.dataset.granules for each in dataset_counts),
        objects=sum(each.dataset.objects for each in dataset_counts),
        bytes=sum(each.summary.bytes for each in dataset_counts),
        t_min=min(starts, default=None),
        t_max=max(ends, default=None),
        bands=_together(each.summary.bands for each in dataset_counts),
        stores=portal_of(request).catalog.stores(),
        sky=holdings.map(),
        scale=scale_svg(),
    )


def _together(bands: Any) -> dict[str, int]:
    """Add up the images of each band, most frequent first."""
    total: dict[str, int] = {}
    for each in bands:
        for band, number in each.items():
            total[band] = total.get(band, 0) + number
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


@router.api_route("/datasets", methods=READ)
def datasets(request: Request, _user: Reader) -> Response:
    """List the datasets."""
    return page(request, "datasets.html", held=archive_counts_of(request).all())


@router.api_route("/datasets/{name}", methods=READ)
def dataset(
    request: Request, _user: Reader, name: str, start: Start = 0, troubles: Start = 0
) -> Response:
    """Show a dataset: its images page by page, their outlines, and unreadable objects."""
    catalog, holdings = portal_of(request).catalog, archive_counts_of(request)
    record = catalog.dataset(name)
    dataset_counts = holdings.one(record)
    images = catalog.granules(name, start, ROWS + 1)
    on_maps = images if record.granules > OUTLINES else catalog.granules(name, 0, OUTLINES)
    lines = [
        (each.footprint.outline, f"{each.path} [{each.hdu}]")
        for each in on_maps
        if each.footprint is not None and each.footprint.outline is not None
    ]
    places = [
        (f"{each.path} {each.array or each.hdu}", each.place.outlines)
        for each in on_maps
        if each.place is not None
    ]
    return page(
        request,
        "dataset.html",
        held=dataset_counts,
        dataset=record,
        images=images[:ROWS],
        did_of=partial(did_of, portal_of(request).config.vo.authority, name),
        start=start,
        more=len(images) > ROWS,
        rows=ROWS,
        sky=holdings.map(name),
        part=part_map([outline for outline, _ in lines], [label for _, label in lines]),
        outlined=len(lines),
        earth=earth_map(places),
        scale=scale_svg(),
        troubles=(trouble := catalog.troubles(name, troubles, ROWS + 1))[:ROWS],
        troubles_start=troubles,
        troubles_more=len(trouble) > ROWS,
    )


@router.api_route("/stores", methods=READ)
def stores(request: Request, user: Reader) -> Response:
    """List the stores with their measured costs."""
    portal, host = portal_of(request), this_host()
    catalog = portal.catalog
    profiles = {each.root: each for each in catalog.profiles() if each.host == host}
    entries = [
        (store, portal.place_of(store, user), profiles.get(store.key)) for store in catalog.stores()
    ]
    return page(request, "stores.html", stores=entries, host=host)


@router.api_route("/pool", methods=READ)
def pool(request: Request, user: Reader) -> Response:
    """Show the worker pool, with the cached objects of its workers."""
    status = portal_of(request).pool_status(user)
    cached_objects = sorted(status.held, key=lambda each: -each.bytes)
    visible = cached_objects[:ROWS]
    return page(
        request,
        "pool.html",
        pool=status,
        held=visible,
        more=len(cached_objects) - len(visible),
    )


@router.api_route("/stores/{name}", methods=READ)
def store(request: Request, user: Reader, name: str) -> Response:
    """Show a store and its profile."""
    portal, host = portal_of(request), this_host()
    catalog = portal.catalog
    record = catalog.store(name)
    profile = catalog.profile(record.key, host)
    probes = catalog.probes(record.key, host)
    using_datasets = [
        each
        for each in archive_counts_of(request).all()
        if record.name in (each.dataset.store, *each.dataset.states)
    ]
    return page(
        request,
        "store.html",
        plots=True,
        store=record,
        place=portal.place_of(record, user),
        servers=_server_rows(request, record, user),
        work=catalog.stripe_work(record.name) if record.over else [],
        sees_paths=portal.sees_all(user),
        host=host,
        profile=profile,
        costs=[] if profile is None else list(cost_rows(profile)),
        probe=probes[0] if probes else None,
        held=using_datasets,
    )


@dataclass(frozen=True)
class ServerRow:
    """A server of a striped store, as its page shows it.

    Attributes:
        place: `NAME:prefix/` or URL; empty for a folder whose path the user may not see.
        state: what is known of it now; `None` if it has not answered yet.
        why: reason, if it cannot be reached; empty if the user may not see paths.
        disks: names of its disks with their rooms.
        rate: measured bandwidth of all streams in bytes per second; `None` if it was not probed.
    """

    place: str
    state: ServerStatus | None
    why: str
    disks: list[tuple[str, DiskSpace]]
    rate: float | None


def _server_rows(request: Request, record: Store, user: User | None) -> list[ServerRow]:
    """Return the servers of a striped store; none of other stores."""
    if not record.over:
        return []
    portal = portal_of(request)
    servers = cast("StripeServers", request.app.state.stripe_servers)
    states = servers.states(record.name, [each.name for each in record.over])
    sees_paths = portal.sees_all(user)
    rates = server_rates(portal.catalog, {each.place: each.store for each in record.over})
    rows = []
    for each in record.over:
        place = portal.place_of(each.store, user) if each.is_url else each.place
        state = states.get(each.name)
        disks = state.space.disks if state and state.space else []
        names = [
            harmless_text(disk.name, controls="") if sees_paths else f"disk {at}"
            for at, disk in enumerate(disks, 1)
        ]
        why = (state.why or state.space_error or "") if state and sees_paths else ""
        rows.append(
            ServerRow(
                place,
                state,
                harmless_text(why, controls=""),
                list(zip(names, disks, strict=True)),
                rates[each.place],
            )
        )
    return rows


def cost_rows(profile: ProfileRecord) -> list[tuple[str, float, str, float | None, str]]:
    """Return the costs of a store: name, value, kind of number, relative spread, remark."""
    costs, spread = profile.costs, profile.spread
    (size, time_s), (larger, longer_s) = costs["request"][-2:]
    stream = (larger - size) / (longer_s - time_s)
    is_limited = costs["requests_per_s"] < NO_LIMIT
    rows = [
        ("Opening a connection", costs["connect_s"], "seconds", "connect_s", ""),
        ("Opening an object", costs["open_s"], "seconds", "open_s", "in addition to a request"),
        ("Smallest request", costs["request"][0][1], "seconds", "request", "latency"),
        ("Bandwidth of one stream", stream, "rate", "request", "for large requests"),
        ("Bandwidth of all streams", costs["total_bytes_per_s"], "rate", "total_bytes_per_s", ""),
        *(
            [("Request rate", costs["requests_per_s"], "per_s", "requests_per_s", "maximum")]
            if is_limited
            else []
        ),
        *(
            [("Server throughput", costs["served_bytes_per_s"], "rate", "served_bytes_per_s", "")]
            if costs.get("served_bytes_per_s")
            else []
        ),
        ("Useful parallel streams", costs["streams"], "count", "streams", ""),
        *(
            [("Ranges in a request", vectors["ranges"], "count", "multi_range", "maximum")]
            if (vectors := costs.get("multi_range"))
            else []
        ),
        *(
            [("Requests on a connection", connection["requests"], "count", "multiplexed", "HTTP/2")]
            if (connection := costs.get("multiplexed"))
            else []
        ),
        ("Measured over predicted time", 1.0, "ratio", "model", "how well the model fits"),
    ]
    return [
        (what, value, kind, spread.get(of), remark)
        for what, value, kind, of, remark in rows
        if kind != "ratio" or spread.get(of) is not None
    ]


@router.api_route("/stores/{name}/plots.json", methods=READ)
def store_plots(
    request: Request, __user: Reader, name: str, scheme: plots.Scheme = "light"
) -> Response:
    """Return the plots of a profile, for Bokeh."""
    catalog, host = portal_of(request).catalog, this_host()
    record = catalog.store(name)
    profile = catalog.profile(record.key, host)
    if profile is None:
        raise NotFoundError(f"store {name!r}: expected a profile measured from {host}, found none")
    samples = catalog.samples(record.key, host, kinds=("read",))
    return _items(plots.profile_plots(samples, profile.costs, scheme))


@router.api_route("/predictions", methods=READ)
def predictions(request: Request, user: Reader) -> Response:
    """Show predicted and actual costs."""
    outcomes = portal_of(request).outcomes(user, OUTCOMES)
    with_error = [each for each in outcomes if each.error is not None]
    errors = [abs(each.error or 0.0) for each in with_error]
    within = [each.low_s <= each.actual_s <= each.high_s for each in with_error]
    return page(
        request,
        "predictions.html",
        plots=True,
        outcomes=outcomes,
        short=len(outcomes) - len(with_error),
        noise=seconds_text(NOISE_S),
        store_of=_store_names(portal_of(request).catalog.stores()),
        median=statistics.median(errors) if errors else None,
        close=_part(errors, CLOSE),
        near=_part(errors, NEAR),
        covered=sum(within) / len(within) if within else None,
        most=OUTCOMES,
    )


def _part(errors: list[float], limit: float) -> float | None:
    return sum(error <= limit for error in errors) / len(errors) if errors else None


def _store_names(stores: list[Store]) -> Mapping[str, str]:
    return {each.key: each.name for each in stores}


@router.api_route("/predictions/plots.json", methods=READ)
def prediction_plots(request: Request, user: Reader, scheme: plots.Scheme = "light") -> Response:
    """Return the plot of predicted against actual time, for Bokeh."""
    outcomes = portal_of(request).outcomes(user, OUTCOMES)
    return _items(plots.outcome_plots(outcomes, scheme, (CLOSE, NEAR)))


def _items(items: list[dict[str, Any]]) -> Response:
    return JSONResponse({"items": items}, headers=HEADERS)
