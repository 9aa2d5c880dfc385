"""The process `echo`: each output is an input, after a pause. Clients are tried with it.

Its job has no targets. It is pending for the pause, and is then ended by a timer; after a restart
of the portal by the next request for it.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from swathe.algorithms.named_algorithms import ECHO
from swathe.core.errors import JobError, LimitError
from swathe.core.value_errors import fault_text
from swathe.jobs import Options
from swathe.portal.processes.input_values import plain_value
from swathe.portal.processes.process import Process, record_of
from swathe.portal.processes.schemas import plain_schema

if TYPE_CHECKING:
    from swathe.jobs import Job
    from swathe.portal.context import Portal
    from swathe.portal.processes.process import Execution

LONGEST_PAUSE_S = 60.0
LARGEST = 32_000
"""Most characters of the inputs as JSON: a job keeps them."""
NO_TARGETS: dict[str, list[Any]] = {name: [] for name in ("file", "x", "y", "height", "width")}
BBOX_SIZES = (4, 6)
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"


def _bounds(value: dict[str, Any]) -> dict[str, Any]:
    numbers = value.get("bbox")
    good = isinstance(numbers, list) and len(numbers) in BBOX_SIZES
    if not good or not all(type(each) in (int, float) for each in numbers or ()):
        raise ValueError("expected bbox with 4 or 6 numbers")
    if not isinstance(value.get("crs", CRS84), str) or value.keys() - {"bbox", "crs"}:
        raise ValueError("expected bbox and crs, a URI")
    return value


def _binary(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"expected base64: {error}") from error
    return value


BBOX_SCHEMA: dict[str, Any] = {
    "type": "object",
    "format": "ogc-bbox",
    "required": ["bbox"],
    "properties": {
        "bbox": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 6},
        "crs": {"type": "string", "format": "uri", "default": CRS84},
    },
}
BINARY_SCHEMA = {
    "type": "string",
    "contentEncoding": "base64",
    "contentMediaType": "application/octet-stream",
}


class EchoInputs(BaseModel):
    """Inputs of the process, all optional."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    stringInput: str | None = Field(None, description="A text.")  # noqa: N815 - as OGC names them
    numberInput: float | None = Field(None, description="A number.")  # noqa: N815
    arrayInput: list[float] | None = Field(None, description="Numbers.")  # noqa: N815
    objectInput: dict[str, Any] | None = Field(None, description="An object.")  # noqa: N815
    boundingBoxInput: (  # noqa: N815
        Annotated[dict[str, Any], AfterValidator(_bounds), WithJsonSchema(BBOX_SCHEMA)] | None
    ) = Field(None, description="A bounding box.")
    binaryInput: (  # noqa: N815
        Annotated[str, AfterValidator(_binary), WithJsonSchema(BINARY_SCHEMA)] | None
    ) = Field(None, description="Bytes, as base64.")
    pause: float = Field(0.0, ge=0, le=LONGEST_PAUSE_S, description="Duration, seconds.")


class EchoProcess(Process):
    """Each output is an input."""

    id = ECHO
    version = "1.0.0"
    title = "Echo"
    description = "Returns its inputs after a pause, to try clients."

    @cached_property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of its inputs."""
        properties = EchoInputs.model_json_schema()["properties"]
        return {
            name: {
                "title": name,
                "description": of["description"],
                "minOccurs": 0,
                "maxOccurs": 1,
                "schema": plain_schema(of),
            }
            for name, of in properties.items()
        }

    @cached_property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of its outputs: the inputs but the pause."""
        return {
            output_of(name): {"title": output_of(name), "schema": of["schema"]}
            for name, of in self.inputs.items()
            if name != "pause"
        }

    def submit(self, portal: Portal, execution: Execution, user: str) -> Job:
        """Begin a job that ends after the pause."""
        values = {
            name: plain_value(portal, name, value) for name, value in execution.inputs.items()
        }
        try:
            inputs = EchoInputs.model_validate({name: of.value for name, of in values.items()})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part)[:50] for part in first["loc"][:6])
            raise JobError(f"input {place}: {fault_text(first)}") from error
        outputs = {
            output_of(name): {"value": of.value, "mediaType": of.media_type}
            for name, of in values.items()
            if name != "pause" and of.value is not None
        }
        for name in execution.outputs or ():
            if name not in outputs:
                raise JobError(f"output {name}: expected its input, found none")
        if (size := len(json.dumps(outputs))) > LARGEST:
            raise LimitError(f"the inputs: expected at most {LARGEST:,} characters, found {size:,}")
        record = self.record(execution, values=outputs, pause_s=inputs.pause)
        return portal.jobs.submit(
            NO_TARGETS,
            Options(),
            user,
            name=self.id,
            start=inputs.pause == 0,
            parameters=record.parameters,
            callbacks=execution.subscriber,
        )


def output_of(name: str) -> str:
    """Return the name of the output of an input."""
    return name.removesuffix("Input") + "Output"


def end_after_pause(portal: Portal, job: Job) -> Job:
    """Return a job; one of `echo` has ended if its pause is over."""
    if job.phase != "PENDING":
        return job
    record = record_of(job)
    end = job.created_at + timedelta(seconds=record.pause_s)
    if record.process != ECHO or record.values is None or datetime.now(UTC) < end:
        return job
    # It takes no share of its user: no limit keeps it from ending.
    portal.catalog.start_job(job.id, lambda _usage: None)
    portal.jobs.wake()
    return portal.jobs.job(job.id)
