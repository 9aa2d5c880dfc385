"""Distribute the targets of a list over stores that have the same files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import SwatheError, TargetsError
from swathe.costs.prediction import mix_replicas, predict_targets, readable_objects, target_lists

if TYPE_CHECKING:
    from swathe._swathe import Mode
    from swathe.files.targets.target_list import ListOptions, Targets


@dataclass(frozen=True)
class MixedTargets:
    """Targets, each with the store that it is read from.

    Attributes:
        targets: the list; its files name their stores.
        replicas: the files in all of the stores.
        counts: number of targets by name of the store.
    """

    targets: Targets
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

    Raises:
        TargetsError: if the list cannot be read.
        NoSuchStoreError: if there is no such store.
    """
    lists = target_lists(targets, stores, choices, combined=combined)
    predictions = {
        name: predict_targets(each, mode, planes, threads, 1) for name, each in lists.items()
    }
    shares = mix_replicas(predictions, threads).shares
    files = {name: each.files for name, each in lists.items()}
    lacking = {
        name: _lacking(each) if readable_objects(predictions[name]) < len(each.files) else set()
        for name, each in lists.items()
    }
    chosen = choose_stores(files, shares, lacking, before)
    mixed = _merge(lists, chosen)
    counts = Counter(chosen[file] for file in mixed.file.tolist())
    return MixedTargets(
        mixed,
        [file for each in files.values() for file in each],
        {name: counts[name] for name in stores},
    )


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
    chosen = []
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
        chosen.append(store)
    return chosen


def _lacking(target_list: Targets) -> set[int]:
    """Return the numbers of the files that cannot be opened in their store."""
    from swathe.files.file import open_cached

    lacking = set()
    for number, file in enumerate(target_list.files):
        try:
            # Predicting has opened it, so the index knows most of them.
            open_cached(file)
        except SwatheError:  # if no store has the file, its rows report the error
            lacking.add(number)
    return lacking


def _merge(lists: Mapping[str, Targets], chosen: Sequence[str]) -> Targets:
    """Return one list, with the files and boxes of the chosen stores."""
    import numpy as np

    first = next(iter(lists.values()))
    if any(not np.array_equal(first.file, each.file) for each in lists.values()):
        raise TargetsError(
            f"the targets: expected files with the same paths in {', '.join(lists)}, found others"
        )
    boxes = first.boxes.copy()
    faults: dict[int, tuple[str, str]] = {}
    unplaced: list[int] = []
    of_row = np.array(chosen)[first.file] if len(first) else np.array([], str)
    for name, each in lists.items():
        rows = np.flatnonzero(of_row == name)
        boxes[rows] = each.boxes[rows]
        here = set(rows.tolist())
        faults |= {row: fault for row, fault in each.faults.items() if row in here}
        unplaced += [row for row in each.unplaced if row in here]
    files = [lists[name].files[at] for at, name in enumerate(chosen)]
    return replace(first, files=files, boxes=boxes, faults=faults, unplaced=unplaced)
