"""Datasets: catalogue the images of an archive, so that `swathe.find` finds them.

>>> swathe.datasets.add("frames", "survey:", pattern="*.fit.fz")
>>> swathe.find("10.0 -1.05", dataset="frames")
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.catalog.records.datasets import Dataset
    from swathe.datasets.mirror_plan import MirrorPlan
    from swathe.datasets.mirroring import MirrorReport
    from swathe.datasets.named_datasets import (
        DatasetCondition,
        add,
        list,
        mirror,
        moc,
        plan_mirror,
        remove,
        show,
        sync,
    )
    from swathe.datasets.scan import ScanReport, SkippedObject

_NAMES = (
    "DatasetCondition",
    "add",
    "list",
    "mirror",
    "moc",
    "plan_mirror",
    "remove",
    "show",
    "sync",
)

__all__ = [
    "Dataset",
    "DatasetCondition",
    "MirrorPlan",
    "MirrorReport",
    "ScanReport",
    "SkippedObject",
    "add",
    "list",
    "mirror",
    "moc",
    "plan_mirror",
    "remove",
    "show",
    "sync",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Dataset": "swathe.catalog.records.datasets",
        "MirrorPlan": "swathe.datasets.mirror_plan",
        "MirrorReport": "swathe.datasets.mirroring",
        "ScanReport": "swathe.datasets.scan",
        "SkippedObject": "swathe.datasets.scan",
        **dict.fromkeys(_NAMES, "swathe.datasets.named_datasets"),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
