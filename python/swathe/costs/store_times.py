"""Table 1 of the multi-storage paper: what a store takes to open, read, write and close."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.catalog import this_host
from swathe.core.format import KIB, MIB
from swathe.costs.cost_model import Costs
from swathe.costs.store_costs import stages_at
from swathe.stores.registry import LOCAL_ROOT

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.costs.probing.write_stages import WriteStages

SIZES = (64 * KIB, MIB, 16 * MIB)


@dataclass(frozen=True)
class StoreTimes:
    """What reading or writing in a store takes from this host, by the terms of equation 1.

    Attributes:
        store: name of the store, or its root.
        direction: `read` or `write`.
        connect_s: `T_conn`, to open a connection.
        open_s: `T_open`; of writing 0 if opening is part of the close.
        seek_s: `T_seek`, to the first byte of a range; 0 of writing.
        rates: bytes per second by size, of one stream: the size over `T_rw`.
        close_s: `T_close`, until an object is durable; 0 of reading.
    """

    store: str
    direction: str
    connect_s: float
    open_s: float
    seek_s: float
    rates: Mapping[int, float]
    close_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return {**vars(self), "rates": [[size, rate] for size, rate in self.rates.items()]}


def store_times(catalog: Catalog) -> Iterator[StoreTimes]:
    """Yield the times of all stores that were measured from this host.

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    names = {store.key: store.name for store in catalog.stores()} | {LOCAL_ROOT: "local files"}
    for profile in catalog.profiles():
        if profile.host != this_host():
            continue
        store = names.get(profile.root, profile.root)
        yield reading_times(store, Costs.from_dict(profile.costs))
        if (stages := stages_at(catalog, profile.root)) is not None:
            yield writing_times(store, stages)


def reading_times(store: str, costs: Costs) -> StoreTimes:
    """Return what reading takes. A seek is the time of the smallest request."""
    seek_s = costs.request[0][1]
    seconds = {size: float(costs.request_s(size)) - seek_s for size in SIZES}
    rates = {size: size / each for size, each in seconds.items() if each > 0}
    return StoreTimes(store, "read", costs.connect_s, costs.open_s, seek_s, rates, 0.0)


def writing_times(store: str, stages: WriteStages) -> StoreTimes:
    """Return what writing takes."""
    rates = {size: rate for (size, streams), rate in stages.rates.items() if streams == 1}
    return StoreTimes(store, "write", stages.connect_s, stages.open_s, 0.0, rates, stages.close_s)
