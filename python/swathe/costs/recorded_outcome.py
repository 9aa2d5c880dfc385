"""Record how a prediction ended, and the times of the reads that it was about."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.catalog import Outcome, OutcomeLog
from swathe.catalog.read_log import ReadLog
from swathe.core.errors import SwatheError
from swathe.core.host import this_host
from swathe.core.paths import default_url
from swathe.costs.past_outcomes import root_of
from swathe.costs.predict_list import known_call_costs

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.costs.fit.from_real_reads import Timing
    from swathe.costs.prediction import Prediction


@dataclass
class CallOutcome:
    """Sums over the pieces of a call, in seconds, bytes and requests.

    Attributes:
        root: key of the only store; empty if there are several.
        low_s, high_s: ends of the predicted interval.
        before_s: time before reading and cutting, without opening objects on servers.
        engine_s: time of that, reading and cutting.
        output: kind and file system of the results that the engine writes, as `zip on /home`; or
            what is made of its cutouts, as `cut as png`; empty if they are dropped.
        write_s: seconds of all threads to write them.
        written_bytes: their size.
        is_comparable: whether all of it was done, and all of it was predicted.
    """

    root: str | None = None
    predicted_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    model_s: float = 0.0
    predicted_bytes: int = 0
    predicted_requests: int = 0
    before_s: float = 0.0
    engine_s: float = 0.0
    bytes: int = 0
    requests: int = 0
    targets: int = 0
    output: str = ""
    write_s: float = 0.0
    written_bytes: int = 0
    is_comparable: bool = True

    def expect(self, prediction: Prediction, elapsed_s: float) -> None:
        """Add the prediction of a piece, made `elapsed_s` after the end of the last one."""
        if prediction.per_store:  # A piece whose targets are all done has no store.
            root = prediction.only_root
            self.root = root if self.root in (None, root) else ""
        self.predicted_s += prediction.median_s
        self.low_s += prediction.interval_s[0]
        self.high_s += prediction.interval_s[1]
        self.model_s += prediction.model_s
        self.predicted_bytes += prediction.bytes
        self.predicted_requests += prediction.requests
        self.before_s += elapsed_s


def record_outcome(call: CallOutcome, actual_s: float, summary: str) -> list[str]:
    """Record the outcome of a call in the catalogue, and the times of real reads.

    The work is done by then, so a catalogue that cannot be written is only a warning.

    Args:
        call: what was predicted and measured.
        actual_s: seconds from the call to its return.
        summary: description of the work in a few words.

    Returns:
        Warnings for the user.
    """
    from swathe.costs.fit.from_real_reads import log_reads

    timings = _swathe.take_timings()
    is_compared = call.is_comparable and call.targets > 0
    outcome = _outcome(call, actual_s, summary) if is_compared else None
    url = default_url()
    outcome_log, read_log = OutcomeLog.of(url), ReadLog.of(url)
    try:
        if outcome_log is None or read_log is None:
            _enter(outcome, timings)
            return []
        is_due = outcome is not None and outcome_log.append(outcome)
        if (timings and log_reads(read_log, timings)) or is_due:
            _enter(None, [])
    except SwatheError as error:
        return [f"the prediction was not recorded: {error}"]
    return []


def _enter(outcome: Outcome | None, timings: list[Timing]) -> None:
    """Enter an outcome, timings, and what waits in the logs, into the catalogue."""
    from swathe.catalog import Catalog
    from swathe.costs.fit.from_real_reads import feed_back, feed_back_log

    with Catalog.open() as catalog:
        if outcome is not None:
            catalog.add_outcome(outcome)
        feed_back(catalog, timings)
        feed_back_log(catalog)
        catalog.enter_outcomes()
        keep_call_costs(catalog)


def keep_call_costs(catalog: Catalog) -> None:
    """Store what calls take on this host with its computing costs, if these were measured.

    Raises:
        CatalogError: If the catalogue cannot be read or written.
    """
    compute = catalog.compute(this_host())
    if compute is not None:
        call = asdict(known_call_costs())
        catalog.put_compute(this_host(), {**compute, "call": call}, datetime.now(UTC))


def _outcome(call: CallOutcome, actual_s: float, summary: str) -> Outcome:
    return Outcome(
        at=datetime.now(UTC),
        host=this_host(),
        summary=summary,
        targets=call.targets,
        root="" if not call.root else root_of(call.root),
        predicted_s=call.predicted_s,
        low_s=call.low_s,
        high_s=call.high_s,
        actual_s=actual_s,
        predicted_bytes=call.predicted_bytes,
        actual_bytes=call.bytes,
        predicted_requests=call.predicted_requests,
        actual_requests=call.requests,
        model_s=call.model_s,
        engine_s=call.engine_s,
        before_s=call.before_s,
        after_s=max(actual_s - call.before_s - call.engine_s, 0.0),
        output=call.output,
        write_s=call.write_s,
        written_bytes=call.written_bytes,
    )
