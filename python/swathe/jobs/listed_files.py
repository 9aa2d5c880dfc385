"""Rows of targets that name their files, read as in `cut_many`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe.core.errors import (
    AccessError,
    JobError,
    OnTapeError,
    SwatheError,
    TargetsError,
)
from swathe.core.row_record import plane_spans
from swathe.core.row_table import DictColumn, RowTable
from swathe.costs.tape_objects import TapeObjects
from swathe.files.file import sky_of
from swathe.files.targets.cells import texts
from swathe.files.targets.target_list import read_targets
from swathe.jobs.array_files import ArrayFiles, check_file, refused_files
from swathe.jobs.expanded_job import ExpandedJob, JobTargets
from swathe.jobs.types import read_planes
from swathe.operations.array_results import FITS_SUFFIX
from swathe.operations.inputs import inputs_of, rows_of_bands
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe._swathe import HduKey
    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.row_record import Fault
    from swathe.core.sky import SkyBoxes
    from swathe.jobs.types import Options

MOST_IMAGES = 32
"""Images on which sky positions are converted to pixels at submission. On the others this happens
when they are cut, because their headers must be read."""
MOST_PLANES = 100
"""Maximum number of different values of `planes` in one list."""


def rows_of_files(job_list: JobTargets) -> ExpandedJob:
    """Expand targets that name their files."""
    from astropy.table import Table

    columns, count, options = job_list.columns, job_list.count, job_list.options
    group: list[str] | None = None
    faults: dict[int, Fault] = {}
    if options.is_combined:
        columns, group, faults = _by_result(columns, count, options)
    is_fits = options.has_format and options.results.is_plain
    suffix = FITS_SUFFIX if is_fits else None
    arrays = ArrayFiles(job_list.check_source, is_combined=options.is_combined, suffix=suffix)
    table = Table(columns, copy=False)
    rows, unread = read_rows(table, job_list.check_source, job_list.tape, arrays)
    rows.group = None if group is None else DictColumn.of(group)
    sound = rows.sound
    rows = rows.with_status({row: fault for row, fault in faults.items() if sound[row]})
    rows = with_planes(rows, columns, options)
    unread -= faults.keys()
    return ExpandedJob(count, rows, unread, suffixes=arrays.suffixes, tape=job_list.tape)


def _by_result(
    columns: dict[str, Any], count: int, options: Options
) -> tuple[dict[str, Any], list[str], dict[int, Fault]]:
    """Return the images of combined results, those of each result in the order of use.

    Returns:
        The columns, the result of each row, and the faults of rows that are not cut.

    Raises:
        TargetsError: If bands are given, and the list has no column of bands.
    """
    import numpy as np
    from astropy.table import Table

    image_bands = texts(columns["band"]) if "band" in columns else None
    rows = rows_of_bands(image_bands, options.bands) if options.bands else list(range(count))
    groups = texts(columns["group"]) if "group" in columns else [""] * count
    results = inputs_of(
        options.results,
        [groups[row] for row in rows],
        [image_bands[row] if image_bands else "" for row in rows],
    )
    # Place in the new list, row that takes it, its result, and its fault if it has one.
    entries: list[tuple[int, int, str, Fault | None]] = []
    for each in results:
        own_rows = set(each.rows)
        every = [*each.rows, *(row for row in each.faults if row not in own_rows)]
        # The result takes the places of its rows in the list; an image may be used twice.
        places = sorted(set(every))
        places += places[-1:] * (len(every) - len(places))
        for place, row in zip(places, every, strict=True):
            entries.append((place, row, each.result, each.faults.get(row)))
    entries.sort(key=lambda entry: entry[0])
    order = [rows[row] for _, row, _, _ in entries]
    names = [name for _, _, name, _ in entries]
    faults = {at: entry[3] for at, entry in enumerate(entries) if entry[3] is not None}
    ids = texts(columns["id"]) if "id" in columns else [""] * count
    table = Table(columns, copy=False)[np.array(order, np.int64)]
    table["id"] = [ids[row] or str(row) for row in order]
    return {name: table[name] for name in table.colnames}, names, faults


def read_rows(
    table: Any,
    check_source: Callable[[str], None],
    tape: TapeObjects,
    arrays: ArrayFiles | None = None,
) -> tuple[RowTable, set[int]]:
    """Read a list whose files are allowed; return it and the rows whose file cannot be read.

    Rows whose object is on tape only are among these, unless they name an array: what they choose
    of it is known only when its file was opened.

    Raises:
        AccessError: If no file is allowed.
    """
    unreadable: set[str] = set() if arrays is None else arrays.unreadable
    on_tape = tape.faults_of(_allowed_files(table, check_source))

    def sky_of_source(file: str, hdu: HduKey | None) -> SkyBoxes:
        check_file(file, check_source)
        try:
            if file in on_tape:
                raise OnTapeError(on_tape[file])
            return sky_of(file, hdu)
        except SwatheError:
            unreadable.add(file)
            raise

    def tree_of_source(file: str) -> ArrayTree | None:
        assert arrays is not None
        if file in on_tape:
            raise OnTapeError(f"{on_tape[file]}; its arrays are looked up when a job is submitted")
        return arrays.tree_of(file)

    tree_of = None if arrays is None else tree_of_source
    rows = read_targets(table, sky_of_source, most_images=MOST_IMAGES, tree_of=tree_of)
    rows.reason = rows.reason.map(with_store_names)
    refusals = refused_files(rows, check_source)
    files = rows.source.list()
    unread = {row for row in rows.faults() if files[row] in unreadable and row not in refusals}
    return rows.with_status(refusals), unread


def _allowed_files(table: Any, check_source: Callable[[str], None]) -> list[str]:
    """Return the files of a list that may be read."""
    files = []
    for file in dict.fromkeys(texts(table["file"])):
        with suppress(AccessError):
            check_file(file, check_source)
            files.append(file)
    return files


def name_results(
    options: Options, targets: Sequence[str], columns: dict[str, Any], count: int
) -> DictColumn[str] | None:
    """Return the result that each row goes into; `None` if each has its own.

    Args:
        options: options of the job.
        targets: target of each row, if images were searched.
        columns: columns of the list, by row.
        count: number of rows.
    """
    if not options.is_combined:
        return None
    groups = texts(columns["group"]) if "group" in columns else [""] * count
    return DictColumn.of(options.results.grouping.name_results(targets, groups))


def with_planes(rows: RowTable, columns: dict[str, Any], options: Options) -> RowTable:
    """Return the rows with their planes: `3:7` on NAXIS3, `3:7,0:1` on NAXIS3 and NAXIS4.

    Raises:
        TargetsError: If there are too many different ones.
    """
    if "planes" not in columns:
        return replace(rows, planes=rows.planes.map(lambda each: _or_planes(each, options.planes)))
    plane_texts = DictColumn.of(texts(columns["planes"]))
    reasons: dict[str, str] = {}

    def parse(text: str) -> tuple[int, ...] | None:
        try:
            pairs = [read_planes("planes", part) for part in text.split(",")]
        except JobError as error:
            reasons[text] = str(error)
            return None
        return tuple(chain.from_iterable(pairs))

    planes = plane_texts.map(lambda text: parse(text) if text else options.planes)
    if len({*plane_texts.values, ""} - reasons.keys()) > MOST_PLANES:
        raise TargetsError(f"the targets have more than {MOST_PLANES} different planes")
    sound = rows.sound.tolist()
    faults: dict[int, Fault] = {
        row: ("error", reasons[text])
        for row, text in enumerate(plane_texts.list())
        if text in reasons and sound[row]
    }
    if any(rows.planes.values):
        # Of arrays: columns named like axes gave them.
        pairs = zip(rows.planes.list(), planes.list(), strict=True)
        planes = DictColumn.of([_or_planes(ranges, text) for ranges, text in pairs])
    return replace(rows, planes=planes).with_status(faults)


def _or_planes(
    ranges: tuple[int, ...] | None, others: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return planes of a row: others, if it has no ranges of its own."""
    return ranges if plane_spans(ranges) else (*(others or ()), *(ranges or ())) or None
