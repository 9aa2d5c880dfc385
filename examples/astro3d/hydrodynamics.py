"""Compressible hydrodynamics of an ideal gas: a finite-volume Godunov scheme.

Piecewise linear reconstruction of the primitive variables with the limiter of van Leer (the
harmonic mean of differences), the Riemann solver HLLC, and two stages of Runge and Kutta (Heun;
strongly stable). It is of second order in space and time. Only operations that are rounded exactly
are used, and no sum over cells, so the result does not depend on the number of ranks.

References:
    Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), 10.4 and 10.6 (HLLC).
    Van Leer, J. Comput. Phys. 23, 276 (1977). Gottlieb, Shu and Tadmor, SIAM Rev. 43, 89 (2001).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.astro3d.grid import AXES, Field, FillWall, Grid, along

RHO, MOMENTUM, ENERGY = 0, 1, 4
"""Places of the conserved variables: density, momentum (z, y, x), energy without gravity."""
VELOCITY, PRESSURE = 1, 4
"""Places of the primitive variables; density is the first of both."""
WIDTH = 2
"""Cells around a block that a flux needs."""
MOST_COURANT = 0.8
"""Largest sum over axes of the way of the fastest wave in a step, in cells."""
SLAB_CELLS = 1 << 13
"""Cells whose fluxes are computed at a time, about: what fits into the caches of a processor."""

TINY = 1e-300
"""Where both differences are 0, none is divided by 0."""


@dataclass(frozen=True)
class Gas:
    """An ideal gas with gravity along -z.

    Attributes:
        gamma: ratio of specific heats.
        gravity: acceleration.
    """

    gamma: float = 5 / 3
    gravity: float = 0.0

    def primitive(self, conserved: Field) -> Field:
        """Return density, velocities and pressure, of shape (5, z, y, x)."""
        result = np.empty_like(conserved)
        density, momentum = conserved[RHO], conserved[MOMENTUM:ENERGY]
        result[RHO] = density
        result[VELOCITY:PRESSURE] = momentum / density
        kinetic = 0.5 * _square(momentum) / density
        result[PRESSURE] = (self.gamma - 1) * (conserved[ENERGY] - kinetic)
        return result

    def conserved(self, primitive: Field) -> Field:
        """Return density, momenta and energy, of shape (5, z, y, x)."""
        result = np.empty_like(primitive)
        density, velocity = primitive[RHO], primitive[VELOCITY:PRESSURE]
        result[RHO] = density
        result[MOMENTUM:ENERGY] = density * velocity
        kinetic = 0.5 * density * _square(velocity)
        result[ENERGY] = primitive[PRESSURE] / (self.gamma - 1) + kinetic
        return result

    def time_step(self, conserved: Field, grid: Grid, courant: float) -> float:
        """Return the time step of all ranks.

        Args:
            conserved: the cells of this rank.
            grid: where they lie.
            courant: the sum over axes of the way of the fastest wave, in cells.

        Raises:
            ArithmeticError: On all ranks, if density or pressure of a cell of any is not positive.
        """
        primitive = self.primitive(conserved)
        density, pressure = primitive[RHO], primitive[PRESSURE]
        is_valid = bool(
            np.all(density > 0) and np.all(pressure > 0) and np.isfinite(primitive).all()
        )
        fastest = np.inf
        if is_valid:
            sound = np.sqrt(self.gamma * pressure / density)
            rates = [(np.abs(primitive[VELOCITY + axis]) + sound) / grid.spacing[axis]
                     for axis in AXES]  # fmt: skip
            fastest = float(np.max(rates[0] + rates[1] + rates[2]))
        largest = grid.gather_max(fastest)
        if not np.isfinite(largest):
            raise ArithmeticError("gas: expected positive density and pressure, found others")
        return courant / largest

    def step(self, conserved: Field, grid: Grid, seconds: float) -> Field:
        """Return the conserved variables after a time step."""
        first = conserved + seconds * self._change(conserved, grid)
        second = first + seconds * self._change(first, grid)
        return 0.5 * (conserved + second)

    def _change(self, conserved: Field, grid: Grid) -> Field:
        """Return the change of the conserved variables in a unit of time."""
        primitive = grid.widen(self.primitive(conserved), WIDTH, self._fill_wall(grid))
        change = np.empty_like(conserved)
        height, row = conserved.shape[1], conserved[0, 0].size
        rows = max(1, SLAB_CELLS // row)
        for first in range(0, height, rows):
            last = min(first + rows, height)
            slab = primitive[:, first : last + 2 * WIDTH]
            walls = [grid.walls(axis) for axis in AXES]
            walls[0] = (walls[0][0] and first == 0, walls[0][1] and last == height)
            change[:, first:last] = sum(
                self._flux_difference(slab, axis, grid.spacing[axis], walls[axis]) for axis in AXES
            )
        if self.gravity:
            change[MOMENTUM] -= self.gravity * conserved[RHO]
            change[ENERGY] -= self.gravity * conserved[MOMENTUM]
        return change

    def _flux_difference(
        self, primitive: Field, axis: int, spacing: float, walls: tuple[bool, bool]
    ) -> Field:
        """Return what flows into each cell along an axis in a unit of time, per volume."""
        index = [slice(None), *(slice(WIDTH, -WIDTH),) * 3]
        index[1 + axis] = slice(None)
        lower, upper = _faces(primitive[tuple(index)], axis)
        # Both sides of a wall are the same, so nothing passes.
        if walls[0]:
            _mirror(upper, lower, axis, 0)
        if walls[1]:
            _mirror(lower, upper, axis, -1)
        flux = hllc_flux(lower, upper, VELOCITY + axis, self.gamma)
        difference: Field = flux[along(axis, slice(None, -1))] - flux[along(axis, slice(1, None))]
        difference /= spacing
        return difference

    def _fill_wall(self, grid: Grid) -> FillWall:
        """Return what fills the cells beyond a wall: a mirror, in balance with gravity."""

        def fill(field: Field, axis: int, side: int) -> None:
            for layer in range(WIDTH):
                mirror = 2 * WIDTH - 1 - layer
                here, there = (layer, mirror) if side == 0 else (-1 - layer, -1 - mirror)
                beyond, within = field[:, *_plane(axis, here)], field[:, *_plane(axis, there)]
                beyond[...] = within
                beyond[VELOCITY + axis] *= -1
                if axis == 0 and self.gravity:
                    way = (2 * (WIDTH - layer) - 1) * grid.spacing[0]
                    weight = self.gravity * way * within[RHO]
                    beyond[PRESSURE] += weight if side == 0 else -weight

        return fill


def hllc_flux(lower: Field, upper: Field, normal: int, gamma: float) -> Field:
    """Return the flux through faces, from the states on both sides, by the solver HLLC.

    Args:
        lower: primitive variables before each face, of shape (5, ...).
        upper: those behind it.
        normal: place of the velocity through the face.
        gamma: ratio of specific heats.
    """
    speeds = [np.sqrt(gamma * side[PRESSURE] / side[RHO]) for side in (lower, upper)]
    slow = np.minimum(lower[normal] - speeds[0], upper[normal] - speeds[1])
    fast = np.maximum(lower[normal] + speeds[0], upper[normal] + speeds[1])
    # Mass that enters each outer wave.
    before = lower[RHO] * (slow - lower[normal])
    behind = upper[RHO] * (fast - upper[normal])
    contact = (
        upper[PRESSURE] - lower[PRESSURE] + before * lower[normal] - behind * upper[normal]
    ) / (before - behind)
    is_lower = contact >= 0
    state = np.where(is_lower, lower, upper)
    wave = np.where(is_lower, slow, fast)
    mass = np.where(is_lower, before, behind)
    is_star = (slow < 0) & (fast > 0)
    return _star_flux(state, wave, mass, contact, is_star, normal, gamma)


def _star_flux(
    state: Field, wave: Field, mass: Field, contact: Field, is_star: Field, normal: int,
    gamma: float,
) -> Field:  # fmt: skip
    """Return the flux of a side, and where the face lies between its wave and the contact more."""
    density, speed, pressure = state[RHO], state[normal], state[PRESSURE]
    energy = pressure / (gamma - 1) + 0.5 * density * _square(state[VELOCITY:PRESSURE])
    flux = np.empty_like(state)
    mass_flux = density * speed
    flux[RHO] = mass_flux
    flux[MOMENTUM:ENERGY] = mass_flux * state[VELOCITY:PRESSURE]
    flux[normal] += pressure
    flux[ENERGY] = (energy + pressure) * speed
    star_density = mass / (wave - contact)
    reach = np.where(is_star, wave, 0.0)
    flux[RHO] += reach * (star_density - density)
    for axis in AXES:
        at = VELOCITY + axis
        velocity = contact if at == normal else state[at]
        flux[at] += reach * (star_density * velocity - density * state[at])
    star_energy = energy / density + (contact - speed) * (contact + pressure / mass)
    flux[ENERGY] += reach * (star_density * star_energy - energy)
    return flux


def _faces(primitive: Field, axis: int) -> tuple[Field, Field]:
    """Return the states before and behind each face along an axis, by limited linear pieces."""
    cells = primitive[along(axis, slice(1, -1))]
    before = cells - primitive[along(axis, slice(None, -2))]
    behind = primitive[along(axis, slice(2, None))] - cells
    product = before * behind
    before += behind  # twice the central difference
    before += TINY
    half = np.maximum(product, 0.0, out=product)
    half /= before
    lower = (cells + half)[along(axis, slice(None, -1))]
    upper = (cells - half)[along(axis, slice(1, None))]
    return lower, upper


def _mirror(within: Field, beyond: Field, axis: int, at: int) -> None:
    """Set the states beyond the faces of a wall."""
    index = (slice(None), *_plane(axis, at))
    beyond[index] = within[index]
    beyond[index][VELOCITY + axis] *= -1


def _square(vector: Field) -> Field:
    result: Field = vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]
    return result


def _plane(axis: int, at: int) -> tuple[slice | int, ...]:
    index: list[slice | int] = [slice(None)] * 3
    index[axis] = at
    return tuple(index)
