"""Lists of cuts, as files: one cut a line, fields parted by tabs (see list.h).

Nothing but the standard library is imported, so that a peer starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One cut, as the C programs read it; pixels count from 0.

    Attributes
    ----------
    data_start, row_pixels, pixel_bytes
        Where the pixels of the (uncompressed) file start, and its row length and pixel size.

    """

    file: Path
    data_start: int
    row_pixels: int
    pixel_bytes: int
    x0: int
    y0: int
    width: int
    height: int
    id: str

    def line(self) -> str:
        """Target as a line of a list."""
        return "\t".join(str(value) for value in vars(self).values()) + "\n"


def read_list(path: Path) -> list[Target]:
    """Read a list of targets written by `write_list`."""
    targets = []
    for line in path.read_text().splitlines():
        file, *numbers, name = line.split("\t")
        start, row, size, x0, y0, width, height = (int(number) for number in numbers)
        targets.append(Target(Path(file), start, row, size, x0, y0, width, height, name))
    return targets


def write_list(path: Path, targets: Sequence[Target]) -> None:
    """Write a list of targets, one a line."""
    path.write_text("".join(target.line() for target in targets))
