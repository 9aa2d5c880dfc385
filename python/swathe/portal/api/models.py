"""Requests and responses of the REST interface, as in its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from swathe.catalog import Dataset, Outcome, ProfileRecord, Store
from swathe.catalog.records.algorithms import AlgorithmRecord, GroupRunRecord, LibraryRecord
from swathe.catalog.records.runs import FailoverRecord, RunRecord
from swathe.catalog.records.subscriptions import Subscription
from swathe.catalog.reservations import ReservationRecord
from swathe.core.box import Mode
from swathe.core.docstrings import attributes_of, summary_of
from swathe.core.grouping import GroupBy
from swathe.jobs.types import ASKED_FORMAT, Estimate, Job, Options, Row
from swathe.operations.operation import NumberOption, ObjectOption, Operation, OperationOption
from swathe.operations.registry import formats, operations, own_options
from swathe.portal.config import TokenPolicy
from swathe.portal.run_overview import ArrayOverview
from swathe.workers.pool import (
    GrowthStatus,
    HandOver,
    HeldObject,
    Member,
    PoolStatus,
    TrafficCounts,
)

Cell = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


def check_words(content: Any, **words: str) -> Any:
    """Return a body, if it has no field of another API's name.

    Raises:
        ValueError: If it has one; it names the field that is meant.
    """
    for other, word in words.items():
        if isinstance(content, dict) and other in content:
            raise ValueError(f"expected {word}, found {other}")
    return content


class ApiModel(BaseModel):
    """Base of models that are made from objects of the package."""

    model_config = ConfigDict(from_attributes=True)


MODELS: dict[str, Any] = {"datetime": AwareDatetime}
"""Types in responses, by the names of the types of records that they replace."""


def record_model(name: str, record: type, *left_out_names: str, **others: Any) -> Any:
    """Return the model of a record: its fields, described as in its docstring.

    Args:
        name: name of the model in the OpenAPI description.
        record: class of the record, a dataclass; those in its fields have their models already.
        left_out_names: fields that a response lacks.
        others: types of further attributes.
    """
    hints, texts = get_type_hints(record, localns=MODELS), attributes_of(record)
    types = {each.name: hints[each.name] for each in fields(record)} | others
    attributes: dict[str, Any] = {
        key: Annotated[kind, Field(description=texts[key])] if key in texts else kind
        for key, kind in types.items()
        if key not in left_out_names
    }
    model = create_model(name, __base__=ApiModel, __doc__=summary_of(record), **attributes)
    MODELS[record.__name__] = model
    return model


def list_of(model: Any) -> Any:
    """Return the type of a list of models."""
    return GenericAlias(list, model)


class ErrorModel(BaseModel):
    """An error: a message, its class in `swathe.errors`, and the id of the request."""

    error: str
    kind: str
    request_id: str


class CommonOptionsModel(ApiModel):
    """Options of a job; see `swathe.jobs.Options`."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")
    mode: Mode = "trim"
    fill: float | None = None
    planes: tuple[int, int] | None = None
    bands: list[str] = []
    dataset: str | None = None
    time: tuple[float, float] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_job(cls, value: Any) -> Any:
        """Take the options of a job as they were asked, with the operation's own beside them."""
        if not isinstance(value, Options):
            return value
        values = value.as_dict() | {"format": value.shown_format}
        values.pop(ASKED_FORMAT, None)
        return values


def _choices(description: str, names: Iterable[str]) -> Any:
    """Return the field of an option with these values, or any text; `None` if it is not given."""
    values = tuple(names)
    return (Literal[values] if values else str) | None, Field(None, description=description)


def _field(kind: Operation, option: OperationOption) -> Any:
    """Return the field of an option of an operation; `None` if it is not given."""
    description = f"{option.help}, for operation {kind.name}."
    match option:
        case ObjectOption():
            return dict[str, Cell] | str | None, Field(None, description=description)
        case NumberOption():
            return float | str | None, Field(None, description=description)
    return _choices(description, option.values)


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
        **{name: _field(kind, option) for name, (kind, option) in own_options().items()},
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


MODELS["Options"] = OptionsModel
JobModel = record_model("JobModel", Job)
JobList = create_model("JobList", __doc__="Jobs, newest first.", jobs=list_of(JobModel))
RowModel = record_model("RowModel", Row)
RowList = create_model(
    "RowList",
    __doc__="Rows in the user's order. `next` is the row to continue with, if there may be more.",
    rows=list_of(RowModel),
    next=int | None,
)


class PredictionModel(ApiModel):
    """Predicted cost of a job."""

    median_s: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int


MODELS["Prediction"] = PredictionModel
EstimateModel = record_model("EstimateModel", Estimate)


class LimitsModel(BaseModel):
    """Limits of the user of the request, one job and one request."""

    rows_per_job: int
    rows_waiting: int
    jobs: int
    result_bytes: int
    slots: int
    priority: int
    body_bytes: int
    keep_days: float
    longest_days: float


class About(BaseModel):
    """Version and limits of a portal, and the user of the request."""

    title: str
    version: str
    tokens: TokenPolicy
    user: str
    scopes: list[str]
    limits: LimitsModel
    hosts: list[str]
    formats: list[str]
    operations: list[str]


DatasetModel = record_model("DatasetModel", Dataset)
DatasetList = create_model("DatasetList", __doc__="All datasets.", datasets=list_of(DatasetModel))


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


