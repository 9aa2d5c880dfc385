"""What AUTO weighs: the costs of arrays in stores by their purpose, and their limits of time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from swathe.core.errors import LimitError
from swathe.core.format import seconds_text, size_text
from swathe.runs.planning.array_use import use_of
from swathe.runs.planning.choice import MOST_STEPS, Choice, Demand, Disks, Offer, choose, no_choice
from swathe.runs.planning.shared_writes import (
    Placement,
    SharedCosts,
    StoredArray,
    stored_arrays,
)
from swathe.runs.planning.whole_choice import WholeSearch
from swathe.runs.planning.write_method import choose_write

if TYPE_CHECKING:
    from swathe.runs.definition.run_settings import ArraySettings
    from swathe.runs.planning.store_rate import StoreRate


@dataclass(frozen=True)
class AutoChoice:
    """What was chosen, and from what.

    Attributes:
        demands: the arrays by name, with the costs of all stores that they may go to, beside the
            others where they are.
        choice: the stores that were chosen.
    """

    demands: Mapping[str, Demand]
    choice: Choice


def choose_stores(
    arrays: Mapping[str, ArraySettings],
    placements: Mapping[str, Sequence[Placement]],
    iterations: int,
    candidates: Mapping[str, Sequence[str]],
    disks: Disks,
    rates: Mapping[str, StoreRate],
    ranks: int = 1,
    within_s: float = math.inf,
    spent_s: float = 0.0,
    most_steps: int = MOST_STEPS,
) -> AutoChoice:
    """Choose the stores of arrays, all at once.

    The predicted seconds of writing all dumps of the run, and of reading by `use_of`, are
    minimised: those of the whole placement, since arrays that are written together share time.

    Args:
        arrays: all arrays of the run by name.
        placements: where the dumps of those with a store go.
        iterations: number of the last iteration of the run.
        candidates: names of the stores that each of the others may go to; these have dumps.
        disks: the disks of these stores.
        rates: costs of all stores.
        ranks: number of processes that share each array.
        within_s: seconds for writing the run, at most.
        spent_s: those of it that arrays with a store need alone.
        most_steps: steps of the search, at most.

    Raises:
        LimitError: If there is too little room, or a limit of time cannot be met; the least time
            that is possible is named. If no choice was seen within `most_steps`.
    """
    run = _Run(arrays, placements, iterations, candidates, rates, ranks)
    demands = {name: run.demand(name) for name in candidates}
    within_limits = [
        replace(
            demand,
            offers=tuple(each for each in demand.offers if not excess(arrays[name], each)),
        )
        for name, demand in demands.items()
    ]
    for name, demand in demands.items():
        least = min(demand.offers, key=partial(excess, arrays[name]))
        if excess(arrays[name], least):
            raise _limit(arrays[name], name, least, "")
    apart = choose(within_limits, disks, most_steps=most_steps)
    if apart is None or any(len(parts) > 1 for parts in apart.parts.values()):
        # Arrays that span stores are compared by what each costs alone.
        choice = choose(within_limits, disks, within_s - spent_s, most_steps=most_steps)
    else:
        choice = run.whole_choice(within_limits, disks, apart, within_s, most_steps)
        if choice is not None:
            demands = {name: run.beside_others(each, choice) for name, each in demands.items()}
    if choice is None:
        every, limits = list(demands.values()), (within_s, spent_s)
        raise _impossible(arrays, every, within_limits, disks, limits, most_steps, run)
    return AutoChoice(demands, choice)


def excess(array: ArraySettings, offer: Offer) -> float:
    """Return by how many seconds a store exceeds the limits of an array; 0 if it meets them."""
    limits = ((offer.write_s, array.within_s), (offer.read_s, array.read_within_s))
    return sum(max(took - limit, 0.0) for took, limit in limits if limit is not None)


class _Run:
    """The arrays of a run, in each store that they may go to."""

    def __init__(
        self,
        arrays: Mapping[str, ArraySettings],
        placements: Mapping[str, Sequence[Placement]],
        iterations: int,
        candidates: Mapping[str, Sequence[str]],
        rates: Mapping[str, StoreRate],
        ranks: int,
    ) -> None:
        self._arrays, self._iterations, self._rates = arrays, iterations, rates
        self.numbers: dict[str, int] = {}
        self.other_stores: dict[int, str] = {}
        options: list[Mapping[str, StoredArray]] = []
        for name, array in arrays.items():
            if name in candidates:
                self.numbers[name] = len(options)
                places = [Placement(each, 0, array.dumps(iterations)) for each in candidates[name]]
                options.append(
                    {
                        each.store: _in_stores(name, array, [each], rates, ranks)[0]
                        for each in places
                    }
                )
                continue
            for place, each in zip(
                placements[name],
                _in_stores(name, array, placements[name], rates, ranks),
                strict=True,
            ):
                self.other_stores[len(options)] = place.store
                options.append({place.store: each})
        stores = {store for some in candidates.values() for store in some}
        is_any_known = any(rates[store].is_measured for store in stores)
        # A store that was not measured may be slow, or refuse to be written to.
        risky = {store for store in stores if is_any_known and not rates[store].is_measured}
        apart_s = [
            {
                store: self._reading_s(each) if at not in self.other_stores else 0.0
                for store, each in some.items()
            }
            for at, some in enumerate(options)
        ]
        self.costs = SharedCosts(options, apart_s, frozenset(risky))

    def demand(self, name: str) -> Demand:
        """Return what an array costs in each store, as if it were alone."""
        array, at = self._arrays[name], self.numbers[name]
        offers = []
        for store, each in self.costs.options[at].items():
            cost, time = self.costs.group(((at, store),)), each.write_s()
            risk_s = time.high_s - time.median_s if store in self.costs.risky else 0.0
            offers.append(Offer(store, cost.cost_s, cost.write_s, _read_s(each), risk_s))
        dumps, can_span = array.stored_dumps(self._iterations), array.mode != "overwrite"
        return Demand(name, dumps, array.dump_bytes, can_span, tuple(offers))

    def whole_choice(
        self,
        demands: Sequence[Demand],
        disks: Disks,
        start: Choice,
        within_s: float,
        most_steps: int,
        *,
        by_writing: bool = False,
    ) -> Choice | None:
        """Return the choice of least cost of the whole placement; `None` if there is none.

        Raises:
            LimitError: If none was seen in `most_steps` steps, but there may be one.
        """
        by_number = {self.numbers[each.name]: each for each in demands}
        search = WholeSearch(
            self.costs, by_number, self.other_stores, disks, within_s, most_steps, by_writing
        )
        best = search.best(
            [{self.numbers[name]: parts[0][0].store for name, parts in start.parts.items()}]
        )
        if best is None:
            if not search.is_whole:
                raise no_choice(len(demands), most_steps)
            return None
        offers = {each.name: {offer.store: offer for offer in each.offers} for each in demands}
        parts = {
            each.name: ((offers[each.name][best.stores[at]], each.dumps),)
            for at, each in by_number.items()
        }
        return Choice(parts, best.cost.cost_s, best.is_exact)

    def beside_others(self, demand: Demand, choice: Choice) -> Demand:
        """Return what an array adds in each store to what the others cost where they are."""
        at = self.numbers[demand.name]
        others = self.other_stores | {
            self.numbers[name]: parts[0][0].store
            for name, parts in choice.parts.items()
            if name != demand.name
        }
        rest = self.costs.whole(others)
        offers = []
        for each in demand.offers:
            increase = self.costs.whole({**others, at: each.store}) - rest
            offers.append(
                replace(each, cost_s=increase.cost_s, shared_s=each.cost_s - increase.cost_s)
            )
        return replace(demand, offers=tuple(offers))

    def write_s(self, choice: Choice) -> float:
        """Return the seconds of writing all arrays of the run."""
        stores = {self.numbers[name]: parts[0][0].store for name, parts in choice.parts.items()}
        return self.costs.whole(self.other_stores | stores).write_s

    def _reading_s(self, each: StoredArray) -> float:
        use = use_of(each.array)
        return use.weight * use.reads * _read_s(each)


def _in_stores(
    name: str,
    array: ArraySettings,
    placements: Sequence[Placement],
    rates: Mapping[str, StoreRate],
    ranks: int,
) -> list[StoredArray]:
    parts = [(rates[each.store], each.dumps) for each in placements]
    return stored_arrays(choose_write(name, array, ranks, parts).array, placements, rates, ranks)


def _read_s(each: StoredArray) -> float:
    """Return the seconds of reading the dumps that are kept once, with staging them."""
    dumps = each.array.dumps_to_read(each.dumps)
    return dumps * each.last.read_s(each.array) + each.last.stage_s(each.array, dumps)


def _limit(array: ArraySettings, name: str, offer: Offer, beside: str) -> LimitError:
    """Return the error of an array whose limit cannot be met; its store is the best."""
    if array.within_s is not None and offer.write_s > array.within_s:
        key, limit_s, took_s = "within_s", array.within_s, offer.write_s
    else:
        key, limit_s, took_s = "read_within_s", array.read_within_s or 0.0, offer.read_s
    return LimitError(
        f"arrays.{name}.{key}: expected at most {seconds_text(limit_s)}, found that the least "
        f"possible{beside} is {seconds_text(took_s)}, on {offer.store}"
    )


def _impossible(
    arrays: Mapping[str, ArraySettings],
    demands: Sequence[Demand],
    within_limits: Sequence[Demand],
    disks: Disks,
    seconds: tuple[float, float],
    most_steps: int,
    run: _Run,
) -> LimitError:
    """Return why there is no choice, and what the least possible is."""
    closest = choose(
        demands,
        disks,
        objective=lambda demand, offer: excess(arrays[demand.name], offer),
        most_steps=most_steps,
    )
    if closest is None:
        stores = dict.fromkeys(offer.store for demand in demands for offer in demand.offers)
        rooms = {store: disks.room_bytes[disks.disk_of[store]] for store in stores}
        texts = [f"{store} {size_text(room)}" for store, room in rooms.items() if room is not None]
        return LimitError(
            f"arrays {', '.join(each.name for each in demands)}: expected room for "
            f"{size_text(sum(each.bytes for each in demands))}, found {', '.join(texts)}"
        )
    for name, parts in closest.parts.items():
        for offer, _ in parts:
            if excess(arrays[name], offer):
                return _limit(arrays[name], name, offer, " with room for all arrays")
    fastest = choose(
        within_limits,
        disks,
        objective=lambda _demand, offer: offer.write_s,
        most_steps=most_steps,
    )
    within_s, spent_s = seconds
    closest = closest if fastest is None else fastest
    if any(len(parts) > 1 for parts in closest.parts.values()):
        least_s = spent_s + closest.write_s
    else:
        whole = run.whole_choice(
            within_limits, disks, closest, math.inf, most_steps, by_writing=True
        )
        least_s = run.write_s(whole or closest)
    return LimitError(
        f"the run: expected writing within {seconds_text(within_s)}, found that the least "
        f"possible is {seconds_text(least_s)}"
    )
