"""Schemes of stores that packages add by entry points.

A package adds a scheme with `[project.entry-points."swathe.stores"]`, `mine = "package:factory"`.
Nothing of it is imported here.
"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points

from swathe.core.errors import StoreSettingsError

GROUP = f"{__name__.partition('.')[0]}.stores"
"""The group `swathe.stores` of entry points."""
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
DATABASE = "db"
"""The scheme of databases: `db:sqlite:///...` and `db:postgresql://...`."""
CACHE = "cache"
"""The scheme of caches in front of other stores: `cache://NAME`."""
BUILT_IN = ("file", "http", "https", "s3", "gs", "az", "root", "roots", "dav", "davs")
"""Schemes of stores that the engine reads itself."""


def scheme_of(url: str) -> str:
    """Return the scheme of a store's URL, in small letters; `db` for databases."""
    scheme = url.partition("://")[0].lower()
    return DATABASE if scheme.startswith(f"{DATABASE}:") else scheme


def is_added(url: str) -> bool:
    """Return whether a store is written in Python: a database, or one that a package adds."""
    return "://" in url and scheme_of(url) not in (*BUILT_IN, "striped")


def find_entry_point(scheme: str) -> EntryPoint | None:
    """Return the entry point that adds a scheme; None if there is none.

    Raises:
        StoreSettingsError: If several packages add it.
    """
    if not SCHEME.fullmatch(scheme):
        return None
    # A package that is in two folders of sys.path counts once.
    points = {point.value: point for point in entry_points(group=GROUP, name=scheme)}
    if len(points) > 1:
        packages = ", ".join(sorted(package_of(point) for point in points.values()))
        raise StoreSettingsError(
            f"{scheme}://: expected one package that adds such stores, found {packages}"
        )
    return next(iter(points.values()), None)


def package_of(point: EntryPoint) -> str:
    """Return the name of the package that an entry point is of."""
    return point.dist.name if point.dist is not None else point.module
