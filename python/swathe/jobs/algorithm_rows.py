"""Targets of a job that an algorithm reads: granules in groups, each group one run."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.groups import Granule, GranuleGroup, groups_of
from swathe.algorithms.local_granules import metadata_of
from swathe.algorithms.parameters import values_of
from swathe.core.errors import AlgorithmError, JobError, SwatheError, TargetsError
from swathe.core.row_record import RowGranule
from swathe.core.row_table import DictColumn, RowTable
from swathe.core.times import utc_of
from swathe.core.value_errors import short_text
from swathe.files.targets.cells import texts
from swathe.files.targets.result_names import numbered_ids
from swathe.files.targets.target_list import rows_of_columns
from swathe.jobs.array_files import check_file, refused_files
from swathe.jobs.granules import REGIONS, versions_of
from swathe.stores.registry import known_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from swathe.algorithms.definition import Algorithm, GranuleInput
    from swathe.catalog import Catalog
    from swathe.core.row_record import Fault
    from swathe.jobs.types import Options

MOST_LOOKS = 1000
"""Granules that are opened for their times when a job is submitted."""
MOST_SIZES = 16
"""Granules of a store whose size is asked for; the others are taken as alike."""
TIMES = ("start", "end")


@dataclass
class AlgorithmWork:
    """What a job of an algorithm is, besides its rows.

    Attributes:
        algorithm: definition of the version that it runs.
        parameters: values of all parameters.
        samples: bytes and number of granules whose size is known, by store; `None`: this machine.
        read_bytes: bytes of all granules.
        local: number and bytes of granules that are read where they are.
        copies: number and bytes of granules that are copied, by their store.
        faults: why groups cannot be run, by name.
    """

    algorithm: Algorithm
    parameters: Mapping[str, Any]
    samples: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    read_bytes: int = 0
    local: tuple[int, int] = (0, 0)
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def copy_bytes(self) -> int:
        """Return the bytes of granules that are copied."""
        return sum(size for _, size in self.copies.values())

    def options(self, options: Options) -> Options:
        """Return the options of the job: the version, and the values of all parameters."""
        values = {"algorithm": self.algorithm.label, "parameters": dict(self.parameters)}
        return replace(options, own={**options.own, **values})

    def set_sizes(self, rows: RowTable) -> None:
        """Set the bytes that are read and copied, by the granules of these rows."""
        counts = Counter(map(store_to_copy, rows.take(rows.sound).source.list()))
        sizes = {}
        for store, count in counts.items():
            total, number = self.samples[store]
            sizes[store] = total * count // max(number, 1)
        self.read_bytes = sum(sizes.values())
        self.local = counts[None], sizes.get(None, 0)
        self.copies = {
            store: (counts[store], size) for store, size in sizes.items() if store is not None
        }


def store_to_copy(file: str) -> str | None:
    """Return the store that a granule is copied from; `None` if it is on this machine."""
    stores = known_stores() or _swathe.Stores("[]")
    return file.partition(":")[0] if stores.local_path(file) is None else None


def algorithm_work(
    catalog: Catalog, options: Options, check_source: Callable[[str], None]
) -> AlgorithmWork:
    """Return the algorithm of a job, after checking its parameters and files.

    Raises:
        NoSuchAlgorithmError: If there is no such algorithm.
        AlgorithmError: If parameters or files do not fit it.
        JobError: If no algorithm is named, or an option has no use.
        AccessError: If a file may not be read.
    """
    own = options.own
    if not own["algorithm"]:
        raise JobError("option algorithm: expected NAME or NAME@VERSION, found none")
    for name in ("planes", "dataset", "time", "fill"):
        if getattr(options, name) is not None:
            raise JobError(f"option {name}: expected none for operation algorithm, found some")
    options.check(are_bands_needed=False)
    algorithm = algorithm_version(catalog, own["algorithm"]).definition
    inputs, files = algorithm.files.keys(), own["files"]
    if inputs != files.keys():
        names, others = ", ".join(inputs) or "none", ", ".join(files) or "none"
        raise AlgorithmError(f"files: expected one for each input ({names}), found {others}")
    for name, file in files.items():
        if not isinstance(file, str) or not file:
            raise AlgorithmError(f"files: {name}: expected STORE:path, found {short_text(file)}")
        check_file(file, check_source)
    return AlgorithmWork(algorithm, values_of(algorithm.parameters, own["parameters"]))


def algorithm_rows(
    columns: Mapping[str, Any],
    count: int,
    work: AlgorithmWork,
    check_source: Callable[[str], None],
    faults_of: Callable[[Sequence[str]], Mapping[str, str]],
    check_count: Callable[[int], None],
) -> RowTable:
    """Return the rows of granules: one for each granule of each group, in the order of groups.

    Args:
        columns: columns of the list, by standard names: `file`; optionally `id`, `start`, `end`
            (UTC), `orbit`, `group`, `object_version`. Without `group`, the definition says what a
            group is.
        count: number of its rows.
        work: algorithm of the job; sizes and faults of groups are added.
        check_source: function that raises an `AccessError` for a file that may not be read.
        faults_of: function that returns which files are on tape, and why they cannot be read now.
        check_count: function that raises a `LimitError` for a number of rows that is too large.

    Raises:
        LimitError: If there are too many rows.
        TargetsError: If a column chooses a part of the granules, or a time is invalid.
        AlgorithmError: If grouping needs times or orbits that are not known.
        AccessError: If no file may be read.
    """
    regions = sorted(REGIONS & columns.keys())
    if regions or "file" not in columns:
        raise TargetsError(
            "operation algorithm: expected granules, which are read whole, in a column 'file', "
            f"found {', '.join(regions) or 'no such column'}"
        )
    ids = texts(columns["id"]) if "id" in columns else [""] * count
    files = texts(columns["file"])
    names = [each or _base_name(file) for each, file in zip(ids, files, strict=True)]
    rows = rows_of_columns({**columns, "id": numbered_ids(names)}, count)
    rows.has_box = np.ones(count, bool)
    rows = rows.with_status(refused_files(rows, check_source))
    away = faults_of(rows.take(rows.sound).source.few().values)
    granules = _granules(columns, rows, work.algorithm.granules[1], away)
    _measure(work, rows, away)
    groups = _groups(columns, granules, work.algorithm.granules[1], check_count)
    for group in groups:
        problem = group.problem(work.algorithm.granules[1])
        if problem is not None:
            work.faults[group.name] = problem
    return _rows_of(groups, granules, rows, work.faults, versions_of(columns, count))


def _base_name(file: str) -> str:
    """Return the last part of a path, a URL or `STORE:path`."""
    return file.rpartition("/")[2].rpartition(":")[2] or file


def first_group(rows: RowTable, work: AlgorithmWork) -> RowTable:
    """Return the rows of the first group that can be run, for a preview, which reads no others.

    Raises:
        AlgorithmError: If there is none.
    """
    assert rows.group is not None
    names = [name for name in rows.group.values if name not in work.faults]
    if not names:
        fault = next(iter(work.faults.values()))
        raise AlgorithmError(f"expected a group to run, found none: {fault}")
    is_first = np.array([name == names[0] for name in rows.group.list()])
    first, numbers = rows.take(is_first), np.arange(int(is_first.sum()))
    group = DictColumn.same(names[0], len(numbers))
    work.set_sizes(first)
    return replace(first, number=numbers, position=numbers, group=group)


def _granules(
    columns: Mapping[str, Any], rows: RowTable, of_input: GranuleInput, away: Collection[str]
) -> list[Granule]:
    """Return the granules with their times, read from the files if groups need them."""
    times = {name: _times(columns, name, len(rows)) for name in TIMES}
    orbits = _orbits(columns, len(rows))
    needs_time = of_input.group == "day" or of_input.window.before or of_input.window.after
    looks = 0
    granules = []
    for row, (name, file) in enumerate(zip(rows.id, rows.source.list(), strict=True)):
        start, end, orbit = times["start"][row], times["end"][row], orbits[row]
        is_needed = (needs_time and start is None) or (of_input.group == "orbit" and orbit is None)
        if "group" not in columns and is_needed and rows.sound[row] and file not in away:
            looks += 1
            if looks > MOST_LOOKS:
                raise TargetsError(
                    f"operation algorithm: expected times of granules in the list (columns start, "
                    f"end, orbit) if more than {MOST_LOOKS:,} are grouped by them"
                )
            first, last, number = metadata_of(file, of_input)
            start, end, orbit = start or first, end or last, orbit or number
        granules.append(Granule(name, file, start, end, orbit))
    return granules


def _groups(
    columns: Mapping[str, Any],
    granules: list[Granule],
    of_input: GranuleInput,
    check_count: Callable[[int], None],
) -> list[GranuleGroup]:
    if "group" not in columns:
        return groups_of(granules, of_input, check_count)
    members: dict[str, list[Granule]] = defaultdict(list)
    for name, each in zip(texts(columns["group"]), granules, strict=True):
        members[name or "all"].append(each)
    return [GranuleGroup(name, tuple(each)) for name, each in members.items()]


def _rows_of(
    groups: list[GranuleGroup],
    granules: list[Granule],
    rows: RowTable,
    faults: Mapping[str, str],
    versions: Sequence[str],
) -> RowTable:
    """Return the rows of all groups: neighbours in time are rows of each group that gets them."""
    number_of = {each.id: row for row, each in enumerate(granules)}
    order: list[int] = []
    names: list[str] = []
    of_granules: list[RowGranule | None] = []
    wrong: dict[int, Fault] = {}
    for group in groups:
        for role, each in group.roles:
            if group.name in faults:
                wrong[len(order)] = ("error", faults[group.name])
            row = number_of[each.id]
            order.append(row)
            names.append(group.name)
            start, end = ("" if at is None else at.isoformat() for at in (each.start, each.end))
            of_granules.append(RowGranule(start, end, role, versions[row]))
    new = rows.take(order)
    numbers = np.arange(len(order))
    new = replace(new, number=numbers, position=numbers, granule=DictColumn.of(of_granules))
    new.group = DictColumn.of(names)
    return new.with_status(wrong)


def _measure(work: AlgorithmWork, rows: RowTable, away: Collection[str]) -> None:
    """Set the sizes of granules, by those of the first granules of each store."""
    stores = known_stores() or _swathe.Stores("[]")
    sizes: dict[str | None, list[int]] = defaultdict(list)
    for file in rows.take(rows.sound).source.list():
        some = sizes[store_to_copy(file)]
        if len(some) < MOST_SIZES and file not in away:
            try:
                some.append(stores.open(file).size)
            except SwatheError:
                continue  # the row says so when it is read
    work.samples = {store: (sum(some), len(some)) for store, some in sizes.items()}
    work.set_sizes(rows)


def _times(columns: Mapping[str, Any], name: str, count: int) -> list[datetime | None]:
    """Return the times of a column: ISO 8601, UTC by default, or MJD.

    Raises:
        TargetsError: If one is neither.
    """
    if name not in columns:
        return [None] * count
    times: list[datetime | None] = []
    for row, text in enumerate(texts(columns[name])):
        try:
            times.append(_time(text))
        except (ValueError, OverflowError) as error:
            raise TargetsError(
                f"row {row:,}: {name}: expected a time as 2005-05-01T10:00:00 or an MJD, found "
                f"{short_text(text)}"
            ) from error
    return times


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return utc_of(float(text))
    except ValueError:
        at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _orbits(columns: Mapping[str, Any], count: int) -> list[int | None]:
    if "orbit" not in columns:
        return [None] * count
    orbits: list[int | None] = []
    for row, text in enumerate(texts(columns["orbit"])):
        try:
            orbits.append(int(text) if text else None)
        except ValueError as error:
            raise TargetsError(
                f"row {row:,}: orbit: expected a whole number, found {short_text(text)}"
            ) from error
    return orbits
