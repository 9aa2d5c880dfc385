"""Runs: the arrays that an application writes, placed on stores and predicted before it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.current_run import Run
    from swathe.runs.run_prediction import RunPrediction
    from swathe.runs.run_settings import RunSettings
    from swathe.runs.stored_run import StoredRun

__all__ = ["list", "open_run", "predict", "remove", "run"]


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
    from swathe.runs.current_run import Run
    from swathe.runs.rank_group import RankGroup
    from swathe.runs.ranks import ranks_of
    from swathe.runs.run_settings import RunSettings, arrays_for, plain_number

    group = RankGroup(ranks_of(comm))
    with group.step() as step:
        settings = RunSettings.from_mapping(
            {"name": name, "iterations": plain_number(iterations), "ranks": group.size}
        )
        overrides = None if purpose_file is None else arrays_for(settings, Path(purpose_file))
        step.what = f"run {settings} {overrides}"
    return Run(settings, group, default, overrides)


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
    from swathe.runs.stored_run import StoredRun

    check_text("label", label)
    with use_catalog(catalog) as open_catalog:
        return StoredRun.open(label, open_catalog)


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
        force: whether a run is removed that is being written.
        catalog: catalogue of the runs; `None` for the default one.

    Returns:
        `run`, its full label, and `objects`, the number of objects that were removed.

    Raises:
        NoSuchRunError: If there is no such run.
        OptionError: If it is being written, and `force` is false.
        OutputError, AccessError, SourceError: If an object cannot be removed; the record stays.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import use_catalog
    from swathe.core.argument_checks import check_text
    from swathe.core.errors import OptionError
    from swathe.runs.stored_run import remove_objects_of

    check_text("label", label)
    with use_catalog(catalog) as open_catalog:
        record = open_catalog.run(label)
        if record.state == "running" and not force:
            raise OptionError(
                f"{record.label}: process {record.pid} of {record.host} is writing it; remove it "
                "with force"
            )
        count = remove_objects_of(record, open_catalog)
        open_catalog.remove_run(record.id)
        return {"run": record.label, "objects": count}


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
    from swathe.catalog import use_catalog
    from swathe.runs.placement import place
    from swathe.runs.run_prediction import predict_run
    from swathe.runs.run_settings import RunSettings
    from swathe.runs.store_rooms import store_rooms, write_rates

    if isinstance(settings, str | os.PathLike):
        settings = RunSettings.read(Path(settings))
    elif not isinstance(settings, RunSettings):
        settings = RunSettings.from_mapping(settings)
    with use_catalog(catalog) as open_catalog:
        placements = place(settings.arrays, settings.iterations, store_rooms(open_catalog), default)
        stores = {each.store for some in placements.values() for each in some}
        return predict_run(settings, placements, write_rates(open_catalog, stores))
