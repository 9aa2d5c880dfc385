"""Records of measurements as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from swathe.core.format import NOISE_S

if TYPE_CHECKING:
    from datetime import datetime

Source = Literal["probe", "read"]


@dataclass(frozen=True)
class SampleRecord:
    """One measured request, or several that ran together.

    Attributes:
        kind: kind of request, such as `open`, `read` or `list`.
        bytes: bytes moved.
        streams: concurrent requests, this one included.
        elapsed_s: from the request to the last byte; for several requests, from the first to the
            last.
        first_byte_s: seconds from the request to the first byte, if known.
        at: end; any time zone.
        source: `probe`, or `read` for a user's read.
        requests: number of requests, of about the same size; `bytes` is their sum.
    """

    kind: str
    bytes: int
    streams: int
    elapsed_s: float
    first_byte_s: float | None
    at: datetime
    source: Source
    requests: int = 1


@dataclass(frozen=True)
class ProbeRecord:
    """One run of the probe.

    Attributes:
        id: its number in the catalogue.
        root: key of the probed store.
        host: machine it ran on.
        at: end, UTC.
        parameters: parameters of the run.
        elapsed_s: duration.
        bytes_moved: bytes read and written.
    """

    id: int
    root: str
    host: str
    at: datetime
    parameters: dict[str, Any]
    elapsed_s: float
    bytes_moved: int


@dataclass(frozen=True)
class ProfileRecord:
    """Measured costs of a store as seen from a host.

    Attributes:
        root: key of the store.
        host: machine that measured it.
        costs: parameters of the cost model.
        spread: their uncertainties, under the same names.
        fitted_at: time of the fit, UTC.
        notes: what could not be measured, and what is assumed instead.
    """

    root: str
    host: str
    costs: dict[str, Any]
    spread: dict[str, Any]
    fitted_at: datetime
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Predicted and actual cost of a piece of work.

    Attributes:
        at: end of the work; any time zone.
        host: machine it ran on.
        summary: description of the work in a few words.
        targets: number of targets cut.
        root: key of the store; empty if there were several.
        predicted_s: median of the predicted seconds.
        low_s: lower end of the predicted interval.
        high_s: upper end of the predicted interval.
        actual_s: actual seconds; of a call, from the call to its return.
        predicted_bytes: predicted bytes to read.
        actual_bytes: bytes read.
        predicted_requests: predicted requests.
        actual_requests: requests made.
        model_s: the part of `predicted_s` for reading and cutting, before earlier outcomes
            corrected it; 0 if the outcome says nothing of the model.
        engine_s: the part of `actual_s` for reading and cutting.
        before_s: the part of `actual_s` before that: the list is read, and the job planned.
        after_s: the part of `actual_s` after that: results are closed, the manifest written.
        output: kind and file system of the results that the engine writes, as `zip on /home`; or
            what is made of its cutouts, as `cut as png`; empty if they are dropped.
        write_s: seconds of all threads to write the results.
        written_bytes: size of the results.
    """

    at: datetime
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
    model_s: float = 0.0
    engine_s: float = 0.0
    before_s: float = 0.0
    after_s: float = 0.0
    output: str = ""
    write_s: float = 0.0
    written_bytes: int = 0

    @property
    def error(self) -> float | None:
        """Error of the predicted seconds, relative to the actual ones; `None` below NOISE_S."""
        return self.predicted_s / self.actual_s - 1 if self.actual_s >= NOISE_S else None
