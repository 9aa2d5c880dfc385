"""Types of jobs as plain values: options, job, row, estimate, limits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

from swathe.catalog.records.jobs import Phase, Share
from swathe.core.box import Mode
from swathe.core.errors import DatasetError, JobError, OptionError
from swathe.core.row_record import RowStatus
from swathe.core.value_errors import short_text
from swathe.operations.registry import DEFAULT, ResultOptions, own_options

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.costs.prediction import Prediction

ArchiveKind = Literal["zip", "tar", "fits"]

DAY_S = 86_400
MOST_BANDS = 100
LONGEST_TEXT = 200
ASKED_FORMAT = "asked_format"
NOT_OPTIONS = frozenset({"own", ASKED_FORMAT})
"""Fields of `Options` that are no options of users."""


@dataclass(frozen=True)
class Options:
    """Options of a job: what to make from the targets.

    Attributes:
        operation: name of an operation, as `swathe.operations.registry` lists them: `cut` for each
            target, `stack`: one image of all, or of each `group`, `rgb`: one picture of three
            bands, `reduce`: one grid of all granules, or of each `group`, or `algorithm`: the
            outputs of a user's program for each group of granules.
        mode: `trim`, `partial` or `strict`, as for `swathe.cut`.
        fill: physical value outside the image, with `partial`.
        planes: for cubes, first and last plane, zero-based, last excluded.
        format: format of each result; by default the first of the operation.
        bands: bands of the images of sky positions without a file; with `rgb` exactly three, red
            first. For `rgb` of listed files as in `cut_many`: values of the column `band`, or none.
        dataset: dataset searched for sky positions; by default all.
        time: time range of the images, MJD (UTC), from and to.
        own: options that only this operation has, such as `stack`; in JSON beside the others.
        asked_format: format that the user chose, if the results are made as another: `fits` of
            arrays. It is set when a job is stored.
        has_format: whether the format was chosen: then `fits` is also that of arrays.
    """

    operation: str = DEFAULT
    mode: Mode = "trim"
    fill: float | None = None
    planes: tuple[int, int] | None = None
    format: str = ""
    bands: tuple[str, ...] = ()
    dataset: str | None = None
    time: tuple[float, float] | None = None
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)
    asked_format: str = ""
    has_format: bool = field(default=False, init=False, compare=False)

    def __post_init__(self) -> None:
        """Fill in what follows from the operation."""
        object.__setattr__(self, "has_format", bool(self.format))
        for name in ("operation", "format", "own"):
            object.__setattr__(self, name, getattr(self.results, name))

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> Options:
        """Parse options from JSON.

        Raises:
            JobError: If an option is invalid; the text names it, with expected and found value.
        """
        names = [each.name for each in fields(cls) if each.init and each.name not in NOT_OPTIONS]
        names += own_options()
        for name in content:
            if name not in names:
                raise JobError(
                    f"unknown option {str(name)[:50]!r}; the options are {', '.join(names)}"
                )
        read: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for name, value in content.items():
            # A null value counts as absent.
            if value is not None:
                if name in _READ:
                    read[name] = _READ[name](name, value)
                else:
                    own[name] = value  # checked with the operation
        options = cls(**read, own=own)
        options.check()
        return options

    @classmethod
    def from_catalog(cls, content: Mapping[str, Any]) -> Options:
        """Read the options of a stored job: those of `as_dict`.

        Raises:
            JobError: As `from_mapping` does.
        """
        options = {name: value for name, value in content.items() if name != ASKED_FORMAT}
        return replace(cls.from_mapping(options), asked_format=content.get(ASKED_FORMAT, ""))

    @property
    def shown_format(self) -> str:
        """Return the format that the user chose, else that of the results."""
        return self.asked_format or self.format

    @cached_property
    def results(self) -> ResultOptions:
        """Return the options that define the results.

        Raises:
            JobError: If they do not fit together; the text names the option.
        """
        try:
            return ResultOptions.read(self.operation, self.format, self.bands, self.own)
        except OptionError as error:
            raise JobError(f"option {error}") from None

    def check(self, *, are_bands_needed: bool | None = None) -> None:
        """Check that the options fit together.

        Args:
            are_bands_needed: whether images are searched by band; `None` if the targets are not
                known yet.

        Raises:
            JobError: If they do not; the text names the option.
        """
        if are_bands_needed is None:
            are_bands_needed = bool(self.bands)
        try:
            self.results.kind.check_bands(self.bands, are_needed=are_bands_needed)
        except OptionError as error:
            raise JobError(f"option {error}") from None
        if self.fill is not None and self.mode != "partial":
            raise JobError(f"option fill: goes with mode partial, not {self.mode}")

    @property
    def is_combined(self) -> bool:
        """Check whether each result is made from several rows."""
        return self.results.is_combined

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON; `from_catalog` reads them back."""
        values = asdict(self)
        del values["has_format"]
        if not self.asked_format:
            del values[ASKED_FORMAT]
        values |= values.pop("own")
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def _choice(*values: str) -> Any:
    def read(name: str, value: Any) -> str:
        if value not in values:
            raise JobError(f"option {name}: one of {', '.join(values)}, not {short_text(value)}")
        return str(value)

    return read


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JobError(f"option {name}: a number, not {short_text(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise JobError(f"option {name}: a finite number, not {short_text(value)}")
    return number


def read_planes(name: str, value: Any) -> tuple[int, int]:
    """Parse `first:last`, or a pair."""
    pair = value.split(":") if isinstance(value, str) else value
    try:
        first, last = (
            int(each) if isinstance(each, str) else operator.index(each) for each in pair
        )
    except (TypeError, ValueError):
        first, last = 0, 0
    if not 0 <= first < last < 1 << 53:
        raise JobError(
            f"option {name}: first and last, 0 <= first < last, as 3:7; not {short_text(value)}"
        )
    return first, last


def _bands(name: str, value: Any) -> tuple[str, ...]:
    bands = value.split(",") if isinstance(value, str) else value
    if (
        not isinstance(bands, list | tuple)
        or len(bands) > MOST_BANDS
        or not all(isinstance(band, str) and 0 < len(band.strip()) <= 100 for band in bands)
    ):
        raise JobError(
            f"option {name}: at most {MOST_BANDS} names of filters, not {short_text(value)}"
        )
    return tuple(band.strip() for band in bands)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_TEXT:
        raise JobError(f"option {name}: a name, not {short_text(value)}")
    return value.strip()


def _time(name: str, value: Any) -> tuple[float, float]:
    from swathe.datasets.search_times import read_times

    try:
        times = read_times(value)
    except DatasetError as error:
        raise JobError(f"option {name}: {error}") from error
    assert times is not None
    return times


_READ: dict[str, Any] = {
    "operation": _text,
    "mode": _choice(*get_args(Mode)),
    "fill": _number,
    "planes": read_planes,
    "format": _text,
    "bands": _bands,
    "dataset": _text,
    "time": _time,
}


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes:
        id: 22 random characters, safe in URLs.
        owner: name of the user; "anonymous" if no token is needed.
        name: name given by the user; may be empty.
        expires_at: time of deletion, with its results.
        rows: number of images to cut, one per target and granule; for stacks and `rgb`, the input
            images followed by the combined results; of an algorithm, granules followed by groups.
        counts: number of rows per status.
        groups: number of groups of granules per status, of an algorithm; else `None`.
        bytes: size of the results so far.
        predicted: `{"median_s", "interval_s": [low, high], "bytes", "requests"}`.
        actual: `{"work_s", "bytes", "requests"}` so far; `work_s` is the time in which at least
            one batch of it ran. `None` before it starts.
        error: reason of phase ERROR.
        notes: warnings to the user.
        parameters: parameters as the client sent them.
        left: time left of a job in phase EXECUTING, `{"median_s", "interval_s": [low, high]}`: in
            80 of 100 cases the actual one is in the interval. `None` without a prediction, and
            while objects are to come from tape.
        staging: objects in stores whose objects are staged from tape, `{"objects", "come",
            "failed", "since", "ends_by", "faults"}`: their number, how many have come or never
            will, when they were first asked for, by when the others have come at most if the queue
            of the service is empty (`null`: unknown), and why services could not be asked, by
            store. `None` if there are no such objects.
    """

    id: str
    owner: str
    name: str
    phase: Phase
    options: Options
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime
    rows: int
    counts: dict[RowStatus, int]
    bytes: int
    predicted: dict[str, Any] | None
    actual: dict[str, Any] | None
    error: str | None
    notes: list[str]
    parameters: list[tuple[str, str]]
    left: dict[str, Any] | None = None
    staging: dict[str, Any] | None = None
    groups: dict[RowStatus, int] | None = None

    @property
    def totals(self) -> dict[RowStatus, int]:
        """Return the number of groups per status of a job of an algorithm, else that of rows."""
        return self.counts if self.groups is None else self.groups

    @property
    def unit(self) -> Literal["group", "row"]:
        """Return what `totals` counts."""
        return "row" if self.groups is None else "group"


@dataclass(frozen=True)
class Row:
    """A row of a job.

    Attributes:
        number: position in the user's list, from 0; the images of `rgb` are in the order of use.
        id: the user's id, with -2, -3 ... if a target has several rows.
        source: `STORE:path` or URL of the source; "" for a combined result.
        hdu: number, name or `NAME,VERSION`; `None` for the first image.
        box: x0, y0, width, height in zero-based pixels.
        reason: reason of the status.
        name: file name of its result, "" if there is none.
        sha256: checksum of that file.
    """

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


@dataclass(frozen=True)
class Estimate:
    """Estimate of a job.

    Attributes:
        targets: number of targets in the list.
        rows: number of images to cut.
        unmatched: targets that no image covers.
        prediction: predicted cost; `None` if there is nothing to cut.
        faults: id and reason of targets that cannot be cut, the first 20.
        matches: id and number of granules, of the first 20 targets in the sky; of an algorithm,
            name and number of granules of the first 20 groups.
        bytes_out: expected size of the results.
        staging: objects on tape by store, and how long staging takes at most; neither is in the
            prediction.
        groups: groups of granules, each one run of an algorithm; 0 for other operations.
        runs: earlier runs of the algorithm from which its time is predicted.
        read_bytes: bytes of all granules that an algorithm reads, where they are or as copies.
        reading: how an algorithm reads its granules, by store.
    """

    targets: int
    rows: int
    unmatched: int
    prediction: Prediction | None
    faults: list[tuple[str, str]]
    matches: list[tuple[str, int]]
    bytes_out: int
    staging: list[str] = field(default_factory=list)
    groups: int = 0
    runs: int = 0
    read_bytes: int = 0
    reading: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """Limits of what users may request.

    Attributes:
        rows_per_job: rows in one job.
        rows_waiting: waiting rows in all jobs of a user.
        jobs: jobs of a user that have not ended.
        result_bytes: size of all results of a user; a job that exceeds it is ended.
        slots: programs of a user at work at the same time; 0: as many as run at all.
        priority: share of turns of a user, 1 to 10, relative to that of others.
        shares: shares of users that have their own.
        removal_bytes: size of the results of deleted jobs that wait for their removal, of all
            users; jobs wait beyond it.
        cutout_bytes: size of the pixels of one cutout.
        default_s: lifetime of a job and its results by default, in seconds.
        longest_s: longest lifetime that may be requested, in seconds.
    """

    rows_per_job: int = 100_000
    rows_waiting: int = 1_000_000
    jobs: int = 20
    result_bytes: int = 20 << 30
    slots: int = 0
    priority: int = 5
    shares: Mapping[str, Share] = field(default_factory=dict)
    removal_bytes: int = 40 << 30
    cutout_bytes: int = 512 << 20
    default_s: float = 7 * DAY_S
    longest_s: float = 30 * DAY_S

    def share_of(self, user: str) -> Share:
        """Return the share of a user."""
        return self.shares.get(user) or Share(self.slots, self.result_bytes, self.priority)


@dataclass(frozen=True)
class Result:
    """A result file of a job.

    Attributes:
        file: name as the engine opens it: a path, or `STORE:path`.
        open: function that opens it for reading.
        array: path of the array in the source that it was cut from, or name of the array that
            pictures show; "" for images.
    """

    file: str
    name: str
    size: int
    etag: str
    media_type: str
    sha256: str
    open: Callable[[], BinaryIO]
    array: str = ""
