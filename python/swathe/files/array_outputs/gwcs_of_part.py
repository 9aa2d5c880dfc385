"""The GWCS of a part of an array, as a plain node of an ASDF tree.

The confined process of GWCS moves it, which takes a twentieth of a second or more. A part differs
from another only by numbers that move with its first pixel. So it is asked twice for each file, and
these numbers are set here for all other parts.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO
from operator import eq
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from swathe.arrays.indexing import run_gwcs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swathe.arrays.array_tree import ArrayTree
    from swathe.files.array import Array

STEPS = (1 << 20, 1 << 22)
"""First pixel, along x and y, of the part that is compared with the whole: exact in sums."""


@dataclass(frozen=True)
class MovableSystem:
    """A GWCS whose numbers move with the first pixel.

    Attributes:
        node: the system of the whole.
        places: keys of each number that moves, its axis (x: 0), and 1 or -1.
    """

    node: Any
    places: tuple[tuple[tuple[Any, ...], int, int], ...]

    def at(self, start: Sequence[int]) -> Any:
        """Return the system of the part that begins at a pixel, `(x, y)`."""
        node = deepcopy(self.node)
        for keys, axis, sign in self.places:
            inner = node
            for key in keys[:-1]:
                inner = inner[key]
            # Of the whole: two places may be one by an anchor.
            inner[keys[-1]] = _value(self.node, keys) + sign * start[axis]
        return node


_SYSTEMS: WeakKeyDictionary[ArrayTree, dict[str, MovableSystem | None]] = WeakKeyDictionary()
"""Systems of each open file by their path; `None` of one that moves in another way."""


def system_of_part(array: Array, path: str, start: Sequence[int]) -> Any:
    """Return the GWCS of a part of an array.

    Args:
        array: the array.
        path: path of the GWCS.
        start: first pixel of the part, along x and y.

    Raises:
        FormatError: If the file is damaged.
        RegionError: If the GWCS has another number of pixel axes.
        SettingsError: If asdf or gwcs is not installed.
    """
    systems = _SYSTEMS.setdefault(array.tree, {})
    if path not in systems:
        whole, part = _shift(array, path, (0, 0)), _shift(array, path, STEPS)
        places = list(_differences(whole, part, ()))
        does_move = places and all(step is not None for _, step in places)
        systems[path] = (
            MovableSystem(whole, tuple((keys, *step) for keys, step in places if step))
            if does_move
            else None
        )
    system = systems[path]
    return _shift(array, path, start) if system is None else system.at(start)


def _value(node: Any, keys: Sequence[Any]) -> Any:
    for key in keys:
        node = node[key]
    return node


def _shift(array: Array, path: str, start: Sequence[int]) -> Any:
    """Return the system of a part, as the confined process moves it."""
    import asdf

    what = f"{array.url}, array {array.path}"
    content = run_gwcs("shift", {"path": path, "start": list(start)}, array.reads, what)
    with asdf.open(BytesIO(content), _force_raw_types=True) as part:
        return part.tree["wcs"]


def _differences(
    one: Any, other: Any, keys: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], tuple[int, int] | None]]:
    """Yield where two nodes differ, with axis and sign of the step; `None` if it is no step."""
    if hasattr(one, "keys") and hasattr(other, "keys") and one.keys() == other.keys():
        for key in one:
            yield from _differences(one[key], other[key], (*keys, key))
    elif _is_list(one) and _is_list(other) and len(one) == len(other):
        for number in range(len(one)):
            yield from _differences(one[number], other[number], (*keys, number))
    elif _is_number(one) and _is_number(other):
        steps = {sign * step: (axis, sign) for axis, step in enumerate(STEPS) for sign in (1, -1)}
        if one != other:
            yield keys, steps.get(other - one)
    elif type(one) is not type(other) or not eq(one, other):  # nodes with tags define no !=
        yield keys, None


def _is_list(node: Any) -> bool:
    return hasattr(node, "append") and not hasattr(node, "keys")


def _is_number(node: Any) -> bool:
    return isinstance(node, int | float) and not isinstance(node, bool)