ProfileModel = record_model("ProfileModel", ProfileRecord, "root")
StoreModel = record_model("StoreModel", Store)
StoreDetail = create_model(
    "StoreDetail",
    __base__=StoreModel,
    __doc__="A store with its profile measured from the portal's machine.",
    profile=ProfileModel | None,
)
StoreList = create_model("StoreList", __doc__="All stores.", stores=list_of(StoreModel))
record_model("PoolWorkerModel", Member)
record_model("HeldObjectModel", HeldObject)
record_model("TrafficModel", TrafficCounts)
record_model("ReservationModel", ReservationRecord)
record_model("GrowthModel", GrowthStatus)
record_model(
    "HandOverModel",
    HandOver,
    "ended_at",
    summary=Annotated[str, Field(description="one sentence on its state.")],
)
PoolModel = record_model(
    "PoolModel",
    PoolStatus,
    truncated=Annotated[
        bool, Field(description="whether there are more cached objects than `held` lists.")
    ],
)


class ImageList(BaseModel):
    """Images that match a search, with the columns of `swathe.find`; `truncated` if more."""

    truncated: bool
    images: list[dict[str, Any]]


OutcomeModel = record_model("OutcomeModel", Outcome)
OutcomeList = create_model(
    "OutcomeList", __doc__="Predictions, latest first.", predictions=list_of(OutcomeModel)
)


AlgorithmModel = record_model("AlgorithmModel", AlgorithmRecord)
AlgorithmList = create_model(
    "AlgorithmList", __doc__="Versions of algorithms.", algorithms=list_of(AlgorithmModel)
)
AlgorithmDetail = create_model(
    "AlgorithmDetail",
    __base__=AlgorithmModel,
    __doc__="A version of an algorithm, with what it reads and writes.",
    definition=(dict[str, Any], ...),
)
GroupRunModel = record_model("GroupRunModel", GroupRunRecord)
LibraryModel = record_model("LibraryModel", LibraryRecord)
LibraryList = create_model(
    "LibraryList", __doc__="Versions of libraries of one user.", libraries=list_of(LibraryModel)
)
LibraryDetail = create_model(
    "LibraryDetail",
    __base__=LibraryModel,
    __doc__="A version of a library, with the sizes of its files in bytes.",
    flags=(list[str], ...),
    headers=(list[str], ...),
    modules=(list[str], ...),
    files=(dict[str, int], ...),
)
SubscriptionModel = record_model("SubscriptionModel", Subscription)
SubscriptionList = create_model(
    "SubscriptionList",
    __doc__="Subscriptions, newest first.",
    subscriptions=list_of(SubscriptionModel),
)
NewSubscriptionDetail = create_model(
    "NewSubscriptionDetail",
    __base__=SubscriptionModel,
    __doc__="A new subscription, with the secret of its webhook, which is never shown again.",
    secret=(str | None, ...),
)


class NewSubscriptionModel(BaseModel):
    """A subscription to add."""

    model_config = ConfigDict(extra="forbid")
    algorithm: str = Field(
        max_length=100, description="Algorithm, NAME or NAME@VERSION; or reduce."
    )
    collection: str = Field(max_length=100, description="Name of the dataset.")
    bbox: tuple[float, float, float, float] | None = Field(
        None, description="West, south, east, north, degrees; west > east crosses the dateline."
    )
    time: tuple[str | float | None, str | float | None] | None = Field(
        None, description="Start and end, MJD or text (UTC); null for an open end."
    )
    filter: str | dict[str, Any] | None = Field(None, description="CQL2, as text or JSON.")
    options: dict[str, Any] = Field(
        {}, description="`parameters` and `files` of the algorithm, or options of reduce."
    )
    group: GroupBy | None = None
    wait_s: float = Field(0.0, description="Wait for a group that is not complete, seconds.")
    until: AwareDatetime | None = None
    webhook: str | None = Field(None, max_length=2000)
    mail: str | None = Field(None, max_length=254)
    takes_present: bool = Field(False, description="Whether granules that are there count.")

    @model_validator(mode="before")
    @classmethod
    def _check_words(cls, content: Any) -> Any:
        """Check that fields have the names that orders have."""
        return check_words(content, name="algorithm", dataset="collection", bounds="bbox")


class FeedModel(BaseModel):
    """Events of a subscription, as CloudEvents 1.0."""

    events: list[dict[str, Any]]
    cursor: str = Field(description="Value of `after` for the next page.")
    has_gap: bool = Field(description="Whether events that were not read have been removed.")


RunModel = record_model(
    "RunModel",
    RunRecord,
    *("id", "folder", "pid"),
    label=Annotated[str, Field(description="`NAME@NUMBER`.")],
)
RunList = create_model("RunList", __doc__="Runs, newest first.", runs=list_of(RunModel))
record_model("FailoverModel", FailoverRecord)
RunArrayModel = record_model("RunArrayModel", ArrayOverview)
RunDetail = create_model(
    "RunDetail",
    __base__=RunModel,
    __doc__="A run, and what was written of its arrays.",
    arrays=list_of(RunArrayModel),
)


class PredictedArrayModel(BaseModel):
    """Predicted cost of an array: a row of the table of `swathe run predict`."""

    name: str
    amode: str
    ndims: int
    etype: str
    pattern: str
    dims: list[int]
    location: list[str]
    frequency: int
    dumps: int
    write: str
    objects: int
    bytes: int
    seconds: float
    read_s: float
    interval_s: tuple[float, float]


class PredictedRunModel(BaseModel):
    """Predicted cost of a run, and why each array goes where it goes."""

    name: str
    iterations: int
    ranks: int
    arrays: list[PredictedArrayModel]
    seconds: float
    interval_s: tuple[float, float]
    compute_s: float | None
    wall_s: float | None
    bytes_by_store: dict[str, int]
    without_costs: list[str]
    reasons: dict[str, str]


class SettingsProblem(ErrorModel):
    """An error of the settings of a run (RFC 9457), with the array and the setting it is about."""

    title: str
    status: int
    detail: str
    array: str | None
    setting: str | None
