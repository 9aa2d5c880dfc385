"""Rows of sky positions without a file: one for each image of the datasets that covers one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from swathe.catalog import GranuleQuery
from swathe.core.errors import (
    LimitError,
    RegionError,
)
from swathe.files.targets.cells import float_column, texts
from swathe.files.targets.result_names import numbered_ids
from swathe.files.targets.target_list import SKY, check_sky_box
from swathe.jobs.expanded_job import LONGEST_LIST, ExpandedJob, JobTargets, check_rows
from swathe.jobs.listed_files import name_results, read_rows, with_planes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe.catalog import Match
    from swathe.core.row_record import Fault
    from swathe.datasets.search_many import SearchMatches

IMAGES_PER_ROW = 10
"""Images examined per allowed row: many are in other bands, or only near the position."""
NOTHING = "no image of the datasets shows it"


def rows_of_positions(job_list: JobTargets) -> ExpandedJob:
    """Expand sky positions into the images that cover them."""
    import numpy as np

    columns, options = job_list.columns, job_list.options
    count = len(columns["ra"])
    user_ids = texts(columns["id"]) if "id" in columns else [""] * count
    ids = [user_id or str(row) for row, user_id in enumerate(user_ids)]
    wrong = dict(_invalid_positions(columns))
    good = [row for row in range(count) if row not in wrong]
    positions = np.column_stack([float_column(columns[name]) for name in SKY])
    matches_of = _search_positions(job_list, positions, good)

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
    check_rows(len(pairs), job_list.most_rows)
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
    rows, unread = read_rows(table, job_list.check_source, job_list.tape)
    rows = rows.with_status(reasons)
    unread -= reasons.keys()
    targets = numbered_ids(ids)
    rows.group = name_results(
        options, [targets[target] for target in target_of_row], row_columns, len(rows)
    )
    rows = with_planes(rows, row_columns, options)
    return ExpandedJob(count, rows, unread, unmatched_count, counts, tape=job_list.tape)


def _invalid_positions(columns: dict[str, Any]) -> Iterator[tuple[int, Fault]]:
    """Yield the rows without a valid sky position, and why."""
    for row, values in enumerate(zip(*(columns[name] for name in SKY), strict=True)):
        try:
            check_sky_box(*values)
        except RegionError as error:
            yield row, ("error", str(error))


def _search_positions(
    job_list: JobTargets, positions: NDArray[np.float64], good: Sequence[int]
) -> dict[int, tuple[list[Match], str]]:
    """Return the images of each valid target, or why there are none."""
    from swathe.datasets.search_many import find_each

    columns, options = job_list.columns, job_list.options
    count = len(positions)
    datasets = texts(columns["dataset"]) if "dataset" in columns else [""] * count
    bands = texts(columns["band"]) if "band" in columns else [""] * count
    by_dataset: dict[str | None, list[int]] = {}
    for row in good:
        by_dataset.setdefault(datasets[row] or options.dataset, []).append(row)
    wanted_bands = set(options.bands)
    most_pairs = IMAGES_PER_ROW * job_list.most_rows
    matches_of: dict[int, tuple[list[Match], str]] = {}
    for dataset, rows in by_dataset.items():
        only = options.bands[0] if len(wanted_bands) == 1 else None
        criteria = GranuleQuery(dataset=dataset, time=options.time, band=only)
        search: SearchMatches = find_each(
            job_list.catalog,
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
