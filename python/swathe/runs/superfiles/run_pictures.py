"""The superfiles of pictures of a run: objects beside its group, in any store of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import LimitError
from swathe.runs.storage.zarr_group import group_folder, list_paths

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord

SUFFIX = ".zip"
MOST_SUPERFILES = 1000
"""Superfiles of pictures of a run in one store, at most."""


def pictures_folder(run: RunRecord, store: str) -> str:
    """Return the folder of a store for pictures of a run, `STORE:runs/NAME-NUMBER-xxxxxx.pictures`.

    It is no part of the group, so readers of Zarr do not see it, and it stays if the run is
    removed.

    Raises:
        CatalogError: If the catalogue has no name of a folder.
    """
    return f"{group_folder(run, store).removesuffix('.zarr')}.pictures"


def list_pictures(run: RunRecord, store: str) -> list[str]:
    """Return the names of the superfiles of pictures of a run in one store, `STORE:path`.

    Raises:
        AccessError, SourceError: If the store cannot be listed.
        CatalogError: If the catalogue has no name of a folder.
        LimitError: If there are more than 1000.
    """
    folder = pictures_folder(run, store)
    names: list[str] = []
    for path in list_paths(f"{folder}/"):
        if path.endswith(SUFFIX):
            names.append(f"{store}:{path}")
        if len(names) > MOST_SUPERFILES:
            raise LimitError(f"{folder}: expected at most {MOST_SUPERFILES} superfiles, found more")
    return sorted(names)
