"""Processes of a document of CWL: tools and workflows, their ports, types and requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from swathe.algorithms.header_table import HeaderTable
from swathe.core.value_errors import short_text

TOOL, WORKFLOW, EXPRESSION = "CommandLineTool", "Workflow", "ExpressionTool"
CLASSES = (TOOL, WORKFLOW, EXPRESSION)
VERSIONS = ("v1.0", "v1.1", "v1.2")
DOCKER, SCRIPT = "DockerRequirement", "InlineJavascriptRequirement"
REQUIREMENTS = (
    *("EnvVarRequirement", "InitialWorkDirRequirement", SCRIPT, "InplaceUpdateRequirement"),
    *("LoadListingRequirement", "MultipleInputFeatureRequirement", "NetworkAccess"),
    *("ResourceRequirement", "ScatterFeatureRequirement", "SchemaDefRequirement"),
    *("ShellCommandRequirement", "StepInputExpressionRequirement"),
    *("SubworkflowFeatureRequirement", "ToolTimeLimit", "WorkReuse"),
)
"""Requirements that a run can fulfil."""
REFUSALS = {
    DOCKER: "no container: programs run in the sandbox; it may be a hint",
    "SoftwareRequirement": "no software to install: the environment has it; it may be a hint",
}
MOST_LEVELS = 10
"""Most workflows within each other."""


@dataclass(frozen=True)
class CwlType:
    """Type of an input or output.

    Attributes:
        name: `File`, `Directory`, `string`, ..., `enum`; `other` for what has no place here.
        is_list: whether it is a list of them.
        is_optional: whether it may be null.
        symbols: values of an enum.
    """

    name: str
    is_list: bool = False
    is_optional: bool = False
    symbols: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the type as a document writes it."""
        return f"{self.name}[]" if self.is_list else self.name

    @classmethod
    def of(cls, value: Any) -> CwlType:
        """Return the type that a document states."""
        if isinstance(value, list):
            rest = [each for each in value if each != "null"]
            inner = cls.of(rest[0]) if len(rest) == 1 else cls("other")
            is_optional = inner.is_optional or len(rest) < len(value)
            return cls(inner.name, inner.is_list, is_optional, inner.symbols)
        if isinstance(value, str):
            text = value.removesuffix("?")
            is_list = text.endswith("[]")
            name = text.removesuffix("[]")
            return cls("other" if name.endswith("]") else name, is_list, text != value)
        if isinstance(value, dict) and value.get("type") == "array":
            inner = cls.of(value.get("items"))
            is_plain = not (inner.is_list or inner.is_optional)
            return cls(inner.name if is_plain else "other", is_list=True, symbols=inner.symbols)
        if isinstance(value, dict) and value.get("type") == "enum":
            symbols = value.get("symbols")
            texts = symbols if isinstance(symbols, list) else ()
            return cls("enum", symbols=tuple(short_name(each) for each in texts))
        return cls("other")


def short_name(identifier: Any) -> str:
    """Return the last part of an id, as `granules` of `#main/granules`."""
    text = identifier if isinstance(identifier, str) else short_text(identifier)
    return text.rpartition("#")[2].rpartition("/")[2]


def class_name(name: str) -> str:
    """Return the name of a class without its namespace."""
    return name.rpartition(":")[2] or name


def entries(value: Any, key: str = "id") -> dict[str, Any]:
    """Return a map, or a list whose items have their names in a key, by names."""
    if isinstance(value, dict):
        return value
    items = value if isinstance(value, list) else ()
    return {short_name(each[key]): each for each in items if isinstance(each, dict) and key in each}


