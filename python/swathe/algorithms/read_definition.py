"""Read the definition of an algorithm from its header; all errors of it are reported at once."""

from __future__ import annotations

import keyword
import re
from collections import Counter

from swathe.algorithms.cwl_header import DOCUMENT
from swathe.algorithms.definition import (
    Algorithm,
    Build,
    FileInput,
    GranuleInput,
    Language,
    Output,
    Window,
)
from swathe.algorithms.header import Source
from swathe.algorithms.header_table import MOST_ENTRIES, HeaderTable, fault_error
from swathe.algorithms.media_types import MEDIA_TYPES
from swathe.algorithms.read_build import read_build
from swathe.algorithms.read_parameter import read_parameter
from swathe.algorithms.read_resources import OperatorLimits, read_resources
from swathe.algorithms.wheels import canonical_name
from swathe.catalog.store_settings import LONGEST_NAME as LONGEST_DATASET
from swathe.catalog.store_urls import NAME as DATASET
from swathe.core.grouping import GROUPS
from swathe.core.value_errors import short_text

KEYS = (
    "name",
    "version",
    "inputs",
    "outputs",
    "parameters",
    "resources",
    "language",
    "build",
    "libraries",
    "environment",
    "description",
)
NAME = re.compile(r"[a-z][a-z0-9]{0,62}(?:-[a-z0-9]{1,62}){0,20}")
NAME_FORM = "a name of lower-case letters, digits and '-', from a letter on"
LONGEST_NAME = 63
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_]{0,31}")
VERSION_FORM = "a version as 1.2, of at most 32 letters, digits and '.+_'"
SWATHE = "swathe"
"""The library libswathe, which the operator installs."""
LIBRARY_FORM = "'swathe', or libraries as mylib@1.0"
ENVIRONMENT = NAME
ENVIRONMENT_FORM = "the name of an environment of the operator"
ARGUMENT = re.compile(r"[a-z_][a-z0-9_]{0,59}")
ARGUMENT_FORM = "the name of an argument in lower case"
PORT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
PORT_FORM = "a name of letters, digits, '_' and '-', of at most 60 characters"
RESERVED_OUTPUTS = ("manifest", "result")
"""Names of files that jobs write beside the outputs."""
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FILE_FORM = "the name of a file, as clim.nc"
COLLECTION_FORM = "the name of a dataset"
COUNT = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?")
COUNT_FORM = "a count or a range as '1..288'"
DEPENDENCY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
DEPENDENCY_FORM = (
    "the name of a package of the environment, as numpy, without a version, a URL or a path"
)
PYTHON_FORM = "versions of Python, as >=3.11"
PYTHON = re.compile(r"(>=|<=|==|!=|~=|>|<) ?(\d{1,3}(?:\.\d{1,3}){0,2})")
MOST_GRANULES = 10_000
"""Most granules of a group."""
MOST_NEIGHBOURS = 100
MOST_LIBRARIES = 10


def read_definition(source: Source, limits: OperatorLimits | None = None) -> Algorithm:
    """Read the definition of an algorithm.

    Args:
        source: its source.
        limits: largest resources of a run; by default those of this machine.

    Raises:
        AlgorithmError: If a key is missing, unknown or invalid; names the file and all such keys.
    """
    faults: list[str] = []
    header = HeaderTable("", source.header, faults)
    header.refuse_unknown(("requires-python", "dependencies", "tool"))
    tool = header.table("tool", is_needed=True)
    swathe = tool.table("swathe", is_needed=True)
    table = swathe.table("algorithm", is_needed=True).without_name()
    algorithm = None
    if table.is_there:
        is_cwl = source.described_in == DOCUMENT
        algorithm = _algorithm(header, table, limits or OperatorLimits.here(), is_cwl=is_cwl)
    if faults or algorithm is None:
        raise fault_error(source.label, faults)
    return algorithm


def _algorithm(
    header: HeaderTable, table: HeaderTable, limits: OperatorLimits, *, is_cwl: bool
) -> Algorithm:
    table.refuse_unknown((*KEYS, "notes") if is_cwl else KEYS)
    build = read_build(each) if (each := table.table("build")).is_there else None
    usual: Language = "cwl" if is_cwl else "python"
    language = usual if build is None else build.language
    table.choice("language", (language,), language)
    name = table.text("name", NAME, NAME_FORM, is_needed=True, longest=LONGEST_NAME)
    version = table.text("version", VERSION, VERSION_FORM, is_needed=True)
    inputs = {each.key: _input(each) for each in _entries(table, "inputs", language)}
    outputs = {each.key: _output(each) for each in _entries(table, "outputs", language)}
    parameters = {
        each.key: read_parameter(each) for each in _entries(table, "parameters", language)
    }
    count = sum(isinstance(each, GranuleInput) for each in inputs.values())
    if count != 1:
        table.fault("inputs", "one input of granules", f"{count or 'none'}")
    if not outputs:
        table.fault("outputs", "at least one output", "none")
    elif all(each.is_optional for each in outputs.values()):
        table.fault("outputs", "at least one that is not optional", "none")
    for key in outputs:
        if key.lower() in RESERVED_OUTPUTS:
            table.fault(f"outputs.{key}", "a name that is not reserved", repr(key))
    for key, homes in Counter([*inputs, *outputs, *parameters]).items():
        if homes > 1:
            table.fault(key, "one input, output or parameter of this name", str(homes))
    return Algorithm(
        name=name,
        version=version,
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        resources=read_resources(table.table("resources"), limits),
        dependencies=_dependencies(header),
        requires_python=_requires_python(header),
        language=language,
        build=build,
        libraries=read_libraries(table),
        environment=_environment(table, build),
        description=table.plain_text("description", 200),
        notes=table.texts("notes", MOST_ENTRIES) if is_cwl else (),
    )


