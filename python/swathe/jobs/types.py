"""Jobs as plain values: what is asked for, what is known of it, what came of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

from swathe.catalog.records.jobs import Phase, RowStatus
from swathe.core.errors import DatasetError, JobError
from swathe.operations.formats import BANDS, Format, Operation, Stack, is_combined

if TYPE_CHECKING:
    from datetime import datetime

    from swathe._swathe import Mode
    from swathe.costs.prediction import Prediction

ArchiveKind = Literal["zip", "tar", "fits"]

DAY_S = 86_400
MODES = ("trim", "partial", "strict")
MEDIA_TYPES = {
    ".fits": "application/fits",
    ".npy": "application/octet-stream",
    ".png": "image/png",
}
MOST_BANDS = 100
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Options:
    """What is made of the targets.

    Attributes:
        operation: `cut` each, or `stack` them: one image of all, or of each `group`.
        mode: `trim`, `partial` or `strict`, as for `swathe.cut`.
        fill: physical value outside the image, with `partial`.
        planes: of cubes, first and last to keep, zero-based, last excluded.
        format: of each result; `rgb` is one picture of three bands.
        bands: of places in the sky without a file, only images of these; with `rgb` exactly
            three, red first.
        dataset: where images of such places are looked for; by default everywhere.
        time: only images of them taken then: MJD (UTC), from and to.
        stack: how pixels are put together.
    """

    operation: Operation = "cut"
    mode: Mode = "trim"
    fill: float | None = None
    planes: tuple[int, int] | None = None
    format: Format = "fits"
    bands: tuple[str, ...] = ()
    dataset: str | None = None
    time: tuple[float, float] | None = None
    stack: Stack = "mean"

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Options:
        """Read options as they come from JSON.

        Raises:
            JobError: naming the option that makes no sense, what was expected, what was found.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise JobError(
                    f"there is no option {str(name)[:50]!r}; there are {', '.join(known)}"
                )
        read: dict[str, Any] = {}
        for name, value in given.items():
            # What is null is as if it were not there.
            if value is not None:
                read[name] = _READ[name](name, value)
        options = cls(**read)
        options.check()
        return options

    def check(self) -> None:
        """Raise where options do not go together.

        Raises:
            JobError: saying which.
        """
        if self.format == "rgb" and len(self.bands) != BANDS:
            raise JobError(
                f"option bands: format rgb needs exactly three, red first, not {len(self.bands)}"
            )
        if self.operation == "stack" and self.format != "fits":
            raise JobError(f"option format: a stack is fits, not {self.format}")
        if self.fill is not None and self.mode != "partial":
            raise JobError(f"option fill: goes with mode partial, not {self.mode}")

    @property
    def is_combined(self) -> bool:
        """Tell whether results are made of several rows."""
        return is_combined(self.operation, self.format)

    def as_dict(self) -> dict[str, Any]:
        """Give them as JSON takes them; `checked` reads that."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def _choice(*allowed: str) -> Any:
    def read(name: str, value: Any) -> str:
        if value not in allowed:
            raise JobError(f"option {name}: one of {', '.join(allowed)}, not {_short(value)}")
        return str(value)

    return read


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JobError(f"option {name}: a number, not {_short(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise JobError(f"option {name}: a finite number, not {_short(value)}")
    return number


def read_planes(name: str, value: Any) -> tuple[int, int]:
    """Read `first:last`, or a pair."""
    pair = value.split(":") if isinstance(value, str) else value
    try:
        first, last = (
            int(each) if isinstance(each, str) else operator.index(each) for each in pair
        )
    except (TypeError, ValueError):
        first, last = 0, 0
    if not 0 <= first < last < 1 << 53:
        raise JobError(
            f"option {name}: first and last, 0 <= first < last, as 3:7; not {_short(value)}"
        )
    return first, last


def _bands(name: str, value: Any) -> tuple[str, ...]:
    bands = value.split(",") if isinstance(value, str) else value
    if (
        not isinstance(bands, list | tuple)
        or len(bands) > MOST_BANDS
        or not all(isinstance(band, str) and 0 < len(band.strip()) <= 100 for band in bands)
    ):
        raise JobError(f"option {name}: at most {MOST_BANDS} names of filters, not {_short(value)}")
    return tuple(band.strip() for band in bands)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_TEXT:
        raise JobError(f"option {name}: a name, not {_short(value)}")
    return value.strip()


def _time(name: str, value: Any) -> tuple[float, float]:
    from swathe.datasets.search import read_times

    try:
        found = read_times(value)
    except DatasetError as error:
        raise JobError(f"option {name}: {error}") from error
    assert found is not None
    return found


def _short(value: Any) -> str:
    try:
        return repr(value)[:60]
    except ValueError:  # of numbers with too many digits
        return "a number too long to be shown"


_READ: dict[str, Any] = {
    "operation": _choice(*get_args(Operation)),
    "mode": _choice(*MODES),
    "fill": _number,
    "planes": read_planes,
    "format": _choice(*get_args(Format)),
    "bands": _bands,
    "dataset": _text,
    "time": _time,
    "stack": _choice(*get_args(Stack)),
}


@dataclass(frozen=True)
class Job:
    """What is known of a job.

    Attributes:
        id: 22 random characters, safe in URLs.
        owner: name of the user; "anonymous" where no token is needed.
        name: what the user calls it, perhaps nothing.
        expires_at: when it is deleted, with its results.
        rows: images to cut, one for each target and granule; of stacks and `rgb`, the images that
            go in, and behind them the results made of them.
        counts: how many rows have each status.
        bytes: of results so far.
        predicted: `{"seconds", "interval_s": [low, high], "bytes", "requests"}`.
        actual: the same names without the interval, so far: seconds of work, bytes and requests
            moved; `None` before it starts.
        error: why the phase is ERROR.
        notes: what the user should be told.
        parameters: what the client sent, verbatim.
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


