"""Turn a list of targets into job rows. A row is one region of one image.

Targets that name a file are read as in `cut_many`. Sky positions without a file are searched in the
datasets. Each image that covers a position becomes one row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from swathe.catalog import GranuleQuery
from swathe.core.errors import (
    JobError,
    LimitError,
    RegionError,
    SwatheError,
    TargetsError,
)
from swathe.core.format import size_text
from swathe.core.row_table import DictColumn, RowTable
from swathe.costs.format_costs import SOURCE
from swathe.files.file import sky_of
from swathe.files.targets.cells import float_column, texts
from swathe.files.targets.columns import standard_columns
from swathe.files.targets.list_tables import read_list
from swathe.files.targets.result_names import numbered_ids
from swathe.files.targets.target_list import SKY, check_sky_box, one_angle, read_targets
from swathe.jobs.array_files import ArrayFiles, check_file, refused_files
from swathe.jobs.granules import check_result, granule_rows
from swathe.jobs.types import read_planes
from swathe.operations.array_results import FITS_SUFFIX
from swathe.operations.grid import enlarge_boxes
from swathe.operations.inputs import inputs_of, rows_of_bands
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from swathe._swathe import HduKey
    from swathe.catalog import Catalog, Match
    from swathe.core.row_record import Fault
    from swathe.core.sky import SkyBoxes
    from swathe.datasets.search_many import SearchMatches
    from swathe.jobs.types import Options
    from swathe.operations.operation import ReducingOperation

MOST_IMAGES = 32
"""Images on which sky positions are converted to pixels at submission. On the others this happens
when they are cut, because their headers must be read."""
LONGEST_LIST = 20
"""Maximum number of errors and of matches listed in an estimate."""
MOST_PLANES = 100
"""Maximum number of different values of `planes` in one list."""
IMAGES_PER_ROW = 10
"""Images examined per allowed row: many are in other bands, or only near the position."""
NOTHING = "no image of the datasets shows it"


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
        is_of_images: whether the rows are regions of images and arrays, and not granules.
    """

    targets: int
    rows: RowTable
    unread: set[int] = field(default_factory=set)
    unmatched: int = 0
    matches: list[tuple[str, int]] = field(default_factory=list)
    suffixes: dict[str, str] = field(default_factory=dict)
    is_of_images: bool = True

    @property
    def results(self) -> list[str]:
        """Return the ids of the combined results."""
        return [] if self.rows.group is None else self.rows.group.values

    def options(self, options: Options) -> Options:
        """Return the options of the job: each result has a suffix of its own with arrays.

        The default is the format of their file; `fits` is FITS of all.
        """
        if self.suffixes and options.results.is_plain:
            user_format = options.format if options.has_format else ""
            return replace(options, format=SOURCE, asked_format=user_format)
        return options


def expand(
    target_list: Any,
    options: Options,
    catalog: Catalog,
    check_source: Callable[[str], None],
    most_rows: int,
    cutout_bytes: int | None = None,
) -> ExpandedJob:
    """Expand targets into rows.

    If pixels outside the image are filled, a box has at most `cutout_bytes` pixels.

    Raises:
        TargetsError: If the list cannot be read or lacks columns.
        JobError: If the options do not fit the list.
        LimitError: If there would be more than `most_rows`.
        AccessError: If none of the files may be read.
        NoSuchDatasetError: If there is no such dataset.
    """
    if isinstance(target_list, str | os.PathLike):
        raise TargetsError("the targets of a job are a table or a mapping of columns, not a path")
    table, _, wrong = read_list(target_list)
    if wrong:
        raise TargetsError(next(iter(wrong.values())))
    check_rows(len(table), most_rows)
    columns = one_angle(standard_columns(table), "a job")
    if (reducing := options.results.reducing) is not None:
        options.check(are_bands_needed=False)
        check_result(reducing, options, cutout_bytes)
        return _of_granules(columns, len(table), reducing, options, check_source, most_rows)
    in_sky = all(name in columns for name in SKY)
    if options.is_combined and not in_sky:
        raise JobError(
            f"operation {options.operation}: expected targets in the sky ({', '.join(SKY)}), "
            "found none"
        )
    if "file" not in columns and not in_sky:
        raise TargetsError(
            "the targets need a column 'file', or positions in the sky with a size "
            f"({', '.join(SKY)}); found: {', '.join(table.colnames)}"
        )
    is_listed = "file" in columns
    options.check(are_bands_needed=not is_listed)
    if is_listed:
        for name in ("dataset", "time"):
            if getattr(options, name):
                raise JobError(
                    f"option {name}: it selects images only for sky positions without a file"
                )
        work = _of_files(columns, len(table), options, check_source)
    else:
        work = _of_positions(columns, options, catalog, check_source, most_rows)
    if work.rows.group is not None:
        check_rows(len(work.rows) + len(work.results), most_rows)
        work.rows.box = enlarge_boxes(work.rows.box)
    if work.options(options).format == SOURCE:
        files = work.rows.source.list()
        suffixes = [work.suffixes.get(file, FITS_SUFFIX) for file in files]
        names = zip(work.rows.name, suffixes, strict=True)
        work.rows.name = [name + suffix for name, suffix in names]
    if cutout_bytes is not None and options.mode == "partial" and not options.is_combined:
        work.rows = _refuse_large(work.rows, cutout_bytes)
    return work


