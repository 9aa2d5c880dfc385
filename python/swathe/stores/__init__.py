"""Stores by name: where files are read from; and their objects.

>>> swathe.stores.add("survey", "/data/survey")
>>> swathe.stores.list()
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store
    from swathe.stores.caches import CacheReport, clear, evict_objects, flush
    from swathe.stores.copies import CopyReport, copy_objects
    from swathe.stores.named_stores import MeasuredStore, add, list, remove, show
    from swathe.stores.objects import (
        ObjectStatus,
        list_folder,
        list_objects,
        remove_objects,
        stat_object,
    )
    from swathe.stores.protocol import ObjectStore, ObjectWriter, StoredObject
    from swathe.stores.staging.tape_objects import (
        StagedObjects,
        TapeStatus,
        release_objects,
        stage_objects,
        tape_status,
    )
    from swathe.stores.stripe_plan import StripePlan, plan_stripe
    from swathe.stores.stripe_reports import CheckReport, RepairReport, StripeStatus
    from swathe.stores.stripes import (
        check_stripes,
        rebalance_stripes,
        repair_stripes,
        stripe_status,
    )

_CACHES = ("CacheReport", "clear", "evict_objects", "flush")
_OBJECTS = (
    "ObjectStatus",
    "list_folder",
    "list_objects",
    "remove_objects",
    "stat_object",
)
_PROTOCOL = ("ObjectStore", "ObjectWriter", "StoredObject")
_STRIPE_REPORTS = ("CheckReport", "RepairReport", "StripeStatus")
_STRIPES = (
    "check_stripes",
    "rebalance_stripes",
    "repair_stripes",
    "stripe_status",
)
_TAPE = (
    "StagedObjects",
    "TapeStatus",
    "release_objects",
    "stage_objects",
    "tape_status",
)
__all__ = [
    "CacheReport",
    "CheckReport",
    "CopyReport",
    "MeasuredStore",
    "ObjectStatus",
    "ObjectStore",
    "ObjectWriter",
    "RepairReport",
    "StagedObjects",
    "Store",
    "StoredObject",
    "StripePlan",
    "StripeStatus",
    "TapeStatus",
    "add",
    "check_stripes",
    "clear",
    "copy_objects",
    "evict_objects",
    "flush",
    "list",
    "list_folder",
    "list_objects",
    "plan_stripe",
    "rebalance_stripes",
    "release_objects",
    "remove",
    "remove_objects",
    "repair_stripes",
    "show",
    "stage_objects",
    "stat_object",
    "stripe_status",
    "tape_status",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Store": "swathe.catalog.store_settings",
        **dict.fromkeys(
            ("MeasuredStore", "add", "list", "remove", "show"), "swathe.stores.named_stores"
        ),
        **dict.fromkeys(("CopyReport", "copy_objects"), "swathe.stores.copies"),
        **dict.fromkeys(_CACHES, "swathe.stores.caches"),
        **dict.fromkeys(_OBJECTS, "swathe.stores.objects"),
        **dict.fromkeys(_PROTOCOL, "swathe.stores.protocol"),
        **dict.fromkeys(_STRIPE_REPORTS, "swathe.stores.stripe_reports"),
        **dict.fromkeys(_STRIPES, "swathe.stores.stripes"),
        **dict.fromkeys(_TAPE, "swathe.stores.staging.tape_objects"),
        **dict.fromkeys(("StripePlan", "plan_stripe"), "swathe.stores.stripe_plan"),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
