"""What the REST interface takes and gives, as OpenAPI shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, WithJsonSchema

Phase = Literal["PENDING", "QUEUED", "EXECUTING", "COMPLETED", "ERROR", "ABORTED"]
RowStatus = Literal["waiting", "ok", "no-overlap", "missing", "error"]
Cell = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


class Given(BaseModel):
    """Made of what the package gives."""

    model_config = ConfigDict(from_attributes=True)


class Fault(BaseModel):
    """What went wrong: in words, and as a class of `swathe.errors`."""

    error: str
    kind: str


class Options(Given):
    """What is made of the targets; see `swathe.jobs.Options`."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")
    operation: Literal["cut", "stack"] = "cut"
    mode: Literal["trim", "partial", "strict"] = "trim"
    fill: float | None = None
    planes: tuple[int, int] | None = None
    format: Literal["fits", "npy", "png", "rgb"] = "fits"
    bands: list[str] = []
    dataset: str | None = None
    time: tuple[float, float] | None = None
    stack: Literal["mean", "median", "sigma-clipped", "weighted"] = "mean"


class Asked(BaseModel):
    """Targets, by column or by row, and what to make of them."""

    model_config = ConfigDict(extra="forbid")
    targets: dict[str, list[Cell]] | list[dict[str, Cell]] | list[str]
    options: Options = Options()


class NewJob(Asked):
    """A job to be: started at once, or when told to."""

    name: Annotated[str, Field(max_length=200)] = ""
    start: bool = True


class JobChange(BaseModel):
    """What may be changed of a job."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str | None, Field(max_length=200)] = None
    expires_at: AwareDatetime | None = None


class Job(Given):
    """A job."""

    id: str
    owner: str
    name: str
    phase: Phase
    options: Options
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
    """Jobs, the newest first."""

    jobs: list[Job]


class Row(Given):
    """A row of a job, and what became of it."""

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
    """Rows in the user's order; `next` is where to go on, if there may be more."""

    rows: list[Row]
    next: int | None


class Cost(Given):
    """What a job is expected to cost."""

    seconds: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int


class Estimate(Given):
    """What a job would be."""

    targets: int
    rows: int
    unmatched: int
    prediction: Cost | None
    faults: list[tuple[str, str]]
    matches: list[tuple[str, int]]
    bytes_out: int


class Limits(BaseModel):
    """What one user, one job, one request may take."""

    rows_per_job: int
    rows_waiting: int
    jobs: int
    result_bytes: int
    body_bytes: int
    keep_days: float
    longest_days: float


class About(BaseModel):
    """What a portal is, and who asks."""

    title: str
    version: str
    tokens: Literal["none", "required"]
    user: str
    scopes: list[str]
    limits: Limits
    hosts: list[str]
    formats: list[str]


class Dataset(Given):
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

    datasets: list[Dataset]


class Outline(BaseModel):
    """Where an image lies: a circle that holds it, and the polygon it is, if it is one."""

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
    """Images of a dataset; `truncated` if there are more."""

    dataset: str
    truncated: bool
    footprints: list[Outline]


class Profile(Given):
    """What was measured of a store."""

    host: str
    costs: dict[str, Any]
    spread: dict[str, Any]
    fitted_at: AwareDatetime
    notes: list[str]


class Store(Given):
    """A store."""

    name: str
    url: str
    tier: str
    options: dict[str, str]


class StoreDetail(Store):
    """A store with its profile as seen from the portal's machine."""

    profile: Profile | None


class StoreList(BaseModel):
    """All stores."""

    stores: list[Store]


class PoolWorker(Given):
    """A worker: what it does, what it may keep and keeps, why it is given nothing.

    `worth_s`: predicted seconds of reading again from stores what only it holds. `parted`: it is
    leaving, and has nothing more to do or to hand over.
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


class HeldObject(Given):
    """So many bytes of an object that a worker keeps, as it told last."""

    worker: str
    object: str
    bytes: int


class PoolMoved(Given):
    """Where what batches read came from, since the portal was started.

    `near` are the batches that were given to a worker that held something of their objects.
    Besides, workers were given copies of hot objects, and what others handed over that left.
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


class HandOver(Given):
    """What a worker that leaves gave to others; `summary` tells it in a sentence.

    `heirs` are the workers that got it, `refused` says what was not handed over and why.
    `alone_bytes` is what nobody else held; it may take `limit_s` at most.
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


class Reservation(Given):
    """Workers that are to be there for some time."""

    number: int
    starts_at: AwareDatetime
    ends_at: AwareDatetime
    workers: int


class PoolGrowth(Given):
    """How a pool grows: workers that are wanted, and why they cannot be started."""

    by: str
    target: int
    minimum: int
    maximum: int
    starting: int
    trouble: str
    reserved: list[Reservation]


class Pool(Given):
    """Who does the work of jobs; `truncated` if more is held; `grown`: how it grows, if it does.

    `hand_overs` are of workers that leave, or left last. Requests to workers take `peer_s`, and
    bring `peer_bytes_per_s`, as measured.
    """

    kind: Literal["local", "dask"]
    address: str
    trouble: str
    batches: int
    workers: list[PoolWorker]
    held: list[HeldObject]
    moved: PoolMoved
    truncated: bool
    grown: PoolGrowth | None
    hand_overs: list[HandOver]
    peer_s: float
    peer_bytes_per_s: float


class Found(BaseModel):
    """Images that a search found, with the columns of `swathe.find`; `truncated` if more."""

    truncated: bool
    images: list[dict[str, Any]]


class Outcome(Given):
    """A prediction, and what became of it."""

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


class Outcomes(BaseModel):
    """Predictions, the latest first."""

    predictions: list[Outcome]
