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
        refusals: Number of all such lines.
        has_line_numbers: Whether the ids are line numbers, as the list has none.
    """

    columns: dict[str, list[Cell]] = field(default_factory=dict)
    table: Table | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)
    refusals: int = 0
    has_line_numbers: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def read_paste(text: str) -> PastedTargets:
    """Parse a list of targets. If it has no ids, use line numbers.

    Raises:
        TargetsError: If the list is empty or has no target.
    """
    text_list = parse_lines(text.splitlines())
    return _paste_of(text_list, len(text_list.faults))


def pack_paste(text: str) -> bytes:
    """Return the list of targets in a text, packed as bytes.

    Raises:
        TargetsError: If the list is empty or has no target.
    """
    text_list = parse_lines(text.splitlines())
    rest = {
        "units": text_list.units,
        "faults": text_list.faults[:FAULTS],
        "refused": len(text_list.faults),
        "numbered": text_list.has_line_numbers,
    }
    return pack_lists(text_list.columns, rest)


def unpack_paste(content: bytes) -> PastedTargets:
    """Return the list that `pack_paste` packed."""
    columns, rest = unpack_lists(content)
    rows = len(next(iter(columns.values()), []))
    faults = [(number, fault) for number, fault in rest["faults"]]
    text_list = TextList(columns, rest["units"], faults, list(range(rows)), rest["numbered"])
    return _paste_of(text_list, rest["refused"])


def _paste_of(text_list: TextList, refusals: int) -> PastedTargets:
    table, _ = table_of_list(replace(text_list, faults=[]))
    return PastedTargets(
        text_list.columns, table, text_list.faults[:FAULTS], refusals, text_list.has_line_numbers
    )
