"""Answers of a portal as the values that jobs have locally, and back as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from datetime import datetime
from typing import Any, TypeVar

from swathe.algorithms.definition import Algorithm
from swathe.catalog.records.algorithms import AlgorithmRecord, LibraryRecord
from swathe.catalog.records.subscriptions import Subscription
from swathe.core.errors import JobError, SourceError
from swathe.costs.prediction import Prediction
from swathe.jobs.types import Estimate, Job, Options, Row

T = TypeVar("T")
COUNTS_END = 1 << 63
"""Counts and bytes of a portal are smaller."""


def job_of(content: Mapping[str, Any], url: str) -> Job:
    """Return a job from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of a job.
    """
    return _parse(Job, content, url)


def row_of(content: Mapping[str, Any], url: str) -> Row:
    """Return a row of a job from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of a row.
    """
    return _parse(Row, content, url)


def estimate_of(content: Mapping[str, Any], url: str) -> Estimate:
    """Return an estimate from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of an estimate.
    """
    return _parse(Estimate, content, url)


def algorithm_of(content: Mapping[str, Any], url: str) -> AlgorithmRecord:
    """Return a version of an algorithm from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of one.
    """
    return _parse(AlgorithmRecord, content, url)


def library_of(content: Mapping[str, Any], url: str) -> LibraryRecord:
    """Return a version of a library from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of one.
    """
    return _parse(LibraryRecord, content, url)


def subscription_of(content: Mapping[str, Any], url: str) -> Subscription:
    """Return a subscription from the JSON of a portal.

    Raises:
        SourceError: If it is not the JSON of one.
    """
    return _parse(Subscription, content, url)


def definition_of(content: Mapping[str, Any], url: str) -> Algorithm:
    """Return the definition of an algorithm from the JSON of a portal.

    Raises:
        SourceError: If it has none.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Algorithm).validate_python(content.get("definition"))
    except ValidationError as error:
        raise SourceError(f"{url}: expected a definition, found other JSON: {error}") from error


def entry(content: Mapping[str, Any], key: str, kind: type[T], url: str) -> T:
    """Return one value of an answer.

    Raises:
        SourceError: If it is missing, or of another type.
    """
    value = content.get(key)
    if not isinstance(value, kind):
        raise SourceError(f"{url}: expected {key!r} in a portal's answer, found other JSON")
    return value


def as_json(value: Job | Row | Estimate) -> dict[str, Any]:
    """Return a job, row or estimate as a mapping of JSON values, with the keys of its fields."""
    values = asdict(value)
    if isinstance(value, Job):
        values["options"] = value.options.as_dict()
    return {name: _json_value(each) for name, each in values.items()}


def _parse(kind: Callable[..., T], content: Mapping[str, Any], url: str) -> T:
    """Return a value of a class from the JSON of its fields.

    Raises:
        SourceError: If a field is missing, or of another type.
    """
    name = getattr(kind, "__name__", "").lower()
    if not isinstance(content, Mapping):
        raise SourceError(f"{url}: expected a portal's {name}, found other JSON")
    try:
        values = {
            each.name: content[each.name]
            for each in fields(kind)  # type: ignore[arg-type]
            # Portals of older versions lack it.
            if each.name in content or (each.default is MISSING and each.default_factory is MISSING)
        }
        return kind(**{key: _READ.get(key, _same)(value) for key, value in values.items()})
    except KeyError as error:
        raise SourceError(f"{url}: expected {error} in a portal's {name}, found none") from error
    except (TypeError, ValueError, AttributeError, JobError) as error:
        raise SourceError(
            f"{url}: expected a portal's {name}, found other JSON: {error}"
        ) from error


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value


def _texts(values: list[Any]) -> list[str]:
    return [_text(value) for value in values]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("expected a number")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < COUNTS_END:
        raise TypeError("expected a whole number from 0")
    return value


def _counts(value: Mapping[str, Any]) -> dict[str, int]:
    return {name: _count(each) for name, each in value.items()}


def _cost(time_key: str) -> Callable[[Any], Any]:
    def read(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if value is not None:
            _number(value[time_key])
        return value

    return read


def _time(value: str) -> datetime:
    return datetime.fromisoformat(value)


def _time_if_any(value: str | None) -> datetime | None:
    return None if value is None else _time(value)


def _prediction(cost: Mapping[str, Any] | None) -> Prediction | None:
    if cost is None:
        return None
    low_s, high_s = map(_number, cost["interval_s"])
    median_s, size, requests = cost["median_s"], cost["bytes"], cost["requests"]
    return Prediction(_number(median_s), (low_s, high_s), _count(size), _count(requests), {})


def _checked_time_left(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    low_s, high_s = map(_number, value["interval_s"])
    return {"median_s": _number(value["median_s"]), "interval_s": (low_s, high_s)}


def _checked_staging(value: Mapping[str, Any] | list[Any] | None) -> Any:
    """Return the progress of staging of a job, or the lines on staging of an estimate."""
    if value is None:
        return None
    if isinstance(value, list):
        return _texts(value)
    for name in ("objects", "come", "failed"):
        _count(value[name])
    for name in ("since", "ends_by"):
        _time_if_any(value[name])
    faults = {_text(store): _text(reason) for store, reason in value["faults"].items()}
    return {**value, "faults": faults}


def _pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return [(first, second) for first, second in values]


def _box(value: list[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


_READ: dict[str, Callable[[Any], Any]] = {
    "actual": _cost("work_s"),
    "added_at": _time,
    "box": _box,
    "bytes": _count,
    "bytes_out": _count,
    "counts": _counts,
    "created_at": _time,
    "dataset": _text,
    "description": _text,
    "ended_at": _time_if_any,
    "events": _count,
    "expires_at": _time,
    "faults": _pairs,
    "id": _text,
    "left": _checked_time_left,
    "mail_fault": _text,
    "matches": _pairs,
    "name": _text,
    "notes": _texts,
    "number": _count,
    "options": Options.from_mapping,
    "owner": _text,
    "parameters": _pairs,
    "phase": _text,
    "predicted": _cost("median_s"),
    "prediction": _prediction,
    "reason": _text,
    "rows": _count,
    "sha256": _text,
    "source": _text,
    "staging": _checked_staging,
    "started_at": _time_if_any,
    "state": _text,
    "status": _text,
    "targets": _count,
    "unmatched": _count,
    "until": _time_if_any,
    "version": _text,
    "webhook_fault": _text,
}
"""Functions that read the JSON of a field; other fields are the same in JSON."""


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return value