def _of_granules(
    columns: dict[str, Any],
    count: int,
    reducing: ReducingOperation,
    options: Options,
    check_source: Callable[[str], None],
    most_rows: int,
) -> ExpandedJob:
    """Expand a list of granules."""
    for name in ("dataset", "time"):
        if getattr(options, name):
            raise JobError(f"option {name}: expected none for operation {reducing.name}")
    rows, unread = granule_rows(columns, count, reducing, options, check_source)
    rows.group = _name_results(options, [], columns, count)
    work = ExpandedJob(count, rows, unread, is_of_images=False)
    check_rows(count + len(work.results), most_rows)
    return work


def certain_bytes(work: ExpandedJob, options: Options) -> int:
    """Return a lower limit of the result size: each pixel of a filled box has at least a byte."""
    is_filled = options.mode == "partial" and not options.is_combined
    if not is_filled or options.results.file_format.is_compressed:
        return 0
    sides = work.rows.box[work.rows.sound, 2:].astype(float)
    return int((sides[:, 0] * sides[:, 1]).sum())


def _refuse_large(rows: RowTable, most: int) -> RowTable:
    """Refuse boxes with more pixels than a cutout may have bytes."""
    import numpy as np

    pixels = rows.box[:, 2].astype(float) * rows.box[:, 3]
    faults: dict[int, Fault] = {}
    for row in np.flatnonzero((pixels > most) & rows.sound).tolist():
        width, height = rows.box[row, 2:].tolist()
        faults[row] = (
            "error",
            f"a cutout of {width} x {height} pixels exceeds the limit of {size_text(most)} "
            "(limits.cutout_mb)",
        )
    return rows.with_status(faults)


def check_rows(rows: int, most: int) -> None:
    """Check that a job does not have too many rows.

    Raises:
        LimitError: If it has more than `most`.
    """
    if rows > most:
        raise LimitError(f"a job may have {most:,} rows, not {rows:,}; divide the list")


def _of_files(
    columns: dict[str, Any], count: int, options: Options, check_source: Callable[[str], None]
) -> ExpandedJob:
    """Expand targets that name their files."""
    from astropy.table import Table

    group: list[str] | None = None
    faults: dict[int, Fault] = {}
    if options.is_combined:
        columns, group, faults = _by_result(columns, count, options)
    is_fits = options.has_format and options.results.is_plain
    suffix = FITS_SUFFIX if is_fits else None
    arrays = ArrayFiles(check_source, is_combined=options.is_combined, suffix=suffix)
    rows, unread = _read(Table(columns, copy=False), check_source, arrays)
    rows.group = None if group is None else DictColumn.of(group)
    sound = rows.sound
    rows = rows.with_status({row: fault for row, fault in faults.items() if sound[row]})
    rows = _with_planes(rows, columns, options)
    return ExpandedJob(count, rows, unread - faults.keys(), suffixes=arrays.suffixes)


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


def _read(
    table: Any, check_source: Callable[[str], None], arrays: ArrayFiles | None = None
) -> tuple[RowTable, set[int]]:
    """Read a list whose files are allowed; return it and the rows whose file cannot be read.

    Raises:
        AccessError: If no file is allowed.
    """
    unreadable: set[str] = set() if arrays is None else arrays.unreadable

    def sky_of_source(file: str, hdu: HduKey | None) -> SkyBoxes:
        check_file(file, check_source)
        try:
            return sky_of(file, hdu)
        except SwatheError:
            unreadable.add(file)
            raise

    tree_of = None if arrays is None else arrays.tree_of
    rows = read_targets(table, sky_of_source, most_images=MOST_IMAGES, tree_of=tree_of)
    rows.reason = rows.reason.map(with_store_names)
    refusals = refused_files(rows, check_source)
    files = rows.source.list()
    unread = {row for row in rows.faults() if files[row] in unreadable and row not in refusals}
    return rows.with_status(refusals), unread


