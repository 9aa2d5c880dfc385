"""The gas of astro3d: a shock tube against its exact solution, smooth waves, what is conserved."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq  # type: ignore[import-untyped]

from examples.astro3d.grid import Grid
from examples.astro3d.hydrodynamics import ENERGY, PRESSURE, RHO, VELOCITY, Gas

Side = tuple[float, float, float]
"""Density, velocity and pressure."""


class ExactRiemann:
    """The exact solution of the Riemann problem of an ideal gas (Toro 2009, chapter 4)."""

    def __init__(self, lower: Side, upper: Side, gamma: float) -> None:
        self.lower, self.upper, self.gamma = lower, upper, gamma
        self.pressure = brentq(
            lambda p: self._jump(p, lower) + self._jump(p, upper) + upper[1] - lower[1],
            1e-8, 10 * max(lower[2], upper[2]), xtol=1e-14,
        )  # fmt: skip
        jumps = self._jump(self.pressure, upper) - self._jump(self.pressure, lower)
        self.speed = 0.5 * (lower[1] + upper[1] + jumps)

    def density(self, s: float) -> float:
        """The density at a speed x / t."""
        if s < self.speed:
            return self._density(s, self.lower, -1)
        return self._density(s, self.upper, 1)

    def _jump(self, p: float, side: Side) -> float:
        density, _, pressure = side
        gamma = self.gamma
        if p > pressure:
            part = 2 / ((gamma + 1) * density) / (p + (gamma - 1) / (gamma + 1) * pressure)
            return float((p - pressure) * np.sqrt(part))
        sound = np.sqrt(gamma * pressure / density)
        return float(2 * sound / (gamma - 1) * ((p / pressure) ** ((gamma - 1) / 2 / gamma) - 1))

    def _density(self, s: float, side: Side, sign: int) -> float:
        """The density on one side of the contact; `sign` is 1 on the upper one."""
        density, speed, pressure = side
        gamma, ratio = self.gamma, self.pressure / pressure
        sound = np.sqrt(gamma * pressure / density)
        g = (gamma - 1) / (gamma + 1)
        if ratio > 1:
            mach = np.sqrt((gamma + 1) / (2 * gamma) * ratio + (gamma - 1) / (2 * gamma))
            shock = speed + sign * sound * mach
            return density if sign * (s - shock) > 0 else density * (ratio + g) / (g * ratio + 1)
        inside = density * ratio ** (1 / gamma)
        head = speed + sign * sound
        tail = self.speed + sign * sound * ratio ** ((gamma - 1) / 2 / gamma)
        if sign * (s - head) > 0:
            return density
        if sign * (s - tail) < 0:
            return float(inside)
        wave = 2 / (gamma + 1) - sign * g / sound * (speed - s)
        return float(density * wave ** (2 / (gamma - 1)))


def run(
    gas: Gas, grid: Grid, primitive: NDArray[np.float64], end_s: float, courant: float
) -> NDArray[np.float64]:
    """Return the primitive variables at a time."""
    conserved, time_s = gas.conserved(primitive), 0.0
    while time_s < end_s:
        step_s = min(gas.time_step(conserved, grid, courant), end_s - time_s)
        conserved = gas.step(conserved, grid, step_s)
        time_s += step_s
    return gas.primitive(conserved)


def line_of(axis: int, cells: int, is_periodic: bool) -> Grid:
    """Return a grid of one line of cells along an axis, of length 1."""
    shape = [1, 1, 1]
    shape[axis] = cells
    periodic = [True] * 3
    periodic[axis] = is_periodic
    return Grid.divide(shape, (1.0, 1.0, 1.0), None, periodic)


SOD: tuple[Side, Side] = ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_shock_tube_is_that_of_the_exact_solution(axis: int) -> None:
    gas, grid = Gas(gamma=1.4), line_of(axis, 200, False)
    x = grid.centres(axis)
    primitive = np.zeros((5, *grid.shape))
    primitive[RHO] = np.where(x < 0.5, SOD[0][0], SOD[1][0])
    primitive[PRESSURE] = np.where(x < 0.5, SOD[0][2], SOD[1][2])
    result = run(gas, grid, primitive, 0.2, 0.5)
    exact = ExactRiemann(*SOD, 1.4)
    # Known values of this problem (Toro 2009, table 4.2).
    assert exact.pressure == pytest.approx(0.30313, abs=1e-5)
    assert exact.speed == pytest.approx(0.92745, abs=1e-5)
    density = np.array([exact.density((at - 0.5) / 0.2) for at in x.ravel()])
    error = np.abs(result[RHO].ravel() - density).sum() / density.sum()
    assert error <= 0.015
    others = [VELOCITY + each for each in range(3) if each != axis]
    assert not result[others].any()


def wave_error(cells: int) -> float:
    """Return the mean error of an acoustic wave of small amplitude after one period."""
    gas, grid = Gas(gamma=1.4), line_of(2, cells, True)
    amplitude, (first, last) = 1e-5, (grid.centres(2) - 0.5 / cells, grid.centres(2) + 0.5 / cells)
    # Means over cells.
    wave = (np.cos(2 * np.pi * first) - np.cos(2 * np.pi * last)) * cells / (2 * np.pi)
    primitive = np.zeros((5, *grid.shape))
    primitive[RHO] = 1 + amplitude * wave
    primitive[VELOCITY + 2] = amplitude * wave
    primitive[PRESSURE] = 1 / 1.4 + amplitude * wave
    result = run(gas, grid, primitive, 1.0, 0.4)
    return float(np.abs(result[RHO] - primitive[RHO]).mean() / amplitude)


def advection_error(shape: tuple[int, int, int]) -> float:
    """Return the mean error of a density that moves once around, askew in a plane."""
    gas, grid = Gas(gamma=1.4), Grid.divide(shape, (1.0, 1.0, 1.0))
    primitive = np.zeros((5, *grid.shape))
    phase, mean = np.zeros(()), 1.0
    for axis, cells in enumerate(shape):
        if cells > 1:
            phase = phase + 2 * np.pi * grid.centres(axis)
            mean *= np.sin(np.pi / cells) * cells / np.pi
            primitive[VELOCITY + axis] = 1.0
    primitive[RHO] = 1 + 0.2 * mean * np.sin(phase)
    primitive[PRESSURE] = 1.0
    result = run(gas, grid, primitive, 1.0, 0.5)
    return float(np.abs(result[RHO] - primitive[RHO]).mean())


def test_an_acoustic_wave_converges_at_second_order() -> None:
    assert np.log2(wave_error(40) / wave_error(80)) >= 1.8


def test_a_wave_of_density_converges_at_second_order() -> None:
    assert np.log2(advection_error((1, 40, 1)) / advection_error((1, 80, 1))) >= 1.8


@pytest.mark.more
def test_a_wave_askew_converges_at_second_order() -> None:
    assert np.log2(advection_error((1, 48, 48)) / advection_error((1, 96, 96))) >= 1.8


def test_mass_momentum_and_energy_are_conserved() -> None:
    gas, grid = Gas(), Grid.divide((12, 10, 14), (1.0, 1.0, 1.0))
    draw = np.random.default_rng(3)
    primitive = draw.uniform(0.5, 2.0, (5, *grid.shape))
    primitive[VELOCITY:PRESSURE] = draw.normal(0, 1, (3, *grid.shape))
    conserved = before = gas.conserved(primitive)
    for _ in range(10):
        conserved = gas.step(conserved, grid, gas.time_step(conserved, grid, 0.5))
    assert np.abs(conserved - before).max() > 0.1
    sums, sums_before = (each.sum((1, 2, 3)) for each in (conserved, before))
    np.testing.assert_allclose(sums, sums_before, rtol=0, atol=1e-13 * np.abs(before).sum())


def test_walls_let_no_mass_pass() -> None:
    gas = Gas(gravity=4.0)
    grid = Grid.divide((16, 4, 4), (1.0, 1.0, 1.0), None, (False, True, True))
    temperature = np.broadcast_to(3 - 2 * grid.centres(0), grid.shape)
    primitive = np.zeros((5, *grid.shape))
    primitive[RHO], primitive[PRESSURE] = temperature, temperature**2
    conserved = before = gas.conserved(primitive)
    for _ in range(20):
        conserved = gas.step(conserved, grid, gas.time_step(conserved, grid, 0.5))
    assert conserved[RHO].sum() == pytest.approx(before[RHO].sum(), rel=1e-13)
    # In balance but for errors of the scheme.
    speed = np.abs(gas.primitive(conserved)[VELOCITY]).max()
    assert 0 < speed < 0.02


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan])
def test_a_state_that_is_none_is_refused(value: float) -> None:
    grid = line_of(2, 8, True)
    conserved = Gas().conserved(np.ones((5, *grid.shape)))
    conserved[ENERGY, 0, 0, 3] = value
    with pytest.raises(ArithmeticError, match="expected positive density and pressure"):
        Gas().time_step(conserved, grid, 0.5)
