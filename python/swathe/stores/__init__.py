"""Stores by name: where files are read from.

>>> swathe.stores.add("survey", "/data/survey")
>>> swathe.stores.list()
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store
    from swathe.stores.named_stores import MeasuredStore, add, list, remove, show

__all__ = ["MeasuredStore", "Store", "add", "list", "remove", "show"]

__getattr__ = lazy_names(
    __name__,
    {
        "Store": "swathe.catalog.store_settings",
        **dict.fromkeys(
            ("MeasuredStore", "add", "list", "remove", "show"), "swathe.stores.named_stores"
        ),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
