"""What the catalogue keeps besides stores, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from swathe.core.format import NOISE_S

if TYPE_CHECKING:
    from datetime import datetime

Source = Literal["probe", "read"]


@dataclass(frozen=True)
class Sample:
    """One measured request, or several that ran together.

    Attributes:
        kind: what was done, as `open`, `read` or `list`.
        bytes: how many were moved.
        streams: how many requests ran at the time, this one counted.
        seconds: from asking to the last byte; of several requests, from the first to the last.
        first_byte_s: seconds from asking to the first byte, where that is known.
        at: when it ended; any time zone.
        source: whether a probe measured it, or it was a read that users wanted.
        requests: how many there were, of about the same size; `bytes` is of all together.
    """

    kind: str
    bytes: int
    streams: int
    seconds: float
    first_byte_s: float | None
    at: datetime
    source: Source
    requests: int = 1


@dataclass(frozen=True)
class Probe:
    """One run of the probe.

    Attributes:
        id: its number in the catalogue.
        root: key of the store probed.
        host: the machine it ran on.
        at: when it ended, UTC.
        parameters: what it was asked to do.
        seconds: how long it took.
        bytes_moved: how much it read and wrote.
    """

    id: int
    root: str
    host: str
    at: datetime
    parameters: dict[str, Any]
    seconds: float
    bytes_moved: int


@dataclass(frozen=True)
class Profile:
    """The measured costs of a store as seen from a host.

    Attributes:
        root: key of the store.
        host: the machine that sees it so.
        costs: the parameters of the cost model.
        spread: how uncertain they are, under the same names.
        fitted_at: when they were fitted, UTC.
        notes: what could not be told, and what stands in its place.
    """

    root: str
    host: str
    costs: dict[str, Any]
    spread: dict[str, Any]
    fitted_at: datetime
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A prediction and what became of it.

    Attributes:
        at: when the work ended; any time zone.
        host: the machine it ran on.
        summary: the work in a few words.
        targets: how many were cut.
        root: key of the store read from; empty where there were several.
        predicted_s: median of the predicted seconds.
        low_s: lower end of the predicted interval.
        high_s: upper end of the predicted interval.
        actual_s: seconds it took.
        predicted_bytes: bytes expected to be read.
        actual_bytes: bytes read.
        predicted_requests: requests expected.
        actual_requests: requests made.
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

    @property
    def error(self) -> float | None:
        """How far the seconds were off, relative to what the work took; `None` under NOISE_S."""
        return self.predicted_s / self.actual_s - 1 if self.actual_s >= NOISE_S else None
