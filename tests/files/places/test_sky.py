"""Cuts of ASDF by position, and the GWCS of their files, equal those of gwcs."""

from __future__ import annotations

import io
import operator
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.coordinates import SkyCoord

import swathe
from swathe.arrays.indexing import run_gwcs
from swathe.core.errors import NoOverlapError, RegionError
from swathe.files.array_outputs import gwcs_of_part
from tests.conftest import DATA

asdf = pytest.importorskip("asdf")
pytest.importorskip("gwcs")
pytest.importorskip("asdf_astropy")
cut: Any = swathe.cut
opened: Any = swathe.open
SOURCE = DATA / "formats" / "nircamwcs.asdf"
needs_data = pytest.mark.skipif(not SOURCE.is_file(), reason=f"no data in {DATA}")
SHAPE = (300, 400)
VALUES = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)


@pytest.fixture(scope="module")
def system() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with asdf.open(SOURCE, memmap=False, lazy_load=False) as file:
            return file["wcs"]


@pytest.fixture(scope="module")
def image(system: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asdf") / "image.asdf"
    tree = {"roman": {"data": VALUES, "meta": {"wcs": system, "filter": "F106"}, "unit": "DN"}}
    asdf.AsdfFile(tree).write_to(path)
    return path


@needs_data
@pytest.mark.parametrize(("x", "y"), [(200, 100), (350.4, 20.2), (10, 280)])
def test_a_position_is_that_of_gwcs(image: Path, system: Any, x: float, y: float) -> None:
    ra, dec = system(x, y)
    pixel = system.invert(ra, dec, with_bounding_box=False)
    cutout = cut(image, array="/roman/data", sky=(ra, dec), size="9 pix")
    x0, y0 = (round(float(each)) - 4 for each in pixel)
    expected = VALUES[max(0, y0) : y0 + 9, max(0, x0) : x0 + 9]
    np.testing.assert_array_equal(cutout.data, expected)


@needs_data
def test_angles_are_those_of_the_sky(image: Path, system: Any) -> None:
    centre = SkyCoord(*system(200, 100), unit="deg")
    cutout = cut(image, array="/roman/data", sky=centre.galactic, size="2arcsec")
    height, width = cutout.shape
    ends = [SkyCoord(*system(200 + side, 100), unit="deg") for side in (-width / 2, width / 2)]
    assert abs(ends[0].separation(ends[1]).arcsec - 2) < 0.04
    assert height == pytest.approx(width, abs=1)


@needs_data
def test_an_asdf_cut_has_the_coordinates_of_its_pixels(
    image: Path, system: Any, tmp_path: Path
) -> None:
    cut(image, array="/roman/data", box=(30, 50, 20, 10)).write(tmp_path / "cut.asdf")
    with asdf.open(tmp_path / "cut.asdf") as file:
        np.testing.assert_array_equal(file["roman"]["data"], VALUES[50:60, 30:50])
        part = file["roman"]["meta"]["wcs"]
        x, y = np.meshgrid(np.arange(20.0), np.arange(10.0))
        np.testing.assert_allclose(part(x, y), system(x + 30, y + 50), rtol=0, atol=1e-11)
        lower = part.bounding_box.intervals[0].lower
        assert lower == system.bounding_box.intervals[0].lower - 30
        assert file["dims"]["data"] == ["axis_0", "axis_1"]
        assert file["attributes"]["file"]["unit"] == "DN"
        assert "cut /roman/data[50:60, 30:50]" in file.get_history_entries()[-1]["description"]
    assert opened(tmp_path / "cut.asdf").attrs["gwcs"].tolist() == ["/roman/meta/wcs"]


@needs_data
def test_a_position_behind_the_array_is_refused(image: Path, system: Any) -> None:
    ra, dec = system(200, 100)
    with pytest.raises(NoOverlapError):
        cut(image, array="/roman/data", sky=(ra, dec + 2), size="9 pix")


@needs_data
def test_positions_of_a_list_are_those_of_single_cuts(
    image: Path, system: Any, tmp_path: Path
) -> None:
    ra, dec = system([200.3, 20.2, 380.0, 100.0], [100.0, 280.4, 30.0, 100.0])
    dec[3] += 2
    sizes = ["9 pix", "9 pix", "2arcsec", "9 pix"]
    table = {"file": [str(image)] * 4, "array": ["roman/data"] * 4, "ra": ra, "dec": dec}
    many = swathe.cut_many(table | {"size": sizes}, tmp_path / "out", format="npy", progress=False)
    assert list(many["status"]) == ["ok", "ok", "ok", "no-overlap"], list(many["reason"])
    for row, size in enumerate(sizes[:3]):
        single = cut(image, array="/roman/data", sky=(ra[row], dec[row]), size=size)
        result = np.load(tmp_path / "out" / many["path"][row])
        np.testing.assert_array_equal(result, single.data)


def test_arrays_without_a_system_are_refused(tmp_path: Path) -> None:
    asdf.AsdfFile({"data": VALUES}).write_to(tmp_path / "a.asdf")
    with pytest.raises(RegionError, match="expected a WCS for sky, found no GWCS"):
        cut(tmp_path / "a.asdf", sky=(1, 2), size="9 pix")
    cut(tmp_path / "a.asdf", box=(1, 2, 3, 4)).write(tmp_path / "cut.asdf")
    with asdf.open(tmp_path / "cut.asdf") as file:
        np.testing.assert_array_equal(file["data"], VALUES[2:6, 1:4])


@needs_data
def test_other_packages_do_not_read_the_file(image: Path) -> None:
    from asdf.extension import Converter, Extension

    from swathe.arrays.readers import gwcs as reader

    runs = []

    class Hostile(Converter):  # type: ignore[misc]
        tags = ("tag:example.org:hostile-1.0.0",)
        types = ("hostile.Type",)

        def to_yaml_tree(self, obj: Any, tag: Any, ctx: Any) -> Any:
            raise NotImplementedError

        def from_yaml_tree(self, node: Any, tag: Any, ctx: Any) -> Any:
            runs.append(node)
            return node

    class Offer(Extension):  # type: ignore[misc]
        extension_uri = "asdf://example.org/hostile-1.0.0"
        converters = (Hostile(),)
        tags = Hostile.tags

    content, _, _ = image.read_bytes().partition(b"#ASDF BLOCK INDEX")
    content = content.replace(b"filter: F106", b"filter: !<tag:example.org:hostile-1.0.0> {a: 1}")
    image.with_name("hostile.asdf").write_bytes(content)
    with asdf.config_context() as config:
        config.add_extension(Offer())
        asdf.open(image.with_name("hostile.asdf"), lazy_tree=False).close()
        assert len(runs) == 1
        with image.with_name("hostile.asdf").open("rb") as file:
            assert b"scales" in reader.locate(file, "/roman/meta/wcs", [5.9], [-72.0])
    assert len(runs) == 1


@needs_data
def test_the_gwcs_of_parts_is_that_of_the_process_which_is_asked_twice(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = opened(image)["/roman/data"]
    calls = []

    def count(function: str, *arguments: Any) -> bytes:
        calls.append(function)
        return run_gwcs(function, *arguments)

    monkeypatch.setattr(gwcs_of_part, "run_gwcs", count)
    monkeypatch.setattr(gwcs_of_part, "_SYSTEMS", {})
    starts = [(0, 0), (7, 3), (1999, 12)]
    parts = [gwcs_of_part.system_of_part(array, "/roman/meta/wcs", start) for start in starts]
    assert calls == ["shift", "shift"]
    for start, part in zip(starts[1:], parts[1:], strict=True):
        assert part == gwcs_of_part._shift(array, "/roman/meta/wcs", start)
    assert not operator.eq(parts[0], parts[1])


def test_numbers_that_move_otherwise_are_seen() -> None:
    x, y = gwcs_of_part.STEPS
    one = {"a": [1.5, 2], "b": "text", "c": True}
    same = {"a": [1.5 + x, 2 - y], "b": "text", "c": True}
    differences = gwcs_of_part._differences
    assert list(differences(one, same, ())) == [(("a", 0), (0, 1)), (("a", 1), (1, -1))]
    for other in ({**one, "a": [1.5, 2 + x / 2]}, {**one, "b": "x"}, {**one, "a": [1.5]}):
        assert [step for _, step in differences(one, other, ())] == [None]
    shared = [1.0]
    system = gwcs_of_part.MovableSystem([shared, shared], (((0, 0), 0, 1), ((1, 0), 0, 1)))
    assert system.at((5, 0)) == [[6.0], [6.0]]


@needs_data
def test_a_prediction_counts_the_gwcs(image: Path, system: Any) -> None:
    ra, dec = (float(each) for each in system(200, 100))
    in_pixels = {"file": [str(image)], "array": ["/roman/data"]}
    box = {"x0": [1], "y0": [1], "width": [9], "height": [9]}
    place = {"ra": [ra], "dec": [dec], "size_deg": [1e-4]}
    predicted = swathe.predict({**in_pixels, **place}, format="npy")
    assert any("GWCS is evaluated" in note for note in predicted.notes)
    low_s, high_s = predicted.interval_s
    assert high_s / low_s > 4
    by_box = {name: swathe.predict({**in_pixels, **box}, format=name) for name in ("npy", "asdf")}
    # Without what other work adds: it differs from one prediction to the next.
    compute_s = {name: each.compute_s for name, each in by_box.items()}
    assert predicted.compute_s > compute_s["npy"]
    assert compute_s["asdf"] > compute_s["npy"] + 0.1  # the GWCS is opened to be moved


def test_a_system_that_shows_all_pixels_at_one_place_is_an_error(tmp_path: Path) -> None:
    """A window of a polynomial that is a point: found by changed bytes."""
    from swathe.arrays.readers import gwcs as reader

    with asdf.open(io.BytesIO(reader.sample()), memmap=False) as file:
        tree = {"data": VALUES, "wcs": file["wcs"]}
        asdf.AsdfFile(tree).write_to(tmp_path / "a.asdf")
    content = (tmp_path / "a.asdf").read_bytes()
    window = content.index(b"window:", content.index(b"outputs: [z]"))
    at = content.index(b"[-1, 1]", window)
    (tmp_path / "a.asdf").write_bytes(content[:at] + b"[ 1, 1]" + content[at + 7 :])
    with pytest.raises(RegionError, match=r"expected pixels with a size on the sky, found \[0\.0"):
        cut(tmp_path / "a.asdf", sky=(30, 10), size="60arcsec")
