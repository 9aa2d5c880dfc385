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
from swathe.catalog.reservations import ReservationRecord
from swathe.core.box import Mode
from swathe.core.docstrings import attributes_of, summary_of
from swathe.jobs.types import ASKED_FORMAT, Estimate, Job, Options, Row
from swathe.operations.registry import formats, operations, own_options
from swathe.portal.config import TokenPolicy
from swathe.workers.pool import (
    GrowthStatus,
    HandOver,
    HeldObject,
    Member,
    PoolStatus,
    TrafficCounts,
)

Cell = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]


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
    """An error: a message, and the name of its class in `swathe.errors`."""

    error: str
    kind: str


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
