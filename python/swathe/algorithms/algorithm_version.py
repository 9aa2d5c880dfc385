"""Version of an algorithm in the catalogue: its record, its definition, its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.algorithms.definition import Algorithm
from swathe.algorithms.header import parse_source
from swathe.algorithms.read_definition import read_definition

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.algorithms import AlgorithmRecord


@dataclass(frozen=True)
class AlgorithmVersion:
    """A version of an algorithm, with its source.

    Attributes:
        record: name, version, owner and checksum.
        definition: what it reads and writes.
        source: its source.
    """

    record: AlgorithmRecord
    definition: Algorithm
    source: bytes


def algorithm_version(
    catalog: Catalog, label: str, *, all_versions: bool = False
) -> AlgorithmVersion:
    """Return a version of an algorithm by `NAME@VERSION`, or the newest by `NAME`.

    Args:
        catalog: the catalogue.
        label: `NAME@VERSION` or `NAME`.
        all_versions: whether a version that was removed counts: jobs keep theirs.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    record, source = catalog.algorithm(label, all_versions=all_versions)
    return AlgorithmVersion(record, read_definition(parse_source(source, record.label)), source)
