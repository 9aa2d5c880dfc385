"""Orders: an algorithm, and the search for the granules that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.catalog.datasets.objects import EARLY, LATE
from swathe.core.errors import AlgorithmError, DatasetError
from swathe.datasets.search import find
from swathe.datasets.search_times import read_open_times
from swathe.jobs.types import Options

if TYPE_CHECKING:
    from swathe.catalog import Catalog


@dataclass(frozen=True)
class Order:
    """What is ordered.

    Attributes:
        algorithm: `NAME@VERSION`, or `NAME` for the newest version.
        collection: dataset that is searched; by default that of the algorithm.
        time: first and last time, as for `swathe.find`, either `None` if it is open; `None`: any.
        bbox: west, south, east and north in degrees; `None`: any place.
        parameters: values of parameters; those that are left out have their defaults.
        files: `STORE:path` of each other input, by its name.
        register_as: name of the new dataset of its outputs; empty for none.
    """

    algorithm: str
    collection: str = ""
    time: tuple[Any, Any] | None = None
    bbox: tuple[float, float, float, float] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    register_as: str = ""

    @property
    def times(self) -> tuple[float, float] | None:
        """Return first and last time, MJD in UTC; `None`: any.

        Raises:
            DatasetError: If they are invalid.
        """
        times = read_open_times(self.time)
        if times is None:
            return None
        start, end = times
        return (EARLY if start is None else start, LATE if end is None else end)

    @property
    def options(self) -> Options:
        """Return the options of the job.

        Raises:
            JobError: If one is invalid.
        """
        return Options.from_mapping(
            {
                "operation": "algorithm",
                "algorithm": self.algorithm,
                "parameters": dict(self.parameters),
                "files": dict(self.files),
                "register_as": self.register_as,
            }
        )


def ordered_granules(catalog: Catalog, order: Order, most: int) -> dict[str, list[Any]]:
    """Return the granules of an order as columns of a job: `file`, `start`, `end`.

    Args:
        catalog: the catalogue that is searched.
        order: what is ordered.
        most: largest number of granules.

    Raises:
        NoSuchAlgorithmError: If there is no such algorithm.
        NoSuchDatasetError: If there is no such dataset.
        AlgorithmError: If the algorithm reads another collection, or none is named.
        DatasetError: If time or place are invalid, or no granule matches, or too many.
    """
    definition = algorithm_version(catalog, order.algorithm).definition
    collection = definition.granules[1].collection
    if collection and order.collection not in ("", collection):
        raise AlgorithmError(
            f"{definition.label}: expected its collection {collection}, "
            f"found {order.collection[:80]!r}"
        )
    name = order.collection or collection
    if not name:
        raise AlgorithmError(f"{definition.label}: expected a collection to search, found none")
    table = find(
        dataset=name, time=order.times, bounds=order.bbox, catalog=catalog, most_files=most
    )
    spans: dict[str, tuple[float | None, float | None]] = {}
    columns = (table["file"].tolist(), table["t_min"].tolist(), table["t_max"].tolist())
    for file, start, end in zip(*columns, strict=True):
        # A file has a row for each of its arrays.
        first, last = spans.get(file, (None, None))
        spans[file] = _extreme(min, first, start), _extreme(max, last, end)
    if not spans:
        raise DatasetError(f"dataset {name}: no granule matches the time and the place")
    return {
        "file": list(spans),
        "start": [time_text(start) for start, _ in spans.values()],
        "end": [time_text(end) for _, end in spans.values()],
    }


def time_text(mjd: float | None) -> str:
    """Return a time for a column `start` or `end` of a job; empty if it is unknown."""
    return "" if mjd is None else repr(mjd)


def _extreme(choose: Any, *values: float | None) -> float | None:
    """Return the least or greatest of the values that are known."""
    value: float | None = choose((each for each in values if each is not None), default=None)
    return value
