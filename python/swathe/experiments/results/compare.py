"""Comparison of two runs of an experiment: which cases differ, and how certain that is.

A case differs if the ranks of its values do (Mann-Whitney, corrected for the number of cases by
Holm), and if the interval of the ratio of medians (bootstrap over rounds, then values) lies outside
the tie range. With too few values no difference could be significant; such cases get no verdict.
Two runs cannot distinguish a slow hour of a machine from slower code: run both more often.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import SettingsError
from swathe.experiments.results.result import Study, read_result
from swathe.experiments.statistics import holm, least_chance, rank_test, ratio_of_medians

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from astropy.table import Table
    from numpy.typing import NDArray

    Case = tuple[str, str, str]
    """Name, unit, and whether `lower` or `higher` is better."""
    Rounds = dict[int, list[float]]

ALPHA = 0.05
TIE = 0.05
"""Relative differences below this are ties."""
TOO_FEW = "too few samples"


def compare(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str],
    *,
    tie: float = TIE,
    alpha: float = ALPHA,
    seed: int = 1,
) -> Study:
    """Compare the results in two folders, case by case.

    Args:
        first: the folder compared with.
        second: the folder to compare.
        tie: relative difference that counts as a tie.
        alpha: probability of a false alarm among all cases, if nothing differs.
        seed: seed of the bootstrap.

    Raises:
        SettingsError: If a folder has no results, or they are of different experiments.
    """
    from astropy.table import Table

    from swathe.experiments.results import figures

    (results, before), (others, after) = read_result(first), read_result(second)
    kinds = [str(each.meta["experiment"]) for each in (results, others)]
    if kinds[0] != kinds[1]:
        raise SettingsError(f"{first} is of {kinds[0]!r}, {second} of {kinds[1]!r}")
    old, new = _cases(before), _cases(after)
    both = [case for case in old if case in new]
    if not both:
        raise SettingsError(f"{first} and {second} have no case in common")
    rows = _rows([(case, old[case], new[case]) for case in both], tie, alpha, seed)
    missing = [case[0] for case in [*old, *new] if case not in old or case not in new]
    conditions = {"first": results.meta["circumstances"], "second": others.meta["circumstances"]}
    return Study(
        "compare",
        f"{first} and {second}",
        {"first": str(first), "second": str(second), "tie": tie, "alpha": alpha, "seed": seed},
        conditions,
        Table(rows=rows),
        [],
        {"differences": figures.differences(rows, "Second over first")},
        _sentences(rows, alpha),
        [f"in one run only: {case}" for case in missing] + _unlike(results, others),
    )


def _rows(
    cases: Sequence[tuple[Case, Rounds, Rounds]], tie: float, alpha: float, seed: int
) -> list[dict[str, Any]]:
    """Compare both runs of each case; return the rows of the table."""
    rng = np.random.default_rng(seed)
    values = [(_values(first), _values(second)) for _, first, second in cases]
    least = [least_chance(len(first), len(second)) for first, second in values]
    # With ties the normal distribution can give less than the number of orders allows.
    chances = [
        max(rank_test(first, second), lowest)
        for (first, second), lowest in zip(values, least, strict=True)
    ]
    corrected_chances = [float(chance) for chance in holm(chances)]
    can_decide = [able <= alpha for able in best_chances(chances, least)]
    rows = []
    for at, ((name, unit, better), first, second) in enumerate(cases):
        ratio = ratio_of_medians(_rounds(first), _rounds(second), rng)
        verdict = _verdict(ratio.low, ratio.high, corrected_chances[at], better, tie, alpha)
        rows.append(
            {
                "case": name,
                "unit": unit,
                "first": float(np.median(values[at][0])),
                "second": float(np.median(values[at][1])),
                "ratio": ratio.value,
                "low": ratio.low,
                "high": ratio.high,
                "p": chances[at],
                "corrected": corrected_chances[at],
                "verdict": verdict if can_decide[at] else TOO_FEW,
            }
        )
    return rows


def _sentences(rows: Sequence[Mapping[str, Any]], alpha: float) -> list[str]:
    worse, better, few = (
        [row for row in rows if row["verdict"] == verdict]
        for verdict in ("worse", "better", TOO_FEW)
    )
    alike = len(rows) - len(worse) - len(better) - len(few)
    texts = [
        f"{len(rows)} cases: {len(worse)} worse, {len(better)} better, {alike} alike"
        + (f", {len(few)}with too few samples to decide." if few else ".")
    ]
    if few:
        samples = least_samples(len(rows), alpha)
        texts.append(
            f"{few[0]['case']}: too few samples to decide; with {len(rows)} cases {samples} are "
            "needed in each run (more rounds, longer levels)."
        )
    return texts + [f"{row['case']}: {row['verdict']}, {_describe(row)}." for row in worse + better]


def _describe(row: Mapping[str, Any]) -> str:
    if 0 < row["ratio"] < np.inf:
        return f"{row['ratio']:.3g} times ({row['low']:.3g} to {row['high']:.3g})"
    return f"from {row['first']:.3g} to {row['second']:.3g} {row['unit']}"


def best_chances(chances: Sequence[float], least: Sequence[float]) -> list[float]:
    """Return the smallest corrected probability each case could reach with its number of values."""
    values = np.asarray(chances, float)
    best = []
    for at, lowest in enumerate(least):
        others = values.copy()
        others[at] = lowest
        best.append(float(holm(others.tolist())[at]))
    return best


def least_samples(cases: int, alpha: float) -> int:
    """Return how many values per run are enough for a verdict with this many cases."""
    return next(
        count for count in itertools.count(2) if cases * least_chance(count, count) <= alpha
    )


def _verdict(low: float, high: float, chance: float, better: str, tie: float, alpha: float) -> str:
    """Return `worse`, `better` or `alike`."""
    if chance > alpha or (low <= 1 + tie and high >= 1 / (1 + tie)):
        return "alike"
    return "worse" if (low > 1) == (better == "lower") else "better"


def _cases(samples: Table) -> dict[Case, Rounds]:
    rounds: dict[Case, Rounds] = defaultdict(lambda: defaultdict(list))
    columns = (samples[name].tolist() for name in ("case", "unit", "better", "round", "value"))
    for case, unit, better, turn, value in zip(*columns, strict=True):
        rounds[str(case), str(unit), str(better)][int(turn)].append(float(value))
    return dict(rounds)


def _values(rounds: Rounds) -> NDArray[np.float64]:
    return np.concatenate(_rounds(rounds))


def _rounds(rounds: Rounds) -> list[NDArray[np.float64]]:
    return [np.array(values) for values in rounds.values()]


def _unlike(first: Any, second: Any) -> list[str]:
    """Return the differences in circumstances between the runs, other than the code."""
    notes = []
    for name in ("host", "cpu", "cores", "kernel", "python"):
        one, other = (each.meta["circumstances"].get(name) for each in (first, second))
        if one != other:
            notes.append(f"{name}: {one} and {other}")
    mine, theirs = (each.meta["settings"] for each in (first, second))
    for name in {**mine, **theirs}:
        value, other = mine.get(name), theirs.get(name)
        if value != other:
            notes.append(f"setting {name}: {value} and {other}")
    return notes