def _of_positions(
    columns: dict[str, Any],
    options: Options,
    catalog: Catalog,
    check_source: Callable[[str], None],
    most_rows: int,
) -> ExpandedJob:
    """Expand sky positions into the images that cover them."""
    import numpy as np

    count = len(columns["ra"])
    user_ids = texts(columns["id"]) if "id" in columns else [""] * count
    ids = [user_id or str(row) for row, user_id in enumerate(user_ids)]
    wrong = dict(_invalid_positions(columns))
    good = [row for row in range(count) if row not in wrong]
    positions = np.column_stack([float_column(columns[name]) for name in SKY])
    matches_of = _search_positions(columns, options, catalog, positions, good, most_rows)

    # For every row: its target, and its image if any.
    pairs: list[tuple[int, Match | None]] = []
    reasons: dict[int, Fault] = {}
    counts: list[tuple[str, int]] = []
    unmatched_count = 0
    for target in range(count):
        matches, reason = matches_of.get(target, ([], ""))
        if target in wrong or not matches:
            reasons[len(pairs)] = wrong.get(target) or ("no-overlap", reason or NOTHING)
            unmatched_count += target not in wrong
            pairs.append((target, None))
        pairs += [(target, match) for match in matches]
        if len(counts) < LONGEST_LIST:
            counts.append((ids[target], len(matches)))
    check_rows(len(pairs), most_rows)
    target_of_row = [target for target, _ in pairs]
    table = {
        "id": numbered_ids([ids[target] for target in target_of_row]),
        "file": [match.file if match is not None else "" for _, match in pairs],
        "hdu": [match.granule.hdu if match is not None else 0 for _, match in pairs],
        **{name: positions[target_of_row, at] for at, name in enumerate(SKY)},
    }
    row_columns = {
        name: [column[target] for target in target_of_row] for name, column in columns.items()
    }
    rows, unread = _read(table, check_source)
    rows = rows.with_status(reasons)
    unread -= reasons.keys()
    targets = numbered_ids(ids)
    rows.group = _name_results(
        options, [targets[target] for target in target_of_row], row_columns, len(rows)
    )
    return ExpandedJob(
        count, _with_planes(rows, row_columns, options), unread, unmatched_count, counts
    )


def _invalid_positions(columns: dict[str, Any]) -> Iterator[tuple[int, Fault]]:
    """Yield the rows without a valid sky position, and why."""
    for row, values in enumerate(zip(*(columns[name] for name in SKY), strict=True)):
        try:
            check_sky_box(*values)
        except RegionError as error:
            yield row, ("error", str(error))


def _search_positions(
    columns: dict[str, Any],
    options: Options,
    catalog: Catalog,
    positions: NDArray[np.float64],
    good: Sequence[int],
    most_rows: int,
) -> dict[int, tuple[list[Match], str]]:
    """Return the images of each valid target, or why there are none."""
    from swathe.datasets.search_many import find_each

    count = len(positions)
    datasets = texts(columns["dataset"]) if "dataset" in columns else [""] * count
    bands = texts(columns["band"]) if "band" in columns else [""] * count
    by_dataset: dict[str | None, list[int]] = {}
    for row in good:
        by_dataset.setdefault(datasets[row] or options.dataset, []).append(row)
    wanted_bands = set(options.bands)
    most_pairs = IMAGES_PER_ROW * most_rows
    matches_of: dict[int, tuple[list[Match], str]] = {}
    for dataset, rows in by_dataset.items():
        only = options.bands[0] if len(wanted_bands) == 1 else None
        criteria = GranuleQuery(dataset=dataset, time=options.time, band=only)
        search: SearchMatches = find_each(
            catalog,
            positions[rows, 0] % 360.0,
            positions[rows, 1],
            criteria,
            partial(_check_pairs, most_pairs=most_pairs),
        )
        for row, numbers in zip(rows, search.of, strict=True):
            matches = [search.matches[number] for number in numbers]
            if wanted_bands:
                matches = [match for match in matches if match.granule.band in wanted_bands]
            if bands[row]:
                matches = [match for match in matches if match.granule.band == bands[row]]
            choice, reason = options.results.kind.choose_images(
                [match.granule.band or "" for match in matches],
                options.bands,
                partial(_distance, matches, positions[row]),
            )
            matches_of[row] = [matches[index] for index in choice], reason
    return matches_of


def _check_pairs(pairs: int, most_pairs: int) -> None:
    """Check that positions do not have too many images near them.

    Raises:
        LimitError: If they have more than `most_pairs`.
    """
    if pairs > most_pairs:
        raise LimitError(
            f"the positions of a job may have {most_pairs:,} images near them, not {pairs:,}; "
            "divide the list"
        )


def _distance(matches: Sequence[Match], position: NDArray[np.float64], index: int) -> float:
    """Return the angle between a position and the centre of an image, in radians."""
    import numpy as np

    from swathe.datasets.spherical import angle, directions

    centre = matches[index].granule.footprint
    if centre is None:
        return np.inf
    centre_direction = directions(np.array(centre.s_ra), np.array(centre.s_dec))
    return float(angle(centre_direction, directions(position[0], position[1])))


def _name_results(
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


def _with_planes(rows: RowTable, columns: dict[str, Any], options: Options) -> RowTable:
    """Return the rows with their planes: `3:7` on NAXIS3, `3:7,0:1` on NAXIS3 and NAXIS4.

    Raises:
        TargetsError: If there are too many different ones.
    """
    if "planes" not in columns:
        return replace(rows, planes=rows.planes.map(lambda each: each or options.planes))
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
        planes = DictColumn.of([ranges or text for ranges, text in pairs])
    return replace(rows, planes=planes).with_status(faults)
