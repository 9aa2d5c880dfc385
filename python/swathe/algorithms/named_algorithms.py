"""The public interface of algorithms in the catalogue: `swathe.algorithms`."""

from __future__ import annotations

import builtins
import os
from contextlib import closing
from pathlib import Path

from swathe.algorithms.algorithm_version import AlgorithmVersion, algorithm_version
from swathe.algorithms.header import Source, read_source
from swathe.algorithms.libraries import OWNER
from swathe.algorithms.static_check import SIGNATURE, checked_definition
from swathe.catalog.algorithms import MOST_VERSIONS
from swathe.catalog.catalog import Catalog
from swathe.catalog.records.algorithms import AlgorithmRecord
from swathe.core.confined import ConfinedProcess
from swathe.core.errors import AlgorithmError
from swathe.operations.registry import operations

ECHO = "echo"
"""Process of portals that tries clients; algorithms are processes, too."""


def add(source: str | os.PathLike[str]) -> AlgorithmRecord:
    """Check an algorithm and add it to the catalogue. A version never changes.

    Args:
        source: file of its source, a package, or a folder to pack.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If the definition is invalid, or the version has another source.
        AccessError: If another user owns the name.
    """
    with (
        Catalog.open() as catalog,
        closing(ConfinedProcess(places=1, imports=(SIGNATURE,))) as process,
    ):
        return add_source(catalog, read_source(Path(source)), OWNER, process)[0]


def add_source(
    catalog: Catalog,
    source: Source,
    owner: str,
    process: ConfinedProcess,
    most: int = MOST_VERSIONS,
) -> tuple[AlgorithmRecord, bool]:
    """Check an algorithm of a user and add it; return its record, and whether it is new.

    Args:
        catalog: the catalogue.
        source: its source.
        owner: user who adds it.
        process: process that parses it.
        most: most versions that the user may have.

    Raises:
        AlgorithmError, AccessError: As in `add`; also if an operation of Swathe has the name.
        LimitError: If the user has too many versions.
    """
    definition = checked_definition(source, process, catalog=catalog, owner=owner)
    if definition.name in (*operations(), ECHO):
        raise AlgorithmError(
            f"{source.label}: expected a name that no operation of Swathe has, found "
            f"{definition.name!r}"
        )
    return catalog.add_algorithm(
        definition.name,
        definition.version,
        source.content,
        owner,
        definition.description,
        most,
    )


def list() -> builtins.list[AlgorithmRecord]:
    """Return all versions of algorithms, by name, the newest of each first."""
    with Catalog.open() as catalog:
        return catalog.algorithms()


def show(name: str) -> AlgorithmVersion:
    """Return a version of an algorithm, with its definition and source.

    Args:
        name: `NAME@VERSION`, or `NAME` for the newest.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    with Catalog.open() as catalog:
        return algorithm_version(catalog, name)


def remove(name: str) -> builtins.list[AlgorithmRecord]:
    """Remove a version of an algorithm, or by `NAME` all; return what was removed.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    with Catalog.open() as catalog:
        return catalog.remove_algorithm(name)
