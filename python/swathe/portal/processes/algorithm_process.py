"""Algorithms of the catalogue as processes: inputs and outputs are those of their definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.algorithms.definition import GranuleInput
from swathe.core.errors import JobError
from swathe.core.value_errors import short_text
from swathe.jobs import Options
from swathe.portal.processes.input_values import href_of, is_reference, plain_value
from swathe.portal.processes.operation_process import ECSV, MANIFEST, ZIP
from swathe.portal.processes.process import ASYNC_ONLY, Process
from swathe.portal.uploads import columns_of

if TYPE_CHECKING:
    from swathe.algorithms.definition import Algorithm, Parameter
    from swathe.jobs import Job
    from swathe.portal.context import Portal
    from swathe.portal.processes.process import Execution

REFERENCE = {"type": "string", "format": "uri-reference"}


class AlgorithmProcess(Process):
    """A version of an algorithm."""

    is_mutable = True
    job_control = ASYNC_ONLY

    def __init__(self, definition: Algorithm, identifier: str, package_type: str) -> None:
        """Set the definition, the id by which it was requested, and the type of its file."""
        self.package_type = package_type
        self._definition = definition
        self.id, self.version = identifier, definition.version
        self.title = definition.name
        self.description = definition.description

    @property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of granules, files and parameters."""
        inputs: dict[str, dict[str, Any]] = {}
        schema: dict[str, Any]
        for name, each in self._definition.inputs.items():
            if isinstance(each, GranuleInput):
                text = (
                    f"Granules of {each.collection or 'any collection'}, grouped by {each.group}: "
                    "references, or an object with columns file, start, end, orbit, group."
                )
                limits = {"minOccurs": 1, "maxOccurs": "unbounded"}
                schema = {"oneOf": [REFERENCE, {"type": "object"}]}
            else:
                text, limits = f"The file {each.file}.", {"minOccurs": 1, "maxOccurs": 1}
                schema = REFERENCE
            inputs[name] = {"title": name, "description": text, **limits, "schema": schema}
        for name, parameter in self._definition.parameters.items():
            inputs[name] = {
                "title": name,
                "description": parameter.description,
                "minOccurs": 1 if parameter.default is None else 0,
                "maxOccurs": 1,
                "schema": schema_of(parameter),
            }
        return inputs

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of its outputs, and of the manifest."""
        outputs = {
            name: _output(name, of.media_type) for name, of in self._definition.outputs.items()
        }
        manifest = {"type": "string", "contentMediaType": ECSV}
        return outputs | {
            "manifest": {"title": "Manifest", "description": MANIFEST, "schema": manifest}
        }

    def submit(self, portal: Portal, execution: Execution, user: str) -> Job:
        """Begin a job that runs this version on the granules."""
        definition, inputs = self._definition, execution.inputs
        granules = _granules(portal, definition.granules[0], inputs[definition.granules[0]])
        own = {
            "algorithm": definition.label,
            "parameters": {
                name: plain_value(portal, name, inputs[name]).value
                for name in definition.parameters
                if name in inputs
            },
            "files": {name: _file(portal, name, inputs[name]) for name in definition.files},
        }
        return portal.jobs.submit(
            granules,
            Options.from_mapping({"operation": "algorithm", **own}),
            user,
            name=definition.label,
            parameters=self.record(execution).parameters,
            callbacks=execution.subscriber,
        )


def _output(name: str, media_type: str) -> dict[str, Any]:
    """Return the description of an output: its file, or a zip of the files of several groups."""
    schemas = [
        {"type": "string", "format": "binary", "contentMediaType": kind}
        for kind in (media_type, ZIP)
    ]
    description = "The file; of several groups of granules, a zip archive of their files."
    return {"title": name, "description": description, "schema": {"oneOf": schemas}}


def _granules(portal: Portal, name: str, value: Any) -> Any:
    """Return the granules of an input as columns.

    Raises:
        JobError, TargetsError: If the value is neither references, texts nor columns.
        AccessError: If a reference may not be read.
    """
    if isinstance(value, dict) and not is_reference(value):
        columns = plain_value(portal, name, value).value
        if isinstance(columns, dict):
            return columns_of(columns, portal.jobs.limits.rows_per_job)
        value = columns
    values = value if isinstance(value, list) else [value]
    return {"file": [_file(portal, name, each) for each in values]}


def _file(portal: Portal, name: str, value: Any) -> str:
    """Return the name of a file that is given by reference, or as a text."""
    if is_reference(value):
        return href_of(portal, name, value)
    text = plain_value(portal, name, value).value
    if not isinstance(text, str):
        raise JobError(f"input {name}: expected STORE:path or a URL, found {short_text(text)}")
    return text


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """Return the schema of the values of a parameter."""
    words = {
        "minimum": parameter.minimum,
        "maximum": parameter.maximum,
        "enum": list(parameter.enum) or None,
        "default": parameter.default,
    }
    return {"type": parameter.type} | {
        name: value for name, value in words.items() if value is not None
    }
