"""Where a dataset lies: `STORE:PREFIX`."""

from __future__ import annotations

import posixpath

from swathe.core.errors import DatasetError


def split_place(place: str) -> tuple[str, str]:
    """Give the name of the store, and the prefix without slashes around it.

    Raises:
        DatasetError: where it is not written so, or leads out of the store.
    """
    store, colon, prefix = place.partition(":")
    prefix = prefix.strip("/")
    if not colon or not store or "/" in store or "://" in place:
        raise DatasetError(
            f"a dataset's place is STORE:PREFIX, the name of a store and a folder in it; not "
            f"{place[:200]!r}"
        )
    if ".." in prefix.split("/") or not (prefix or ".").isprintable():
        raise DatasetError(f"a prefix is a folder in the store; not {prefix[:200]!r}")
    return store, "" if prefix in ("", ".") else posixpath.normpath(prefix)
