"""Convection in a layer that is heated from below: its state, its first one, and its steps.

Units: the depth of the layer, and temperature, density and gas constant at its top are 1. At first
the layer is a polytrope of index 1, so it is not stable; small movements, drawn with a seed, begin
the convection (Hurlburt, Toomre and Massaguer, Astrophys. J. 282, 557, 1984).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from examples.astro3d.conduction import Conduction
from examples.astro3d.grid import Field, Grid
from examples.astro3d.hydrodynamics import ENERGY, PRESSURE, RHO, VELOCITY, Gas
from swathe.runs.writing.ranks import Ranks

CONTRAST = 2.0
"""Difference of the temperatures of bottom and top."""
CONDUCTIVITY = 0.005
AMPLITUDE = 0.02
"""Of the first movements, relative to the speed of sound."""
COURANT = 0.5


@dataclass
class Convection:
    """The state of the layer, and how it goes on.

    Attributes:
        grid: where the cells lie.
        conserved: density, momenta and energy, of shape (5, z, y, x).
        heat_change: change of the temperature by the last step of conduction. The next is taken
            for the same at first, so it is a part of the state.
        gas: what moves.
        conduction: how heat is conducted.
    """

    grid: Grid
    conserved: Field
    heat_change: Field
    gas: Gas = field(default_factory=lambda: Gas(gravity=2 * CONTRAST))
    conduction: Conduction = field(
        default_factory=lambda: Conduction(CONDUCTIVITY, (1 + CONTRAST, 1.0))
    )

    @classmethod
    def begin(cls, cells: int, ranks: Ranks, seed: int = 1) -> Convection:
        """Return the first state of a cube of cells.

        Raises:
            OptionError: If a rank would have too few cells.
        """
        grid = layer_grid(cells, ranks)
        state = cls(grid, np.empty((5, *grid.block_shape)), np.zeros(grid.block_shape))
        temperature = np.broadcast_to(1 + CONTRAST * (1 - grid.centres(0)), grid.block_shape)
        primitive = np.empty((5, *grid.block_shape))
        primitive[RHO] = temperature
        primitive[PRESSURE] = temperature * temperature
        draw = np.random.default_rng(seed)
        for axis in range(3):
            # Drawn by all ranks for all cells, so it does not depend on their number.
            noise = draw.standard_normal(grid.shape, np.float32)[grid.block]
            primitive[VELOCITY + axis] = AMPLITUDE * noise * np.sqrt(temperature)
        state.conserved = state.gas.conserved(primitive)
        return state

    @property
    def temperature(self) -> Field:
        """Return pressure by density."""
        return temperature_of(self.gas.primitive(self.conserved))

    def step(self) -> float:
        """Go on by one time step; return its length.

        Raises:
            ArithmeticError: If a cell has no positive density or pressure, or the conduction is not
                solved.
        """
        seconds = self.gas.time_step(self.conserved, self.grid, COURANT)
        conserved = self.gas.step(self.conserved, self.grid, seconds)
        temperature = temperature_of(self.gas.primitive(conserved))
        capacity = conserved[RHO] / (self.gas.gamma - 1)
        guess = temperature + self.heat_change
        after, energy = self.conduction.step(temperature, capacity, self.grid, seconds, guess)
        conserved[ENERGY] += energy
        self.conserved, self.heat_change = conserved, after - temperature
        return seconds


def temperature_of(primitive: Field) -> Field:
    """Return pressure by density; the gas constant is 1."""
    result: Field = primitive[PRESSURE] / primitive[RHO]
    return result


def layer_grid(cells: int, ranks: Ranks) -> Grid:
    """Return a cube of cells with walls at both ends of z.

    Raises:
        OptionError: If a rank would have too few cells.
    """
    return Grid.divide((cells,) * 3, (1.0,) * 3, ranks, (False, True, True))
