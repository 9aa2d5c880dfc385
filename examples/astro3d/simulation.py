"""A run of the application: steps, and dumps of some."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import swathe
from examples.astro3d.convection import Convection
from examples.astro3d.datasets import Checkpoint, Outputs
from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from swathe.runs.writing.ranks import Ranks


@dataclass(frozen=True)
class Simulation:
    """What is run.

    Attributes:
        cells: number of cells along each axis.
        iterations: number of the last iteration.
        every: iterations from one dump to the next.
        name: name of the application in the catalogue.
        settings_file: settings of arrays, as `run.toml`.
        restart: run whose last checkpoint it begins with; empty for the newest that has one, `None`
            to begin anew.
        waits: whether each dump is waited for before the next is written.
    """

    cells: int = 32
    iterations: int = 24
    every: int = 6
    name: str = "astro3d"
    settings_file: Path | None = None
    restart: str | None = None
    waits: bool = False

    def run(self, ranks: Ranks) -> Outcome:
        """Run it on all ranks, each with a part of the cells.

        Raises:
            OptionError: If there are too few cells for the ranks, or the checkpoint does not fit.
            NoSuchRunError: If there is no checkpoint.
            ArithmeticError: If a step fails.
            SwatheError: If a dump cannot be written.
        """
        start_s = time.perf_counter()
        first = 0
        if self.restart is None:
            state = Convection.begin(self.cells, ranks)
        else:
            checkpoint = Checkpoint.newest(self.name, self.restart)
            first = checkpoint.iteration
            if first > self.iterations:
                raise OptionError(
                    f"iterations: expected at least {first}, as in the checkpoint of "
                    f"{checkpoint.label}, found {self.iterations}"
                )
            state = checkpoint.read(self.cells, ranks)
        computing_s, writing_s, time_units = 0.0, 0.0, 0.0
        with swathe.run(
            self.name, self.iterations, comm=ranks, purpose_file=self.settings_file
        ) as run:
            outputs = Outputs(run, self.cells, self.every, waits=self.waits)
            for iteration in range(first, self.iterations + 1):
                if iteration > first:
                    step_start_s = time.perf_counter()
                    time_units += state.step()
                    computing_s += time.perf_counter() - step_start_s
                write_start_s = time.perf_counter()
                outputs.write(iteration, state)
                writing_s += time.perf_counter() - write_start_s
            label, end_start_s = run.record.label, time.perf_counter()
        end_s = time.perf_counter()
        writing_s += end_s - end_start_s
        return Outcome(label, first, time_units, computing_s, writing_s, end_s - start_s, state)


@dataclass(frozen=True)
class Outcome:
    """What a rank has at the end of a run.

    Attributes:
        label: the run in the catalogue.
        first: iteration that it began with.
        time_units: time of the simulation since then.
        computing_s: seconds of the steps.
        writing_s: seconds that it waited for dumps, with what is computed for them.
        total_s: seconds of all, until the dumps were durable.
        state: the last state.
    """

    label: str
    first: int
    time_units: float
    computing_s: float
    writing_s: float
    total_s: float
    state: Convection
