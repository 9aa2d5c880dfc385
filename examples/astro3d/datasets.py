"""The 19 datasets of the application: for analysis, for visualisation, and to restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from examples.astro3d.convection import Convection, layer_grid, temperature_of
from examples.astro3d.grid import Field
from examples.astro3d.hydrodynamics import PRESSURE, RHO, VELOCITY
from swathe.core.errors import NoSuchRunError, OptionError

if TYPE_CHECKING:
    from swathe.runs.writing.current_run import Run
    from swathe.runs.writing.ranks import Ranks
    from swathe.runs.writing.run_array import RunArray

DIMS = ("z", "y", "x")
ANALYSIS: Mapping[str, Callable[[Field], Field]] = {
    "press": lambda primitive: primitive[PRESSURE],
    "temp": lambda primitive: temperature_of(primitive),
    "rho": lambda primitive: primitive[RHO],
    "ux": lambda primitive: primitive[VELOCITY + 2],
    "uy": lambda primitive: primitive[VELOCITY + 1],
    "uz": lambda primitive: primitive[VELOCITY],
}
"""Values of single precision, from the primitive variables."""
RESTART = ("rho", "mz", "my", "mx", "energy", "heat")
"""The state. Its last, change of temperature by the last conduction, begins the next."""
GAMMA = 5 / 3


def _squared_speed(primitive: Field) -> Field:
    result: Field = (primitive[VELOCITY:PRESSURE] ** 2).sum(0)
    return result


def _mach(primitive: Field) -> Field:
    result: Field = np.sqrt(_squared_speed(primitive) / (GAMMA * temperature_of(primitive)))
    return result


VISUALISATION: Mapping[str, Callable[[Field], Field]] = {
    "vr_scalar": lambda primitive: np.log(primitive[PRESSURE]) - GAMMA * np.log(primitive[RHO]),
    "vr_press": ANALYSIS["press"],
    "vr_rho": ANALYSIS["rho"],
    "vr_temp": ANALYSIS["temp"],
    "vr_mach": _mach,
    "vr_ek": lambda primitive: 0.5 * primitive[RHO] * _squared_speed(primitive),
    "vr_logrho": lambda primitive: np.log(primitive[RHO]),
}
"""Values for pictures, from the primitive variables; `vr_scalar` is the entropy, `vr_ek` energy."""
KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "analysis": (tuple(ANALYSIS), "f4"),
    "visualisation": (tuple(VISUALISATION), "u1"),
    # Of double precision: a run that is restarted is equal to one without a stop, to the bit.
    "restart": (tuple(f"restart_{name}" for name in RESTART), "f8"),
}
"""Names and type of the arrays of each kind."""


def settings(
    cells: int, iterations: int, every: int, ranks: int, locations: Mapping[str, str],
    name: str = "astro3d",
) -> dict[str, Any]:  # fmt: skip
    """Return the settings of a run, as in `run.toml`.

    Args:
        cells: number of cells along each axis.
        iterations: number of the last iteration.
        every: iterations from one dump to the next.
        ranks: number of processes.
        locations: location by kind (`analysis`, `visualisation`, `restart`).
        name: name of the application.
    """
    arrays = {
        array: {
            **_settings_of(kind, cells, every, dtype),
            "location": locations.get(kind, "default"),
        }
        for kind, (names, dtype) in KINDS.items()
        for array in names
    }
    return {"name": name, "iterations": iterations, "ranks": ranks, "arrays": arrays}


def _settings_of(kind: str, cells: int, every: int, dtype: str) -> dict[str, Any]:
    mode = "overwrite" if kind == "restart" else "create"
    return {"shape": [cells] * 3, "dtype": dtype, "every": every, "pattern": "BBB",
            "mode": mode, "dims": list(DIMS)}  # fmt: skip


class Outputs:
    """The arrays of a run of the application.

    Attributes:
        run: the run.
    """

    def __init__(self, run: Run, cells: int, every: int, *, waits: bool = False) -> None:
        """Add the arrays to the run; the errors are those of `Run.array`.

        Args:
            run: the run.
            cells: number of cells along each axis.
            every: iterations from one dump to the next.
            waits: whether each dump is waited for before the next one is written.
        """
        self.run, self._waits = run, waits
        for kind, (names, dtype) in KINDS.items():
            for name in names:
                run.array(name, **_settings_of(kind, cells, every, dtype))

    def write(self, iteration: int, state: Convection) -> None:
        """Write the dumps of an iteration; the errors are those of `RunArray.write`."""
        due = [
            array for array in self.run.arrays.values()
            if not array.settings.is_disabled and iteration % array.settings.every == 0
        ]  # fmt: skip
        if not due:
            return
        primitive = state.gas.primitive(state.conserved)
        ranges = _ranges(primitive, state)
        for array in due:
            array.write(iteration, _block(array, primitive, state, ranges))
            if self._waits:
                array.sync()


def _ranges(primitive: Field, state: Convection) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of each array of pictures, over all ranks."""
    fields = [(name, value(primitive)) for name, value in VISUALISATION.items()]
    of_ranks = state.grid.ranks.gather(
        {name: (float(values.min()), float(values.max())) for name, values in fields}
    )
    return {
        name: (min(each[name][0] for each in of_ranks), max(each[name][1] for each in of_ranks))
        for name in VISUALISATION
    }


