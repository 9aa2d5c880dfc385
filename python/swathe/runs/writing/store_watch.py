"""Whether stores are about as fast as predicted while a run writes to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from swathe.core.format import seconds_text
from swathe.runs.planning.store_rate import DumpSize
from swathe.runs.planning.store_rooms import store_rates
from swathe.runs.writing.dump import Dump, Fault

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.runs.planning.store_rate import StoreRate

SLOW_FACTOR = 2.0
"""A dump is late if it takes as many times the upper bound of its prediction."""
SLOW_DUMPS = 2.0
"""A store is left after late dumps in a row that took as many times this limit together. With more
a run of some seconds has lost over a fifth of its time when it leaves."""
LEAST_S = 0.5
"""A dump is not late before: small ones take what the machine does besides."""


class StoreWatch:
    """Adds up how late dumps of each store are. Stores that were not measured are never too slow.

    Attributes:
        rates: costs of the stores, by name.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Set the catalogue, which has what was measured."""
        self._catalog = catalog
        self.rates: dict[str, StoreRate] = {}
        self._late: dict[str, float] = {}

    def add(self, stores: Iterable[str]) -> None:
        """Learn what writing to stores costs."""
        self.rates |= store_rates(self._catalog, set(stores) - self.rates.keys())

    def limit_s(self, dump: Dump, beside: Sequence[Dump] = ()) -> float | None:
        """Return the seconds after which a dump is late; `None` if that is unknown.

        Args:
            dump: the dump.
            beside: those that are written to its store at the same time.
        """
        rate = self.rates.get(dump.store)
        if rate is None or not rate.is_measured or not dump.bytes:
            return None
        time = rate.dumps_s([DumpSize(each.array.settings, each.bytes) for each in (dump, *beside)])
        return max(SLOW_FACTOR * time.high_s, LEAST_S)

    def faults(self, times: Sequence[tuple[Dump, float, bool]]) -> Mapping[str, Fault]:
        """Return the stores that are too slow, and why.

        Args:
            times: dumps in their order, the seconds that each had its store, and whether it is
                durable now.
        """
        faults = {}
        for number, (dump, seconds, is_durable) in enumerate(times):
            limit_s = self.limit_s(dump, _beside(times, number))
            if limit_s is None:
                continue
            late, part = self._late.get(dump.store, 0.0), seconds / limit_s
            if is_durable:
                late = self._late[dump.store] = late + part if part > 1 else 0.0
            elif part > 1 / SLOW_FACTOR:
                late += part
            if late >= SLOW_DUMPS:
                faults[dump.store] = Fault(
                    "SourceError",
                    f"{dump.store}: is slow: {dump.array.name} at iteration {dump.iteration}: "
                    f"expected at most {seconds_text(limit_s)}, found {seconds_text(seconds)}, and "
                    f"late dumps in a row of {late:.1f} times this limit together",
                )
        return faults


def _beside(times: Sequence[tuple[Dump, float, bool]], number: int) -> list[Dump]:
    """Return the dumps that were written to the store of one while it had the store.

    Of the dumps before it, these are the ones that are not durable yet.
    """
    dump = times[number][0]
    return [
        other
        for at, (other, _, is_durable) in enumerate(times)
        if at != number
        and other.store == dump.store
        and other.is_begun
        and (at > number or not is_durable)
    ]
