"""The conduction of astro3d: its order in space and time, walls, and what is conserved."""

from __future__ import annotations

import numpy as np
import pytest

from examples.astro3d import conduction
from examples.astro3d.conduction import Conduction, Helmholtz, laplacian, mirror_zero, wall_fill
from examples.astro3d.grid import Grid

END_S, CONDUCTIVITY = 0.02, 1.0


def error_of(cells: int, steps: int, is_periodic: bool) -> float:
    """Return the mean error of a decaying wave, of which the exact solution is known."""
    grid = Grid.divide((cells,) * 3, (1.0,) * 3, None, (is_periodic, True, True))
    z, y, x = (grid.centres(axis) for axis in range(3))
    across = np.cos(2 * np.pi * (z - y)) if is_periodic else np.sin(np.pi * z) + 0 * y
    rate = 4 * np.pi**2 * (3 if is_periodic else 1.25) if is_periodic else 5 * np.pi**2
    wave = across * np.cos(2 * np.pi * x)
    temperature = wave + 1.0
    method = Conduction(CONDUCTIVITY, (1.0, 1.0))
    capacity = np.ones(grid.shape)
    for _ in range(steps):
        temperature, _ = method.step(temperature, capacity, grid, END_S / steps, temperature)
    return float(np.abs(temperature - 1 - wave * np.exp(-rate * END_S)).mean())


@pytest.mark.parametrize("is_periodic", [True, False])
def test_conduction_converges_at_second_order_in_space_and_time(is_periodic: bool) -> None:
    coarse, fine = error_of(8, 2, is_periodic), error_of(16, 4, is_periodic)
    assert 1.9 <= np.log2(coarse / fine) <= 2.1


def test_the_order_in_time_alone_is_two() -> None:
    """On one grid, against many short steps."""
    grid = Grid.divide((1, 1, 16), (1.0,) * 3)
    first = 1 + np.cos(2 * np.pi * grid.centres(2))
    capacity, method = np.ones(grid.shape), Conduction(CONDUCTIVITY)

    def after(steps: int) -> np.ndarray:
        values = first
        for _ in range(steps):
            values, _ = method.step(values, capacity, grid, END_S / steps, values)
        return values

    exact = after(64)
    errors = [np.abs(after(steps) - exact).max() for steps in (2, 4)]
    assert 1.9 <= np.log2(errors[0] / errors[1]) <= 2.1


def test_energy_is_conserved_and_is_the_change_of_temperature() -> None:
    grid = Grid.divide((8, 12, 16), (1.0, 1.5, 2.0))
    draw = np.random.default_rng(1)
    temperature, capacity = draw.uniform(1, 2, (2, *grid.shape))
    after, energy = Conduction(0.3).step(temperature, capacity, grid, 0.05, temperature)
    assert np.abs(energy).max() > 0.1
    assert abs(energy.sum()) < 1e-13 * np.abs(energy).sum()
    np.testing.assert_allclose(capacity * (after - temperature), energy, rtol=0, atol=1e-10)
    assert after.std() < 0.5 * temperature.std()


def test_walls_hold_their_temperatures() -> None:
    grid = Grid.divide((8, 4, 4), (1.0,) * 3, None, (False, True, True))
    temperature, capacity = np.ones(grid.shape), np.ones(grid.shape)
    method = Conduction(1.0, (3.0, 1.0))
    for _ in range(40):
        temperature, _ = method.step(temperature, capacity, grid, 0.04, temperature)
    steady = np.broadcast_to(3 - 2 * grid.centres(0), grid.shape)
    np.testing.assert_allclose(temperature, steady, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(16, 16, 16), (12, 6, 10), (7, 9, 5), (1, 1, 32)])
@pytest.mark.parametrize("weight", [1e-4, 0.01, 10.0])
def test_the_problem_is_solved(shape: tuple[int, ...], weight: float) -> None:
    grid = Grid.divide(shape, (1.0,) * 3, None, (False, True, True))
    draw = np.random.default_rng(2)
    capacity, right = draw.uniform(0.5, 2, (2, *shape))
    values = Helmholtz(grid, capacity, weight).solve(right, right, mirror_zero)
    found = capacity * values - weight * laplacian(values, grid, mirror_zero)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-11)


def test_a_problem_that_is_not_solved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conduction, "MOST_CYCLES", 1)
    grid = Grid.divide((8, 8, 8), (1.0,) * 3)
    right = np.random.default_rng(2).uniform(0.5, 2, grid.shape)
    with pytest.raises(ArithmeticError, match="expected a residual"):
        Helmholtz(grid, np.ones(grid.shape), 1.0).solve(right, right, wall_fill((1.0, 1.0)))
