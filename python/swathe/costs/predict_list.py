"""Predict the cost of a list of targets before it runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.argument_checks import check_count, check_objective, check_texts, check_threads
from swathe.core.format import count_text
from swathe.core.host import cores, crowding
from swathe.core.outputs import output_kind
from swathe.costs.array_work import ArrayWork
from swathe.costs.calibration import calibrate
from swathe.costs.call_costs import CallCosts
from swathe.costs.engine_job import to_engine_job
from swathe.costs.format_costs import SOURCE, FormatCosts, pixels_of
from swathe.costs.past_outcomes import past_outcomes, root_of
from swathe.costs.prediction import (
    MOST_FAULTS,
    Prediction,
    StoreCost,
    interval_of,
    mix_replicas,
    of_call,
    of_results,
    total_of,
    widest_bounds,
)
from swathe.costs.tape_objects import TapeObjects
from swathe.costs.write_costs import WriteCosts, output_key
from swathe.files.planes import plane_span
from swathe.stores.registry import bounds_of, compute_costs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Mode
    from swathe.core.row_table import RowTable
    from swathe.files.planes import Planes
    from swathe.files.targets.pieces import TablePiece
    from swathe.files.targets.target_list import ListOptions

UNMEASURED_BOUNDS = (math.log(2), math.log(2))
"""Of stores, or a machine, never probed: half to twice the predicted time."""
LOCAL_BOUNDS = (math.log(1.3), math.log(1.3))
LEAST_BOUND = math.log(1.05)
MOST_OBJECTS = 1000
"""Objects per store that `predict` inspects in the first 100,000 targets of a list."""
FURTHER_OBJECTS = 16
"""Objects per store that it inspects in each further part of a list."""


def predict(
    targets: Any,
    *,
    stores: Sequence[str] = (),
    machines: int = 1,
    mode: Mode = "trim",
    planes: Planes | None = None,
    threads: int | None = None,
    objective: Objective = "auto",
    format: str | None = None,  # noqa: A002 - as `cut_many`
    output: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> Prediction:
    """Predict the cost of cutting these targets, without reading a pixel.

    Headers are read if the index lacks them: of up to 1,000 objects per store, and of 16 for each
    further 100,000 targets. The others are assumed to be like these. A list of any length is read
    in parts, as `cut_many` reads it; an iterator is used up.

    Args:
        targets: as in `cut_many`.
        stores: names of stores with replicas, or one name, with the same paths in each. Plain
            paths below the folder of such a store belong to it.
        machines: number of machines like this one that share the work and the stores.
        mode: as in `cut_many`.
        planes: as in `cut_many`.
        threads: as in `cut_many`.
        objective: as in `cut_many`. With `auto`, what this process reads now is counted as others.
        format: format of the results: `fits` (default), `npy` or `png`; of arrays also `nc`, `h5`,
            `tif`, `asdf` or `source`, the default of arrays. The time to make them is that of this
            host, as `swathe probe` measured it; of a cube, that of one plane.
        output: as in `cut_many`: the folder or archive of the results, which need not exist. What
            earlier calls took to write results of this kind to this disk counts. Without it they
            are written to the disk of temporary files.
        file: file of targets that name none, as in `cut_many`.
        size: size of sky targets without one.
        frame: frame of positions.
        ra: name of the column of right ascension or longitude.
        dec: name of the column of declination or latitude.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
        OptionError: If cutouts are not made in this format.
    """
    from swathe.files.file import arrays_of, sky_of
    from swathe.files.targets.pieces import read_pieces, whole_objects
    from swathe.files.targets.target_list import choices_of, read_targets

    threads, objective = check_threads(threads) or cores(), check_objective(objective)
    machines = check_count("machines", machines, 100_000)
    stores = check_texts("stores", stores)
    span = None if planes is None else plane_span(planes)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    compute, making = compute_costs(), None if format == "fits" else format
    if making is not None:
        FormatCosts.of(compute, making)  # refuses formats that are not known
    kind = "folder" if output is None else output_kind(Path(output))
    write_costs = None
    if output is not None and making is None and kind != "null":
        write_costs = known_write_costs(output_key(output, kind))
    settings: dict[str, Any] = {"mode": mode, "threads": threads, "objective": objective}
    settings |= {"machines": machines, "kind": kind, "write_costs": write_costs}
    pieces = read_pieces(targets, choices)
    count, pixels, works, on_tape = 0, 0.0, list[ArrayWork](), TapeObjects()

    def call(cutting: Prediction) -> Prediction:
        work = reduce(ArrayWork.plus, works)
        # Of arrays, which the engine does not write as files, results have the source's format.
        name = making or (SOURCE if work.kinds else None)
        if name is not None:
            cost = work.making(compute, name, count, pixels)
            cutting = work.add_to(of_results(work.widen(cutting), count, *cost))
            cutting = learn_making(cutting, work.product(f"cut as {name}"))
        cutting = of_call(cutting, known_call_costs(), count)
        return replace(cutting, staging=on_tape.notes())

    if not stores:

        def read(piece: TablePiece) -> RowTable:
            common: dict[str, Any] = {"planes": span, "first": piece.first, "names": list}
            common |= {"tree_of": arrays_of, "faults_of": on_tape.faults_of}
            return read_targets(piece.table, sky_of, None, _most(piece.first), choices, **common)

        parts = []
        for part, (rows, *_) in enumerate(whole_objects(pieces, read)):
            works.append(ArrayWork.of(rows, compute))
            engine_rows = rows.take(~works[-1].is_apart)
            parts.append(predict_targets(engine_rows, _most(part), **settings))
            count, pixels = count + len(rows), pixels + pixels_of(rows)
        return call(total_of(parts))
    of_stores: dict[str, list[Prediction]] = {name: [] for name in stores}
    for piece in pieces:
        most = _most(piece.first)
        options: dict[str, Any] = {"planes": span, "first": piece.first, "tree_of": arrays_of}
        options["faults_of"] = on_tape.faults_of
        lists = target_lists(piece.table, stores, choices, most, **options)
        rows = next(iter(lists.values()))
        works.append(ArrayWork.of(rows, compute))
        for name, of_store in lists.items():
            engine_rows = of_store.take(~works[-1].is_apart)
            of_stores[name].append(predict_targets(engine_rows, most, **settings))
        count, pixels = count + len(rows), pixels + pixels_of(rows)
    predictions = {name: total_of(parts) for name, parts in of_stores.items()}
    return call(mix_replicas(predictions, threads * machines))


def _most(part: int) -> int:
    """Return the number of objects to inspect in a part of a list."""
    return FURTHER_OBJECTS if part else MOST_OBJECTS


def target_lists(
    targets: Any,
    stores: Sequence[str],
    choices: ListOptions,
    most_images: int | None = None,
    *,
    planes: tuple[int, int] | None,
    is_combined: bool = False,
    first: int = 0,
    tree_of: Callable[[str], ArrayTree | None] | None = None,
    faults_of: Callable[[Sequence[str]], Mapping[str, str]] | None = None,
) -> dict[str, RowTable]:
    """Return a list of targets as it is in each of some stores with replicas.

    `tree_of` and `faults_of` are as for `read_targets`, for the files of each store.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
    """
    from swathe.core.errors import NoSuchStoreError
    from swathe.files.file import sky_of
    from swathe.files.targets.target_list import read_targets
    from swathe.stores.registry import is_named

    for name in stores:
        if not is_named(f"{name}:x"):
            raise NoSuchStoreError(f"there is no store {name!r}; see: swathe store list")
    return {
        name: read_targets(
            targets,
            sky_of,
            store=name,
            most_images=most_images,
            choices=choices,
            planes=planes,
            is_combined=is_combined,
            first=first,
            tree_of=tree_of,
            faults_of=faults_of,
        )
        for name in stores
    }


def predict_targets(
    rows: RowTable,
    most: int | None = None,
    *,
    machines: int = 1,
    write_costs: WriteCosts | None = None,
    **settings: Any,
) -> Prediction:
    """Return the predicted cost of a list, with reasons why some targets cannot be cut.

    At most `most` objects per store are inspected. The settings are further arguments of the job.
    """
    job = to_engine_job(rows.to_predict(), **settings)
    prediction = predict_job(job, most, machines, write_costs)
    rows_of: dict[str, list[int]] = {}
    for row, (status, reason) in rows.faults().items():
        if status != "no-overlap":
            rows_of.setdefault(reason, []).append(row)
    faults = [
        f"target {rows.id[first]}: {reason}"
        + (f" (and {count_text(len(others), 'more target')})" if others else "")
        for reason, (first, *others) in islice(rows_of.items(), MOST_FAULTS)
    ]
    return replace(prediction, faults=[*prediction.faults, *faults])


def predict_job(
    job: _swathe.Job,
    most: int | None = None,
    machines: int = 1,
    write_costs: WriteCosts | None = None,
    *,
    keeps: bool = False,
) -> Prediction:
    """Return the predicted cost of a job.

    Args:
        job: the job.
        most: number of objects per store that are inspected at most.
        machines: number of machines like this one that share the work.
        write_costs: costs of its output; without them those of the temporary folder.
        keeps: whether the job starts now, and reads from the objects that are opened for the
            prediction. Then the time is that from now on; `model_s` has the opening, too.
    """
    compute = compute_costs()
    if write_costs is not None:
        compute = write_costs.added_to(compute)
    estimates = json.loads(job.estimate(compute, most, machines, keeps))
    per_store, explanations, faults = {}, [], []
    for estimate in estimates:
        per_store[estimate["root"]] = _cost(estimate, keeps)
        faults += estimate["faults"]
        explanations += [{"root": estimate["root"], **how} for how in estimate["explained"]]
    # Objects are read in the order of the list, so stores mostly follow one another.
    seconds = sum(cost.median_s for cost in per_store.values())
    bounds = widest_bounds(per_store.values())
    write_s = sum(cost.write_s for cost in per_store.values())
    interval_s = interval_of(seconds, bounds)
    if write_costs is not None:
        interval_s = write_costs.widen(seconds, interval_s, write_s / (cores() * machines))
    return Prediction(
        seconds,
        interval_s,
        sum(cost.bytes for cost in per_store.values()),
        sum(cost.requests for cost in per_store.values()),
        per_store,
        explained=explanations,
        faults=faults,
        compute_s=sum(cost.compute_s for cost in per_store.values()),
        write_s=write_s,
        model_s=sum(cost.model_s for cost in per_store.values()),
    )


def known_call_costs() -> CallCosts:
    """Return what a call takes around reading and cutting, by all that is known of this host.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    return CallCosts.of(compute_costs()).learn(past_outcomes().outcomes)