def _block(
    array: RunArray, primitive: Field, state: Convection, ranges: Mapping[str, tuple[float, float]]
) -> np.ndarray[Any, Any]:
    name = array.name
    if name in ANALYSIS:
        return ANALYSIS[name](primitive).astype(np.float32)
    if name in VISUALISATION:
        least, largest = ranges[name]
        scale = 255 / (largest - least) if largest > least else 0.0
        return np.rint((VISUALISATION[name](primitive) - least) * scale).astype(np.uint8)
    at = RESTART.index(name.removeprefix("restart_"))
    return state.heat_change if at == len(state.conserved) else state.conserved[at]


@dataclass(frozen=True)
class Checkpoint:
    """A state that was written.

    Attributes:
        label: the run.
        iteration: its iteration.
    """

    label: str
    iteration: int

    @classmethod
    def newest(cls, name: str, label: str = "") -> Checkpoint:
        """Return the last checkpoint of a run, or of the newest that has one.

        Args:
            name: name of the application.
            label: the run, as `NAME@NUMBER`; the newest with a checkpoint by default.

        Raises:
            NoSuchRunError: If there is none.
        """
        import swathe

        labels = [label] if label else [record.label for record in swathe.runs.list(name)]
        for each in labels:
            run = swathe.open_run(each)
            names = KINDS["restart"][0]
            # A run that was stopped may have some of the arrays one dump later than others.
            sets = [set(run[array]) if array in run else set[int]() for array in names]
            if common := set.intersection(*sets):
                return cls(run.record.label, max(common))
        raise NoSuchRunError(f"{label or name}: expected a run with a checkpoint, found none")

    def read(self, cells: int, ranks: Ranks) -> Convection:
        """Return the state; each rank reads its own cells.

        Raises:
            OptionError: If it has another number of cells.
            NotFoundError, AccessError, SourceError, FormatError: If it cannot be read.
        """
        import swathe

        run, grid = swathe.open_run(self.label), layer_grid(cells, ranks)
        blocks = list(self._blocks(run, grid.shape, grid.block))
        return Convection(grid, np.stack(blocks[:-1]), blocks[-1])

    def _blocks(
        self, run: Any, shape: tuple[int, ...], block: tuple[slice, ...]
    ) -> Iterator[Field]:
        for name in KINDS["restart"][0]:
            dump = run[name][self.iteration]
            if dump.shape != shape or dump.dtype != np.float64:
                raise OptionError(
                    f"{self.label}, {name}: expected {shape}, float64, found {dump.shape}, "
                    f"{dump.dtype}"
                )
            yield dump[block]
