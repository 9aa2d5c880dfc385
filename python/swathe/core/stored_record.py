"""Records that another version of Swathe may have stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

from swathe.core.errors import CatalogError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound="DataclassInstance")


def stored_record(kind: type[Record], values: object, what: str) -> Record:
    """Return a dataclass of stored values; fields of a newer version are ignored.

    Args:
        kind: class of the record.
        values: its fields by name.
        what: name of the record in errors.

    Raises:
        CatalogError: If the values are no mapping, or one without a default is missing.
    """
    if not isinstance(values, Mapping):
        raise CatalogError(f"{what}: expected values by name, found {short_text(values)}")
    arguments: dict[str, Any] = {}
    for each in fields(kind):
        if each.init and each.name in values:
            arguments[each.name] = values[each.name]
        elif each.init and each.default is MISSING and each.default_factory is MISSING:
            raise CatalogError(
                f"{what}: expected {each.name}, found {short_text(', '.join(map(str, values)))}; "
                "another version of Swathe stored it: probe again with this one"
            )
    return kind(**arguments)
