"""Operations as processes: inputs are the targets and options of a job."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.docstrings import attributes_of, summary_of
from swathe.core.errors import JobError
from swathe.core.value_errors import short_text
from swathe.jobs import Options
from swathe.operations.operation import NumberOption
from swathe.portal.api.models import CommonOptionsModel, TargetsModel
from swathe.portal.processes.input_values import TABLES, plain_value
from swathe.portal.processes.process import Process
from swathe.portal.processes.schemas import plain_schema

if TYPE_CHECKING:
    from swathe.jobs import Job
    from swathe.operations.operation import Operation
    from swathe.portal.context import Portal
    from swathe.portal.processes.process import Execution

ZIP = "application/zip"
ECSV = "text/plain"
TARGETS = (
    "Targets as columns, rows or lines of text; as a table by reference or qualified with its "
    "media type; the columns are those of lists of targets."
)
RESULT = "The result; if there are several, a zip archive of them with the manifest."
MANIFEST = "Status and reason of every target, as ECSV."


class OperationProcess(Process):
    """An operation of the registry."""

    has_targets = True

    def __init__(self, operation: Operation) -> None:
        """Set the operation."""
        self._operation = operation
        self.id, self.title = operation.name, operation.title
        self.version = _swathe.__version__
        self.description = summary_of(type(operation))

    @cached_property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of targets and options."""
        targets = plain_schema(TargetsModel.model_json_schema()["properties"]["targets"])
        tables = [{"type": "string", "contentMediaType": kind} for kind in TABLES]
        targets["oneOf"] += tables
        inputs = {"targets": {"title": "Targets", "description": TARGETS, "schema": targets}}
        return inputs | {
            name: {"minOccurs": 0, "maxOccurs": 1, **of} for name, of in self._options().items()
        }

    def _options(self) -> dict[str, dict[str, Any]]:
        """Return title, description and schema of each option."""
        operation = self._operation
        names = [each.name for each in operation.formats]
        options: dict[str, dict[str, Any]] = {
            "format": {
                "title": "Format",
                "description": "Format of each result.",
                "schema": {"type": "string", "enum": names, "default": names[0]},
            }
        }
        if not operation.reads_granules:
            texts = attributes_of(Options)
            for name, schema in CommonOptionsModel.model_json_schema()["properties"].items():
                options[name] = {
                    "title": schema["title"],
                    "description": texts[name],
                    "schema": plain_schema(schema),
                }
        for each in operation.options:
            schema = {"type": "string", "default": each.default}
            if isinstance(each, NumberOption):
                kind = "integer" if each.is_whole else "number"
                schema |= {"type": kind, "minimum": each.least, "maximum": each.most}
            if each.choices:
                schema["enum"] = list(each.values)
            options[each.name] = {
                "title": each.title,
                "description": each.help,
                "schema": schema,
            }
        return options

    @cached_property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of result and manifest."""
        kinds = dict.fromkeys([*(each.media_type for each in self._operation.formats), ZIP])
        schemas = [
            {"type": "string", "format": "binary", "contentMediaType": kind} for kind in kinds
        ]
        manifest = {"type": "string", "contentMediaType": ECSV}
        return {
            "result": {"title": "Result", "description": RESULT, "schema": {"oneOf": schemas}},
            "manifest": {"title": "Manifest", "description": MANIFEST, "schema": manifest},
        }

    def submit(self, portal: Portal, execution: Execution, user: str) -> Job:
        """Begin a job with these targets and options."""
        options = {
            name: plain_value(portal, name, value).value for name, value in execution.inputs.items()
        }
        choice = (execution.outputs or {}).get("result")
        if choice is not None and choice.media_type not in ("", ZIP):
            options["format"] = self._format(choice.media_type, options.get("format"))
        return portal.jobs.submit(
            execution.targets,
            Options.from_mapping({**options, "operation": self.id}),
            user,
            name=self.id,
            parameters=self.record(execution).parameters,
            callbacks=execution.subscriber,
        )

    def _format(self, media_type: str, name: Any) -> str:
        """Return the format of the results of a media type, which the input may name too.

        Raises:
            JobError: If there is none, or there are several.
        """
        names = [each.name for each in self._operation.formats if each.media_type == media_type]
        if name is not None:
            names = [each for each in names if each == name]
        if len(names) != 1:
            raise JobError(
                f"output result: expected a media type of the input format, found {media_type} "
                f"with format {short_text(name)}, which is {len(names) or 'none'} of the formats"
            )
        return names[0]
