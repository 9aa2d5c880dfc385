"""Header of an algorithm that is a document of CWL: what the other form says in TOML.

References:
    Common Workflow Language v1.2. OGC 20-089r1, best practice for application packages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from swathe.algorithms.cwl_document import parse_document
from swathe.algorithms.cwl_process import CLASSES, CwlDocument, CwlType, entries, short_name
from swathe.algorithms.definition import Resources
from swathe.algorithms.header_table import MOST_ENTRIES, HeaderTable, fault_error
from swathe.algorithms.media_types import MEDIA_TYPES
from swathe.core.value_errors import short_text

DOCUMENT = "algorithm.cwl"
"""Name of the document among the files of a source."""
ENVIRONMENT = "cwl"
"""Environment of the operator that a document runs in, if it names none."""
HINT = "swathe:Algorithm"
HINT_NAMES = (HINT, HINT.partition(":")[2])
"""Its class, and the end of its URI in a document that was packed."""
HINT_KEYS = (
    *("class", "name", "version", "description", "environment"),
    *("input", "output", "parameter", "resources"),
)
"""Its keys. `cwltool --pack` takes `inputs` and `outputs` anywhere for those of a process."""
PARAMETER_TYPES = {
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("string", "enum"), "string"),
    "boolean": "boolean",
}
STREAMS = ("stdout", "stderr")
ZIP = "application/zip"
IANA = re.compile(r"https?://www\.iana\.org/assignments/media-types/(.+)")
EDAM = re.compile(r"https?://edamontology\.org/format_(\d{4})")
EDAM_TYPES = {
    "1964": "text/plain",
    "2330": "text/plain",
    "3464": "application/json",
    "3579": "image/jpeg",
    "3590": "application/x-hdf5",
    "3591": "image/tiff",
    "3603": "image/png",
    "3650": "application/netcdf",
    "3752": "text/csv",
    "3987": ZIP,
}
"""Media types by the number of a format of EDAM."""
SUFFIXES = {
    **{each.suffix: name for name, each in reversed(MEDIA_TYPES.items())},
    **{".tiff": "image/tiff", ".jpeg": "image/jpeg", ".hdf5": "application/x-hdf5"},
}
MEBIBYTE = 1 << 20
OWN_MEMORY = 256 * MEBIBYTE
"""Memory of cwltool itself and of Node.js, which counts too."""
OWN_S = 60.0
LARGEST_SIZE = 1e9
LONGEST_DESCRIPTION = 200
MOST_HOPS = 10


def cwl_header(values: dict[str, Any], label: str) -> dict[str, Any]:
    """Return the header of a document, as that of a file of Python.

    Args:
        values: the document.
        label: its name in errors.

    Raises:
        AlgorithmError: If it is no CWL, or asks for what a run cannot have; with all such errors.
    """
    faults: list[str] = []
    document = CwlDocument(values, HeaderTable("", values, faults))
    sizes = [*_size_faults(document.main)]
    faults += sizes
    is_process = document.main.get("class") in CLASSES
    header = _HeaderReader(document, faults).header() if is_process and not sizes else {}
    if faults:
        raise fault_error(label, list(dict.fromkeys(faults)))
    return {"tool": {"swathe": {"algorithm": header}}}


def _size_faults(main: Mapping[str, Any]) -> Iterator[str]:
    """Yield a fault for too many inputs or outputs, before any of them is read."""
    for key in ("inputs", "outputs"):
        value = main.get(key)
        if isinstance(value, list | dict) and len(value) > MOST_ENTRIES:
            yield f"{key}: expected at most {MOST_ENTRIES}, found {len(value)}"


def has_scripts(content: bytes) -> bool:
    """Check whether what `runnable_document` returns needs Node.js."""
    values = json.loads(content)["document"]
    return CwlDocument(values, HeaderTable("", values, [])).has_scripts


def runnable_document(content: bytes, label: str) -> bytes:
    """Return what `box_cwl.py` runs: the document as JSON, its process, and its lists of files.

    Hints of Swathe and schemas, which are elsewhere, are no part of it. So nothing else is run
    than what was checked.

    Raises:
        AlgorithmError: As in `parse_document`.
    """
    document = parse_document(content, label)
    cwl = CwlDocument(document, HeaderTable("", document, []))
    document.pop("$schemas", None)
    inputs = cwl.ports(cwl.main, "inputs")
    lists = [name for name, each in inputs.items() if CwlType.of(each["type"]).is_list]
    for part in cwl.parts:
        hints = part.get("hints")
        if isinstance(hints, dict):
            part["hints"] = {key: each for key, each in hints.items() if not _is_hint(key)}
        elif isinstance(hints, list):
            part["hints"] = [each for each in hints if not _is_hint(_class_of(each))]
        # The catalogue does not know those of granules.
        for port in cwl.ports(part, "inputs").values():
            port.pop("format", None)
    main = short_name(cwl.main["id"]) if "$graph" in document else ""
    return json.dumps({"document": document, "main": main, "lists": lists}).encode()


def _is_hint(name: Any) -> bool:
    return short_name(name) in HINT_NAMES


def _class_of(value: Any) -> Any:
    return value.get("class") if isinstance(value, dict) else None


class _HeaderReader:
    """Reader of the main process of a document, which collects what does not fit."""

    def __init__(self, document: CwlDocument, faults: list[str]) -> None:
        self._document, self._main, self._faults = document, document.main, faults
        hints = entries(self._main.get("hints"), "class").items()
        hint: Any = next((each for name, each in hints if _is_hint(name)), {})
        self._hint = HeaderTable(HINT, hint if isinstance(hint, dict) else {}, faults)
        self._hint.refuse_unknown(HINT_KEYS)
        self._inputs = {
            name: (CwlType.of(each["type"]), each) for name, each in self._ports("inputs").items()
        }

    def header(self) -> dict[str, Any]:
        """Return the table of the algorithm."""
        own = self._hint.values
        parameters = dict(self._parameters())
        header = {
            "name": self._name(),
            "version": own.get("version", self._version()),
            "description": own.get("description", _description(self._main)),
            "language": "cwl",
            "environment": own.get("environment", ENVIRONMENT),
            "inputs": dict(self._files()),
            "outputs": {
                name: self._output(name, each) for name, each in self._ports("outputs").items()
            },
            "parameters": parameters,
            "resources": {**self._resources(), **self._hint.table("resources").values},
            "notes": self._document.notes,
        }
        for key in ("input", "output", "parameter"):
            for name in self._hint.table(key).values:
                if name not in header[f"{key}s"]:
                    self._fault(f"{HINT}.{key}.{name}", f"one of the document's {key}s", "none")
        return {key: value for key, value in header.items() if value is not None}

    def _fault(self, key: str, requirement: str, value: str) -> None:
        self._faults.append(f"{key}: expected {requirement}, found {value}")

    def _ports(self, key: str) -> dict[str, dict[str, Any]]:
        return self._document.ports(self._main, key)

    def _name(self) -> Any:
        """Return the name of the hint, which `cwltool --pack` makes an id, else one from the id."""
        name = self._hint.values.get("name")
        if name is not None:
            return short_name(name) if isinstance(name, str) and name.startswith("#") else name
        if "id" not in self._main:
            return None
        return re.sub(r"[^a-z0-9]+", "-", short_name(self._main["id"]).lower()).strip("-")

    def _version(self) -> Any:
        """Return the version that the process or the document states."""
        for values in (self._main, self._document.values):
            for key, value in values.items():
                if re.split("[:/#]", key)[-1] == "softwareVersion":
                    return value
        return None

    def _files(self) -> Iterator[tuple[str, Any]]:
        """Yield the inputs that are files: granules, and those that are the same for all groups."""
        own = self._hint.table("input").values
        granules = self._granules(own)
        for name, (kind, port) in self._inputs.items():
            more = own.get(name, {})
            if name in granules:
                usual = {"group": "all"} if kind.is_list else {}
                yield name, {**usual, **more} if isinstance(more, dict) else more
                if isinstance(more, dict):
                    self._check_window(name, more)
                    if not kind.is_list:
                        self._check_single(name, more)
            elif kind.name == "File" and not kind.is_list and (name in own or _is_needed(port)):
                yield name, {"file": name, **more} if isinstance(more, dict) else more
            elif kind.name not in PARAMETER_TYPES and _is_needed(port):
                self._fault(
                    f"inputs.{name}", "File, File[] for granules, or a single value", kind.text
                )
            if port.get("secondaryFiles"):
                self._fault(f"inputs.{name}.secondaryFiles", "none", "some")

    def _granules(self, own: Mapping[str, Any]) -> list[str]:
        """Return the inputs that are granules: those of the hint, else the only one."""
        files = {name: each for name, each in self._inputs.items() if each[0].name == "File"}
        hints = [name for name in files if name in own and not _has_file(own[name])]
        if hints:
            return hints
        others = {name: each for name, each in files.items() if name not in own}
        needs = {name: each for name, each in others.items() if _is_needed(each[1])} or others
        lists = {name: each for name, each in needs.items() if each[0].is_list} or needs
        if len(lists) != 1:
            names = ", ".join(lists) or "none"
            self._fault("inputs", f"one of File or File[], or {HINT} that says which", names)
        return list(lists)

    def _check_window(self, name: str, more: Mapping[str, Any]) -> None:
        if "window" in more:
            self._fault(
                f"{HINT}.input.{name}.window",
                "none: files of CWL do not say which of them are neighbours in time",
                "one",
            )

    def _check_single(self, name: str, more: Mapping[str, Any]) -> None:
        if more.get("group", "each") != "each":
            self._fault(f"inputs.{name}", "File[] for a group of granules", "File")

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the inputs that are values. Optional ones without a default stay null."""
        own = self._hint.table("parameter").values
        for name, (kind, port) in self._inputs.items():
            more = own.get(name, {})
            has_value = port.get("default") is not None or not kind.is_optional or name in own
            if kind.name not in PARAMETER_TYPES or not has_value:
                continue
            if kind.is_list:
                if _is_needed(port):
                    self._fault(f"inputs.{name}", "a single value", kind.text)
                continue
            parameter = {
                "type": PARAMETER_TYPES[kind.name],
                "default": port.get("default"),
                "enum": list(kind.symbols) if kind.name == "enum" else None,
                "description": _description(port),
            }
            usual = {key: value for key, value in parameter.items() if value is not None}
            yield name, {**usual, **more} if isinstance(more, dict) else more

    def _output(self, name: str, port: Mapping[str, Any]) -> Any:
        """Return the table of an output."""
        kind = CwlType.of(port["type"])
        more = self._hint.table("output").values.get(name, {})
        if kind.name not in ("File", "Directory", *STREAMS):
            self._fault(f"outputs.{name}", "File, File[], Directory or stdout", kind.text)
        if port.get("secondaryFiles"):
            self._fault(f"outputs.{name}.secondaryFiles", "none", "some")
        if not isinstance(more, dict):
            return more
        is_zip = kind.is_list or kind.name == "Directory"
        media_type = ZIP if is_zip else self._media_type(self._main, port, MOST_HOPS)
        if media_type is None and "media_type" not in more:
            self._fault(
                f"outputs.{name}",
                f"a format, a suffix of its glob, or media_type of {HINT}, which says one of "
                f"{', '.join(MEDIA_TYPES)}",
                short_text(port.get("format")) if "format" in port else "none",
            )
        if is_zip and more.get("media_type", ZIP) != ZIP:
            self._fault(f"outputs.{name}", f"{ZIP} for several files", short_text(more))
        usual = {"media_type": media_type or more.get("media_type") or ZIP}
        return {**usual, "optional": kind.is_optional, **more}

    def _media_type(
        self, process: Mapping[str, Any], port: Mapping[str, Any], hops: int
    ) -> str | None:
        """Return the media type of an output by its format, its file, or the step that makes it."""
        if isinstance(port.get("format"), str) and (kind := self._format_type(port["format"])):
            return kind
        stream = CwlType.of(port.get("type")).name
        binding = port.get("outputBinding")
        if stream in STREAMS:
            file = process.get(stream, ".txt")
        elif isinstance(binding, dict):
            file = binding.get("glob")
        else:
            return self._step_type(process, port, hops)
        files = file if isinstance(file, list) else [file]
        types = {SUFFIXES.get(_suffix(each)) for each in files}
        return types.pop() if len(types) == 1 else None

    def _step_type(
        self, process: Mapping[str, Any], port: Mapping[str, Any], hops: int
    ) -> str | None:
        """Return the media type of an output of a workflow by that of its step."""
        source = port.get("outputSource")
        sources = source if isinstance(source, list) else [source]
        text = sources[0] if len(sources) == 1 and isinstance(sources[0], str) else ""
        name, _, output = text.removeprefix("#").rpartition("/")
        inner = self._document.process_of(self._document.step(process, short_name(name)))
        port_of_step = None if inner is None else self._document.ports(inner, "outputs").get(output)
        if inner is None or port_of_step is None or not hops:
            return None
        return self._media_type(inner, port_of_step, hops - 1)

    def _format_type(self, text: str) -> str | None:
        """Return the media type that a format stands for: of IANA, or of EDAM."""
        prefix, _, rest = text.partition(":")
        spaces = self._document.values.get("$namespaces")
        space = spaces.get(prefix) if isinstance(spaces, dict) else None
        full = f"{space}{rest}" if isinstance(space, str) else text
        if match := IANA.fullmatch(full):
            return match[1] if match[1] in MEDIA_TYPES else None
        return EDAM_TYPES.get(match[1]) if (match := EDAM.fullmatch(full)) else None

    def _resources(self) -> dict[str, Any]:
        """Return the limits of a run that are above the usual ones, as its tools ask for them.

        Expressions do not count: they are known when a tool runs.
        """
        cores = memory = output = wall_s = 0.0
        for part in self._document.parts:
            needs = {
                **self._document.requirements(part, "hints"),
                **self._document.requirements(part),
            }
            sizes = needs.get("ResourceRequirement")
            cores = max(cores, _number(sizes, "coresMin"))
            memory = max(memory, _number(sizes, "ramMin"))
            output = max(output, _number(sizes, "outdirMin"))
            wall_s += _number(needs.get("ToolTimeLimit"), "timelimit")
        usual = Resources()
        resources: dict[str, Any] = {}
        if cores > usual.cpu:
            resources["cpu"] = math.ceil(cores)
        if memory * MEBIBYTE + OWN_MEMORY > usual.memory:
            resources["memory"] = f"{memory * MEBIBYTE + OWN_MEMORY:.0f}"
        if output * MEBIBYTE > usual.output:
            resources["output"] = f"{output * MEBIBYTE:.0f}"
        if wall_s + OWN_S > usual.wall_s:
            resources["wall"] = f"{wall_s + OWN_S:.0f}s"
        return resources


def _is_needed(port: Mapping[str, Any]) -> bool:
    """Check whether an input must be given: it has no default, and may not be null."""
    return port.get("default") is None and not CwlType.of(port["type"]).is_optional


def _has_file(value: Any) -> bool:
    return isinstance(value, dict) and "file" in value


def _description(values: Mapping[str, Any]) -> str | None:
    """Return a label, or the first line of a documentation."""
    for key in ("label", "doc"):
        text = values.get(key)
        text = text[0] if isinstance(text, list) and text else text
        if isinstance(text, str) and text.strip():
            line = " ".join(text.strip().splitlines()[0].split())
            return "".join(filter(str.isprintable, line))[:LONGEST_DESCRIPTION]
    return None


def _suffix(file: Any) -> str:
    """Return the suffix of a file or a pattern, as `.csv` of `*.csv`; empty without one."""
    last = file.rpartition(".")[2] if isinstance(file, str) and "." in file else ""
    return f".{last.lower()}" if last.isalnum() else ""


def _number(values: Any, key: str) -> float:
    """Return a number of a requirement; 0 for none, and for an expression."""
    value = values.get(key) if isinstance(values, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return float(value) if 0 <= value < LARGEST_SIZE else 0.0
