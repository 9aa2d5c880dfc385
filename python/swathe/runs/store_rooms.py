"""The stores that a run may write to: their room, and what writing to them costs."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from swathe.costs.store_costs import reading_costs, writing_costs
from swathe.runs.placement import StoreRoom
from swathe.runs.run_prediction import WriteRate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swathe.catalog import Catalog, Store

COMMIT_S = 0.01
"""Assumed seconds to make an object durable: a sync of the disk, or the answer of a server."""


def store_rooms(catalog: Catalog) -> list[StoreRoom]:
    """Return the stores of a catalogue that can be written to, with their free bytes if known.

    The room is known of folders of this machine. The folder of a store need not exist yet.
    """
    return [_room(store) for store in catalog.stores() if store.kind.is_writable]


def write_rates(catalog: Catalog, names: Iterable[str]) -> dict[str, WriteRate]:
    """Return what writing to some stores costs from this host.

    `swathe probe STORE --write` measures it. If it was not measured, it is assumed to cost as much
    as reading, and `COMMIT_S` for each object.
    """
    return {name: _rate(catalog, catalog.store(name)) for name in sorted(set(names))}


def _rate(catalog: Catalog, store: Store) -> WriteRate:
    profile = writing_costs(catalog, store)
    if profile is None:
        costs = reading_costs(catalog, store)[0]
        curve = tuple((size, seconds + COMMIT_S) for size, seconds in costs.request)
        return WriteRate(replace(costs, request=curve))
    return WriteRate(profile.costs, profile.spread.get("model", 0.0))


def _room(store: Store) -> StoreRoom:
    folder = store.kind.local_path
    if folder is None:
        return StoreRoom(store.name, store.tier)
    folder = _existing(folder)
    free_bytes = shutil.disk_usage(folder).free
    return StoreRoom(store.name, store.tier, free_bytes, os.stat(folder).st_dev)


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if os.path.isdir(each))
