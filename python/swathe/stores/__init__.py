"""Stores by name: where files are read from; and their objects.

>>> swathe.stores.add("survey", "/data/survey")
>>> swathe.stores.list()
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store
    from swathe.stores.copies import CopyReport, copy_objects
    from swathe.stores.named_stores import MeasuredStore, add, list, remove, show
    from swathe.stores.objects import (
        ObjectStatus,
        list_folder,
        list_objects,
        remove_objects,
        stat_object,
    )
    from swathe.stores.stripe_plan import StripePlan, plan_stripe
    from swathe.stores.stripe_reports import CheckReport, RepairReport, StripeStatus
    from swathe.stores.stripes import (
        check_stripes,
        rebalance_stripes,
        repair_stripes,
        stripe_status,
    )

_OBJECTS = (
    "ObjectStatus",
    "list_folder",
    "list_objects",
    "remove_objects",
    "stat_object",
)
_STRIPE_REPORTS = ("CheckReport", "RepairReport", "StripeStatus")
_STRIPES = (
    "check_stripes",
    "rebalance_stripes",
    "repair_stripes",
    "stripe_status",
)
__all__ = [
    "CheckReport",
    "CopyReport",
    "MeasuredStore",
    "ObjectStatus",
    "RepairReport",
    "Store",
    "StripePlan",
    "StripeStatus",
    "add",
    "check_stripes",
    "copy_objects",
    "list",
    "list_folder",
    "list_objects",
    "plan_stripe",
    "rebalance_stripes",
    "remove",
    "remove_objects",
    "repair_stripes",
    "show",
    "stat_object",
    "stripe_status",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Store": "swathe.catalog.store_settings",
        **dict.fromkeys(
            ("MeasuredStore", "add", "list", "remove", "show"), "swathe.stores.named_stores"
        ),
        **dict.fromkeys(("CopyReport", "copy_objects"), "swathe.stores.copies"),
        **dict.fromkeys(_OBJECTS, "swathe.stores.objects"),
        **dict.fromkeys(_STRIPE_REPORTS, "swathe.stores.stripe_reports"),
        **dict.fromkeys(_STRIPES, "swathe.stores.stripes"),
        **dict.fromkeys(("StripePlan", "plan_stripe"), "swathe.stores.stripe_plan"),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
