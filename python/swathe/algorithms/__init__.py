"""Algorithms: users' own reductions, with their definitions, checks and runs.

>>> swathe.algorithms.add("lst.py")
>>> swathe.algorithms.show("lst-quarter-degree").definition.outputs["grid"].media_type
'application/netcdf'
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.algorithms import environments, libraries
    from swathe.algorithms.algorithm_version import AlgorithmVersion
    from swathe.algorithms.named_algorithms import add, list, remove, show
    from swathe.catalog.records.algorithms import AlgorithmRecord

_NAMES = ("AlgorithmVersion", "add", "list", "remove", "show")

__all__ = [
    "AlgorithmRecord",
    "AlgorithmVersion",
    "add",
    "environments",
    "libraries",
    "list",
    "remove",
    "show",
]

__getattr__ = lazy_names(
    __name__,
    {
        "AlgorithmRecord": "swathe.catalog.records.algorithms",
        "environments": "swathe.algorithms.environments",
        "libraries": "swathe.algorithms.libraries",
        **dict.fromkeys(_NAMES, "swathe.algorithms.named_algorithms"),
    },
)


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)