def _entries(table: HeaderTable, key: str, language: Language) -> list[HeaderTable]:
    """Return the tables of inputs, outputs or parameters that have a valid name."""
    entries = table.table(key)
    if len(entries.values) > MOST_ENTRIES:
        table.fault(key, f"at most {MOST_ENTRIES}", str(len(entries.values)))
        return []
    is_port = language == "cwl"
    form, words = (PORT, PORT_FORM) if is_port else (ARGUMENT, ARGUMENT_FORM)
    tables = []
    for name in entries.values:
        if form.fullmatch(name) and (is_port or not keyword.iskeyword(name)):
            tables.append(entries.table(name))
        else:
            table.fault(key, words, short_text(name))
    return [each for each in tables if each.is_there]


def _input(table: HeaderTable) -> GranuleInput | FileInput:
    if "file" in table.values:
        table.refuse_unknown(("file",))
        return FileInput(table.text("file", FILE, FILE_FORM))
    table.refuse_unknown(("collection", "arrays", "count", "group", "window"))
    group = table.choice("group", GROUPS, "each")
    least, most = _count(table, group)
    return GranuleInput(
        table.text("collection", DATASET, COLLECTION_FORM, longest=LONGEST_DATASET),
        table.texts("arrays", MOST_ENTRIES),
        least,
        most,
        group,
        _window(table.table("window")),
    )


def _count(table: HeaderTable, group: str) -> tuple[int, int]:
    """Return the least and the most granules of a group."""
    default = "1" if group == "each" else f"1..{MOST_GRANULES}"
    raw = table.values.get("count", default)
    is_count = isinstance(raw, int) and not isinstance(raw, bool)
    match = COUNT.fullmatch(str(raw)) if isinstance(raw, str) or is_count else None
    if match is None:
        table.fault("count", COUNT_FORM, short_text(raw))
        return 1, 1
    least, most = int(match[1]), int(match[2] or match[1])
    is_single = group == table.values.get("group", group) == "each"
    if is_single and (least, most) != (1, 1):
        table.fault("count", "1 for groups of one granule (group = 'each')", short_text(raw))
    elif not 1 <= least <= most <= MOST_GRANULES:
        table.fault("count", f"a range within 1..{MOST_GRANULES}", short_text(raw))
    return least, most


def _window(table: HeaderTable) -> Window:
    table.refuse_unknown(("before", "after"))
    before, after = (table.integer(key, 0, 0, MOST_NEIGHBOURS) for key in ("before", "after"))
    return Window(before, after)


def _output(table: HeaderTable) -> Output:
    table.refuse_unknown(("media_type", "checks", "optional"))
    media_type = table.choice("media_type", tuple(MEDIA_TYPES), None)
    checks = table.texts("checks", MOST_ENTRIES)
    if checks and media_type in MEDIA_TYPES and not MEDIA_TYPES[media_type].has_arrays:
        table.fault("checks", f"none for {media_type}, which has no arrays", str(len(checks)))
    kind = MEDIA_TYPES.get(media_type)
    suffix = "" if kind is None else kind.suffix
    return Output(media_type, suffix, checks, table.boolean("optional", default=False))


def _environment(table: HeaderTable, build: Build | None) -> str:
    """Return the environment of an algorithm in Python."""
    name = table.text("environment", ENVIRONMENT, ENVIRONMENT_FORM)
    if name and build is not None:
        table.fault("environment", "none for a program that is compiled", short_text(name))
    return name


def read_libraries(table: HeaderTable) -> tuple[str, ...]:
    """Return the libraries that an algorithm uses, as `NAME@VERSION`, or `swathe`."""
    labels = table.texts("libraries", MOST_LIBRARIES)
    for label in labels:
        name, _, version = label.partition("@")
        is_label = NAME.fullmatch(name) and VERSION.fullmatch(version)
        if label != SWATHE and not is_label:
            table.fault("libraries", LIBRARY_FORM, short_text(label))
    return labels


def _dependencies(header: HeaderTable) -> tuple[str, ...]:
    """Return the canonical names of packages."""
    names = []
    for text in header.texts("dependencies", MOST_ENTRIES):
        if DEPENDENCY.fullmatch(text):
            names.append(canonical_name(text))
        else:
            header.fault("dependencies", DEPENDENCY_FORM, short_text(text))
    return tuple(names)


def _requires_python(header: HeaderTable) -> str:
    text = header.plain_text("requires-python", 100)
    if text and not all(PYTHON.fullmatch(part.strip()) for part in text.split(",")):
        header.fault("requires-python", PYTHON_FORM, short_text(text))
    return text
