"""Lines of a source that the errors of its definition are about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from swathe.algorithms.header import OPENING

LINE = re.compile(r"line (\d{1,7}): ")
"""Start of a fault of the source."""
TOML_LINE = re.compile(r"at line (\d{1,7}),")
"""How an error of TOML names the line of the header."""
TABLE = re.compile(r"\[([^\[\]]{1,500})\]")
OWN = ("tool", "swathe", "algorithm")
Key = tuple[str, ...]


def fault_lines(source: str, faults: Sequence[str]) -> list[int | None]:
    """Return the line of each fault, from 1; `None` if it is about no line.

    Args:
        source: source that has the faults.
        faults: faults as `read_definition` and `checked_definition` tell them, without the label.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    opening = next((at for at, line in enumerate(lines, 1) if OPENING.fullmatch(line)), None)
    keys = [] if opening is None else list(_keys(lines, opening))
    return [_line_of(fault, lines, opening, keys) for fault in faults]


def _line_of(
    fault: str, lines: Sequence[str], opening: int | None, keys: Sequence[tuple[int, Key]]
) -> int | None:
    if match := LINE.match(fault):
        return int(match[1])
    if opening is not None and (match := TOML_LINE.search(fault)):
        return min(opening + int(match[1]), len(lines))
    parts = tuple(fault.partition(":")[0].split("."))
    # The line of the key itself, else of the nearest table around it, else of a key within it.
    around = [(len(key), -line) for line, key in keys if key and key == parts[: len(key)]]
    if around:
        return -max(around)[1]
    within = [line for line, key in keys if parts == key[: len(parts)]]
    if within:
        return within[0]
    if parts == ("run",):
        numbers = [at for at, line in enumerate(lines, 1) if line.startswith("def run(")]
        return numbers[-1] if numbers else None
    return None


def _keys(lines: Sequence[str], opening: int) -> Iterator[tuple[int, Key]]:
    """Yield line and key of each line of the header that has one, below the algorithm's table."""
    table: Key = ()
    for number, line in enumerate(lines[opening:], opening + 1):
        if line != "#" and not line.startswith("# "):
            return
        text = line[2:].strip()
        if match := TABLE.match(text):
            table = _parts(match[1])
            yield number, _own(table)
            continue
        key, equals, _ = text.partition("=")
        if equals and len(key) <= 500:
            yield number, _own(table + _parts(key))


def _parts(key: str) -> Key:
    return tuple(part.strip(" \t\"'") for part in key.split("."))


def _own(key: Key) -> Key:
    """Return a key as faults name it."""
    return key[len(OWN) :] if key[: len(OWN)] == OWN else key
