"""Targets of jobs: the dumps of an array of a run, one by one or several in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError
from swathe.runs.storage.zarr_group import first_axis, group_folder

if TYPE_CHECKING:
    from astropy.table import Table

    from swathe.catalog.records.runs import DumpRecord, RunRecord
    from swathe.runs.definition.run_settings import ArraySettings


def dump_targets(
    run: RunRecord,
    name: str,
    settings: ArraySettings,
    dumps: list[DumpRecord],
    together: int = 1,
) -> Table:
    """Return a target for each dump, or for each few dumps in a row.

    Args:
        run: the run.
        name: the array.
        settings: those of the array.
        dumps: its dumps, by iteration.
        together: dumps of a target: with 2, each is a target with the next.

    Returns:
        Columns `id`, `file`, `array`, that of the first axis, `x0`, `y0`, `width` and `height`.

    Raises:
        OptionError: If the array has one axis or grows, it has fewer dumps, or those of a target do
            not lie side by side.
    """
    from astropy.table import Table

    label = f"{run.label}, {name}"
    if len(settings.shape) < 2 or settings.mode == "append":
        raise OptionError(
            f"{label}: expected dumps of two axes or more, found mode {settings.mode} and shape "
            f"{settings.shape}"
        )
    if not 1 <= together <= len(dumps):
        raise OptionError(f"{label}: expected {together} dumps or more, found {len(dumps)}")
    axis = first_axis(name, settings)
    height, width = settings.shape[-2:]
    rows: list[dict[str, Any]] = []
    for at in range(len(dumps) - together + 1):
        parts = dumps[at : at + together]
        first = parts[0]
        if [(each.store, each.slot) for each in parts] != [
            (first.store, first.slot + number) for number in range(together)
        ]:
            iterations = ", ".join(str(each.iteration) for each in parts)
            raise OptionError(
                f"{label}: expected the dumps {iterations} side by side in one store, found them "
                "apart; swathe run move brings them together"
            )
        rows.append(
            {
                "id": "-".join([name, *(f"{each.iteration:06}" for each in parts)]),
                "file": group_folder(run, first.store),
                "array": f"/{name}",
                axis: f"{first.slot}:{first.slot + together}",
                **{"x0": 0, "y0": 0, "width": width, "height": height},
            }
        )
    return Table(rows)
