"""Attributes of events other than time, name and process, for some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.ulm import CodedColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.trace.ulm import Events

PROCESS = ("HOST", "PROG", "PID", "THREAD", "LVL")
Value = str | int | float


def attributes(
    events: Events, rows: NDArray[np.int64], but: Sequence[str] = PROCESS
) -> list[dict[str, Value]]:
    """Return the fields of some events, except `but`; whole numbers as `int`."""
    fields: list[dict[str, Value]] = [{} for _ in range(len(rows))]
    for name, column in events.fields.items():
        if name in but:
            continue
        if isinstance(column, CodedColumn):
            codes = column.codes[rows]
            for at in np.flatnonzero(codes >= 0).tolist():
                fields[at][name] = column.words[codes[at]]
            continue
        values = column[rows]
        for at in np.flatnonzero(np.isfinite(values)).tolist():
            value = float(values[at])
            fields[at][name] = int(value) if value.is_integer() else value
    return fields
