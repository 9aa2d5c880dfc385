"""Library of a user: sources that are compiled once, or modules and wheels of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from swathe.algorithms.definition import Build
from swathe.algorithms.header import parse_description
from swathe.algorithms.header_table import MOST_ENTRIES, HeaderTable, fault_error
from swathe.algorithms.read_build import read_build, read_paths
from swathe.algorithms.read_definition import (
    ARGUMENT,
    ARGUMENT_FORM,
    LONGEST_NAME,
    NAME,
    NAME_FORM,
    SWATHE,
    VERSION,
    VERSION_FORM,
)
from swathe.algorithms.tar_files import is_tar, tar_files
from swathe.algorithms.wheels import SUFFIX, wheel_faults
from swathe.core.errors import AlgorithmError
from swathe.core.value_errors import short_text

DESCRIPTION = "library.toml"
KEYS = ("name", "version", "description", "headers", "modules", "build")


@dataclass(frozen=True)
class Library:
    """Definition of a library, with its files.

    Attributes:
        name: name, in lower case.
        version: version, as `1.0`.
        build: how it is compiled; `None`: it is of Python.
        headers: files of the package that algorithms include, by their last names.
        modules: modules of Fortran that it makes.
        description: noun phrase for lists.
        files: files of the package by name.
    """

    name: str
    version: str
    build: Build | None
    headers: tuple[str, ...]
    modules: tuple[str, ...]
    description: str
    files: Mapping[str, bytes]

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name}@{self.version}"

    @property
    def language(self) -> str:
        """Return the language of its sources."""
        return "python" if self.build is None else self.build.language

    def summary(self) -> dict[str, Any]:
        """Return what it is, and the sizes of its files in bytes, for JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "language": self.language,
            "description": self.description,
            "flags": [] if self.build is None else [*self.build.flags],
            "headers": [*self.headers],
            "modules": [*self.modules],
            "files": {path: len(content) for path, content in self.files.items()},
        }


def parse_library(content: bytes, label: str) -> Library:
    """Parse the package of a library.

    Args:
        content: a tar, plain or gzip, with a file `library.toml`.
        label: its name in errors.

    Raises:
        AlgorithmError: If it is damaged or too large, or its description is invalid.
    """
    if not is_tar(content):
        raise AlgorithmError(f"{label}: expected a tar, found {content[:8]!r} at its start")
    files = tar_files(content, label)
    if DESCRIPTION not in files:
        raise AlgorithmError(f"{label}: expected {DESCRIPTION} in it, found none")
    faults: list[str] = []
    header = HeaderTable(
        "", parse_description(files[DESCRIPTION], f"{label}: {DESCRIPTION}"), faults
    )
    header.refuse_unknown(("tool",))
    tool = header.table("tool", is_needed=True)
    table = tool.table("swathe", is_needed=True).table("library", is_needed=True).without_name()
    library = _library(table, files)
    if faults:
        raise fault_error(label, faults)
    return library


def _library(table: HeaderTable, files: Mapping[str, bytes]) -> Library:
    table.refuse_unknown(KEYS)
    name = table.text("name", NAME, NAME_FORM, is_needed=True, longest=LONGEST_NAME)
    if name == SWATHE:
        table.fault("name", "a name that is not Swathe's own", short_text(name))
    build = read_build(each) if (each := table.table("build")).is_there else None
    headers = read_paths(table, "headers")
    modules = table.texts("modules", MOST_ENTRIES)
    for module in modules:
        if not ARGUMENT.fullmatch(module):
            table.fault("modules", ARGUMENT_FORM, short_text(module))
    for path in (*headers, *(() if build is None else build.sources)):
        if path not in files:
            table.fault("files", "headers and sources of the package", short_text(path))
    if len({PurePosixPath(path).name for path in headers}) < len(headers):
        table.fault("headers", "last names that differ", "one twice")
    for fault in wheel_faults(files):
        table.add_fault(fault)
    if build is None and not any(path.endswith((".py", SUFFIX)) for path in files):
        table.fault("build", "sources to compile, or modules or wheels of Python", "neither")
    return Library(
        name=name,
        version=table.text("version", VERSION, VERSION_FORM, is_needed=True),
        build=build,
        headers=headers,
        modules=modules,
        description=table.plain_text("description", 200),
        files=files,
    )
