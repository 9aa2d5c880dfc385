"""Thermal conduction by an implicit step: the Helmholtz problem, solved by V-cycles of multigrid.

The step is that of Crank and Nicolson, of second order in time and space:
`(c - dt/2 k L) T' = (c + dt/2 k L) T`, where L is the Laplacian of seven points, c the heat
capacity of a unit of volume, and k the conductivity. The change of energy is the flux at the mean
temperature, so energy is conserved however well the problem is solved.

References:
    Briggs, Henson and McCormick, A Multigrid Tutorial (2000), chapters 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from examples.astro3d.grid import AXES, Field, FillWall, Grid, along, inner

WIDTH = 1
SWEEPS = 2
"""Sweeps of the smoother before and after the coarse grid."""
COARSEST_SWEEPS = 4
"""Sweeps on the coarsest grid, for each cell along its longest axis."""
MOST_CYCLES = 60
TOLERANCE = 1e-12
"""Largest residual at the end, relative to the largest value of the right side."""


@dataclass(frozen=True)
class Conduction:
    """An implicit step of thermal conduction.

    Attributes:
        conductivity: heat flux by the gradient of the temperature.
        wall_temperatures: of the low and high ends of z, if they are walls.
    """

    conductivity: float
    wall_temperatures: tuple[float, float] = (1.0, 1.0)

    def step(
        self, temperature: Field, capacity: Field, grid: Grid, seconds: float, guess: Field
    ) -> tuple[Field, Field]:
        """Return the temperature after a step, and the change of energy per volume.

        Args:
            temperature: the cells of this rank, of shape (z, y, x).
            capacity: heat capacity per volume, of the same shape.
            grid: where they lie.
            seconds: length of the step.
            guess: temperature after the step, about.

        Raises:
            ArithmeticError: If the problem is not solved after `MOST_CYCLES` cycles.
        """
        weight = 0.5 * seconds * self.conductivity
        fill = wall_fill(self.wall_temperatures)
        right = capacity * temperature + weight * laplacian(temperature, grid, fill)
        problem = Helmholtz(grid, capacity, weight)
        after = problem.solve(right, guess, fill)
        mean = 0.5 * (temperature + after)
        return after, seconds * self.conductivity * laplacian(mean, grid, fill)


class Helmholtz:
    """The problem `capacity T - weight L T = right` on a grid, and on its coarser ones."""

    def __init__(self, grid: Grid, capacity: Field, weight: float) -> None:
        """Set the problem; the capacity has the shape of a block.

        Args:
            grid: where the cells lie.
            capacity: factor of the values themselves.
            weight: factor of the Laplacian.
        """
        self._grid, self._capacity, self._weight = grid, capacity, weight
        self._diagonal = capacity + 2 * weight * sum(h**-2 for h in grid.spacing)
        cells = sum(np.ogrid[grid.block], start=np.zeros((), int))
        self._colours = [cells % 2 == colour for colour in (0, 1)]
        self._coarse: Helmholtz | None = None
        if (coarser := grid.coarser()) is not None:
            coarse, self._factors = coarser
            average = self._to_coarse(capacity, coarse)
            self._coarse = Helmholtz(coarse, average, weight)

    def solve(self, right: Field, guess: Field, fill: FillWall) -> Field:
        """Return the solution.

        Args:
            right: the right side.
            guess: a first value.
            fill: fills the cells beyond walls.

        Raises:
            ArithmeticError: If it is not found after `MOST_CYCLES` cycles.
        """
        bound = TOLERANCE * self._grid.gather_max(float(np.abs(right).max(initial=0)))
        values = guess.copy()
        for _ in range(MOST_CYCLES):
            residual = right - self._apply(values, fill)
            largest = self._grid.gather_max(float(np.abs(residual).max(initial=0)))
            if largest <= bound:
                return values
            values = values + self._cycle(np.zeros_like(values), residual)
        raise ArithmeticError(
            f"conduction: expected a residual of {bound:.3g} after {MOST_CYCLES} cycles, found "
            f"{largest:.3g}"
        )

    def _cycle(self, values: Field, right: Field) -> Field:
        """Return values after a V-cycle; walls have the value 0."""
        if self._coarse is None:
            return self._smooth(values, right, COARSEST_SWEEPS * max(self._grid.shape))
        values = self._smooth(values, right, SWEEPS)
        residual = right - self._apply(values, mirror_zero)
        coarse = self._coarse
        coarse_right = self._to_coarse(residual, coarse._grid)
        correction = coarse._cycle(np.zeros_like(coarse_right), coarse_right)
        values = values + self._to_fine(correction, coarse._grid)
        return self._smooth(values, right, SWEEPS)

    def _apply(self, values: Field, fill: FillWall) -> Field:
        return self._capacity * values - self._weight * laplacian(values, self._grid, fill)

    def _smooth(self, values: Field, right: Field, sweeps: int) -> Field:
        """Return values after sweeps of Gauss and Seidel, the cells in two colours."""
        for _ in range(sweeps):
            for colour in self._colours:
                around = neighbour_sum(values, self._grid, mirror_zero)
                new = (right + self._weight * around) / self._diagonal
                values = np.where(colour, new, values)
        return values

    def _to_coarse(self, values: Field, coarse: Grid) -> Field:
        """Return the means of the cells of each coarse one: all, if ranks have the whole there."""
        if coarse.ranks.size != self._grid.ranks.size:
            values = self._grid.gather_whole(values)
        for axis, factor in zip(AXES, self._factors, strict=True):
            if factor == 2:
                first = values[along(axis, slice(0, None, 2))]
                values = 0.5 * (first + values[along(axis, slice(1, None, 2))])
        return values

    def _to_fine(self, values: Field, coarse: Grid) -> Field:
        """Return values between those of the coarse cells, linear along each axis."""
        values = coarse.widen(values, WIDTH, mirror_zero)
        for axis, factor in zip(AXES, self._factors, strict=True):
            here = values[along(axis, slice(1, -1))]
            if factor == 2:
                near = 0.75 * here
                pairs = (
                    near + 0.25 * values[along(axis, slice(0, -2))],
                    near + 0.25 * values[along(axis, slice(2, None))],
                )
                shape = list(here.shape)
                shape[axis] *= 2
                values = np.stack(pairs, axis + 1).reshape(shape)
            else:
                values = here
        is_whole = coarse.ranks.size != self._grid.ranks.size
        return values[self._grid.block] if is_whole else values


def laplacian(values: Field, grid: Grid, fill: FillWall) -> Field:
    """Return the Laplacian of seven points, of the shape of a block."""
    around = neighbour_sum(values, grid, fill)
    return around - 2 * sum(h**-2 for h in grid.spacing) * values


def neighbour_sum(values: Field, grid: Grid, fill: FillWall) -> Field:
    """Return the sum of the neighbours of each cell, each divided by its distance squared."""
    field = grid.widen(values, WIDTH, fill)
    result = np.zeros_like(values)
    for axis, spacing in zip(AXES, grid.spacing, strict=True):
        index = list(inner(WIDTH))[1:]
        pair = []
        for part in (slice(0, -2), slice(2, None)):
            index[axis] = part
            pair.append(field[tuple(index)])
        result += spacing**-2 * (pair[0] + pair[1])
    return result


def wall_fill(temperatures: tuple[float, float]) -> FillWall:
    """Return what fills cells beyond the walls: z has temperatures, others let no heat pass."""

    def fill(field: Field, axis: int, side: int) -> None:
        wall = temperatures[side] if axis == 0 else None
        _mirror(field, axis, side, lambda cells: cells if wall is None else 2 * wall - cells)

    return fill


def mirror_zero(field: Field, axis: int, side: int) -> None:
    """Fill cells beyond walls, where walls of z have the value 0."""
    _mirror(field, axis, side, lambda cells: -cells if axis == 0 else cells)


def _mirror(field: Field, axis: int, side: int, value: Callable[[Field], Field]) -> None:
    at, within = (slice(0, 1), slice(1, 2)) if side == 0 else (slice(-1, None), slice(-2, -1))
    field[along(axis, at)] = value(field[along(axis, within)])