@dataclass(frozen=True)
class Row:
    """A row of a job.

    Attributes:
        number: its place in the user's list, from 0.
        id: the user's, with -2, -3 ... where a target gave several.
        source: `STORE:path` or URL it is cut from; "" of what is made of several.
        hdu: number, name or `NAME,VERSION`; `None` for the first image.
        box: x0, y0, width, height in zero-based pixels.
        reason: why the status is what it is.
        name: file name of its result, "" if there is none.
        sha256: of that file.
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
    """What a job would be.

    Attributes:
        targets: how many were given.
        rows: images to cut.
        unmatched: targets that no image shows.
        prediction: what it will cost; `None` where there is nothing to cut.
        faults: id and reason of targets that cannot be cut, the first 20.
        matches: id and number of granules, of the first 20 targets in the sky.
        bytes_out: expected size of the results.
    """

    targets: int
    rows: int
    unmatched: int
    prediction: Prediction | None
    faults: list[tuple[str, str]]
    matches: list[tuple[str, int]]
    bytes_out: int


@dataclass(frozen=True)
class Limits:
    """What users may ask for.

    Attributes:
        rows_per_job: in one job.
        rows_waiting: of one user's jobs together.
        jobs: of one user that have not ended.
        result_bytes: of one user's results together; a job that comes to more is ended.
        cutout_bytes: of the pixels of one cutout.
        default_s: how long a job and its results are kept where nothing else is asked for.
        longest_s: how long they may be kept.
    """

    rows_per_job: int = 100_000
    rows_waiting: int = 1_000_000
    jobs: int = 20
    result_bytes: int = 20 << 30
    cutout_bytes: int = 512 << 20
    default_s: float = 7 * DAY_S
    longest_s: float = 30 * DAY_S


@dataclass(frozen=True)
class Result:
    """A file that a job made.

    Attributes:
        file: as the engine opens it: a path, or `STORE:path`.
        open: gives a file to read it from.
    """

    file: str
    name: str
    size: int
    etag: str
    media_type: str
    sha256: str
    open: Callable[[], BinaryIO]
