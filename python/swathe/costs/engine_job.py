"""Rows as a job of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.row_record import plane_spans
from swathe.stores.registry import stores_for

if TYPE_CHECKING:
    from swathe.core.row_table import RowTable
    from swathe.costs.replica_stores import ReplicaStores


def to_engine_job(
    rows: RowTable,
    names: list[str] | None = None,
    replicas: ReplicaStores | None = None,
    **settings: Any,
) -> _swathe.Job:
    """Return rows as a job of the engine.

    Args:
        rows: rows with boxes.
        names: path of each row's result in the output.
        replicas: stores that have copies of the rows' objects.
        **settings: further arguments of the job.
    """
    from swathe.files.targets.hdus import hdu_key

    source, hdu = rows.source.few(), rows.hdu.few().map(hdu_key)
    planes = rows.planes.few()
    files = source.values
    if replicas is not None:
        copies = [replicas.copies(file) for file in files]
        settings["replicas"] = ([*replicas.target_s.items()], copies)
        files = [file for each in copies for _, file in each]
    return _swathe.Job(
        source.values,
        source.codes,
        hdu.values,
        hdu.codes,
        [plane_spans(each) for each in planes.values],
        planes.codes,
        rows.box,
        names if names is not None else [""] * len(rows),
        # Only events use them.
        ids=rows.id if _swathe.trace_is_on() else None,
        **{"output": "", "kind": "folder", "stores": stores_for(files), **settings},
    )
