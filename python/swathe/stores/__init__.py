"""Stores by name: where files are read from; and their objects.

>>> swathe.stores.add("survey", "/data/survey")
>>> swathe.stores.list()
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store
    from swathe.stores.named_stores import MeasuredStore, add, list, remove, show
    from swathe.stores.objects import (
        CopyReport,
        ObjectStatus,
        copy_objects,
        list_folder,
        list_objects,
        remove_objects,
        stat_object,
    )

_OBJECTS = (
    "CopyReport",
    "ObjectStatus",
    "copy_objects",
    "list_folder",
    "list_objects",
    "remove_objects",
    "stat_object",
)
__all__ = [
    "CopyReport",
    "MeasuredStore",
    "ObjectStatus",
    "Store",
    "add",
    "copy_objects",
    "list",
    "list_folder",
    "list_objects",
    "remove",
    "remove_objects",
    "show",
    "stat_object",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Store": "swathe.catalog.store_settings",
        **dict.fromkeys(
            ("MeasuredStore", "add", "list", "remove", "show"), "swathe.stores.named_stores"
        ),
        **dict.fromkeys(_OBJECTS, "swathe.stores.objects"),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
