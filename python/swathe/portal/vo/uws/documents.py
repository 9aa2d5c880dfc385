"""Jobs as XML documents of UWS 1.1."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic_xml import BaseXmlModel, element
from vo_models.uws import (
    ErrorSummary,
    Jobs,
    JobSummary,
    Parameter,
    ResultReference,
    Results,
    ShortJobDescription,
)
from vo_models.uws.models import NSMAP
from vo_models.uws.types import ErrorType, ExecutionPhase, UWSVersion
from vo_models.voresource.types import UTCTimestamp

from swathe.jobs.staging_progress import staging_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swathe.portal.vo.uws.job import UwsJob

XML = "text/xml"
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
STAGING_MAP = {**NSMAP, "swathe": "urn:swathe:staging"}
HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'


class UwsParameters(BaseXmlModel, tag="parameters", ns="uws", nsmap=NSMAP):
    """Parameters with any names, unlike those of vo-models, whose names are fixed."""

    parameter: list[Parameter] = element(tag="parameter", ns="uws", default=[])


class JobInfo(BaseXmlModel, tag="jobInfo", ns="uws", nsmap=STAGING_MAP):
    """How far staging is. The schema of UWS has elements of any other namespace here."""

    staging: str = element(tag="staging", ns="swathe")


class JobDocument(JobSummary[UwsParameters], tag="job", ns="uws", nsmap=NSMAP):
    """A job. In vo-models `jobInfo` is text, which the schema of UWS does not allow."""

    job_info: JobInfo | None = element(tag="jobInfo", default=None)  # type: ignore[assignment]  # as above


def job_document(job: UwsJob, results: Sequence[ResultReference], duration_s: int = 0) -> bytes:
    """Return the document of a job that may run for some seconds; 0: without limit."""
    more = _name(job)
    if job.staging is not None:
        reasons = [f"{store}: {reason}" for store, reason in job.staging["faults"].items()]
        sentences = [staging_text(job.staging), *reasons]
        more["job_info"] = JobInfo(staging=clean("; ".join(sentences)))
    if job.error is not None:
        more["error_summary"] = ErrorSummary(
            message=clean(job.error), type=ErrorType.FATAL, has_detail=True
        )
    return _write(
        JobDocument(
            version=UWSVersion.V1_1,
            job_id=job.id,
            owner_id=job.owner,
            phase=uws_phase(job),
            quote=_moment(quote(job)),
            creation_time=_moment(job.created_at),
            start_time=_moment(job.started_at),
            end_time=_moment(job.ended_at),
            execution_duration=duration_s,
            destruction=_moment(job.expires_at),
            parameters=_parameters(job),
            results=Results(results=list(results)),
            **more,
        )
    )


def list_document(jobs: Iterable[UwsJob], base: str) -> bytes:
    """Return a list of jobs; `base` is the URL of the list."""
    references = [
        ShortJobDescription(
            job_id=job.id,
            href=f"{base}/{job.id}",
            phase=uws_phase(job),
            **_name(job),
            owner_id=job.owner,
            creation_time=_moment(job.created_at),
        )
        for job in jobs
    ]
    return _write(Jobs(version=UWSVersion.V1_1, jobref=references))


def results_document(results: Sequence[ResultReference]) -> bytes:
    """Return the results of a job."""
    return _write(Results(results=list(results)))


def parameters_document(job: UwsJob) -> bytes:
    """Return the parameters that the client sent."""
    return _write(_parameters(job))


def uws_phase(job: UwsJob) -> ExecutionPhase:
    """Return the phase that UWS has: one that waits for tape is queued, or suspended if it ran."""
    if job.phase == "STAGING":
        return ExecutionPhase.QUEUED if job.started_at is None else ExecutionPhase.SUSPENDED
    return ExecutionPhase(job.phase)


def quote(job: UwsJob) -> datetime | None:
    """Return the predicted end of a job, or None."""
    if job.predicted is None:
        return None
    return (job.started_at or job.created_at) + timedelta(seconds=float(job.predicted["median_s"]))


def iso(moment: datetime) -> str:
    """Return a time in the format of UWS."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _moment(moment: datetime | None) -> UTCTimestamp | None:
    return None if moment is None else UTCTimestamp.fromisoformat(iso(moment))


def clean(text: str) -> str:
    """Return text with `?` for characters that XML does not allow."""
    return NO_XML.sub("?", text)


def _name(job: UwsJob) -> dict[str, Any]:
    return {"run_id": clean(job.name)} if job.name else {}


def _parameters(job: UwsJob) -> UwsParameters:
    return UwsParameters(
        parameter=[Parameter(id=clean(name), value=clean(value)) for name, value in job.parameters]
    )


def _write(model: Any) -> bytes:
    """Write the fields that were set, with nil elements where the schema requires them."""
    return HEAD + bytes(model.to_xml(exclude_unset=True))
