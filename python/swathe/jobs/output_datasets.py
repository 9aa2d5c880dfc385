"""Datasets of outputs: what an algorithm made of each group becomes searchable.

The outputs of a group are copied into the store that the operator declared, and catalogued, before
the row of the group is finished. So a row that is finished is in the dataset, and one whose work
was cut off is copied again, to the same names.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING

from swathe.algorithms.media_types import MEDIA_TYPES
from swathe.catalog.records.datasets import OutputDataset
from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import (
    AccessError,
    CatalogError,
    JobError,
    NotFoundError,
    SwatheError,
)
from swathe.core.row_table import RowTable
from swathe.core.times import mjd_of
from swathe.datasets.scan import add_objects
from swathe.datasets.store_prefix import split_place
from swathe.jobs.archives import place_of
from swathe.jobs.group_archives import OutputFile, outputs_in
from swathe.jobs.types import Options
from swathe.stores.copies import THREADS, CopyPair, CopyReport, copy_pairs
from swathe.stores.listing import ListedObject
from swathe.stores.registry import to_native
from swathe.stores.results import INPUTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.algorithms.definition import Algorithm
    from swathe.catalog import Catalog, Dataset
    from swathe.catalog.records.jobs import JobRecord
    from swathe.core.row_record import RowRecord
    from swathe.stores.results import ResultStore

SUFFIXES = tuple({each.suffix for each in MEDIA_TYPES.values() if each.formats})
"""Suffixes of outputs that Swathe reads."""
DIGITS = 8
"""Digits of the hash that tells groups apart whose names differ in characters of no file name."""


class OutputDatasets:
    """The datasets that jobs of users fill. Safe to share between threads."""

    def __init__(self, catalog: Catalog, place: ResultStore, root: str | None) -> None:
        """Take the results of jobs, and the folder for datasets, `STORE:prefix`, if there is one.

        Raises:
            DatasetError: If it is not written like this.
        """
        self._catalog, self._results = catalog, place
        self.root = None if root is None else split_place(root)
        self._lock = Lock()

    def of(self, algorithm: Algorithm, name: str, owner: str, *, is_new: bool) -> OutputDataset:
        """Return the dataset that a job is to fill, which is not added yet.

        Raises:
            JobError: If there is no store for datasets, or Swathe reads none of the outputs.
        """
        if self.root is None:
            raise JobError(
                "register_as: expected a portal with a store for datasets (results.datasets of its "
                "settings), found none"
            )
        if not any(each.suffix in SUFFIXES for each in algorithm.outputs.values()):
            kinds = ", ".join(each.media_type for each in algorithm.outputs.values())
            raise JobError(
                f"register_as: expected an output in FITS, NetCDF, HDF, TIFF or ASDF, found {kinds}"
            )
        store, prefix = self.root
        return OutputDataset(name, store, f"{prefix}/{name}".lstrip("/"), owner, is_new)

    def add(self, job: JobRecord, rows: Sequence[RowRecord]) -> Sequence[RowRecord]:
        """Add the outputs of groups to the dataset of their job.

        Args:
            job: the job.
            rows: rows that are finished; those of granules are left alone.

        Returns:
            The rows. Those whose outputs cannot be added have failed, with the reason.

        Raises:
            CatalogError: If the database cannot be used.
        """
        name = job.options.get("register_as")
        groups = [row for row in rows if row.number >= job.inputs and row.status == "ok"]
        if not name or not groups:
            return rows
        try:
            with self._lock:
                faults = self._add(job, self._own(name, job.owner), groups)
        except CatalogError:
            raise
        except (SwatheError, OSError) as error:
            faults = dict.fromkeys((row.number for row in groups), str(error))
        if not faults:
            return rows
        return RowTable.of([_with_fault(row, name, faults.get(row.number)) for row in rows])

    def remove(self, name: str, owner: str) -> None:
        """Remove a dataset of a user, with its objects.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
            AccessError: If it is not the user's.
            JobError: If a job that has not ended fills it.
            SourceError: If an object cannot be removed.
        """
        with self._lock:
            dataset = self._own(name, owner)
            for job in self._catalog.jobs(owner, ACTIVE):
                if job.options.get("register_as") == name:
                    raise JobError(f"dataset {name}: job {job.id} fills it: cancel that first")
            engine = to_native([self._catalog.store(dataset.store)])
            for replica in self._catalog.replicas(name, dataset.store):
                with suppress(NotFoundError):
                    engine.remove(f"{dataset.store}:{replica.path}")
            self._catalog.remove_dataset(name)

    def _own(self, name: str, owner: str) -> Dataset:
        dataset = self._catalog.dataset(name)
        if dataset.owner != owner:
            raise AccessError(f"dataset {name}: it is not yours")
        return dataset

    def _add(self, job: JobRecord, dataset: Dataset, rows: list[RowRecord]) -> dict[int, str]:
        """Copy and catalogue outputs; return why those of some rows could not be, by number."""
        scratch = self._results.scratch(job.id) / INPUTS
        scratch.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".outputs-", dir=scratch) as folder:
            files = self._extract(job, rows, Path(folder))
            pairs = [
                CopyPair(str(file), f"{dataset.store}:{dataset.prefix}/{path}", file.stat().st_size)
                for path, (file, _) in files.items()
            ]
            report = CopyReport()
            engine = to_native([self._catalog.store(dataset.store)])
            copy_pairs(engine, pairs, True, THREADS, report, progress=False)
        row_of = {str(file): row for file, row in files.values()}
        faults = {row_of[fault.name].number: fault.reason for fault in report.faults}
        times = self._times(job, rows)
        objects = {
            ListedObject(f"{dataset.prefix}/{path}", pair.size): times[row.number]
            for pair, (path, (_, row)) in zip(pairs, files.items(), strict=True)
            if row.number not in faults
        }
        numbers = {f"{dataset.prefix}/{path}": row.number for path, (_, row) in files.items()}
        for each in add_objects(self._catalog, dataset.name, objects):
            faults[numbers[each.path]] = each.reason
        return faults

    def _extract(
        self, job: JobRecord, rows: list[RowRecord], folder: Path
    ) -> dict[str, tuple[Path, RowRecord]]:
        """Copy the outputs that Swathe reads out of the archives of their groups.

        Returns:
            The file and the row of each, by its path in the dataset.
        """
        options = Options.from_catalog(job.options)
        files: dict[str, tuple[Path, RowRecord]] = {}
        for row in rows:
            result = self._results.find(job.id, place_of(row, options))
            with result.open() as archive:
                outputs = [each for each in outputs_in(archive) if each.name.endswith(SUFFIXES)]
            for output in outputs:
                # As itself, since formats without a signature are known by their suffix.
                file = folder / f"{len(files)}-{output.name}"
                with OutputFile.opener(result.open, output)() as source, file.open("wb") as new:
                    shutil.copyfileobj(source, new)
                files[f"{_folder_of(row)}/{output.name}"] = file, row
        return files

    def _times(
        self, job: JobRecord, rows: list[RowRecord]
    ) -> dict[int, tuple[float | None, float | None]]:
        """Return first and last time of each group, MJD (UTC), by the number of its row."""
        inputs = self._catalog.rows_into(job.number, [row.number for row in rows])
        spans: dict[int, list[float]] = {row.number: [] for row in rows}
        for each in inputs:
            if each.granule is not None and each.granule.role == "group":
                texts = filter(None, (each.granule.start, each.granule.end))
                spans[each.result or 0] += [mjd_of(datetime.fromisoformat(text)) for text in texts]
        return {
            number: (min(times, default=None), max(times, default=None))
            for number, times in spans.items()
        }


def _folder_of(row: RowRecord) -> str:
    """Return the folder of a group, the same in each job: its name, if that is a file name."""
    if row.name == row.id:
        return row.name
    return f"{row.name}-{hashlib.sha256(row.id.encode()).hexdigest()[:DIGITS]}"


def _with_fault(row: RowRecord, name: str, reason: str | None) -> RowRecord:
    if reason is None:
        return row
    text = f"its outputs cannot be added to the dataset {name}: {reason}"
    return row._replace(status="error", reason=text, bytes=0, sha256="")
