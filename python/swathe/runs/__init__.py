"""Runs: the arrays that an application writes, placed on stores and predicted before it starts."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.definition.run_settings import RunSettings
    from swathe.runs.moving.run_drain import DrainReport
    from swathe.runs.moving.run_move import MoveReport
    from swathe.runs.planning.batch_job import BatchJob
    from swathe.runs.planning.run_plan import RunPlan
    from swathe.runs.planning.run_prediction import RunPrediction
    from swathe.runs.reading.stored_run import StoredRun
    from swathe.runs.superfiles.packing import pack_files, unpack_files
    from swathe.runs.superfiles.recovery import recover_superfile
    from swathe.runs.writing.current_run import Run
    from swathe.runs.writing.dask_ranks import DaskRanks
    from swathe.runs.writing.ranks import ThreadRanks

__all__ = [
    "DaskRanks",
    "ThreadRanks",
    "add",
    "drain",
    "list",
    "move",
    "open_run",
    "pack_files",
    "plan",
    "predict",
    "recover_superfile",
    "remove",
    "run",
    "submit",
    "unpack_files",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DaskRanks": "swathe.runs.writing.dask_ranks",
        "ThreadRanks": "swathe.runs.writing.ranks",
        "pack_files": "swathe.runs.superfiles.packing",
        "recover_superfile": "swathe.runs.superfiles.recovery",
        "unpack_files": "swathe.runs.superfiles.packing",
    },
)


def run(
    name: str,
    iterations: int,
    *,
    comm: Any = None,
    purpose_file: str | os.PathLike[str] | None = None,
    default: str | None = None,
) -> Run:
    """Begin a run of an application, whose arrays are written to several stores.

    Example:
        >>> with swathe.run("astro3d", iterations=120) as run:
        ...     temp = run.array("temp", shape=(128, 128, 128), every=6, location="remotedisk")
        ...     for i in range(run.iterations + 1):
        ...         temp.write(i, compute(i))

    Args:
        name: name of the application; each run of it has a number.
        iterations: number of the last iteration; the first is 0.
        comm: communicator of mpi4py whose processes share the arrays, or `ThreadRanks`; `None` for
            this process alone. All ranks call this, and each method, in the same order.
        purpose_file: settings of arrays, `run.toml`. Each takes the place of the same setting in
            the program.
        default: store of arrays without a location; by default the one of tier tape with most room,
            else the one with most room.

    Raises:
        SettingsError: If an argument or the file is invalid.
        OptionError: If `comm` is no communicator.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.runs.definition.run_settings import (
        RunSettings,
        arrays_for,
        plain_number,
        read_arrays,
    )
    from swathe.runs.writing.current_run import Run
    from swathe.runs.writing.rank_group import RankGroup
    from swathe.runs.writing.ranks import ranks_of

    group = RankGroup(ranks_of(comm))
    with group.step() as step:
        settings = RunSettings.from_mapping(
            {"name": name, "iterations": plain_number(iterations), "ranks": group.size}
        )
        overrides = {} if purpose_file is None else arrays_for(settings, Path(purpose_file))
        step.what = f"run {settings} {overrides}"
    arrays = dict(read_arrays(overrides, settings.iterations))
    return Run(replace(settings, arrays=arrays), group, default, overrides)


def open_run(label: str, *, catalog: Catalog | None = None) -> StoredRun:
    """Open a run to read its arrays, wherever they lie.

    Example:
        >>> swathe.open_run("astro3d")["temp"][60][:, :, 64]

    Args:
        label: `NAME@NUMBER` of a run, or `NAME` for the newest of an application.
        catalog: catalogue of the runs; `None` for the default one.

    Returns:
        A mapping of its arrays by name; each is a mapping of its dumps by iteration.

    Raises:
        NoSuchRunError: If there is no such run.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.runs.reading.stored_run import StoredRun

    check_text("label", label)
    with use_catalog(catalog) as open_catalog:
        return StoredRun.open(label, open_catalog, partial(use_catalog, catalog))


def add(place: str, *, catalog: Catalog | None = None) -> RunRecord:
    """Enter a run in the catalogue that another program wrote, in C or under another catalogue.

    A run whose arrays lie in several stores is entered by its group in each of them.

    Example:
        >>> swathe.runs.add("scratch:runs/waves-5f0c1d2e3a4b.zarr").label

    Args:
        place: the folder of its group, `STORE:runs/FOLDER`.
        catalog: catalogue of the runs; `None` for the default one.

    Returns:
        The run, with a number of its own. Dumps that are not whole are not entered.

    Raises:
        OptionError: If it lies elsewhere, or the catalogue has all of it, or the run is being
            written, or another run in this folder.
        NotFoundError, AccessError, SourceError: If it cannot be read.
        FormatError: If it is no group that a run wrote.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.runs.reading.stored_group import add_group

    check_text("place", place)
    with use_catalog(catalog) as open_catalog:
        return add_group(place, open_catalog)


