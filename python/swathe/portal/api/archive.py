"""Endpoints on the archive: datasets, stores, images, workers and the accuracy of predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from swathe import _swathe
from swathe.catalog import SCOPES, GranuleQuery, this_host
from swathe.catalog.records.datasets import MOC_ORDER, MOST_MOC_ORDER
from swathe.core.errors import DatasetError
from swathe.datasets.search import find
from swathe.datasets.sky_coverage import MocFormat
from swathe.operations.registry import formats, operations
from swathe.portal.access import Reader, Submitter
from swathe.portal.api import models
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.ranges import is_unchanged
from swathe.portal.users import User

if TYPE_CHECKING:
    from swathe.catalog import Store

router = APIRouter(tags=["archive"])

BYTES = {"schema": {"type": "string", "format": "binary"}}
MOST_FOOTPRINTS = 20_000
MOST_IMAGES = 10_000
MOST_OBJECTS = 10_000
Name = Annotated[str, Path(max_length=100)]
Angle = Annotated[float, Query(allow_inf_nan=False)]


@router.get("/about")
async def about(request: Request, user: Reader) -> models.About:
    """Return the version and limits of this portal, and the user of the request."""
    portal = portal_of(request)
    config = portal.config
    limits, share = config.limits, portal.jobs.limits.share_of(user.name)
    return models.About(
        title=config.vo.title,
        version=_swathe.__version__,
        tokens=config.access.tokens,
        user=user.name,
        scopes=[scope for scope in SCOPES if user.may(scope)],
        limits=models.LimitsModel(
            rows_per_job=limits.rows_per_job,
            rows_waiting=limits.rows_waiting,
            jobs=limits.jobs,
            result_bytes=share.result_bytes,
            slots=share.slots,
            priority=share.priority,
            body_bytes=round(limits.body_mb * 1e6),
            keep_days=config.results.keep_days,
            longest_days=limits.longest_days,
        ),
        hosts=list(config.access.hosts),
        formats=list(formats()),
        operations=list(operations()),
    )


@router.get("/datasets", response_model=models.DatasetList)
def datasets(request: Request, _user: Reader) -> Any:
    """List the datasets."""
    return {"datasets": portal_of(request).catalog.datasets()}


@router.get("/datasets/{name}", response_model=models.DatasetModel)
def dataset(request: Request, _user: Reader, name: Name) -> Any:
    """Return a dataset."""
    return portal_of(request).catalog.dataset(name)


@router.delete("/datasets/{name}", status_code=204)
def remove_dataset(request: Request, user: Submitter, name: Name) -> None:
    """Remove a dataset that your orders or subscriptions filled, with its objects."""
    portal_of(request).jobs.outputs.remove(name, user.name)


@router.get("/datasets/{name}/footprints", response_model=models.Footprints)
def footprints(
    request: Request,
    _user: Reader,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=MOST_FOOTPRINTS)] = 5000,
) -> Any:
    """Return the footprints of the images of a dataset."""
    criteria = GranuleQuery(dataset=name, limit=limit + 1)
    matches = portal_of(request).catalog.find_granules(criteria)
    return {
        "dataset": name,
        "truncated": len(matches) > limit,
        "footprints": [
            {"file": match.file, **vars(match.granule), **vars(match.granule.footprint)}
            for match in matches[:limit]
            if match.granule.footprint is not None
        ],
    }


@router.get(
    "/datasets/{name}/moc",
    response_class=Response,
    responses={
        200: {
            "description": "A MOC.",
            "content": {"application/fits": BYTES, "application/json": {}, "text/plain": {}},
        },
        304: {"description": "The dataset is unchanged."},
    },
)
def moc(
    request: Request,
    _user: Reader,
    name: Name,
    order: Annotated[
        int, Query(ge=0, le=MOST_MOC_ORDER, description="HEALPix order of the smallest cells.")
    ] = MOC_ORDER,
    form: Annotated[MocFormat, Query(alias="format", description="FITS, JSON or ASCII.")] = "fits",
) -> Response:
    """Return the sky that the images of a dataset cover, as a MOC (IVOA)."""
    mocs = portal_of(request).mocs
    key = mocs.key(name, order, form)
    headers = {"ETag": key.tag, "Cache-Control": "no-cache, private"}
    if is_unchanged(request, key.tag):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = f'attachment; filename="{name}.moc.{form}"'
    kind = "text/plain" if form == "ascii" else f"application/{form}"
    return Response(mocs.content(key), 200, headers, kind)


@router.get("/stores", response_model=models.StoreList)
def stores(request: Request, user: Reader) -> Any:
    """List the stores. Only admins see the paths of local folders."""
    portal = portal_of(request)
    return {"stores": [_visible(portal, each, user) for each in portal.catalog.stores()]}


@router.get("/stores/{name}", response_model=models.StoreDetail)
def store(request: Request, user: Reader, name: Name) -> Any:
    """Return a store, with its costs measured from this machine."""
    portal = portal_of(request)
    record = portal.catalog.store(name)
    profile = portal.catalog.profile(record.key, this_host())
    return {**vars(_visible(portal, record, user)), "profile": profile}


def _visible(portal: Portal, store: Store, user: User) -> Store:
    """Return a store as a user may see it."""
    return replace(store, url=portal.place_of(store, user))


@router.get("/pool", response_model=models.PoolModel)
def pool(
    request: Request, user: Reader, limit: Annotated[int, Query(ge=1, le=MOST_OBJECTS)] = 1000
) -> Any:
    """Return the state of the worker pool, with the cached objects of its workers.

    Only admins see the cached objects, and the address of the scheduler.
    """
    status = portal_of(request).pool_status(user)
    is_truncated = len(status.held) > limit
    return {**vars(status), "held": status.held[:limit], "truncated": is_truncated}


@router.get("/find")
def find_images(
    request: Request,
    _user: Reader,
    ra: Angle | None = None,
    dec: Angle | None = None,
    radius: Angle = 0.0,
    dataset: Annotated[str | None, Query(max_length=100)] = None,
    time_from: Annotated[str | None, Query(max_length=50)] = None,
    time_to: Annotated[str | None, Query(max_length=50)] = None,
    band: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_IMAGES)] = 1000,
    bounds: Annotated[str | None, Query(max_length=200)] = None,
    lon: Angle | None = None,
    lat: Angle | None = None,
) -> models.ImageList:
    """Find images and arrays by position, time (MJD or ISO, UTC) and band.

    `ra` and `dec` are in the sky (degrees, ICRS); `bounds` (west,south,east,north), `lon` and `lat`
    are on the Earth (degrees).
    """
    if (lon is None) != (lat is None):
        raise DatasetError("lon and lat: expected both or neither, found one")
    if (ra is None) != (dec is None):
        raise DatasetError("ra and dec: expected both or neither, found one")
    if (time_from is None) != (time_to is None):
        raise DatasetError("time_from and time_to: expected both or neither, found one")
    table = find(
        None if ra is None or dec is None else (ra, dec),
        radius,
        dataset=dataset,
        time=None if time_from is None or time_to is None else (time_from, time_to),
        band=band,
        catalog=portal_of(request).catalog,
        limit=limit + 1,
        bounds=None if bounds is None else tuple(bounds.split(",")),  # type: ignore[arg-type]
        place=None if lon is None or lat is None else (lon, lat),
    )
    visible = table[:limit]
    columns = [visible[name].tolist() for name in visible.colnames]
    images = [dict(zip(visible.colnames, row, strict=True)) for row in zip(*columns, strict=True)]
    return models.ImageList(truncated=len(table) > limit, images=images)


@router.get("/predictions", response_model=models.OutcomeList)
def predictions(
    request: Request, user: Reader, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> Any:
    """Return predicted and actual costs of all jobs, latest first. For admins only."""
    return {"predictions": portal_of(request).outcomes(user, limit)}
