"""Export as OpenTelemetry spans, sent to a receiver over HTTP (OTLP, protobuf).

A job is a trace. A stage outside a job is a trace of its own with what it contains. Points are
events of the span that their thread was in. Ids are derived from the events: sent again, the same
spans have the same ids.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import httpx
import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from swathe._swathe import __version__, redact_url
from swathe.core.errors import OutputError
from swathe.trace.analysis.align_clocks import align_times
from swathe.trace.analysis.attributes import attributes
from swathe.trace.analysis.columns import codes_of, join_codes, text_of
from swathe.trace.analysis.hosts import FIGURES
from swathe.trace.analysis.parents import owners_of, parents_of, roots_of
from swathe.trace.analysis.spans import find_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from swathe.trace.analysis.attributes import Value
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]

AT_ONCE = 512
"""Spans per request."""
MOST_POINTS = 128
"""Points per span, as in the SDKs; the number of dropped points is reported."""
TIMEOUT_S = 30.0
AGAIN = (429, 502, 503, 504)
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
LONGEST_PAUSE_S = 30.0
BUT = ("HOST", "PROG", "PID", "LVL")
PATH = "/v1/traces"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


@dataclass(frozen=True)
class ExportCounts:
    """Counts of the exported spans and events.

    Attributes:
        spans: stages.
        points: points within them.
        requests: requests.
        unfinished: stages without an end, which OpenTelemetry cannot express.
        unowned: points outside any stage, including those of the host monitor.
        damaged: lines of the run that are not events.
    """

    spans: int
    points: int
    requests: int
    unfinished: int
    unowned: int
    damaged: int


def send(events: Events, url: str) -> ExportCounts:
    """Send the stages of events to a receiver.

    Args:
        events: events of a run.
        url: URL of the receiver; `/v1/traces` is added if it has no path. Headers are taken from
            $OTEL_EXPORTER_OTLP_HEADERS, `name=value,name=value`.

    Raises:
        OutputError: If it cannot be reached, or does not accept all spans.
    """
    otlp = _Otlp(events)
    rejected_spans, message, requests = 0, "", 0
    with httpx.Client(timeout=TIMEOUT_S, headers=_headers()) as client:
        for request in otlp.requests():
            answer = _post(client, _address(url), request.SerializeToString())
            requests += 1
            rejected_spans += answer.partial_success.rejected_spans
            message = message or answer.partial_success.error_message
    if rejected_spans:
        raise OutputError(
            f"{redact_url(url)}: rejected {rejected_spans} of {len(otlp.spans)} spans: "
            f"{message[:500]}"
        )
    return ExportCounts(
        spans=len(otlp.spans),
        points=otlp.points,
        requests=requests,
        unfinished=len(otlp.spans.unfinished),
        unowned=otlp.unowned,
        damaged=events.damaged_count,
    )


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OutputError(f"{redact_url(url)}: expected http://HOST:4318 or https://...")
    return url if parts.path.strip("/") else parts._replace(path=PATH).geturl()


def _headers() -> dict[str, str]:
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": f"swathe/{__version__}"}
    for pair in os.environ.get(HEADERS, "").split(","):
        name, equals, value = pair.partition("=")
        if equals:
            headers[name.strip()] = unquote(value.strip())
    return headers


def _post(client: httpx.Client, url: str, body: bytes) -> ExportTraceServiceResponse:
    """Send a request; retry if the receiver is busy."""
    for pause_s in (*PAUSES_S, None):
        try:
            answer = client.post(url, content=body)
        except httpx.HTTPError as error:
            raise OutputError(f"{redact_url(url)}: {error or type(error).__name__}") from error
        if answer.status_code not in AGAIN or pause_s is None:
            break
        retry_after = answer.headers.get("Retry-After", "")
        if retry_after.isdecimal():
            pause_s = max(pause_s, min(float(retry_after), LONGEST_PAUSE_S))
        time.sleep(pause_s)
    if answer.status_code != 200:
        raise OutputError(f"{redact_url(url)}: answered {answer.status_code} {answer.text[:300]!r}")
    try:
        response: ExportTraceServiceResponse = ExportTraceServiceResponse.FromString(answer.content)
    except Exception as error:
        raise OutputError(f"{redact_url(url)}: the answer is not OTLP: {error}") from error
    return response


class _Otlp:
    """OTLP requests of a trace."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.time_ns, _ = align_times(events)
        self.spans = find_spans(events, self.time_ns)
        self.parent = parents_of(events, self.spans)
        self.root = roots_of(self.parent)
        self.process = join_codes([codes_of(events, name)[0] for name in ("HOST", "PROG", "PID")])
        self.jobs, self.job_names = codes_of(events, "JOB")
        self.points = self.unowned = 0
        self._points_of = self._owned_points()

    def requests(self) -> Iterator[ExportTraceServiceRequest]:
        """Yield all spans in order of their beginning."""
        for first in range(0, len(self.spans), AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, len(self.spans)))
            at_start = attributes(self.events, self.spans.start[numbers], but=BUT)
            at_end = attributes(self.events, self.spans.end[numbers], but=BUT)
            process = self.process[self.spans.start[numbers]]
            request = ExportTraceServiceRequest()
            for code in np.unique(process):
                of_process = np.flatnonzero(process == code)
                spans = [
                    self._span(int(numbers[at]), {**at_start[at], **at_end[at]})
                    for at in of_process.tolist()
                ]
                request.resource_spans.append(
                    ResourceSpans(
                        resource=self._resource(int(self.spans.start[numbers[of_process[0]]])),
                        scope_spans=[
                            ScopeSpans(
                                scope=InstrumentationScope(name="swathe", version=__version__),
                                spans=spans,
                            )
                        ],
                    )
                )
            yield request

    def _resource(self, row: int) -> Resource:
        host, prog, pid = (text_of(self.events, name, row) for name in ("HOST", "PROG", "PID"))
        attributes: dict[str, Value] = {"service.name": prog, "host.name": host}
        if pid.isdecimal():
            attributes["process.pid"] = int(pid)
        return Resource(attributes=_pairs(attributes))

    def _span(self, number: int, values: dict[str, Value]) -> Span:
        parent = int(self.parent[number])
        points = self._points_of.get(number, [])
        failed = values.get("RESULT") == "error"
        rows = np.array(points[:MOST_POINTS], np.int64)
        return Span(
            trace_id=self._trace_id(int(self.root[number])),
            span_id=self._span_id(number),
            parent_span_id=b"" if parent < 0 else self._span_id(parent),
            name=self.spans.names[self.spans.stage[number]],
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=int(self.spans.start_ns[number]),
            end_time_unix_nano=max(
                int(self.spans.end_ns[number]), int(self.spans.start_ns[number])
            ),
            attributes=_pairs(values),
            dropped_events_count=max(len(points) - MOST_POINTS, 0),
            events=[
                Span.Event(
                    time_unix_nano=int(self.time_ns[row]),
                    name=self.events.event.words[self.events.event.codes[row]],
                    attributes=_pairs(fields),
                )
                for row, fields in zip(
                    rows.tolist(), attributes(self.events, rows) if points else [], strict=True
                )
            ],
            status=Status(code=Status.STATUS_CODE_ERROR, message=str(values.get("REASON", "")))
            if failed
            else None,
        )

    def _trace_id(self, root: int) -> bytes:
        job = int(self.jobs[self.spans.start[root]])
        text = f"job {self.job_names[job]}" if job >= 0 else f"stage {self._identity(root)}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def _span_id(self, number: int) -> bytes:
        return hashlib.blake2b(self._identity(number).encode(), digest_size=8).digest()

    def _identity(self, number: int) -> str:
        row = int(self.spans.start[number])
        process = [text_of(self.events, name, row) for name in ("HOST", "PID", "THREAD", "REQUEST")]
        name = self.spans.names[self.spans.stage[number]]
        return f"{' '.join(process)} {name} {self.events.time_ns[row]} {row}"

    def _owned_points(self) -> dict[int, list[int]]:
        words = self.events.event.words
        is_point = np.array(
            [not (word.endswith(("_START", "_END")) or word in FIGURES) for word in words] + [False]
        )
        rows = np.flatnonzero(is_point[self.events.event.codes])
        owner = owners_of(self.events, self.spans, rows)
        points: dict[int, list[int]] = {}
        for row, of in zip(rows.tolist(), owner.tolist(), strict=True):
            if of >= 0:
                points.setdefault(of, []).append(row)
        self.points = int((owner >= 0).sum())
        others = np.array([word in FIGURES for word in words] + [False])
        self.unowned = int((owner < 0).sum() + others[self.events.event.codes].sum())
        return points


def _pairs(values: dict[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in values.items()]


def _value(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int) and abs(value) < 1 << 63:
        return AnyValue(int_value=value)
    return AnyValue(double_value=float(value))
