"""The plan of a run: where its arrays go, why, and what that costs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.catalog import use_catalog
from swathe.core.errors import LimitError, NoSuchStoreError, OptionError
from swathe.core.format import seconds_text
from swathe.runs.definition.run_settings import ArraySettings, RunSettings, WriteMethod
from swathe.runs.planning.array_use import use_of
from swathe.runs.planning.auto_placement import AutoChoice, excess
from swathe.runs.planning.choice import MOST_STEPS
from swathe.runs.planning.placement import DISABLE, Decision, decide, near_store
from swathe.runs.planning.run_prediction import RunPrediction, predict_run
from swathe.runs.planning.store_rooms import store_rates, store_rooms
from swathe.runs.planning.write_method import WriteChoice, choose_write

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.runs.planning.choice import Demand, Offer


@dataclass(frozen=True)
class RunPlan:
    """The stores that were chosen for a run.

    Attributes:
        settings: the settings, each array with its stores as location.
        prediction: what writing costs.
        reasons: for each array, in words, why it goes where it goes.
        writing: for each array that is written, in words, how ranks write it, and why.
        is_exact: whether the choice is known to be the best; that of very many arrays may not be.
    """

    settings: RunSettings
    prediction: RunPrediction
    reasons: Mapping[str, str]
    writing: Mapping[str, str]
    is_exact: bool

    def toml(self) -> str:
        """Return the settings as a file `run.toml`."""
        return settings_toml(self.settings)


def settings_toml(run: RunSettings) -> str:
    """Return settings as a file `run.toml`."""
    lines = list(_toml_lines(run, skip="arrays"))
    for name, array in run.arrays.items():
        key = json.dumps(name) if "." in name else name
        lines += ["", f"[arrays.{key}]", *_toml_lines(array)]
    return "\n".join(lines) + "\n"


def plan_run(
    settings: RunSettings | Mapping[str, Any] | str | os.PathLike[str],
    *,
    within_s: float | None = None,
    default: str | None = None,
    catalog: Catalog | None = None,
    most_steps: int = MOST_STEPS,
) -> RunPlan:
    """Choose the stores of a run; arguments and errors are those of `swathe.runs.plan`.

    The search for stores of `auto` takes at most `most_steps` steps.
    """
    if not isinstance(settings, str | os.PathLike):
        if not isinstance(settings, RunSettings):
            settings = RunSettings.from_mapping(settings)
        return _plan(settings, within_s, default, catalog, most_steps)
    path = Path(settings)
    try:
        return _plan(RunSettings.read(path), within_s, default, catalog, most_steps)
    except (NoSuchStoreError, OptionError, LimitError) as error:
        raise type(error)(f"{path}: {error}") from None


def _plan(
    run: RunSettings,
    within_s: float | None,
    default: str | None,
    catalog: Catalog | None,
    most_steps: int,
) -> RunPlan:
    with use_catalog(catalog) as open_catalog:
        rooms, rates = store_rooms(open_catalog), partial(store_rates, open_catalog)
        decision = decide(
            run.arrays,
            run.iterations,
            rooms,
            default,
            rates,
            within_s,
            ranks=run.ranks,
            most_steps=most_steps,
        )
        stores = {each.store for some in decision.placements.values() for each in some}
        for name, array in run.arrays.items():
            if decision.placements[name] and (near := near_store(name, array, rooms)) is not None:
                stores.add(near)
        costs = rates(stores)
    choices = {
        name: choose_write(
            *(name, array, run.ranks),
            [(costs[each.store], each.dumps) for each in decision.placements[name]],
        )
        for name, array in run.arrays.items()
    }
    in_objects = {name: choice.array for name, choice in choices.items()}
    prediction = predict_run(replace(run, arrays=in_objects), decision.placements, costs)
    if within_s is not None and (prediction.compute_s or 0.0) > within_s:
        raise LimitError(
            f"the run: expected at most {seconds_text(within_s)}, found that computing alone takes "
            f"{seconds_text(prediction.compute_s or 0.0)}"
        )
    locations = {
        name: tuple(dict.fromkeys(each.store for each in some)) or (DISABLE,)
        for name, some in decision.placements.items()
    }
    arrays = {
        name: replace(array, location=locations[name], write=_method(array, choices[name]))
        for name, array in run.arrays.items()
    }
    reasons = {name: _reason(name, array, decision) for name, array in run.arrays.items()}
    is_exact = decision.auto is None or decision.auto.choice.is_exact
    writing = {name: choice.reason for name, choice in choices.items() if decision.placements[name]}
    return RunPlan(replace(run, arrays=arrays), prediction, reasons, writing, is_exact)


def _method(array: ArraySettings, choice: WriteChoice) -> WriteMethod:
    """Return the method for the settings of a run; collective is what is chosen by default."""
    return array.write if choice.array.write == "collective" else choice.array.write


def _reason(name: str, array: ArraySettings, decision: Decision) -> str:
    """Return why an array goes where it goes."""
    if not decision.placements[name]:
        return "disabled"
    if decision.auto is None or name not in decision.auto.demands:
        stores = ", ".join(each.store for each in decision.placements[name])
        return f"{stores}, as its location says: {', '.join(array.location)}"
    return _reason_of_auto(array, decision.auto, decision.auto.demands[name])


def _reason_of_auto(array: ArraySettings, auto: AutoChoice, demand: Demand) -> str:
    parts = auto.choice.parts[demand.name]
    offers = sorted(demand.offers, key=lambda each: each.cost_s)
    stores = [offer.store for offer, _ in parts]
    choices = [each for store in stores for each in offers if each.store == store]
    others = [each for each in offers if each not in choices]
    cheaper = [each for each in others if each.cost_s < choices[0].cost_s]
    if len(parts) > 1:
        shares = ", ".join(f"{offer.store} {dumps} dumps" for offer, dumps in parts)
        texts = [f"{shares}: no store has room for all"]
    else:
        least = "the least cost of" if not cheaper else "the least that is possible of"
        texts = [f"{_cost_text(array, choices[0])}: {least} {_count(len(offers))}"]
    texts += [f"not {_cost_text(array, each)}: {_hindrance(array, each)}" for each in cheaper]
    dearer = next((each for each in others if each not in cheaper), None)
    if dearer is not None:
        texts.append(f"next best {_cost_text(array, dearer)}{_beyond(array, dearer)}")
    return "; ".join(texts)


def _count(stores: int) -> str:
    return "1 store" if stores == 1 else f"{stores} stores"


def _cost_text(array: ArraySettings, offer: Offer) -> str:
    """Return a store and its costs, as `lab (writing 12 s + 1 x reading 3 s x weight 3 = 21 s)`."""
    use = use_of(array)
    text = f"writing {seconds_text(offer.write_s)}"
    if use.reads and use.weight:
        weight = "" if use.weight == 1 else f" x weight {use.weight:g}"
        text += f" + {use.reads:g} x reading {seconds_text(offer.read_s)}{weight}"
    if abs(offer.shared_s) > 0.01 * offer.cost_s:
        sign = "-" if offer.shared_s > 0 else "+"
        text += f" {sign} {seconds_text(abs(offer.shared_s))} beside the other arrays"
    if offer.risk_s:
        text += f" + {seconds_text(offer.risk_s)} as writing was not measured"
    if text != f"writing {seconds_text(offer.write_s)}":
        text += f" = {seconds_text(offer.cost_s)}"
    return f"{offer.store} ({text})"


def _hindrance(array: ArraySettings, offer: Offer) -> str:
    """Return why a store was not chosen that costs less."""
    return _limit_text(array, offer) or "no room beside the other arrays, or less time for them"


def _beyond(array: ArraySettings, offer: Offer) -> str:
    text = _limit_text(array, offer)
    return f", but {text}" if text else ""


def _limit_text(array: ArraySettings, offer: Offer) -> str:
    """Return that a store exceeds a limit of an array; empty if it does not."""
    if not excess(array, offer):
        return ""
    if array.within_s is not None and offer.write_s > array.within_s:
        return f"beyond its within_s of {seconds_text(array.within_s)}"
    return f"beyond its read_within_s of {seconds_text(array.read_within_s or 0.0)}"


def _toml_lines(values: RunSettings | ArraySettings, skip: str = "") -> Iterator[str]:
    """Yield the keys of settings that differ from their defaults."""
    for each in fields(values):
        value = getattr(values, each.name)
        if each.name == skip or value == each.default:
            continue
        # JSON's texts, numbers and lists are those of TOML.
        yield f"{each.name} = {json.dumps(value)}"
