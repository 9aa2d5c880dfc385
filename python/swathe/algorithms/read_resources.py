"""Read the resources of an algorithm, which the operator limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from swathe.algorithms.definition import Resources
from swathe.algorithms.header_table import HeaderTable
from swathe.core.format import seconds_text, size_text
from swathe.core.quantities import SIZE_FORMS, TIME_FORMS, parse_bytes, parse_seconds
from swathe.core.value_errors import short_text

KEYS = ("cpu", "memory", "wall", "output")
LEAST_MEMORY = 64 << 20
"""Bytes that Python itself needs."""
LEAST_WALL_S = 0.1


@dataclass(frozen=True)
class OperatorLimits:
    """Largest resources of one run.

    Attributes:
        cpu: processor cores.
        memory: bytes of memory.
        wall_s: elapsed time.
        output: bytes of outputs.
    """

    cpu: int = 1
    memory: int = 4 << 30
    wall_s: float = 3600.0
    output: int = 2 << 30

    @classmethod
    def here(cls) -> OperatorLimits:
        """Return those of this machine: all its cores."""
        return cls(cpu=os.cpu_count() or 1)


def read_resources(table: HeaderTable, limits: OperatorLimits) -> Resources:
    """Return the limits of one run; errors of its table are collected there."""
    table.refuse_unknown(KEYS)
    usual = Resources()
    cpu = table.integer("cpu", min(usual.cpu, limits.cpu), 1, limits.cpu)
    memory = _quantity(
        table, "memory", (usual.memory, LEAST_MEMORY, limits.memory), parse_bytes, size_text
    )
    wall_s = _quantity(
        table, "wall", (usual.wall_s, LEAST_WALL_S, limits.wall_s), parse_seconds, seconds_text
    )
    output = _quantity(table, "output", (usual.output, 1, limits.output), parse_bytes, size_text)
    return Resources(cpu, int(memory), wall_s, int(output))


def _quantity(
    table: HeaderTable,
    key: str,
    bounds: tuple[float, float, float],
    parse: Callable[[str], float],
    words: Callable[[float], str],
) -> float:
    """Return a quantity, given its default, its least and its greatest value."""
    usual, least, most = bounds
    text = table.values.get(key)
    if text is None:
        return min(usual, most)
    forms = TIME_FORMS if parse is parse_seconds else SIZE_FORMS
    try:
        quantity = parse(text) if isinstance(text, str) else None
    except ValueError:
        quantity = None
    if quantity is None:
        table.fault(key, forms, short_text(text))
    elif not least <= quantity <= most:
        table.fault(key, f"{words(least)} to {words(most)}", short_text(text))
    else:
        return quantity
    return min(usual, most)
