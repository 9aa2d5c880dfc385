"""The public interface of libraries: `swathe.algorithms.libraries`.

>>> swathe.algorithms.libraries.add("mylib/")
>>> swathe.algorithms.libraries.show("mylib@1.0").headers
('mylib.h',)
"""

from __future__ import annotations

import builtins
import os
from pathlib import Path

from swathe.algorithms.compiler import Confinement
from swathe.algorithms.definition import Algorithm
from swathe.algorithms.header import read_content
from swathe.algorithms.library import Library, parse_library
from swathe.algorithms.program import library_folder
from swathe.algorithms.read_definition import SWATHE
from swathe.catalog.catalog import Catalog, use_catalog
from swathe.catalog.records.algorithms import LibraryRecord
from swathe.core.errors import AlgorithmError, NoSuchAlgorithmError
from swathe.sandbox import UserIds

OWNER = "operator"
"""Owner of what is added without a portal."""

__all__ = ["add", "list", "remove", "show"]


def add(source: str | os.PathLike[str], users: UserIds | None = None) -> LibraryRecord:
    """Compile a library in the sandbox, and add it to the catalogue. A version never changes.

    Args:
        source: folder or tar with `library.toml`.
        users: user ids for the compiler, if this process is root.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If it is invalid, a compiler refuses it, or the version has another package.
        SandboxError: If the sandbox cannot be used.
    """
    content = read_content(Path(source))
    library = parse_library(content, str(source))
    if library.build is not None:
        library_folder(library, Confinement(users=users))
    with Catalog.open() as catalog:
        return add_library(catalog, library, content, OWNER)[0]


def add_library(
    catalog: Catalog, library: Library, content: bytes, owner: str
) -> tuple[LibraryRecord, bool]:
    """Add a library of a user; return its record, and whether it is new.

    Raises:
        AlgorithmError, LimitError: As `Catalog.add_library`.
    """
    return catalog.add_library(
        library.name, library.version, content, owner, library.language, library.description
    )


def list() -> builtins.list[LibraryRecord]:
    """Return all versions of libraries, by name, the newest of each first."""
    with Catalog.open() as catalog:
        return catalog.libraries(OWNER)


def show(name: str) -> Library:
    """Return a version of a library, with its files.

    Args:
        name: `NAME@VERSION`, or `NAME` for the newest.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    with Catalog.open() as catalog:
        record, content = catalog.library(name, OWNER)
    return parse_library(content, record.label)


def remove(name: str) -> builtins.list[LibraryRecord]:
    """Remove a version of a library, or by `NAME` all; algorithms that name one still have it.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    with Catalog.open() as catalog:
        return catalog.remove_library(name, OWNER)


def libraries_of(
    algorithm: Algorithm, catalog: Catalog | None = None, owner: str = OWNER
) -> dict[str, Library]:
    """Return the libraries that an algorithm names, by `NAME@VERSION`.

    Args:
        algorithm: its definition.
        catalog: the catalogue; by default that of this machine, if it names any.
        owner: owner of the algorithm.

    Raises:
        AlgorithmError: If one is missing, or of another kind: of Python, or compiled.
    """
    labels = [label for label in algorithm.libraries if label != SWATHE]
    libraries: dict[str, Library] = {}
    if not labels:
        return libraries
    with use_catalog(catalog) as own:
        for label in labels:
            try:
                content = own.library(label, owner, all_versions=True)[1]
            except NoSuchAlgorithmError as error:
                raise AlgorithmError(f"libraries: {error.args[0]}") from error
            library = parse_library(content, label)
            if (library.build is None) != (algorithm.build is None):
                raise AlgorithmError(
                    f"libraries: expected one for {algorithm.language}, found {label} in "
                    f"{library.language}"
                )
            libraries[label] = library
    names = {library.name for library in libraries.values()}
    if len(names) < len(labels):
        raise AlgorithmError("libraries: expected one version of each, found two")
    return libraries
