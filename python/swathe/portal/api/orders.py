"""Endpoints on orders: an algorithm runs on the granules that a search finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, model_validator

from swathe.jobs.orders import Order, ordered_granules
from swathe.portal.access import Reader, Submitter
from swathe.portal.api import models
from swathe.portal.api.jobs import ReadJob, url_of
from swathe.portal.context import portal_of

if TYPE_CHECKING:
    from swathe.jobs import Job

router = APIRouter(tags=["algorithms"])

MOST_ENTRIES = 100
Text = Annotated[str, Field(max_length=200)]
Value = Annotated[str, Field(max_length=1000)] | bool | int | float
Values = Annotated[dict[Text, Value], Field(max_length=MOST_ENTRIES)]


class OrderModel(BaseModel):
    """An algorithm, and the search for the granules that it reads."""

    model_config = ConfigDict(extra="forbid")
    algorithm: Text
    collection: Text = ""
    time: tuple[Text | float | None, Text | float | None] | None = None
    bbox: tuple[float, float, float, float] | None = None
    parameters: Values = {}
    files: Annotated[dict[Text, Text], Field(max_length=MOST_ENTRIES)] = {}
    register_as: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _check_words(cls, content: Any) -> Any:
        """Check that fields have the names that subscriptions have."""
        words = {"dataset": "collection", "bounds": "bbox", "register": "register_as"}
        return models.check_words(content, **words)

    @property
    def order(self) -> Order:
        """Return the order."""
        return Order(
            self.algorithm,
            self.collection,
            self.time,
            self.bbox,
            self.parameters,
            self.files,
            self.register_as,
        )


class NewOrder(OrderModel):
    """A new order. It starts at once, or later if `start` is false.

    With `preview` it has the first group only.
    """

    name: Text = ""
    start: bool = True
    preview: bool = False


@router.post("/orders/estimate", response_model=models.EstimateModel)
async def estimate_order(request: Request, body: OrderModel, user: Reader) -> Any:
    """Return the granules, groups and predicted cost of an order. No granule is read."""
    portal = portal_of(request)

    def run() -> Any:
        table = ordered_granules(portal.catalog, body.order, portal.jobs.limits.rows_per_job)
        return portal.jobs.estimate(table, body.order.options, user.name)

    return await run_in_threadpool(run)


@router.post("/orders", response_model=models.JobModel, status_code=201)
async def submit_order(
    request: Request, response: Response, body: NewOrder, user: Submitter
) -> Any:
    """Submit an order: the job has a row of results for each group of granules."""
    portal = portal_of(request)

    def run() -> Job:
        table = ordered_granules(portal.catalog, body.order, portal.jobs.limits.rows_per_job)
        options, start, preview = body.order.options, body.start, body.preview
        return portal.jobs.submit(
            table, options, user.name, name=body.name, start=start, only_first=preview
        )

    job = await run_in_threadpool(run)
    response.headers["Location"] = url_of(portal, request, job.id)
    return job


@router.get("/jobs/{job_id}/group", response_model=models.GroupRunModel)
def group_run(request: Request, job: ReadJob, name: Annotated[str, Query(max_length=1000)]) -> Any:
    """Return what became of a group of a job of an algorithm, with its log."""
    return portal_of(request).jobs.group_run(job.id, name)