def list(name: str | None = None, *, catalog: Catalog | None = None) -> Sequence[RunRecord]:
    """Return the runs of an application, or all, the newest first.

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text

    if name is not None:
        check_text("name", name)
    with use_catalog(catalog) as open_catalog:
        return open_catalog.runs(name)


def remove(label: str, *, force: bool = False, catalog: Catalog | None = None) -> dict[str, Any]:
    """Remove a run: its objects in its stores, then its record.

    Args:
        label: `NAME@NUMBER` of a run, or `NAME` for the newest of an application.
        force: whether a run is removed that is being written, or has stores that do not answer;
            what is in those stays.
        catalog: catalogue of the runs; `None` for the default one.

    Returns:
        `run`, its full label, and `objects`, the number of objects that were removed.

    Raises:
        NoSuchRunError: If there is no such run.
        OptionError: If it is being written or moved, and `force` is false.
        NoSuchStoreError: If the catalogue no longer has a store of it, and `force` is false.
        OutputError, AccessError, SourceError: If an object cannot be removed; the record stays.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.core.errors import OptionError
    from swathe.runs.reading.stored_run import remove_objects_of

    check_text("label", label)
    with use_catalog(catalog) as open_catalog:
        record = open_catalog.run(label)
        if record.state == "running" and not force:
            raise OptionError(
                f"{record.label}: process {record.pid} of {record.host} is writing it; remove it "
                "with force"
            )
        with open_catalog.hold_run(record, "remove", force=force):
            count = remove_objects_of(record, open_catalog, force=force)
            open_catalog.remove_run(record.id)
        return {"run": record.label, "objects": count}


def move(
    label: str,
    to: str,
    *,
    array: str | None = None,
    iterations: slice = slice(None),
    force: bool = False,
    catalog: Catalog | None = None,
) -> MoveReport:
    """Move dumps of a run to another store; who reads them meanwhile gets them whole.

    Each dump is copied, verified, recorded and removed by itself. A move that was ended goes on
    where it was when it is called again.

    Example:
        >>> swathe.runs.move("astro3d", "vault", array="press", iterations=slice(0, 60)).bytes

    Args:
        label: `NAME@NUMBER` of a run, or `NAME` for the newest of an application.
        to: name of the store.
        array: name of the array; all if `None`.
        iterations: iterations to move, from `start` up to, not including, `stop`.
        force: whether a run is moved that is being written.
        catalog: catalogue of the runs; `None` for the default one.

    Returns:
        Numbers of dumps, objects and bytes that were moved.

    Raises:
        NoSuchRunError: If there is no such run or array.
        OptionError: If it is being written or moved, and `force` is false, its mode has no dumps,
            or `iterations` has a step or a negative number.
        NoSuchStoreError: If there is no such store.
        LimitError: If the store has too little room.
        NotFoundError, AccessError, SourceError, FormatError: If a dump cannot be read.
        OutputError: If the store cannot be written to, or a dump cannot be removed.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.runs.moving.run_move import RunMove

    check_text("label", label)
    check_text("to", to)
    with use_catalog(catalog) as open_catalog:
        of_run = RunMove(open_catalog, label, to, force)
        with open_catalog.hold_run(open_catalog.run(label), "move", force=force):
            of_run.move(array, iterations)
        return of_run.report


def drain(label: str, *, catalog: Catalog | None = None) -> DrainReport:
    """Move dumps on from the near store of their array (`via`), of a run that has ended.

    Each is copied and verified before its entry in the catalogue changes; then the near copy is
    removed. It can be repeated after a crash.

    Args:
        label: `NAME@NUMBER` of a run, or `NAME` for the newest of an application.
        catalog: catalogue of the runs; `None` for the default one.

    Raises:
        NoSuchRunError: If there is no such run.
        OptionError: If it is being written: its own threads do it; or moved.
        FormatError: If objects of a dump are missing.
        OutputError, AccessError, SourceError: If one cannot be moved; the others before it are.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.runs.moving.run_drain import drain_run

    check_text("label", label)
    with use_catalog(catalog) as open_catalog:
        record = open_catalog.run(label)
        with open_catalog.hold_run(record, "drain"):
            return drain_run(record, open_catalog)


