"""Parse the prefix of a dataset, `STORE:PREFIX`."""

from __future__ import annotations

import posixpath

from swathe.core.argument_checks import check_text
from swathe.core.errors import DatasetError


def split_place(place: str) -> tuple[str, str]:
    """Return the name of the store, and the prefix without slashes around it.

    Raises:
        DatasetError: If it is not written like this, or leads out of the store.
    """
    store, colon, prefix = check_text("place", place).partition(":")
    prefix = prefix.strip("/")
    if not colon or not store or "/" in store or "://" in place:
        raise DatasetError(
            "place of a dataset: expected STORE:PREFIX, the name of a store and a folder in it, "
            f"found {place[:200]!r}; a folder in no store needs one: swathe store add NAME FOLDER"
        )
    if ".." in prefix.split("/") or not (prefix or ".").isprintable():
        raise DatasetError(f"prefix: expected a folder in the store, found {prefix[:200]!r}")
    return store, "" if prefix in ("", ".") else posixpath.normpath(prefix)
