"""Requests and responses of the REST interface, as in its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from swathe.jobs.types import Options
from swathe.operations.registry import formats, operations, own_options

Phase = Literal["PENDING", "QUEUED", "EXECUTING", "COMPLETED", "ERROR", "ABORTED"]
RowStatus = Literal["waiting", "ok", "no-overlap", "missing", "error"]
Cell = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


class ApiModel(BaseModel):
    """Base of models that are made from objects of the package."""

    model_config = ConfigDict(from_attributes=True)


class ErrorModel(BaseModel):
    """An error: a message, and the name of its class in `swathe.errors`."""

    error: str
    kind: str


class CommonOptionsModel(ApiModel):
    """Options of a job; see `swathe.jobs.Options`."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")
    mode: Literal["trim", "partial", "strict"] = "trim"
    fill: float | None = None
    planes: tuple[int, int] | None = None
    bands: list[str] = []
    dataset: str | None = None
    time: tuple[float, float] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_job(cls, given: Any) -> Any:
        """Take the options of a job, with the operation's own beside the others."""
        return given.as_dict() if isinstance(given, Options) else given


def _choices(description: str, names: Iterable[str]) -> Any:
    """Return the field of an option with these values; `None` if it is not given."""
    return Literal[tuple(names)] | None, Field(None, description=description)


if TYPE_CHECKING:

    class OptionsModel(CommonOptionsModel):
        """Options of a job, with those of the operations."""
else:
    OptionsModel = create_model(
        "OptionsModel",
        __base__=CommonOptionsModel,
        __doc__=CommonOptionsModel.__doc__,
        operation=_choices("What to make from the targets.", operations()),
        format=_choices("Format of each result.", formats()),
        **{
            name: _choices(f"{option.help}, for operation {kind.name}.", option.values)
            for name, (kind, option) in own_options().items()
        },
    )


class TargetsModel(BaseModel):
    """Targets, by column, by row or as lines of text, with the options."""

    model_config = ConfigDict(extra="forbid")
    targets: dict[str, list[Cell]] | list[dict[str, Cell]] | list[str]
    options: OptionsModel = OptionsModel()


class NewJob(TargetsModel):
    """A new job. It starts at once, or later if `start` is false."""

    name: Annotated[str, Field(max_length=200)] = ""
    start: bool = True


class JobChange(BaseModel):
    """Changes of a job."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str | None, Field(max_length=200)] = None
    expires_at: AwareDatetime | None = None


class JobModel(ApiModel):
    """A job."""

    id: str
    owner: str
    name: str
    phase: Phase
    options: OptionsModel
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    ended_at: AwareDatetime | None
    expires_at: AwareDatetime
    rows: int
    counts: dict[RowStatus, int]
    bytes: int
    predicted: dict[str, Any] | None
    actual: dict[str, Any] | None
    error: str | None
    notes: list[str]
    parameters: list[tuple[str, str]]


class JobList(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobModel]


class RowModel(ApiModel):
    """A row of a job, with its outcome."""

    number: int
    id: str
    source: str
    hdu: str | None
    box: tuple[int, int, int, int] | None
    status: RowStatus
    reason: str
    name: str
    bytes: int
    sha256: str


class RowList(BaseModel):
    """Rows in the user's order. `next` is the row to continue with, if there may be more."""

    rows: list[RowModel]
    next: int | None


class CostModel(ApiModel):
    """Predicted cost of a job."""

    median_s: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int


class EstimateModel(ApiModel):
    """Size and predicted cost of a job that is not submitted yet."""

    targets: int
    rows: int
    unmatched: int
    prediction: CostModel | None
    faults: list[tuple[str, str]]
    matches: list[tuple[str, int]]
    bytes_out: int


class LimitsModel(BaseModel):
    """Limits of one user, one job and one request."""

    rows_per_job: int
    rows_waiting: int
    jobs: int
    result_bytes: int
    body_bytes: int
    keep_days: float
    longest_days: float


class About(BaseModel):
    """Version and limits of a portal, and the user of the request."""

    title: str
    version: str
    tokens: Literal["none", "required"]
    user: str
    scopes: list[str]
    limits: LimitsModel
    hosts: list[str]
    formats: list[str]
    operations: list[str]


class DatasetModel(ApiModel):
    """A dataset."""

    name: str
    store: str
    prefix: str
    pattern: str | None
    calib_level: int
    added_at: AwareDatetime
    synced_at: AwareDatetime | None
    objects: int
    granules: int
    states: dict[str, dict[str, int]]


