"""The log of changes: for each object of a dataset its latest version, or that it is withdrawn.

The log has one row for each object, so it does not outgrow the catalogue. A change is written in
the transaction that makes it. Who was away finds all that changed since, by number; of an object
that changed twice, only the latest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from swathe.catalog.tables import ChangeCounterRow, ObjectChangeRow

AT_ONCE = 500
"""Paths per statement: databases limit the number of parameters."""
ALL = ""
"""Path that stands for all objects of a dataset."""


def log_changes(session: Session, dataset: str, versions: Mapping[str, str | None]) -> None:
    """Log the versions of objects by path; `None` for one that is withdrawn.

    Call it last in a transaction: others that write changes wait for its end.
    """
    if not versions:
        return
    first = _take_numbers(session, len(versions))
    paths = list(versions)
    for at in range(0, len(paths), AT_ONCE):
        part = paths[at : at + AT_ONCE]
        session.execute(
            delete(ObjectChangeRow).where(
                ObjectChangeRow.dataset == dataset, ObjectChangeRow.path.in_(part)
            )
        )
    rows: list[dict[str, Any]] = [
        {"number": number, "dataset": dataset, "path": path, "version": versions[path]}
        for number, path in enumerate(paths, first)
    ]
    session.connection().execute(insert(ObjectChangeRow), rows)


def log_removal(session: Session, dataset: str) -> None:
    """Log that a dataset is removed, with all of its objects."""
    number = _take_numbers(session, 1)
    session.execute(delete(ObjectChangeRow).where(ObjectChangeRow.dataset == dataset))
    session.add(ObjectChangeRow(number=number, dataset=dataset, path=ALL, version=None))


def locked_counter(session: Session) -> ChangeCounterRow:
    """Return the counter of changes, locked until the end of the transaction."""
    return session.scalars(select(ChangeCounterRow).with_for_update()).one()


def _take_numbers(session: Session, count: int) -> int:
    """Return the first of some new numbers."""
    last = session.scalars(
        update(ChangeCounterRow)
        .values(last=ChangeCounterRow.last + count)
        .returning(ChangeCounterRow.last)
    ).one()
    return last - count + 1
