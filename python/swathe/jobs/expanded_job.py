"""A list of targets, and the rows that become of it, before a job is stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swathe.core.errors import (
    LimitError,
)
from swathe.core.row_table import RowTable
from swathe.costs.format_costs import SOURCE
from swathe.costs.tape_objects import TapeObjects
from swathe.jobs.algorithm_rows import AlgorithmWork
from swathe.jobs.granules import GranuleReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Catalog
    from swathe.core.row_record import Fault
    from swathe.jobs.types import Options

LONGEST_LIST = 20
"""Maximum number of errors and of matches listed in an estimate."""


@dataclass(frozen=True)
class JobTargets:
    """A list of targets, and what its rows are made by.

    Attributes:
        columns: its columns, by the names that all lists have.
        names: the names that the user gave them.
        count: number of its targets.
        options: options of the job.
        catalog: the catalogue.
        check_source: function that raises an error if a file may not be read.
        most_rows: number of rows that a job may have.
        cutout_bytes: pixels that a filled box may have; `None`: any number.
        tape: objects on tape, whose rows wait.
    """

    columns: dict[str, Any]
    names: list[str]
    count: int
    options: Options
    catalog: Catalog
    check_source: Callable[[str], None]
    most_rows: int
    cutout_bytes: int | None
    tape: TapeObjects


@dataclass
class ExpandedJob:
    """Rows of a job before they are stored.

    Attributes:
        targets: number of targets in the user's list.
        rows: rows to cut; for stacks and `rgb`, `group` names the combined result of each.
        unread: rows with an error because their image could not be read; a retry may succeed.
        unmatched: targets that no image covers.
        matches: id and number of images of the first MOST_LISTED targets searched in the datasets.
        suffixes: suffix of results by file of arrays, if it is not the same for all files.
        reads: what the first granules say of all, if they are read for a grid.
        algorithm: what runs on the granules, if it is an algorithm.
        tape: objects on tape, whose rows wait.
    """

    targets: int
    rows: RowTable
    unread: set[int] = field(default_factory=set)
    unmatched: int = 0
    matches: list[tuple[str, int]] = field(default_factory=list)
    suffixes: dict[str, str] = field(default_factory=dict)
    reads: GranuleReads | None = None
    algorithm: AlgorithmWork | None = None
    tape: TapeObjects = field(default_factory=TapeObjects)

    @property
    def on_disk(self) -> RowTable:
        """Return the rows that can be predicted: those whose objects can be read now."""
        import numpy as np

        off_disk = self.tape.faults
        is_away = np.array([name in off_disk for name in self.rows.source.values], bool)
        rows = self.rows.take(~is_away[self.rows.source.codes]) if is_away.any() else self.rows
        return rows.to_predict()

    @property
    def faults(self) -> dict[int, Fault]:
        """Return why rows cannot be cut, with those whose object is lost."""
        losses = {name: why for name, why in self.tape.faults.items() if not self.tape.comes(name)}
        sound = self.rows.sound.tolist()
        files = enumerate(self.rows.source.list() if losses else ())
        faults: dict[int, Fault] = {
            row: ("error", losses[file]) for row, file in files if sound[row] and file in losses
        }
        return faults | self.rows.faults()

    @property
    def is_of_images(self) -> bool:
        """Check whether the rows are regions of images and arrays, and not granules."""
        return self.reads is None and self.algorithm is None

    @property
    def results(self) -> list[str]:
        """Return the ids of the combined results."""
        return [] if self.rows.group is None else self.rows.group.values

    def options(self, options: Options) -> Options:
        """Return the options of the job: each result has a suffix of its own with arrays.

        The default is the format of their file; `fits` is FITS of all. Those of an algorithm get
        its version.
        """
        if self.algorithm is not None:
            return self.algorithm.options(options)
        if self.suffixes and options.results.is_plain:
            user_format = options.format if options.has_format else ""
            return replace(options, format=SOURCE, asked_format=user_format)
        return options


def certain_bytes(work: ExpandedJob, options: Options) -> int:
    """Return what results take at least: each pixel of a filled box has at least a byte.

    Of granules it is what their pixels, or copies of them, take in the scratch folder.
    """
    if work.algorithm is not None:
        return work.algorithm.copy_bytes
    if work.reads is not None:
        return work.reads.scratch_bytes(int(work.rows.sound.sum()))
    is_filled = options.mode == "partial" and not options.is_combined
    if not is_filled or options.results.file_format.is_compressed:
        return 0
    sides = work.rows.box[work.rows.sound, 2:].astype(float)
    return int((sides[:, 0] * sides[:, 1]).sum())


def check_rows(rows: int, most: int) -> None:
    """Check that a job does not have too many rows.

    Raises:
        LimitError: If it has more than `most`.
    """
    if rows > most:
        raise LimitError(f"a job may have {most:,} rows, not {rows:,}; divide the list")
