"""Distribute the targets of a list over stores that have the same files."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import NotFoundError, OnTapeError, SwatheError, TargetsError
from swathe.costs.predict_list import predict_targets, target_lists
from swathe.costs.prediction import mix_replicas, readable_objects
from swathe.costs.replica_stores import ReplicaStores
from swathe.stores.staging.on_disk import faults_on_tape

if TYPE_CHECKING:
    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.box import Mode
    from swathe.core.row_table import RowTable
    from swathe.files.targets.target_list import ListOptions

MOST_TRIES = 3
"""Number of objects of a store that are opened, at most, to learn whether it answers."""


@dataclass(frozen=True)
class MixedTargets:
    """Targets, each with the store that it is read from.

    Attributes:
        rows: the list; its files name their stores.
        replicas: the files in all of the stores.
        counts: number of targets by name of the store.
        stores: the stores.
        notes: which stores are not used, and why.
    """

    rows: RowTable
    replicas: list[str]
    counts: dict[str, int]
    stores: ReplicaStores
    notes: list[str] = field(default_factory=list)


def mix_targets(
    targets: Any,
    stores: Sequence[str],
    choices: ListOptions,
    *,
    mode: Mode,
    planes: tuple[int, int] | None,
    threads: int,
    is_combined: bool = False,
    before: Container[str] = (),
    first: int = 0,
    tree_of: Callable[[str], ArrayTree | None] | None = None,
    faults_of: Callable[[Sequence[str]], Mapping[str, str]] = faults_on_tape,
) -> MixedTargets:
    """Return a list whose files are distributed over stores as `predict(stores=...)` shows.

    A store that lacks a file gets none of its targets, and one that does not answer gets none at
    all. A file that no store has stays with the first store.

    Args:
        targets: as in `cut_many`.
        stores: names of the stores.
        choices: what the list lacks.
        mode: as in `cut_many`.
        planes: first plane, and the last plus one.
        threads: number of threads.
        is_combined: whether results are made from several targets.
        before: sources of an earlier run, which are used again.
        first: number of the first target, for a piece of a list.
        tree_of: function that returns the arrays of a file, `None` for FITS, and keeps its index.
        faults_of: function that returns which files are on tape, and why they cannot be read now:
            their store counts as one that lacks them.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
    """
    stores = list(dict.fromkeys(stores))
    common: dict[str, Any] = {"planes": planes, "is_combined": is_combined, "first": first}
    silent: dict[str, str] = {}
    if len(stores) > 1:
        # Only their names are needed: nothing is opened.
        common["tree_of"] = None if tree_of is None else lambda _: None
        without_boxes = target_lists(targets, stores, choices, 0, **common)
        silent = _silent({name: rows.source.values for name, rows in without_boxes.items()})
    answering = [name for name in stores if name not in silent]
    common |= {"tree_of": tree_of, "faults_of": faults_of}
    lists = target_lists(targets, answering, choices, **common)
    predictions = {
        name: predict_targets(rows, mode=mode, threads=threads) for name, rows in lists.items()
    }
    shares = mix_replicas(predictions, threads).shares
    files = {name: rows.source.values for name, rows in lists.items()}
    readable = {name: readable_objects(predictions[name]) for name in lists}
    lacking = {
        name: _lacking(files[name], faults_of(files[name]))
        if readable[name] < len(files[name])
        else set()
        for name in lists
    }
    store_of_file = choose_stores(files, shares, lacking, before)
    mixture, counts = _merge(lists, store_of_file)
    target_s = {
        name: predictions[name].median_s * len(files[name]) / max(1, readable[name] * len(rows))
        for name, rows in lists.items()
    }
    return MixedTargets(
        mixture,
        [file for each in files.values() for file in each],
        {name: counts.get(name, 0) for name in stores},
        ReplicaStores(
            {name: target_s.get(name, 0.0) for name in stores},
            frozenset(files[name][number] for name in lists for number in lacking[name]),
            frozenset(silent),
        ),
        [f"store {name} was not used: {reason}" for name, reason in silent.items()],
    )


def _silent(files: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the stores that do not answer, each with the reason; none, if it is true of all.

    A store that does not answer would else be asked for each file, and each time for seconds.
    """
    with ThreadPoolExecutor(len(files)) as pool:
        reasons = dict(zip(files, pool.map(_why_silent, files.values()), strict=True))
    silent = {name: reason for name, reason in reasons.items() if reason}
    return silent if len(silent) < len(files) else {}


def _why_silent(files: Sequence[str]) -> str:
    """Return why a store does not answer, or empty text if it does."""
    from swathe.files.file import open_from_cache

    reason = ""
    for file in files[:MOST_TRIES]:
        try:
            open_from_cache(file)
        except OSError as error:
            if isinstance(error, NotFoundError | OnTapeError):
                return ""
            reason = reason or str(error)
        except SwatheError:  # it answers, with a file that is none of ours
            return ""
        else:
            return ""
    return reason


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


def _lacking(files: Sequence[str], on_tape: Container[str]) -> set[int]:
    """Return the numbers of the files that are on tape, or cannot be opened in their store."""
    from swathe.files.file import open_from_cache

    lacking = set()
    for number, file in enumerate(files):
        if file in on_tape:
            lacking.add(number)
            continue
        try:
            # Predicting has opened it, so the index knows most of them.
            open_from_cache(file)
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
    mixture = RowTable.concatenate(list(parts.values()))
    return mixture.take(np.argsort(mixture.number)), {
        name: len(rows) for name, rows in parts.items()
    }
