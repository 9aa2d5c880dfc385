"""Lists of targets as text: a table, or one target a line. `#` begins a comment.

A table has a line of column names, then values with commas, tabs, semicolons or blanks between; a
table of VizieR has a line of units and one of dashes below the names. Any other text is one target
a line, as `swathe.files.targets.text_line` reads them, all of one kind.

What is wrong with one line stops no other.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field

from swathe.core.errors import RegionError, TargetsError
from swathe.files.targets.columns import CENTER, PIXEL_COLUMNS, POSITION_NAMES, SIZE_COLUMNS
from swathe.files.targets.text_line import FORMS, Line, delimiter_of, parse_line

NAMES = {
    *("file", "id", "hdu", "dataset", "band", "planes", "group", "frame"),
    *SIZE_COLUMNS,
    *PIXEL_COLUMNS,
    *POSITION_NAMES,
}
LONGEST_ROW = 100_000
MOST_NAMES = 100
"""Names of objects in one list: each is asked about."""
NUMBERS = {"ra", "dec", "size_deg", *PIXEL_COLUMNS}

Cell = str | float


@dataclass
class TextList:
    """A list as columns.

    Attributes:
        columns: by name; all are equally long.
        units: of columns, where a table tells them.
        faults: number and fault of lines that are no targets.
        numbers: of each row, the number of its line.
        numbered: whether numbers of lines are the ids, for want of others.
    """

    columns: dict[str, list[Cell]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    numbered: bool = False

    def __len__(self) -> int:
        return len(self.numbers)


def parse_lines(texts: Sequence[str], *, hours: bool = True) -> TextList:
    """Parse a list of targets; where there are no ids, line numbers are.

    Args:
        texts: its lines.
        hours: whether sexagesimal longitudes are in hours: right ascensions are.

    Raises:
        TargetsError: where it is empty, or no line is a target.
    """
    # Cells at both ends of a row with tabs may be empty.
    stripped = [(number, line.strip(" \r\n\f\v")) for number, line in enumerate(texts, 1)]
    lines = [(number, line) for number, line in stripped if line.strip() and line[0] != "#"]
    if not lines:
        raise TargetsError(
            f"the list of targets is empty: expected column names and rows, or lines of {FORMS}"
        )
    mark = delimiter_of(lines[0][1])
    names = header_of(lines[0][1])
    if names is not None:
        return _table(names, lines[1:], mark)
    return _targets(lines, hours)


def header_of(line: str) -> list[str] | None:
    """Give the names of columns in small letters, if a line is of such."""
    if len(line) > LONGEST_ROW:
        raise TargetsError(f"{line[:40]!r}...: expected up to {LONGEST_ROW:,} characters")
    names = [name.strip().strip('"').lower() for name in _split(line, delimiter_of(line))]
    is_header = bool(NAMES & set(names)) or {"l", "b"} <= set(names)
    return names if is_header else None


def _table(names: list[str], lines: list[tuple[int, str]], mark: str | None) -> TextList:
    """Take rows of as many values as there are names; other lines are faults."""
    repeated = {name for name in names if name and names.count(name) > 1}
    if repeated:
        raise TargetsError(f"there are two columns {min(repeated)[:50]!r}")
    made = TextList()
    lines = _without_units(made, names, lines, mark)
    rows: list[list[str]] = []
    for number, line in lines:
        values = [value.strip() for value in _split(line, mark)] if len(line) <= LONGEST_ROW else []
        if len(values) != len(names):
            listed = ", ".join(names)[:200]
            fault = f"expected {len(names)} values ({listed}), found {len(values)}"
            made.faults.append((number, fault))
            continue
        rows.append(values)
        made.numbers.append(number)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    for name, column in zip(names, columns, strict=True):
        made.columns[name] = _numbers(name, list(column))
    if "id" not in names:
        _number(made)
    return made


def _without_units(
    made: TextList, names: list[str], lines: list[tuple[int, str]], mark: str | None
) -> list[tuple[int, str]]:
    """Take the units and dashes that VizieR writes below the names."""
    if mark != "\t" or len(lines) < 2 or set(lines[1][1]) - set("-\t "):
        return lines
    units = [unit.strip() for unit in lines[0][1].split("\t")]
    if len(units) == len(names):
        made.units = {name: unit for name, unit in zip(names, units, strict=True) if unit}
    elif any(units):
        raise TargetsError(f"line {lines[0][0]}: expected {len(names)} units, found {len(units)}")
    return lines[2:]


def _number(made: TextList) -> None:
    made.columns["id"] = [str(number) for number in made.numbers]
    made.numbered = True


def _split(line: str, mark: str | None) -> list[str]:
    if mark is None:
        return line.split()
    return next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])


def _numbers(name: str, column: list[str]) -> list[Cell]:
    """Give a column as numbers if it is one throughout; what is wrong is found later."""
    if name in NUMBERS:
        try:
            return [float(value) for value in column]
        except ValueError:
            pass
    return list(column)


def _targets(lines: list[tuple[int, str]], hours: bool) -> TextList:
    """Take one target a line, of the kind of the first that is one."""
    made = TextList()
    targets: list[Line] = []
    names = 0
    for number, text in lines:
        try:
            target = parse_line(text, hours=hours)
            _check_kind(target, targets)
        except RegionError as error:
            made.faults.append((number, str(error)))
            continue
        names += target.is_named
        if names > MOST_NAMES:
            raise TargetsError(f"line {number}: expected up to {MOST_NAMES} names of objects")
        targets.append(target)
        made.numbers.append(number)
    if not targets:
        raise TargetsError(_all_wrong(made))
    made.columns = _columns_of(targets)
    _number(made)
    return made


def _check_kind(target: Line, earlier: list[Line]) -> None:
    if earlier and target.kind != earlier[0].kind:
        raise RegionError(
            f"expected {earlier[0].kind}, as in the lines before, found {target.kind}"
        )


def _all_wrong(made: TextList) -> str:
    number, fault = made.faults[0]
    return f"line {number}: {fault}"


def _columns_of(targets: list[Line]) -> dict[str, list[Cell]]:
    columns: dict[str, list[Cell]] = {}
    if targets[0].file:
        columns["file"] = [target.file for target in targets]
    centers = [target.center for target in targets if target.center]
    if centers:
        for at, name in enumerate(CENTER):
            columns[name] = [center[at] for center in centers]
        return columns
    places = [target.sky for target in targets if target.sky]
    columns["ra"] = [ra for ra, _ in places]
    columns["dec"] = [dec for _, dec in places]
    if any(target.is_named for target in targets):
        columns["frame"] = ["icrs" if target.is_named else "" for target in targets]
    sizes = [target.size for target in targets if target.size]
    squares = [size.square_deg for size in sizes]
    plain = [side for side in squares if side is not None]
    if len(plain) == len(sizes) and sizes:
        columns["size_deg"] = [*plain]
    elif sizes:
        columns["size"] = [str(size) for size in sizes]
    return columns