def predict(
    settings: RunSettings | Mapping[str, Any] | str | os.PathLike[str],
    *,
    default: str | None = None,
    catalog: Catalog | None = None,
) -> RunPrediction:
    """Predict how long the arrays of a run take to write, and how many bytes each store gets.

    Example:
        >>> swathe.runs.predict("run.toml").seconds

    Args:
        settings: the settings, a mapping as in `run.toml`, or the path of such a file.
        default: store of arrays without a location; by default the one of tier tape with most room,
            else the one with most room.
        catalog: catalogue of the stores; `None` for the default one.

    Raises:
        SettingsError: If the settings are invalid.
        NoSuchStoreError: If there is no such store, or it cannot be written to.
        OptionError: If there is no store for a hint.
        LimitError: If stores have too little room.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.runs.planning.run_plan import plan_run

    return plan_run(settings, default=default, catalog=catalog).prediction


def plan(
    settings: RunSettings | Mapping[str, Any] | str | os.PathLike[str],
    *,
    within_s: float | None = None,
    default: str | None = None,
    catalog: Catalog | None = None,
) -> RunPlan:
    """Choose the stores of all arrays of a run, those with the hint `auto` by their costs.

    Example:
        >>> plan = swathe.runs.plan("run.toml", within_s=7200)
        >>> plan.settings.arrays["press"].location, plan.prediction.seconds

    Args:
        settings: the settings, a mapping as in `run.toml`, or the path of such a file.
        within_s: seconds of the whole run, at most: for writing all arrays, and for computing if
            the settings have `compute_s`.
        default: store of arrays without a location; by default the one of tier tape with most room,
            else the one with most room.
        catalog: catalogue of the stores; `None` for the default one.

    Returns:
        The settings with the stores chosen, the prediction, and reasons in words.

    Raises:
        SettingsError: If the settings are invalid.
        NoSuchStoreError: If there is no such store, or it cannot be written to.
        OptionError: If there is no store for a hint.
        LimitError: If stores have too little room, or a limit of time cannot be met.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.runs.planning.run_plan import plan_run

    return plan_run(settings, within_s=within_s, default=default, catalog=catalog)


def submit(
    settings: RunSettings | Mapping[str, Any] | str | os.PathLike[str],
    command: Sequence[str],
    *,
    compute_s: float | None = None,
    default: str | None = None,
    options: Sequence[str] = (),
    dry_run: bool = False,
    catalog: Catalog | None = None,
) -> BatchJob:
    """Submit a run as a job of Slurm: a task for each rank, and a walltime by the prediction.

    The walltime is the time of writing that 9 of 10 runs do not exceed, and the computing time.

    Example:
        >>> swathe.runs.submit("run.toml", ["srun", "python", "astro3d.py"], compute_s=4.0).number

    Args:
        settings: the settings, a mapping as in `run.toml`, or the path of such a file.
        command: program and arguments; its first word starts the ranks, as `srun` or `mpiexec`.
        compute_s: computing time of an iteration, seconds; by default that of the settings.
        default: store of arrays without a location, as for `predict`.
        options: further options of `sbatch`, as `--partition=long`.
        dry_run: whether the job is only made, not submitted.
        catalog: catalogue of the stores; `None` for the default one.

    Raises:
        SettingsError, NoSuchStoreError, LimitError, CatalogError: As `predict`.
        OptionError: As `predict`, or if the computing time is not known.
        JobError: If Slurm is not there, or does not take the job.
    """
    from dataclasses import replace

    from swathe.core.argument_checks import check_positive, check_texts
    from swathe.runs.planning.batch_job import batch_job, submit_job

    if compute_s is not None:
        compute_s = check_positive("compute_s", compute_s)
    prediction = predict(settings, default=default, catalog=catalog)
    job = batch_job(
        prediction, check_texts("command", command), compute_s, check_texts("options", options)
    )
    return job if dry_run else replace(job, number=submit_job(job))
