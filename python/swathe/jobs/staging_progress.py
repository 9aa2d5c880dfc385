"""Progress of staging of a job: as the catalogue has it, by store, and as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from swathe.core.format import count_text, moment_text


def new_progress(objects: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the progress of a new job from the number of its objects by store; `None` if none."""
    return {store: progress(count, count) for store, count in objects.items()} or None


def progress(
    objects: int,
    pending: int,
    failures: int = 0,
    since: datetime | None = None,
    ends_by: datetime | None = None,
    fault: str | None = None,
) -> dict[str, Any]:
    """Return the progress in one store.

    Args:
        objects: number of objects.
        pending: number of those that are to come.
        failures: number of those that never will.
        since: time when they were first asked for.
        ends_by: time by which all have come at most, if the queue of the service is empty.
        fault: why the service could not be asked the last time.
    """
    return {
        "objects": objects,
        "come": max(0, objects - pending - failures),
        "failed": failures,
        "since": None if since is None else since.isoformat(),
        "ends_by": None if ends_by is None else ends_by.isoformat(),
        "fault": fault,
    }


def is_staging(by_store: Mapping[str, Any] | None) -> bool:
    """Check whether objects of a job are still to come."""
    return any(_pending(each) for each in (by_store or {}).values())


def _pending(of_store: Mapping[str, Any]) -> int:
    return int(of_store["objects"] - of_store["come"] - of_store["failed"])


def staging_view(by_store: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the progress over all stores, as `Job.staging` has it."""
    if not by_store:
        return None
    stores = by_store.values()
    began_at = [each["since"] for each in stores if each["since"] is not None]
    pending = [each for each in stores if _pending(each)]
    ends = [each["ends_by"] for each in pending]
    ends_by = None if None in ends else max(ends, default=None)
    if ends_by is not None and datetime.fromisoformat(ends_by) < datetime.now(UTC):
        ends_by = None  # the queue is not empty
    return {
        **{name: sum(each[name] for each in stores) for name in ("objects", "come", "failed")},
        "since": min(began_at, default=None),
        "ends_by": ends_by,
        "faults": {name: each["fault"] for name, each in by_store.items() if each["fault"]},
    }


def staging_text(staging: Mapping[str, Any]) -> str:
    """Return the progress of staging, `Job.staging`, as one sentence."""
    text = f"{count_text(staging['objects'], 'object')}, {staging['come']:,} come from tape"
    if staging["failed"]:
        text += f", {staging['failed']:,} cannot be had"
    if not _pending(staging):
        return text
    if staging["since"] is None:
        return f"{text}; the others are not asked for yet"
    text += f"; asked for since {moment_text(datetime.fromisoformat(staging['since']))}"
    if staging["ends_by"] is None:
        return f"{text}; end unknown"
    end = moment_text(datetime.fromisoformat(staging["ends_by"]))
    return f"{text}; all by {end} at most, if the queue is empty"
