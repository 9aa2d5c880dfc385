"""Lists of targets as people paste them: tables or lines.

The grammar is that of `swathe.files.targets.text_list`. What is wrong with one line stops no other.
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
"""Of single lines that are told."""


@dataclass
class Pasted:
    """A list as columns.

    Attributes:
        columns: by name; all are equally long.
        table: the same with the units that the list tells.
        faults: number and fault of lines that are no targets, the first FAULTS.
        refused: how many such lines there are.
        numbered: whether numbers of lines are the ids, for want of others.
    """

    columns: dict[str, list[Cell]] = field(default_factory=dict)
    table: Table | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)
    refused: int = 0
    numbered: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def read_pasted(text: str) -> Pasted:
    """Read a list of targets; where there are no ids, line numbers are.

    Raises:
        TargetsError: where it is empty or has no target.
    """
    made = parse_lines(text.splitlines())
    return _pasted(made, len(made.faults))


def pack_pasted(text: str) -> bytes:
    """Return the list of targets of a text as bytes.

    Raises:
        TargetsError: as `read_pasted`.
    """
    made = parse_lines(text.splitlines())
    rest = {
        "units": made.units,
        "faults": made.faults[:FAULTS],
        "refused": len(made.faults),
        "numbered": made.numbered,
    }
    return pack_lists(made.columns, rest)


def unpack_pasted(packed: bytes) -> Pasted:
    """Return the list that `pack_pasted` packed."""
    columns, rest = unpack_lists(packed)
    rows = len(next(iter(columns.values()), []))
    faults = [(number, fault) for number, fault in rest["faults"]]
    made = TextList(columns, rest["units"], faults, list(range(rows)), rest["numbered"])
    return _pasted(made, rest["refused"])


def _pasted(made: TextList, refused: int) -> Pasted:
    table, _ = table_of_list(replace(made, faults=[]))
    return Pasted(made.columns, table, made.faults[:FAULTS], refused, made.numbered)
