"""What the archive holds: datasets, stores, images; and how predictions came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from fastapi import APIRouter, Path, Query, Request

from swathe import _swathe
from swathe.catalog import SCOPES, Wanted, this_host
from swathe.core.errors import DatasetError
from swathe.datasets.search import find
from swathe.jobs import Format
from swathe.portal.access import Reader
from swathe.portal.api import models
from swathe.portal.context import portal_of

if TYPE_CHECKING:
    from swathe.catalog import Match

router = APIRouter(tags=["holdings"])

MOST_FOOTPRINTS = 20_000
MOST_FOUND = 10_000
MOST_HELD = 10_000
Name = Annotated[str, Path(max_length=100)]
Angle = Annotated[float, Query(allow_inf_nan=False)]


@router.get("/about")
def about(request: Request, user: Reader) -> models.About:
    """Tell what this portal is, what it allows, and who asks."""
    config = portal_of(request).config
    limits = config.limits
    return models.About(
        title=config.vo.title,
        version=_swathe.__version__,
        tokens=config.access.tokens,
        user=user.name,
        scopes=[scope for scope in SCOPES if user.may(scope)],
        limits=models.Limits(
            rows_per_job=limits.rows_per_job,
            rows_waiting=limits.rows_waiting,
            jobs=limits.jobs,
            result_bytes=round(limits.result_gb * 1e9),
            body_bytes=round(limits.body_mb * 1e6),
            keep_days=config.results.keep_days,
            longest_days=limits.longest_days,
        ),
        hosts=list(config.access.hosts),
        formats=list(get_args(Format)),
    )


@router.get("/datasets", response_model=models.DatasetList)
def datasets(request: Request, _user: Reader) -> Any:
    """List the datasets."""
    return {"datasets": portal_of(request).catalog.datasets()}


@router.get("/datasets/{name}", response_model=models.Dataset)
def dataset(request: Request, _user: Reader, name: Name) -> Any:
    """Tell what a dataset is."""
    return portal_of(request).catalog.dataset(name)


@router.get("/datasets/{name}/footprints", response_model=models.Footprints)
def footprints(
    request: Request,
    _user: Reader,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=MOST_FOOTPRINTS)] = 5000,
) -> Any:
    """Tell where the images of a dataset lie in the sky."""
    wanted = Wanted(dataset=name, limit=limit + 1)
    found = portal_of(request).catalog.find_granules(wanted)
    placed = [match for match in found[:limit] if match.granule.footprint is not None]
    return {
        "dataset": name,
        "truncated": len(found) > limit,
        "footprints": [_outline(match) for match in placed],
    }


def _outline(match: Match) -> models.Outline:
    granule, place = match.granule, match.granule.footprint
    assert place is not None
    return models.Outline(
        file=match.file,
        hdu=granule.hdu,
        band=granule.band,
        t_min=granule.t_min,
        t_max=granule.t_max,
        s_ra=place.s_ra,
        s_dec=place.s_dec,
        s_fov=place.s_fov,
        outline=place.outline,
    )


@router.get("/stores")
def stores(request: Request, user: Reader) -> models.StoreList:
    """List the stores. Where folders of the portal's machine lie is told to admins only."""
    portal = portal_of(request)
    return models.StoreList(
        stores=[
            models.Store(
                name=each.name,
                url=portal.place_of(each, user),
                tier=each.tier,
                options=each.options,
            )
            for each in portal.catalog.stores()
        ]
    )


@router.get("/stores/{name}")
def store(request: Request, user: Reader, name: Name) -> models.StoreDetail:
    """Tell what a store is, and what was measured of it from this machine."""
    portal = portal_of(request)
    catalog = portal.catalog
    found = catalog.store(name)
    profile = catalog.profile(found.key, this_host())
    return models.StoreDetail(
        name=found.name,
        url=portal.place_of(found, user),
        tier=found.tier,
        options=found.options,
        profile=None if profile is None else models.Profile.model_validate(profile),
    )


@router.get("/pool")
def pool(
    request: Request, user: Reader, limit: Annotated[int, Query(ge=1, le=MOST_HELD)] = 1000
) -> models.Pool:
    """Tell who does the work of jobs, and what they hold.

    What they hold, and the address of the scheduler, are told to admins only.
    """
    told = portal_of(request).told(user)
    held = told.held
    return models.Pool(
        kind=told.kind,
        address=told.address,
        trouble=told.trouble,
        batches=told.batches,
        workers=[models.PoolWorker.model_validate(each) for each in told.workers],
        held=[models.HeldObject.model_validate(each) for each in held[:limit]],
        moved=models.PoolMoved.model_validate(told.moved),
        truncated=len(held) > limit,
        grown=None if told.grown is None else models.PoolGrowth.model_validate(told.grown),
        hand_overs=[models.HandOver.model_validate(each) for each in told.hand_overs],
        peer_s=told.peer_s,
        peer_bytes_per_s=told.peer_bytes_per_s,
    )


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
    limit: Annotated[int, Query(ge=1, le=MOST_FOUND)] = 1000,
) -> models.Found:
    """Find images by place (degrees, ICRS), time (MJD or ISO, UTC) and band, as `swathe.find`."""
    if (ra is None) != (dec is None):
        raise DatasetError("ra and dec: both, or neither")
    if (time_from is None) != (time_to is None):
        raise DatasetError("time_from and time_to: both, or neither")
    table = find(
        None if ra is None or dec is None else (ra, dec),
        radius,
        dataset=dataset,
        time=None if time_from is None or time_to is None else (time_from, time_to),
        band=band,
        catalog=portal_of(request).catalog,
        limit=limit + 1,
    )
    shown = table[:limit]
    columns = [shown[name].tolist() for name in shown.colnames]
    images = [dict(zip(shown.colnames, row, strict=True)) for row in zip(*columns, strict=True)]
    return models.Found(truncated=len(table) > limit, images=images)


@router.get("/predictions", response_model=models.Outcomes)
def predictions(
    request: Request, user: Reader, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> Any:
    """Tell how predictions of all jobs came out, the latest first: to admins only."""
    return {"predictions": portal_of(request).outcomes(user, limit)}
