"""Runs: the arrays that an application writes, placed on stores and predicted before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from swathe.catalog import Catalog
    from swathe.runs.run_prediction import RunPrediction
    from swathe.runs.run_settings import RunSettings

__all__ = ["predict"]


def predict(
    run: RunSettings | Mapping[str, Any] | str | os.PathLike[str],
    *,
    default: str | None = None,
    catalog: Catalog | None = None,
) -> RunPrediction:
    """Predict how long the arrays of a run take to write, and how many bytes each store gets.

    Example:
        >>> swathe.runs.predict("run.toml").seconds

    Args:
        run: the settings, a mapping as in `run.toml`, or the path of such a file.
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
    from contextlib import nullcontext

    from swathe.catalog import Catalog
    from swathe.runs.placement import place
    from swathe.runs.run_prediction import predict_run
    from swathe.runs.run_settings import RunSettings
    from swathe.runs.store_rooms import store_rooms, write_rates

    if isinstance(run, RunSettings):
        settings = run
    elif isinstance(run, str) or hasattr(run, "__fspath__"):
        settings = RunSettings.read(Path(run))
    else:
        settings = RunSettings.from_mapping(run)
    with nullcontext(catalog) if catalog is not None else Catalog.open() as open_catalog:
        placements = place(settings, store_rooms(open_catalog), default)
        stores = {each.store for some in placements.values() for each in some}
        return predict_run(settings, placements, write_rates(open_catalog, stores))
