"""The application volren: a sphere as by hand, any number of ranks, pictures in a store."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import swathe
from examples.launch import launch
from examples.volren.__main__ import main
from examples.volren.rendering import render
from swathe.catalog import Catalog
from swathe.core.errors import OptionError
from swathe.operations.ray_casting import Block, TransferFunction, View, interpolate
from swathe.runs.superfiles.run_pictures import list_pictures

WHITE = ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))


def picture_of(
    volume: np.ndarray, view: View, transfer: TransferFunction, ranks: int
) -> np.ndarray:
    """Return the picture of a volume by threads; the other ranks have none."""
    options = argparse.Namespace(ranks=ranks, mpi=False)
    first, *others = launch(lambda own: render(volume, view, transfer, own), options)
    assert first is not None and all(other is None for other in others)
    return first


def sphere(length: int, radius: float) -> np.ndarray:
    """Return a sphere of 255 in the middle; voxels at its surface are a part of it."""
    fine = 4
    places = (np.arange(length * fine) + 0.5) / fine - length / 2
    inside = places[:, None, None] ** 2 + places[:, None] ** 2 + places**2 < radius**2
    shares = inside.reshape(length, fine, length, fine, length, fine).mean((1, 3, 5))
    result: np.ndarray = np.rint(255 * shares).astype(np.uint8)
    return result


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (37.0, 61.0)])
def test_a_sphere_is_that_of_the_integral(azimuth: float, elevation: float) -> None:
    radius, opacity = 12.0, 0.08
    view = View((32, 32, 32), azimuth, elevation, 48, 0.5)
    picture = picture_of(sphere(32, radius), view, TransferFunction(opacity, WHITE), 1)
    places = view.pixel_places()
    squared = np.maximum(radius**2 - places[:, None] ** 2 - places**2, 0)
    exact = 1 - np.exp(-opacity * 2 * np.sqrt(squared))
    assert exact.max() > 0.8
    errors = np.abs(picture - exact[..., None])
    assert errors[24, 24].max() < 0.005
    assert errors.mean() < 0.004
    # Away from the surface, where a ray sees the steps of the voxels.
    assert errors[squared > 0.4 * radius**2].max() < 0.01


@pytest.mark.parametrize("shape", [(16, 16, 16), (11, 17, 14)])
@pytest.mark.parametrize("angles", [(30.0, 20.0), (200.0, -50.0), (90.0, 0.0), (0.0, 90.0)])
def test_any_number_of_ranks_has_the_same_picture(
    shape: tuple[int, int, int], angles: tuple[float, float]
) -> None:
    volume = np.random.default_rng(1).integers(0, 256, shape, "u1")
    view, transfer = View(shape, *angles, pixels=30), TransferFunction(0.2)
    alone = picture_of(volume, view, transfer, 1)
    assert alone.max() > 0.5
    for ranks in (3, 8):
        together = picture_of(volume, view, transfer, ranks)
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_what_is_near_hides_what_is_far() -> None:
    volume = np.zeros((8, 8, 8), "u1")
    volume[:, :, :4], volume[:, :, 4:] = 1, 255
    transfer = TransferFunction(1000.0, ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    # At azimuth 0 the eye is at large x.
    from_high = picture_of(volume, View(volume.shape, 0.0, 0.0, 16), transfer, 2)[8, 8]
    from_low = picture_of(volume, View(volume.shape, 180.0, 0.0, 16), transfer, 2)[8, 8]
    assert from_high[2] > 0.99 and from_low[0] > 0.9
    volume[:4] = 0
    upper = picture_of(volume, View(volume.shape, 0.0, 0.0, 16), transfer, 2)
    assert upper[5, 8].max() > 0.9 and upper[10, 8].max() == 0  # z is up


def test_points_between_voxels_are_linear() -> None:
    values = np.random.default_rng(1).integers(0, 256, (4, 5, 6), "u1")
    block = Block(values, (10, 20, 30), (10, 20, 30), (14, 25, 36))
    points = np.array([[11.5, 22.5, 33.5], [12.0, 22.5, 33.5], [10.0, 20.0, 35.9]])
    expected = [values[1, 2, 3], (values[1, 2, 3] + float(values[2, 2, 3])) / 2, values[0, 0, 5]]
    np.testing.assert_allclose(interpolate(block, points), expected)


@pytest.mark.parametrize("volume", [np.zeros((4, 4), "u1"), np.zeros((4, 4, 4), "f4")])
def test_what_is_no_volume_of_bytes_is_refused(volume: np.ndarray) -> None:
    with pytest.raises(OptionError, match=r"volume: expected three axes of bytes"):
        picture_of(volume, View((4, 4, 4)), TransferFunction(), 1)


def test_a_picture_of_each_dump_is_in_the_superfile_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    volume = sphere(16, 6.0)
    with swathe.run("app", iterations=4) as run:
        array = run.array("vr", volume.shape, "u1", every=4)
        array.write(0, volume)
        array.write(4, volume // 2)
    words = "volren app vr --pixels 32 --ranks 2"
    monkeypatch.setattr(sys, "argv", words.split())
    assert main() == 0
    name = capsys.readouterr().out.strip()
    with Catalog.open() as catalog:
        assert list_pictures(catalog.run("app"), "disk") == [name]
    pictures = swathe.superfile(name)
    assert list(pictures) == ["000000.png", "000004.png"]
    view = View(volume.shape, pixels=32)
    for content, dump in zip(pictures.values(), (volume, volume // 2), strict=True):
        with Image.open(io.BytesIO(content)) as image:
            found = np.asarray(image)
        expected = picture_of(dump, view, TransferFunction(), 1) * 255
        assert found.shape == (32, 32, 3) and found.max() > 20
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.51)
    for more, told in ((), "exists"), (("--overwrite",), ""):
        monkeypatch.setattr(sys, "argv", [*words.split(), *more])
        assert main() == (1 if told else 0)
        assert told in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*words.split()[:2], "none"])
    assert main() == 1
    assert "expected an array" in capsys.readouterr().err
