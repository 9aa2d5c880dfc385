"""Pasted lists of targets: tables or lines.

The grammar is that of `swathe.files.targets.text_list`. An error in one line does not affect
others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe.core.table_bytes import pack_lists, unpack_lists
from swathe.files.targets.table_files import table_of_list
from swathe.files.targets.text_list import Cell, TextList, parse_lines

if TYPE_CHECKING:
    from astropy.table import Table

FAULTS = 20
"""Maximum number of reported errors of single lines."""


@dataclass
class PastedTargets:
    """A list as columns.

    Attributes:
        columns: Columns by name, of equal length.
        table: The same columns as a table, with the units of the list.
        faults: Number and error of each line that is not a target, at most FAULTS of them.
        refused: Number of all such lines.
        numbered: Whether the ids are line numbers, as the list has none.
    """

    columns: dict[str, list[Cell]] = field(default_factory=dict)
    table: Table | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)
    refused: int = 0
    numbered: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def read_pasted(text: str) -> PastedTargets:
    """Parse a list of targets. If it has no ids, use line numbers.

    Raises:
        TargetsError: If the list is empty or has no target.
    """
    parsed = parse_lines(text.splitlines())
    return _pasted(parsed, len(parsed.faults))


def pack_pasted(text: str) -> bytes:
    """Return the list of targets in a text, packed as bytes.

    Raises:
        TargetsError: If the list is empty or has no target.
    """
    parsed = parse_lines(text.splitlines())
    rest = {
        "units": parsed.units,
        "faults": parsed.faults[:FAULTS],
        "refused": len(parsed.faults),
        "numbered": parsed.numbered,
    }
    return pack_lists(parsed.columns, rest)


def unpack_pasted(packed: bytes) -> PastedTargets:
    """Return the list that `pack_pasted` packed."""
    columns, rest = unpack_lists(packed)
    rows = len(next(iter(columns.values()), []))
    faults = [(number, fault) for number, fault in rest["faults"]]
    parsed = TextList(columns, rest["units"], faults, list(range(rows)), rest["numbered"])
    return _pasted(parsed, rest["refused"])


def _pasted(parsed: TextList, refused: int) -> PastedTargets:
    table, _ = table_of_list(replace(parsed, faults=[]))
    return PastedTargets(parsed.columns, table, parsed.faults[:FAULTS], refused, parsed.numbered)
