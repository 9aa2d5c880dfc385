"""Lists of targets as people paste them.

One target a line, in one of three forms; `#` begins a comment:

- a table: a line of column names, then values with commas, tabs or semicolons between;
- `ra dec size`, with blanks or commas between: degrees, or `10:20:30 -1:02:03`; a size may end in
  `"`, `'` or `d`, and is in degrees otherwise;
- `file, x, y, height, width`.

What is wrong with one line stops no other.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from swathe.errors import TargetsError
from swathe.targets import BOX, CENTER, SKY

NAMES = {"file", "id", "hdu", "dataset", "band", "planes", "group", *CENTER, *BOX, *SKY}
FAULTS = 20
"""Of single lines that are told."""
UNITS_DEG = {
    '"': 1 / 3600,
    "\N{DOUBLE PRIME}": 1 / 3600,
    "'": 1 / 60,
    "\N{PRIME}": 1 / 60,
    "d": 1.0,
    "°": 1.0,
}
FORMS = "a line of column names and rows of values, or lines of 'ra dec size' or 'file, x, y, h, w'"
SEXAGESIMAL = re.compile(r"([+-]?)(\d{1,3}):(\d{1,2}):(\d{1,2}(?:\.\d*)?)")


@dataclass
class Pasted:
    """A list as columns.

    Attributes:
        columns: by name; all are equally long.
        faults: number and fault of lines that are no targets, the first FAULTS.
        refused: how many such lines there are.
        numbered: whether numbers of lines are the ids, for want of others.
    """

    columns: dict[str, list[str | float]] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    refused: int = 0
    numbered: bool = False

    def refuse(self, line: int, fault: str) -> None:
        """Note that a line is no target."""
        self.refused += 1
        if len(self.faults) < FAULTS:
            self.faults.append((line, fault))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def read_pasted(text: str) -> Pasted:
    """Read a list of targets; where there are no ids, line numbers are.

    Raises:
        TargetsError: where it is empty or of none of the forms.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise TargetsError(f"the list of targets is empty; give {FORMS}")
    first = lines[0][1]
    delimiter = next((mark for mark in "\t;," if mark in first), None)
    names = [name.strip().strip('"').lower() for name in _split(first, delimiter)]
    pasted = Pasted()
    if NAMES & set(names):
        _fill(pasted, names, lines[1:], delimiter, lambda _name, value: value)
    elif delimiter is not None and len(names) == 1 + len(CENTER) and not _is_number(names[0]):
        _fill(pasted, ["file", *CENTER], lines, delimiter, lambda _name, value: value)
    elif 2 <= len(names) <= 4 and _is_number(names[0].replace(":", "")):
        lines = [(number, re.sub("[,;]", " ", line)) for number, line in lines]
        _fill(pasted, [*SKY], lines, None, _sky_value)
    else:
        raise TargetsError(f"line {lines[0][0]}: {first[:80]!r} begins no list of targets: {FORMS}")
    return pasted


def _fill(
    pasted: Pasted,
    names: list[str],
    lines: list[tuple[int, str]],
    delimiter: str | None,
    read: Callable[[str, str], str | float],
) -> None:
    """Take lines of as many values as there are names; other lines are faults."""
    repeated = {name for name in names if name and names.count(name) > 1}
    if repeated:
        raise TargetsError(f"there are two columns {min(repeated)[:50]!r}")
    rows: list[list[str | float]] = []
    numbers: list[int] = []
    for number, line in lines:
        values = [value.strip() for value in _split(line, delimiter)]
        if len(values) != len(names):
            told = ", ".join(names)[:200]
            pasted.refuse(number, f"expected {len(names)} values ({told}), found {len(values)}")
            continue
        try:
            rows.append([read(name, value) for name, value in zip(names, values, strict=True)])
        except ValueError as error:
            pasted.refuse(number, str(error))
            continue
        numbers.append(number)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    for name, column in zip(names, columns, strict=True):
        pasted.columns[name] = _numbers(name, list(column))
    if "id" not in names:
        pasted.columns["id"] = [str(number) for number in numbers]
        pasted.numbered = True


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))


def _numbers(name: str, column: list[str | float]) -> list[str | float]:
    """Give a column as numbers if it is one throughout; what is wrong is found later."""
    if name not in {*CENTER, *BOX, *SKY}:
        return column
    try:
        return [float(value) for value in column]
    except ValueError:
        return column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sky_value(name: str, text: str) -> float:
    """Read an angle, in degrees.

    Raises:
        ValueError: where it is none.
    """
    parts = SEXAGESIMAL.fullmatch(text)
    if parts is not None and name != "size_deg":
        sign, whole, minutes, seconds = parts.groups()
        value = int(whole) + int(minutes) / 60 + float(seconds) / 3600
        value *= 15 if name == "ra" else 1
        return -value if sign == "-" else value
    unit = UNITS_DEG.get(text[-1:]) if name == "size_deg" else None
    try:
        number = float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be an angle, not {text[:40]!r}")
    return number
