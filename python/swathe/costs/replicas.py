"""Distribute the targets of a list over stores that have the same files."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import SwatheError, TargetsError
from swathe.costs.prediction import mix_replicas, predict_targets, readable_objects, target_lists

if TYPE_CHECKING:
    from swathe.core.box import Mode
    from swathe.core.row_table import RowTable
    from swathe.files.targets.target_list import ListOptions


@dataclass(frozen=True)
class MixedTargets:
    """Targets, each with the store that it is read from.

    Attributes:
        rows: the list; its files name their stores.
        replicas: the files in all of the stores.
        counts: number of targets by name of the store.
    """

    rows: RowTable
    replicas: list[str]
    counts: dict[str, int]


def mix_targets(
    targets: Any,
    stores: Sequence[str],
    choices: ListOptions,
    *,
    mode: Mode,
    planes: tuple[int, int] | None,
    threads: int,
    combined: bool = False,
    before: Container[str] = (),
    first: int = 0,
) -> MixedTargets:
    """Return a list whose files are distributed over stores as `predict(stores=...)` shows.

    A store that lacks a file gets none of its targets. A file that no store has stays with the
    first store.

    Args:
        targets: as in `cut_many`.
        stores: names of the stores.
        choices: what the list lacks.
        mode: as in `cut_many`.
        planes: first plane, and the last plus one.
        threads: number of threads.
        combined: whether results are made from several targets.
        before: sources of an earlier run, which are used again.
        first: number of the first target, for a piece of a list.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
    """
    lists = target_lists(targets, stores, choices, planes=planes, combined=combined, first=first)
    predictions = {name: predict_targets(rows, mode, threads, 1) for name, rows in lists.items()}
    shares = mix_replicas(predictions, threads).shares
    files = {name: rows.source.values for name, rows in lists.items()}
    lacking = {
        name: _lacking(files[name])
        if readable_objects(predictions[name]) < len(files[name])
        else set()
        for name in lists
    }
    store_of_file = choose_stores(files, shares, lacking, before)
    mixed, counts = _merge(lists, store_of_file)
    return MixedTargets(mixed, [file for each in files.values() for file in each], counts)


def choose_stores(
    files: Mapping[str, Sequence[str]],
    shares: Mapping[str, float],
    lacking: Mapping[str, Container[int]],
    before: Container[str] = (),
) -> list[str]:
    """Return the store of each file: always the one that is furthest below its share.

    Args:
        files: the files by store, in one order.
        shares: part of the files that each store is to serve.
        lacking: numbers of the files that each store lacks.
        before: files that an earlier run read, as its manifest shows them.
    """
    names = list(files)
    counts = dict.fromkeys(names, 0)
    choice = []
    for at in range(len(files[names[0]])):
        holders = [name for name in names if at not in lacking[name]]
        earlier = [
            name for name in holders if before and _swathe.redact_url(files[name][at]) in before
        ]
        candidates = (
            earlier or [name for name in holders if shares[name] > 0] or holders or names[:1]
        )
        store = max(candidates, key=lambda name: shares[name] * (at + 1) - counts[name])
        counts[store] += 1
        choice.append(store)
    return choice


def _lacking(files: Sequence[str]) -> set[int]:
    """Return the numbers of the files that cannot be opened in their store."""
    from swathe.files.file import open_cached

    lacking = set()
    for number, file in enumerate(files):
        try:
            # Predicting has opened it, so the index knows most of them.
            open_cached(file)
        except SwatheError:  # if no store has the file, its rows report the error
            lacking.add(number)
    return lacking


def _merge(
    lists: Mapping[str, RowTable], store_of_file: Sequence[str]
) -> tuple[RowTable, dict[str, int]]:
    """Return one list with the rows of the chosen stores, and the number of rows by store."""
    import numpy as np

    from swathe.core.row_table import RowTable

    file = next(iter(lists.values())).source.codes
    if any(not np.array_equal(file, rows.source.codes) for rows in lists.values()):
        raise TargetsError(
            f"the targets: expected files with the same paths in {', '.join(lists)}, found others"
        )
    store = np.array(store_of_file, str)[file]
    parts = {name: rows.take(store == name) for name, rows in lists.items()}
    mixed = RowTable.concatenate(list(parts.values()))
    return mixed.take(np.argsort(mixed.number)), {name: len(rows) for name, rows in parts.items()}
