"""A process: what it takes and gives, and how a job of it begins."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from swathe.portal.stac.items import link

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import CallbackUrls
    from swathe.jobs import Job
    from swathe.portal.context import Portal

Transmission: TypeAlias = Literal["value", "reference"]
ResponseForm: TypeAlias = Literal["raw", "document"]
EXECUTE = "http://www.opengis.net/def/rel/ogc/1.0/execute"
SYNC_AND_ASYNC = ("sync-execute", "async-execute", "dismiss")
ASYNC_ONLY = ("async-execute", "dismiss")
"""For runs of minutes: no client should wait for them with an open connection."""
PARAMETER = "ogc-execution"
"""The parameter of a job that has its execution; such a job has no other."""


@dataclass(frozen=True)
class OutputChoice:
    """Choice of an output.

    Attributes:
        media_type: media type of its content; empty: any.
        transmission: by value or by reference; `None`: as the server chooses.
    """

    media_type: str = ""
    transmission: Transmission | None = None


@dataclass(frozen=True)
class Execution:
    """Request to execute a process.

    Attributes:
        inputs: values of the inputs by name, as they were sent.
        targets: targets as columns, if they were sent as a table or lines.
        outputs: outputs that the client chose; `None`: all.
        response: form of the response that it asked for; `None`: by the header `Accept`.
        subscriber: URLs that hear of the job.
    """

    inputs: Mapping[str, Any]
    targets: Mapping[str, list[Any]] = field(default_factory=dict)
    outputs: Mapping[str, OutputChoice] | None = None
    response: ResponseForm | None = None
    subscriber: CallbackUrls | None = None


@dataclass(frozen=True)
class ExecutionRecord:
    """What a job keeps of its execution.

    Attributes:
        process: id of the process.
        version: version of it that the job was accepted with.
        outputs: as in `Execution`.
        response: as in `Execution`.
        values: outputs that the job does not make as results, by name.
        pause_s: seconds until it has ended, if it has no targets.
    """

    process: str
    version: str
    outputs: Mapping[str, OutputChoice] | None = None
    response: ResponseForm | None = None
    values: Mapping[str, Any] | None = None
    pause_s: float = 0.0

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the job."""
        return [(PARAMETER, json.dumps(asdict(self)))]


def record_of(job: Job) -> ExecutionRecord:
    """Return the execution of a job; of one that was not submitted as a process, what fits it."""
    match job.parameters:
        case [(name, text)] if name == PARAMETER:
            content = json.loads(text)
            outputs = content.pop("outputs")
            choices = outputs and {each: OutputChoice(**of) for each, of in outputs.items()}
            return ExecutionRecord(**content, outputs=choices)
    name, _, version = str(job.options.own.get("algorithm", job.options.operation)).partition("@")
    return ExecutionRecord(name, version, response="document")


class Process(ABC):
    """A process.

    Attributes:
        id: its identifier.
        version: its version.
        title: short title.
        description: what it does.
        is_mutable: whether its owner may replace and remove it.
        job_control: how it may be executed, and whether its jobs can be dismissed.
        has_targets: whether its input `targets` is a list of targets.
        package_type: media type of the file of an algorithm.
    """

    id: str
    version: str
    title: str
    description: str
    is_mutable: bool = False
    job_control: tuple[str, ...] = SYNC_AND_ASYNC
    has_targets: bool = False
    package_type: str | None = None

    @property
    @abstractmethod
    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of its inputs, as in OGC API Processes."""

    @property
    @abstractmethod
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of its outputs, likewise."""

    @abstractmethod
    def submit(self, portal: Portal, execution: Execution, user: str) -> Job:
        """Begin a job.

        Args:
            portal: the portal.
            execution: the request.
            user: name of the user.

        Raises:
            SwatheError: If the inputs are invalid, may not be read, or exceed a limit.
        """

    def summary(self, url: str) -> dict[str, Any]:
        """Return its summary in lists, with links below the URL of the interface."""
        return summary(
            self.id,
            self.version,
            self.title,
            self.description,
            url,
            is_mutable=self.is_mutable,
            job_control=self.job_control,
            package_type=self.package_type,
        )

    def describe(self, url: str) -> dict[str, Any]:
        """Return its description, likewise."""
        return {**self.summary(url), "inputs": self.inputs, "outputs": self.outputs}

    def record(self, execution: Execution, **more: Any) -> ExecutionRecord:
        """Return what a job keeps of its execution."""
        return ExecutionRecord(self.id, self.version, execution.outputs, execution.response, **more)


def summary(
    identifier: str,
    version: str,
    title: str,
    description: str,
    url: str,
    *,
    is_mutable: bool,
    job_control: Sequence[str],
    package_type: str | None = None,
) -> dict[str, Any]:
    """Return the summary of a process.

    Args:
        identifier: id of the process.
        version: as in `Process`, and so are the others.
        title: short title.
        description: what it does.
        url: URL of the interface.
        is_mutable: whether its owner may replace and remove it.
        job_control: how it may be executed.
        package_type: media type of its file, if it is known.
    """
    own = f"{url}/processes/{quote(identifier)}"
    links = [link("self", own), link(EXECUTE, f"{own}/execution")]
    if is_mutable:
        kind = {} if package_type is None else {"type": package_type}
        links.append({"rel": "package", "href": f"{own}/package", **kind})
    return {
        "id": identifier,
        "version": version,
        "title": title,
        "description": description,
        "mutable": is_mutable,
        "jobControlOptions": job_control,
        "outputTransmission": ["value", "reference"],
        "links": links,
    }