def learn_making(prediction: Prediction, product: str) -> Prediction:
    """Return the prediction of a call that makes results, corrected by earlier calls.

    Args:
        prediction: prediction of reading, cutting and making.
        product: results that are made, as `cut as png`.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    if prediction.median_s <= 0:
        return prediction
    low_s, high_s = prediction.interval_s
    bounds = math.log(prediction.median_s / low_s), math.log(high_s / prediction.median_s)
    earlier = [each for each in past_outcomes().outcomes if each.output == product]
    calibration = calibrate(earlier, prediction.median_s, bounds)
    seconds = prediction.median_s * math.exp(calibration.bias)
    return replace(
        prediction,
        median_s=seconds,
        interval_s=interval_of(
            seconds,
            (
                max(calibration.faster, LEAST_BOUND),
                max(calibration.slower, LEAST_BOUND) + math.log(crowding()),
            ),
        ),
        model_s=prediction.median_s,
    )


def known_write_costs(output: str) -> WriteCosts:
    """Return what writing to an output takes, by all that is known of this host.

    Args:
        output: key of the output, as `output_key` returns it.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    return WriteCosts.of(compute_costs()).learn(past_outcomes().outcomes, output)


def _cost(estimate: dict[str, Any], keeps: bool) -> StoreCost:
    model_s, root = estimate["median_s"], estimate["root"]
    earlier = past_outcomes().of(root_of(root))
    calibration = calibrate(earlier, model_s, _bounds(estimate))
    rest_s = estimate["when_open_s"] if keeps else model_s
    seconds = rest_s * math.exp(calibration.bias)
    names = ("objects", "targets", "headers_read", "unreadable", "compute_s", "write_s")
    return StoreCost(
        seconds,
        interval_of(seconds, (calibration.faster, calibration.slower)),
        **{name: estimate["traffic"][name] for name in ("bytes", "requests")},
        **{name: estimate[name] for name in names},
        measured=estimate["is_measured"],
        is_local=_swathe.StoreKind(root).is_local,
        model_s=model_s,
        outcomes=calibration.outcomes,
    )


def _bounds(estimate: dict[str, Any]) -> tuple[float, float]:
    """Return logarithms of how much faster and slower 80 of 100 jobs are at most."""
    if _swathe.StoreKind(estimate["root"]).is_local:
        return UNMEASURED_BOUNDS if compute_costs() is None else LOCAL_BOUNDS
    if not estimate["is_measured"]:
        return UNMEASURED_BOUNDS
    faster, slower = bounds_of(estimate["root"])
    return max(faster, LEAST_BOUND), max(slower, LEAST_BOUND)