class DatasetList(BaseModel):
    """All datasets."""

    datasets: list[DatasetModel]


class Outline(BaseModel):
    """Footprint of an image: its bounding circle, and its polygon if there is one."""

    file: str
    hdu: int
    band: str | None
    t_min: float | None
    t_max: float | None
    s_ra: float
    s_dec: float
    s_fov: float
    outline: list[float] | None


class Footprints(BaseModel):
    """Images of a dataset. `truncated` is true if there are more."""

    dataset: str
    truncated: bool
    footprints: list[Outline]


class ProfileModel(ApiModel):
    """Measured costs of a store."""

    host: str
    costs: dict[str, Any]
    spread: dict[str, Any]
    fitted_at: AwareDatetime
    notes: list[str]


class StoreModel(ApiModel):
    """A store."""

    name: str
    url: str
    tier: str
    options: dict[str, str]


class StoreDetail(StoreModel):
    """A store with its profile measured from the portal's machine."""

    profile: ProfileModel | None


class StoreList(BaseModel):
    """All stores."""

    stores: list[StoreModel]


class PoolWorkerModel(ApiModel):
    """A worker: its load, its cache, and the reason if it gets no work.

    `worth_s` is the predicted time of reading again from stores the objects that only this worker
    has cached, seconds. `parted` is true if the worker is leaving and has finished draining.
    """

    name: str
    host: str
    threads: int
    busy: int
    waiting: int
    cache_bytes: int
    held_bytes: int
    refused: str
    worth_s: float
    parted: bool


class HeldObjectModel(ApiModel):
    """Bytes of an object in the cache of a worker, as last reported."""

    worker: str
    object: str
    bytes: int


class TrafficModel(ApiModel):
    """Bytes and requests by origin (stores, other workers, caches), since the portal started.

    `near` counts the batches sent to a worker that had some of their objects cached. `copies` and
    `copied_bytes` count replicas of hot objects, `handed_bytes` the caches of drained workers.
    """

    batches: int
    near: int
    store_bytes: int
    store_requests: int
    peer_bytes: int
    peer_requests: int
    cache_bytes: int
    cache_requests: int
    copies: int
    copied_bytes: int
    handed_bytes: int


class HandOverModel(ApiModel):
    """Cached data that a leaving worker copied to others; `summary` is a sentence on it.

    `heirs` are the workers that received the data. `refused` is the reason why some was not copied.
    `alone_bytes` is the size of data that no other worker had. `limit_s` is the time limit,
    seconds.
    """

    worker: str
    state: Literal["finishing", "handing over", "done", "broken off", "gave nothing"]
    heirs: list[str]
    objects: int
    bytes: int
    blocks: int
    seconds: float
    limit_s: float
    alone_bytes: int
    refused: str
    summary: str


class ReservationModel(ApiModel):
    """Workers reserved for a period."""

    number: int
    starts_at: AwareDatetime
    ends_at: AwareDatetime
    workers: int


class GrowthModel(ApiModel):
    """Autoscaling of a pool: requested workers, and the last error when starting them."""

    by: str
    target: int
    minimum: int
    maximum: int
    starting: int
    trouble: str
    reserved: list[ReservationModel]


class PoolModel(ApiModel):
    """State of the worker pool. `grown` is its autoscaling, if it has any.

    `truncated` is true if there are more cached objects than `held` lists. `hand_overs` are of
    workers that leave, or left last. `peer_s` is the measured latency of requests between workers,
    seconds; `peer_bytes_per_s` is their bandwidth.
    """

    kind: Literal["local", "dask"]
    address: str
    trouble: str
    batches: int
    workers: list[PoolWorkerModel]
    held: list[HeldObjectModel]
    moved: TrafficModel
    truncated: bool
    grown: GrowthModel | None
    hand_overs: list[HandOverModel]
    peer_s: float
    peer_bytes_per_s: float


class ImageList(BaseModel):
    """Images that match a search, with the columns of `swathe.find`; `truncated` if more."""

    truncated: bool
    images: list[dict[str, Any]]


class OutcomeModel(ApiModel):
    """Predicted and actual cost of a piece of work."""

    at: AwareDatetime
    host: str
    summary: str
    targets: int
    root: str
    predicted_s: float
    low_s: float
    high_s: float
    actual_s: float
    predicted_bytes: int
    actual_bytes: int
    predicted_requests: int
    actual_requests: int


class OutcomeList(BaseModel):
    """Predictions, latest first."""

    predictions: list[OutcomeModel]