class CwlDocument:
    """Document of CWL that was parsed.

    Attributes:
        values: its values.
        main: the process that runs.
        parts: all processes and steps, those within steps too.
        notes: what is ignored.
    """

    def __init__(self, values: dict[str, Any], table: HeaderTable) -> None:
        """Find the processes; add what cannot run as faults to a table."""
        self.values = values
        self._table = table
        graph = values.get("$graph")
        items = graph if isinstance(graph, list) else ()
        self._tops = [each for each in items if isinstance(each, dict)] or [values]
        self._top_by_id = {short_name(each.get("id")): each for each in reversed(self._tops)}
        # Of each process once: a document may name one very often.
        self._ports: dict[tuple[int, str], dict[str, dict[str, Any]]] = {}
        self._steps: dict[int, dict[str, Any]] = {}
        table.choice("cwlVersion", VERSIONS, None)
        self.main = self._main()
        self.parts = [each for top in self._tops for each in self._with_steps(top, 0)]
        self.notes: list[str] = []
        if "$graph" in values:
            self._check_graph(graph)
        for part in self.parts:
            for key in ("inputs", "outputs", "steps"):
                self._check_entries(key, part.get(key))
            self._check_requirements(part)

    @property
    def has_scripts(self) -> bool:
        """Check whether expressions of it are JavaScript, which needs Node.js."""
        return any(
            SCRIPT in self.requirements(part, key)
            for part in self.parts
            for key in ("requirements", "hints")
        )

    def requirements(self, process: Mapping[str, Any], key: str = "requirements") -> dict[str, Any]:
        """Return the requirements or hints of a process by class."""
        classes = entries(process.get(key), "class")
        return {class_name(name): each for name, each in classes.items()}

    def ports(self, process: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
        """Return the inputs or outputs of a process by name; a type alone becomes a port."""
        place = (id(process), key)
        if place not in self._ports:
            self._ports[place] = {
                short_name(name): each
                if isinstance(each, dict) and "type" in each
                else {"type": each}
                for name, each in entries(process.get(key)).items()
            }
        return self._ports[place]

    def step(self, workflow: Mapping[str, Any], name: str) -> Any:
        """Return a step of a workflow; `None` if there is none."""
        if id(workflow) not in self._steps:
            steps = entries(workflow.get("steps"))
            self._steps[id(workflow)] = {short_name(key): each for key, each in steps.items()}
        return self._steps[id(workflow)].get(name)

    def process_of(self, step: Any) -> dict[str, Any] | None:
        """Return the process that a step runs."""
        run = step.get("run") if isinstance(step, dict) else None
        if isinstance(run, dict):
            return run
        if not isinstance(run, str) or not run.startswith("#"):
            return None
        return self._top_by_id.get(short_name(run))

    def _main(self) -> dict[str, Any]:
        """Return the process that runs: `main`, the only workflow, or the only process."""
        mains = [each for each in self._tops if short_name(each.get("id")) == "main"]
        workflows = [each for each in self._tops if each.get("class") == WORKFLOW]
        for choice in (self._tops, mains, workflows):
            if len(choice) == 1:
                return choice[0]
        self._table.fault(
            "$graph", "one process with the id main, or one workflow", f"{len(self._tops)} others"
        )
        return self._tops[0]

    def _with_steps(self, process: dict[str, Any], level: int) -> Iterator[dict[str, Any]]:
        """Yield a process, its steps, and what is written within them."""
        if process.get("class") not in CLASSES:
            self._table.fault("class", f"one of {', '.join(CLASSES)}", _text_of(process, "class"))
            return
        yield process
        if process["class"] != WORKFLOW:
            return
        for name, step in entries(process.get("steps")).items():
            inner = self.process_of(step)
            if inner is None or level == MOST_LEVELS:
                text = _text_of(step, "run") if isinstance(step, dict) else "none"
                self._table.fault(
                    f"steps.{name}.run", "a process of this document, as '#count'", text
                )
                continue
            yield step
            if isinstance(step["run"], dict):
                yield from self._with_steps(inner, level + 1)

    def _check_graph(self, graph: Any) -> None:
        """Add a fault for each process without an id, by which it would be run."""
        if isinstance(graph, list) and graph:
            self._check_entries("$graph", graph)
        else:
            self._table.fault("$graph", "a list of processes", short_text(graph))

    def _check_entries(self, name: str, value: Any, key: str = "id") -> None:
        """Add a fault for each entry that has no name, or that of another: `entries` drops them."""
        names: Counter[str] = Counter()
        last_part = class_name if key == "class" else short_name
        if isinstance(value, dict):
            names.update(map(last_part, value))
        elif isinstance(value, list):
            for number, each in enumerate(value):
                text = each.get(key) if isinstance(each, dict) else None
                if isinstance(text, str) and last_part(text):
                    names[last_part(text)] += 1
                elif isinstance(each, dict):
                    place = f"{name}[{number}].{key}"
                    self._table.fault(place, "one, as a text", _text_of(each, key))
                else:
                    self._table.fault(f"{name}[{number}]", "an object", short_text(each))
        elif value is not None:
            self._table.fault(name, f"a map, or a list of objects with {key}", short_text(value))
        for each, count in names.items():
            if count > 1:
                self._table.fault(name, f"each {key} once", f"{short_text(each)} {count} times")

    def _check_requirements(self, process: Mapping[str, Any]) -> None:
        """Add a fault for each requirement of a process or a step that no run can fulfil."""
        for key in ("requirements", "hints"):
            self._check_entries(key, process.get(key), "class")
        requirements = self.requirements(process)
        for name, each in requirements.items():
            if name not in REQUIREMENTS:
                choice = REFUSALS.get(name, f"one of {', '.join(REQUIREMENTS)}")
                self._table.fault("requirements", choice, short_text(name).strip("'"))
            elif name == "NetworkAccess" and isinstance(each, dict) and each.get("networkAccess"):
                self._table.fault("requirements", "no network access", "NetworkAccess")
        note = f"{DOCKER} is a hint that is ignored: programs run in the sandbox"
        if DOCKER in self.requirements(process, "hints") and note not in self.notes:
            self.notes.append(note)


def _text_of(values: Mapping[str, Any], key: str) -> str:
    return short_text(values[key]) if key in values else "none"
