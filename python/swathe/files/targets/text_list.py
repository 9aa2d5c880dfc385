"""Parse lists of targets as text: a table, or one target a line. `#` begins a comment.

A table has a line of column names, then values separated by commas, tabs, semicolons or blanks. A
table of VizieR also has a line of units and one of dashes below the names. Any other text is one
target a line, as `swathe.files.targets.text_line` reads them, all of one kind.

An error in one line does not stop the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swathe.core.errors import RegionError, TargetsError
from swathe.files.targets.columns import CENTER, PIXEL_COLUMNS, POSITION_NAMES
from swathe.files.targets.sizes import SIZE_COLUMNS
from swathe.files.targets.text_line import FORMS, TargetLine, cells_of, delimiter_of, parse_line

NAMES = {
    *("file", "id", "hdu", "dataset", "band", "planes", "group", "frame"),
    *SIZE_COLUMNS,
    *PIXEL_COLUMNS,
    *POSITION_NAMES,
}
LONGEST_ROW = 100_000
MOST_NAMES = 100
"""Limit of names of objects in one list, since each is looked up."""
NUMBERS = {"ra", "dec", "size_deg", *PIXEL_COLUMNS}

Cell = str | float


@dataclass
class TextList:
    """A list as columns.

    Attributes:
        columns: columns by name, all of one length.
        units: units of columns, if the table has them.
        faults: line number and error of lines that are not targets.
        numbers: line number of each row.
        has_line_numbers: whether line numbers are the ids, since there are no others.
    """

    columns: dict[str, list[Cell]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    has_line_numbers: bool = False

    def __len__(self) -> int:
        return len(self.numbers)


def parse_lines(
    texts: Sequence[str], *, hours: bool = True, numbers: Sequence[int] | None = None
) -> TextList:
    """Parse a list of targets; without ids, line numbers are used.

    Args:
        texts: lines of the list.
        hours: whether sexagesimal longitudes are in hours, as for right ascensions.
        numbers: number of each line; by default from 1.

    Raises:
        TargetsError: If the list is empty, or no line is a target.
    """
    # Cells at both ends of a row with tabs may be empty.
    numbered_texts = enumerate(texts, 1) if numbers is None else zip(numbers, texts, strict=True)
    line_texts = [(number, line.strip(" \r\n\f\v")) for number, line in numbered_texts]
    lines = [(number, line) for number, line in line_texts if line.strip() and line[0] != "#"]
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
    """Return the column names in lower case, if the line is a header."""
    if len(line) > LONGEST_ROW:
        raise TargetsError(f"{line[:40]!r}...: expected up to {LONGEST_ROW:,} characters")
    names = [name.strip().strip('"').lower() for name in _split(line, delimiter_of(line))]
    is_header = bool(NAMES & set(names)) or {"l", "b"} <= set(names)
    return names if is_header else None


def _table(names: list[str], lines: list[tuple[int, str]], mark: str | None) -> TextList:
    """Parse rows with as many values as there are names; other lines are faults."""
    repeats = {name for name in names if name and names.count(name) > 1}
    if repeats:
        raise TargetsError(f"there are two columns {min(repeats)[:50]!r}")
    result = TextList()
    lines = _without_units(result, names, lines, mark)
    rows: list[list[str]] = []
    for number, line in lines:
        try:
            cells = _split(line, mark) if len(line) <= LONGEST_ROW else []
        except RegionError as error:
            result.faults.append((number, str(error)))
            continue
        values = [value.strip() for value in cells]
        if len(values) != len(names):
            name_list = ", ".join(names)[:200]
            fault = f"expected {len(names)} values ({name_list}), found {len(values)}"
            result.faults.append((number, fault))
            continue
        rows.append(values)
        result.numbers.append(number)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    for name, column in zip(names, columns, strict=True):
        result.columns[name] = _numbers(name, list(column))
    if "id" not in names:
        _number(result)
    return result


def _without_units(
    result: TextList, names: list[str], lines: list[tuple[int, str]], mark: str | None
) -> list[tuple[int, str]]:
    """Remove the lines of units and dashes that VizieR writes below the names."""
    if mark != "\t" or len(lines) < 2 or set(lines[1][1]) - set("-\t "):
        return lines
    units = [unit.strip() for unit in lines[0][1].split("\t")]
    if len(units) == len(names):
        result.units = {name: unit for name, unit in zip(names, units, strict=True) if unit}
    elif any(units):
        raise TargetsError(f"line {lines[0][0]}: expected {len(names)} units, found {len(units)}")
    return lines[2:]


def _number(result: TextList) -> None:
    result.columns["id"] = [str(number) for number in result.numbers]
    result.has_line_numbers = True


def _split(line: str, mark: str | None) -> list[str]:
    if mark is None:
        return line.split()
    return cells_of(line, mark)


def _numbers(name: str, column: list[str]) -> list[Cell]:
    """Return a column as numbers if all are numbers; errors are found later."""
    if name in NUMBERS:
        try:
            return [float(value) for value in column]
        except ValueError:
            pass
    return list(column)


def _targets(lines: list[tuple[int, str]], hours: bool) -> TextList:
    """Parse one target a line; all must be of the kind of the first one."""
    result = TextList()
    targets: list[TargetLine] = []
    names = 0
    for number, text in lines:
        try:
            target = parse_line(text, hours=hours)
            _check_kind(target, targets)
        except RegionError as error:
            result.faults.append((number, str(error)))
            continue
        names += target.is_named
        if names > MOST_NAMES:
            raise TargetsError(f"line {number}: expected up to {MOST_NAMES} names of objects")
        targets.append(target)
        result.numbers.append(number)
    if not targets:
        raise TargetsError(_all_wrong(result))
    result.columns = _columns_of(targets)
    _number(result)
    return result


def _check_kind(target: TargetLine, earlier: list[TargetLine]) -> None:
    if earlier and target.kind != earlier[0].kind:
        raise RegionError(
            f"expected {earlier[0].kind}, as in the lines before, found {target.kind}"
        )


def _all_wrong(result: TextList) -> str:
    number, fault = result.faults[0]
    return f"line {number}: {fault}"


def _columns_of(targets: list[TargetLine]) -> dict[str, list[Cell]]:
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
