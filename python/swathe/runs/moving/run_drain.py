"""Move dumps on from their near store (`via`), of a run that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from swathe.core.errors import OptionError
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.storage.object_writer import DRAIN_THREADS, copy_one
from swathe.runs.storage.zarr_group import dump_paths, group_folder, list_paths
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord


@dataclass
class DrainReport:
    """What was moved on.

    Attributes:
        run: full label of the run.
        dumps: number of dumps.
        bytes: their bytes.
        leftovers: number of objects that were removed from a near store, since their dump had been
            moved on before.
    """

    run: str
    dumps: int = 0
    bytes: int = 0
    leftovers: int = 0


def drain_run(record: RunRecord, catalog: Catalog) -> DrainReport:
    """Move the dumps of a run on; each is copied and verified before its entry changes.

    Raises:
        OptionError: If the run is being written: its own threads do it.
        FormatError: If objects of a dump are missing.
        OutputError, AccessError, SourceError: If one cannot be moved; the others before it are.
    """
    if record.state == "running":
        raise OptionError(
            f"{record.label}: process {record.pid} of {record.host} is writing it, and moves its "
            "dumps on"
        )
    report = DrainReport(record.label)
    for array in catalog.run_arrays(record.id):
        settings = ArraySettings.of_record(array.settings)
        if settings.via is None:
            continue
        for dump in catalog.dumps(array.id):
            if dump.target is not None:
                _move(record, catalog, array, dump, settings.sharding.count)
                report.dumps += 1
                report.bytes += dump.bytes
            elif dump.store != settings.via:
                near = f"{group_folder(record, settings.via)}/{array.name}/c/{dump.slot}/"
                report.leftovers += _remove(settings.via, list(list_paths(near)))
    return report


def _move(
    record: RunRecord, catalog: Catalog, array: RunArrayRecord, dump: DumpRecord, shards: int
) -> None:
    assert dump.target is not None
    paths = dump_paths(
        group_folder(record, dump.store), array.name, dump.iteration, dump.slot, shards
    )
    with ThreadPoolExecutor(DRAIN_THREADS) as pool:
        copies = [
            pool.submit(copy_one, f"{dump.store}:{path}", f"{dump.target}:{path}") for path in paths
        ]
        for copy in copies:
            copy.result()
    # What writing to the near store took says nothing of this one.
    catalog.put_dump(array.id, replace(dump, store=dump.target, seconds=0.0, target=None))
    _remove(dump.store, paths)


def _remove(store: str, paths: Sequence[str]) -> int:
    for path in paths:
        native_stores().remove(f"{store}:{path}")
    return len(paths)
