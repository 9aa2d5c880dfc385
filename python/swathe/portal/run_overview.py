"""What a run has written, in numbers: for its page and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.runs import FailoverRecord
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.store_rooms import store_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpTotals, RunArrayRecord, RunRecord
    from swathe.runs.planning.store_rate import StoreRate


@dataclass(frozen=True)
class ArrayOverview:
    """An array of a run, and what was written of it.

    Attributes:
        name: its name.
        amode: its mode: `create`, `overwrite` or `append`.
        etype: type of its elements.
        pattern: how its axes are divided over ranks.
        dims: lengths of its axes.
        location: names of the stores that its dumps go to.
        frequency: iterations from one dump to the next.
        planned_dumps: number of dumps of the whole run.
        stores: number of dumps that lie in each store.
        dumps: number of dumps that are durable; of mode `overwrite`, those that are still there.
        bytes: size of them.
        last: iteration of the last of them; `None` if there is none.
        seconds: sum of the times that they took, which overlap.
        predicted_s: predicted time of as many dumps, by the costs of the stores as they are now;
            `None` if the catalogue no longer has a store of them.
        to_drain: number of dumps that are to be moved on to another store.
        failovers: the stores that it has left; without reasons for those who may not see paths.
    """

    name: str
    amode: str
    etype: str
    pattern: str
    dims: tuple[int, ...]
    location: tuple[str, ...]
    frequency: int
    planned_dumps: int
    stores: dict[str, int]
    dumps: int
    bytes: int
    last: int | None
    seconds: float
    predicted_s: float | None
    to_drain: int
    failovers: tuple[FailoverRecord, ...]


def overview_of(
    catalog: Catalog, record: RunRecord, *, has_reasons: bool
) -> tuple[ArrayOverview, ...]:
    """Return the arrays of a run.

    Args:
        catalog: its catalogue.
        record: the run.
        has_reasons: whether to say why stores were left; reasons have paths of this machine.

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    totals: dict[int, list[DumpTotals]] = {}
    for each in catalog.dump_totals(record.id):
        totals.setdefault(each.array_id, []).append(each)
    known_stores = {store.name for store in catalog.stores()}
    stores = {each.store for some in totals.values() for each in some}
    rates = store_rates(catalog, stores & known_stores)
    return tuple(
        _array(catalog, record, array, totals.get(array.id, []), rates, has_reasons)
        for array in catalog.run_arrays(record.id)
    )


def _array(
    catalog: Catalog,
    record: RunRecord,
    array: RunArrayRecord,
    totals: Sequence[DumpTotals],
    rates: dict[str, StoreRate],
    has_reasons: bool,
) -> ArrayOverview:
    settings = ArraySettings.of_record(array.settings)
    failovers: tuple[Any, ...] = tuple(catalog.failovers(array.id))
    if not has_reasons:
        failovers = tuple(
            FailoverRecord(each.store, each.next_stores, each.iteration, "", each.at)
            for each in failovers
        )
    predicted_s = None
    if all(each.store in rates for each in totals):
        predicted_s = sum(
            rates[each.store].write_s(settings, each.dumps, record.ranks).median_s
            for each in totals
        )
    return ArrayOverview(
        name=array.name,
        amode=settings.mode,
        etype=settings.dtype,
        pattern=settings.pattern,
        dims=settings.shape,
        location=tuple(array.stores),
        frequency=settings.every,
        planned_dumps=settings.dumps(record.iterations),
        stores={each.store: each.dumps for each in totals},
        dumps=sum(each.dumps for each in totals),
        bytes=sum(each.bytes for each in totals),
        last=max((each.last for each in totals), default=None),
        seconds=sum(each.seconds for each in totals),
        predicted_s=predicted_s,
        to_drain=sum(each.to_drain for each in totals),
        failovers=failovers,
    )
