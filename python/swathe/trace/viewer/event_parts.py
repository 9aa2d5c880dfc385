"""Parts of events: the newest, or those of one job."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from swathe.trace.analysis.columns import codes_of
from swathe.trace.ulm import CodedColumn, Events, Numbers

Mask: TypeAlias = NDArray[np.bool_]


def is_of_job(events: Events, job: str) -> Mask:
    """Return for each event whether it names a job."""
    codes, words = codes_of(events, "JOB")
    return codes == words.index(job) if job in words else np.zeros(len(codes), bool)


def job_events(events: Events, job: str, *, has_reasons: bool) -> Events:
    """Return the events of a job, without the damaged lines of the file.

    Args:
        events: those of all jobs.
        job: its name, as events have it.
        has_reasons: whether to keep the texts of errors; they may have paths of machines.
    """
    part = choose_events(events, is_of_job(events, job))
    fields = {
        name: column
        for name, column in part.fields.items()
        if (has_reasons or name != "REASON") and _has_values(column)
    }
    return replace(part, fields=fields, damaged=(), damaged_count=0)


def _has_values(column: CodedColumn | Numbers) -> bool:
    if isinstance(column, CodedColumn):
        return bool(column.words)
    return not np.isnan(column).all()


def choose_events(events: Events, choice: slice | Mask) -> Events:
    """Return a part of events, with only the words in use."""
    return replace(
        events,
        time_ns=events.time_ns[choice],
        event=_used_words(events.event, choice),
        fields={
            name: _used_words(column, choice) if isinstance(column, CodedColumn) else column[choice]
            for name, column in events.fields.items()
        },
    )


def _used_words(column: CodedColumn, choice: slice | Mask) -> CodedColumn:
    """Return a part of a column, with only the words in use."""
    codes = column.codes[choice]
    in_use = np.zeros(len(column.words) + 1, bool)
    in_use[codes] = True
    new_codes = np.cumsum(in_use[:-1], dtype=np.int32) - 1
    words = tuple(word for word, is_used in zip(column.words, in_use, strict=False) if is_used)
    return CodedColumn(
        np.where(codes < 0, np.int32(-1), np.append(new_codes, np.int32(-1))[codes]), words
    )
