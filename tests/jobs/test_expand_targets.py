"""Jobs of places in the sky: found in datasets, cut from every image, stacked, and in colour."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from astropy.wcs import WCS
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.catalog import Catalog, GranuleQuery
from swathe.core.errors import (
    JobError,
    LimitError,
    NoSuchDatasetError,
    RegionError,
    TargetsError,
)
from swathe.datasets.scan import scan
from swathe.datasets.search_many import find_each
from swathe.jobs import Job, Jobs, Limits, Options
from swathe.operations.grid import Grid, align_pixels
from swathe.operations.kinds.rgb import _picture
from swathe.operations.stacking import _by_blocks, _clipped_mean, _Images
from swathe.stores.listing import list_objects
from swathe.workers import Runner
from tests.support.fits_frames import contents, sky_header
from tests.support.job_runner import ended
from tests.support.portals import wait_until

PIXEL_DEG = 1e-4
SHAPE = (300, 400)
# Where the middle of each image lies, and its band.
POINTINGS = [
    (10.0, -1.0, "r"),
    (10.0101, -1.00305, "r"),
    (9.98997, -0.9953, "r"),
    (10.0, -1.0, "g"),
    (10.0003, -1.0002, "i"),
    (200.0, 89.99, "r"),
]
STARS = [(10.0012, -1.0011), (10.0043, -0.9978), (9.9982, -1.0047)]
FWHM = 4.0
FLUX = 50_000.0
LEVEL = 100.0
NOISE = 3.0


def drawn(header: fits.Header, seed: int, stars: list[tuple[float, float]]) -> NDArray[np.float32]:
    """An image with stars, drawn where its WCS has them: some are between pixels."""
    rng = np.random.default_rng(seed)
    pixels = rng.normal(LEVEL, NOISE, SHAPE)
    down, across = np.mgrid[: SHAPE[0], : SHAPE[1]]
    sigma = FWHM / 2.3548
    for ra, dec in stars:
        x, y = WCS(header).all_world2pix(ra, dec, 0)
        light = np.exp(-((across - x) ** 2 + (down - y) ** 2) / 2 / sigma**2)
        pixels += FLUX / (2 * np.pi * sigma**2) * light
    return pixels.astype(np.float32)


def pointing(ra: float, dec: float, turned_deg: float = 0.0) -> fits.Header:
    header = sky_header(ra, dec, PIXEL_DEG)
    turn = np.radians(turned_deg)
    header["PC1_1"] = header["PC2_2"] = float(np.cos(turn))
    header["PC1_2"], header["PC2_1"] = float(-np.sin(turn)), float(np.sin(turn))
    return header


@pytest.fixture
def survey(catalog: Catalog, tmp_path: Path) -> list[Path]:
    """A dataset of images of stars."""
    folder = tmp_path / "survey"
    folder.mkdir()
    paths = []
    for number, (ra, dec, band) in enumerate(POINTINGS):
        header = pointing(ra, dec, turned_deg=7.0 * number)
        header["FILTER"] = band
        header["DATE-OBS"] = f"2005-09-2{number}T00:00:00"
        header["EXPTIME"] = 60.0
        pixels = drawn(header, number, STARS if number < 5 else [])
        path = folder / f"f{number}.fits"
        path.write_bytes(contents(pixels, "fit", header))
        paths.append(path)
    catalog.add_store("disk", str(folder))
    catalog.add_dataset("sky", "disk", "", None)
    scan(catalog, "sky", list_objects(catalog.store("disk"), "", None))
    return paths


def places(*more: str) -> dict[str, list[Any]]:
    """Two stars, a place that no image shows, and one at the pole."""
    table: dict[str, list[Any]] = {
        "id": ["a", "b", "nowhere", "pole"],
        "ra": [STARS[0][0], 9.975, 123.0, 20.0],
        "dec": [STARS[0][1], -0.992, 45.0, 89.995],
        "size_deg": [0.003] * 4,
    }
    for column in more:
        table[column] = [""] * 4
    return table


def sources(found: Jobs, job: Job) -> list[tuple[str, str, str]]:
    return [(row.id, row.source.rpartition("/")[2], row.status) for row in found.rows(job.id)]


# ---- Finding


@pytest.mark.usefixtures("survey")
def test_places_become_a_row_for_every_image(
    jobs: Jobs,
    runner: Runner,
    tmp_path: Path,
) -> None:
    job = ended(jobs, jobs.submit(places(), Options(), "me"))
    assert sources(jobs, job) == [
        ("a", "disk:f0.fits", "ok"),
        ("a-2", "disk:f1.fits", "ok"),
        ("a-3", "disk:f2.fits", "ok"),
        ("a-4", "disk:f3.fits", "ok"),
        ("a-5", "disk:f4.fits", "ok"),
        ("b", "disk:f2.fits", "ok"),
        ("nowhere", "", "no-overlap"),
        ("pole", "disk:f5.fits", "ok"),
    ]
    nowhere = jobs.rows(job.id, status="no-overlap")[0]
    assert "no image" in nowhere.reason
    table = swathe.find((STARS[0][0], STARS[0][1]))
    table["size_deg"] = 0.003
    manifest = swathe.cut_many(table, tmp_path / "many", progress=False)
    expected = [row["sha256"] for row in manifest]
    assert [row.sha256 for row in jobs.rows(job.id, limit=5)] == expected


@pytest.mark.usefixtures("survey")
def test_a_numbered_id_is_not_that_of_another_target(jobs: Jobs, runner: Runner) -> None:
    ra, dec, _ = POINTINGS[3]
    twice = {"id": ["a", "a", "a-2"], "ra": [ra, ra, ra + 0.002], "dec": [dec] * 3}
    table = {**twice, "size_deg": [0.002] * 3}
    job = ended(jobs, jobs.submit(table, Options(format="rgb", bands=("i", "g", "r")), "me"))
    made = [row for row in jobs.rows(job.id) if not row.source]
    assert [(row.id, row.status) for row in made] == [("a", "ok"), ("a-2", "ok"), ("a-2-2", "ok")]
    every = ended(jobs, jobs.submit(table, Options(bands=("g",)), "me"))
    assert [row.id for row in jobs.rows(every.id)] == ["a", "a-2", "a-2-2"]


@pytest.mark.usefixtures("survey")
@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        ({"bands": ["g", "i"]}, {}, ["f3", "f4"]),
        ({"time": ["2005-09-21", "2005-09-22T12:00:00"]}, {}, ["f1", "f2"]),
        ({"dataset": "sky", "bands": ["r"]}, {}, ["f0", "f1", "f2"]),
        ({}, {"band": "g"}, ["f3"]),
        ({}, {"dataset": "sky", "band": "i"}, ["f4"]),
        ({"bands": ["g"]}, {"band": "i"}, []),
    ],
)
def test_filters(
    jobs: Jobs,
    options: dict[str, Any],
    columns: dict[str, str],
    expected: list[str],
) -> None:
    table = {name: values[:1] for name, values in places().items()}
    table |= {name: [value] for name, value in columns.items()}
    job = jobs.submit(table, Options.from_mapping(options), "me")
    names = [f"disk:{name}.fits" for name in expected] or [""]
    assert [source for _, source, _ in sources(jobs, job)] == names


@pytest.mark.usefixtures("survey")
def test_unknown_datasets(jobs: Jobs) -> None:
    with pytest.raises(NoSuchDatasetError, match="moon"):
        jobs.submit(places(), Options(dataset="moon"), "me")
    with pytest.raises(NoSuchDatasetError, match="mars"):
        jobs.estimate(places() | {"dataset": ["mars"] * 4}, Options())


def test_user_is_told_that_positions_need_a_size(jobs: Jobs) -> None:
    with pytest.raises(TargetsError, match=r"sky with a size \(ra, .*; found: ra, dec") as raised:
        jobs.submit({"ra": [1.0], "dec": [2.0]}, Options(), "me")
    assert "--file" not in str(raised.value)


@pytest.mark.parametrize("given", [{"bands": "r"}, {"dataset": "sky"}, {"time": [1, 2]}])
def test_options_that_choose_images_go_with_no_file(jobs: Jobs, given: dict[str, Any]) -> None:
    table = {"file": ["a"], "ra": [1.0], "dec": [2.0], "size_deg": [0.1]}
    with pytest.raises(JobError, match=r"without a file|expected none for .* listed files"):
        jobs.submit(table, Options.from_mapping(given), "me")


def test_estimate(jobs: Jobs, survey: list[Path], tmp_path: Path) -> None:
    table = places()
    table["ra"][1] = float("nan")
    estimate = jobs.estimate(table, Options())
    assert (estimate.targets, estimate.rows, estimate.unmatched) == (4, 8, 1)
    assert estimate.matches == [("a", 5), ("b", 0), ("nowhere", 0), ("pole", 1)]
    assert [name for name, _ in estimate.faults] == ["b", "nowhere"]
    assert "ra is missing" in estimate.faults[0][1]
    assert estimate.prediction is not None
    assert estimate.prediction.bytes > 6 * 30 * 30 * 4
    swathe.cut(survey[0], box=(5, 5, 30, 30)).write(tmp_path / "cut.fits")
    assert estimate.bytes_out == 6 * (tmp_path / "cut.fits").stat().st_size
    nothing = jobs.estimate({name: values[2:3] for name, values in table.items()}, Options())
    assert (nothing.prediction, nothing.bytes_out, nothing.unmatched) == (None, 0, 1)


@pytest.mark.usefixtures("survey")
def test_too_many_rows_of_few_targets(catalog: Catalog, tmp_path: Path) -> None:
    with (
        Jobs(catalog, tmp_path / "r", limits=Limits(rows_per_job=5)) as few,
        pytest.raises(LimitError, match="5 rows, not 8"),
    ):
        few.submit(places(), Options(), "me")


@pytest.mark.usefixtures("survey")
def test_too_many_images_near_few_targets(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.jobs.sky_positions.IMAGES_PER_ROW", 0)
    with pytest.raises(LimitError, match=r"may have 0 images near them, not [1-9][0-9]?; divide"):
        jobs.submit(places(), Options(), "me")


@pytest.mark.usefixtures("survey")
def test_many_places_at_once_are_found_as_one_by_one(catalog: Catalog) -> None:
    rng = np.random.default_rng(5)
    count = 150
    ra = np.concatenate([rng.uniform(9.96, 10.04, count), rng.uniform(0, 360, 30)])
    dec = np.concatenate([rng.uniform(-1.03, -0.97, count), rng.uniform(89.95, 90, 30)])
    found = find_each(catalog, ra, dec, GranuleQuery(), lambda _pairs: None)
    shown = 0
    for place, numbers in enumerate(found.of):
        expected = swathe.find((float(ra[place]), float(dec[place])), catalog=catalog)
        assert [found.matches[number].file for number in numbers] == expected["file"].tolist()
        shown += len(numbers)
    assert shown > count


def test_a_sky_image_read_later_is_placed_when_it_is_cut(
    jobs: Jobs,
    runner: Runner,
    survey: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    table = {
        "file": [str(path) for path in survey] + [str(tmp_path / "absent.fits")],
        "ra": [STARS[0][0]] * 7,
        "dec": [STARS[0][1]] * 7,
        "size_deg": [0.003] * 7,
    }
    at_once = ended(jobs, jobs.submit(table, Options(), "me"))
    monkeypatch.setattr("swathe.jobs.listed_files.MOST_IMAGES", 2)
    waiting = jobs.submit(table, Options(), "me", start=False)
    boxes = [row.box for row in jobs.rows(waiting.id)]
    assert [box is None for box in boxes] == [False, False, *[True] * 5]
    later = ended(jobs, jobs.start(waiting.id))
    assert jobs.rows(later.id) == jobs.rows(at_once.id)
    assert [row.status for row in jobs.rows(later.id)] == [*["ok"] * 5, "no-overlap", "missing"]
    # What was missing may be there the next time.
    (tmp_path / "absent.fits").write_bytes(survey[0].read_bytes())
    for job in (at_once, later):
        assert ended(jobs, jobs.resume(job.id)).counts["ok"] == 6


# ---- Stacking


def measured(pixels: NDArray[Any], x: float, y: float) -> tuple[float, float, float]:
    """Flux above the sky within a circle, and its centroid."""
    down, across = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    near = np.hypot(across - x, down - y) < 2.5 * FWHM
    far = np.hypot(across - x, down - y) > 3.5 * FWHM
    light = np.where(near, pixels - np.nanmedian(pixels[far]), 0.0).astype(float)
    flux = float(light.sum())
    return flux, float((light * across).sum() / flux), float((light * down).sum() / flux)


def stacked(found: Jobs, options: Options, table: dict[str, Any]) -> fits.HDUList:
    job = ended(found, found.submit(table, options, "me"))
    assert job.phase == "COMPLETED", job
    (row,) = [row for row in found.rows(job.id) if row.name]
    assert (row.number, row.name) == (job.rows - 1, "stack.fits")
    # That is done after the end was told.
    wait_until(lambda: not (found.folder(job.id) / ".inputs").exists())
    return fits.open(found.result(job.id, row.name).file, checksum=True)


@pytest.mark.more
@pytest.mark.usefixtures("survey")
@pytest.mark.parametrize("way", ["mean", "median", "sigma-clipped", "weighted"])
def test_stars_stay_where_they_are_and_keep_their_flux(
    jobs: Jobs,
    runner: Runner,
    way: Any,
) -> None:
    ra, dec = STARS[0]
    options = Options(operation="stack", own={"stack": way}, bands=("r",))
    with stacked(jobs, options, {"ra": [ra], "dec": [dec], "size_deg": [0.006]}) as hdus:
        hdus.verify("exception")
        image, count = hdus[0], hdus["COUNT"]
        assert image.data.shape == count.data.shape == (60, 60)
        assert image.header["NCOMBINE"] == 3
        assert int(count.data.max()) == 3
        x, y = WCS(image.header).all_world2pix(ra, dec, 0)
        assert (float(x), float(y)) == pytest.approx((29.5, 29.5), abs=1e-6)
        flux, found_x, found_y = measured(image.data, float(x), float(y))
    assert flux == pytest.approx(FLUX, rel=0.01)
    assert (found_x, found_y) == pytest.approx((float(x), float(y)), abs=0.02)


@pytest.mark.usefixtures("survey")
def test_noise_goes_down(jobs: Jobs, runner: Runner) -> None:
    table = {"ra": [9.9962], "dec": [-1.0012], "size_deg": [0.002]}
    with stacked(jobs, Options(operation="stack"), table) as hdus:
        five = float(np.std(hdus[0].data))
        assert int(hdus["COUNT"].data.min()) == 5
    assert five < 0.6 * NOISE


def test_different_targets_are_stacked_at_their_own_places(
    jobs: Jobs,
    runner: Runner,
    survey: list[Path],
) -> None:
    table = {
        "id": ["one", "two", "three"],
        "file": [str(survey[0]), str(survey[1]), str(survey[2])],
        "ra": [ra for ra, _ in STARS],
        "dec": [dec for _, dec in STARS],
        "size_deg": [0.004] * 3,
    }
    with stacked(jobs, Options(operation="stack"), table) as hdus:
        assert hdus[0].header["CTYPE1"] == "XOFFSET"
        flux, x, y = measured(hdus[0].data, 19.5, 19.5)
    assert flux == pytest.approx(FLUX, rel=0.01)
    assert (x, y) == pytest.approx((19.5, 19.5), abs=0.02)


@pytest.mark.usefixtures("survey")
def test_groups_have_a_result_each(jobs: Jobs, runner: Runner) -> None:
    table = {
        "ra": [STARS[0][0], STARS[1][0], STARS[2][0], 123.0],
        "dec": [STARS[0][1], STARS[1][1], STARS[2][1], 45.0],
        "size_deg": [0.003] * 4,
        "group": ["x", "y", "x", "void"],
    }
    job = ended(jobs, jobs.submit(table, Options(operation="stack"), "me"))
    rows = jobs.rows(job.id)
    named = {row.id: row for row in rows[-3:]}
    assert [row.name for row in rows if row.name] == ["x.fits", "y.fits"]
    assert named["void"].status == "no-overlap"
    assert fits.getheader(jobs.result(job.id, "x.fits").file)["NCOMBINE"] == 10
    assert fits.getheader(jobs.result(job.id, "y.fits").file)["NCOMBINE"] == 5
    with fits.open(io.BytesIO(b"".join(jobs.archive(job.id, "fits")))) as hdus:
        hdus.verify("exception")
        assert [hdu.name for hdu in hdus] == ["PRIMARY", "x", "COUNT", "y", "COUNT"]
    manifest = Table.read(b"".join(jobs.manifest(job.id)).decode(), format="ascii.ecsv")
    assert len(manifest) == job.rows


def test_what_is_missing_is_left_out_and_stacked_later(
    jobs: Jobs,
    runner: Runner,
    survey: list[Path],
) -> None:
    kept = survey[1].read_bytes()
    table = {
        "file": [str(path) for path in survey[:3]],
        "ra": [STARS[0][0]] * 3,
        "dec": [STARS[0][1]] * 3,
        "size_deg": [0.003] * 3,
    }
    survey[1].unlink()
    job = ended(jobs, jobs.submit(table, Options(operation="stack"), "me"))
    assert [row.status for row in jobs.rows(job.id)] == ["ok", "missing", "ok", "ok"]
    assert fits.getheader(jobs.result(job.id, "stack.fits").file)["NCOMBINE"] == 2
    survey[1].write_bytes(kept)
    job = ended(jobs, jobs.resume(job.id))
    assert [row.status for row in jobs.rows(job.id)] == ["ok"] * 4
    found = jobs.result(job.id, "stack.fits")
    assert fits.getheader(found.file)["NCOMBINE"] == 3
    assert job.bytes == found.size


def test_images_that_lack_the_planes_of_a_stack_are_told_and_rows_say_which_have_them(
    jobs: Jobs,
    runner: Runner,
    survey: list[Path],
) -> None:
    header = fits.getheader(survey[1])
    first = fits.getdata(survey[1])
    survey[1].write_bytes(contents(np.array([first, first + 900]), "fit", header))
    table: dict[str, Any] = {
        "file": [str(path) for path in survey[:3]],
        "ra": [STARS[0][0]] * 3,
        "dec": [STARS[0][1]] * 3,
        "size_deg": [0.003] * 3,
    }
    # As in cut_many: an image that is flat has none of the planes that were asked for.
    job = ended(jobs, jobs.submit(table, Options(operation="stack", planes=(0, 1)), "me"))
    rows = jobs.rows(job.id)
    assert [row.status for row in rows] == ["error", "ok", "error", "ok"]
    for number in (0, 2):
        assert f"f{number}.fits, HDU 0: planes 0:1 of NAXIS3" in rows[number].reason
    assert fits.getheader(jobs.result(job.id, "stack.fits").file)["NCOMBINE"] == 1
    table["planes"] = ["", "0:1", ""]
    with stacked(jobs, Options(operation="stack"), table) as hdus:
        assert hdus[0].header["NCOMBINE"] == 3
        assert float(np.median(hdus[0].data)) < 1.2 * LEVEL


@pytest.mark.parametrize(
    ("options", "table"),
    [
        (Options(operation="stack"), {"file": ["a"], "x": [1], "y": [1]}),
        (Options(format="rgb", bands=("i", "r", "g")), {"file": ["a"], "x0": [1], "y0": [1]}),
    ],
)
def test_only_places_in_the_sky_are_put_together(
    jobs: Jobs,
    options: Options,
    table: dict[str, Any],
) -> None:
    with pytest.raises(JobError, match="in the sky"):
        jobs.submit(table | {"height": [3], "width": [3]}, options, "me")


def image(data: NDArray[Any], header: fits.Header, path: Path) -> Any:
    path.write_bytes(contents(data, "fit", header))
    return swathe.open(path).image().cut((0, 0, data.shape[1], data.shape[0]))


def test_pixels_on_the_grid_are_left_as_they_are(tmp_path: Path) -> None:
    data = np.random.default_rng(1).normal(5, 1, (41, 41)).astype(np.float32)
    data[3, 4] = np.nan
    header = sky_header(33.0, 21.0, PIXEL_DEG)
    header["CRPIX1"] = header["CRPIX2"] = 21.0
    found = align_pixels(image(data, header, tmp_path / "a.fits"), Grid(33.0, 21.0, 41, PIXEL_DEG))
    around = np.zeros(data.shape, bool)
    around[1:6, 2:7] = True
    known = np.isfinite(found)
    assert not known[3, 4]
    assert known[~around & (np.indices(data.shape).min(axis=0) > 0)].mean() > 0.95
    assert np.abs(found - data)[known].max() < 1e-3


def test_flux_is_kept_where_pixels_are_larger(tmp_path: Path) -> None:
    header = sky_header(33.0, 21.0, 2 * PIXEL_DEG)
    flat = np.full((60, 60), 8.0, np.float32)
    header["CRPIX1"] = header["CRPIX2"] = 30.5
    found = align_pixels(image(flat, header, tmp_path / "a.fits"), Grid(33.0, 21.0, 20, PIXEL_DEG))
    assert found == pytest.approx(np.full((20, 20), 2.0), rel=1e-5)


def test_cubes_cannot_be_aligned(tmp_path: Path) -> None:
    cube = image(np.zeros((4, 9, 9), np.float32), sky_header(), tmp_path / "a.fits")
    with pytest.raises(RegionError, match="more than one plane"):
        align_pixels(cube, Grid(10.0, -1.0, 5, PIXEL_DEG))


def naive_clip(values: list[float]) -> tuple[float, int]:
    """One pixel, plainly."""
    kept = [value for value in values if np.isfinite(value)]
    for _ in range(5):
        middle, reach = np.median(kept), 3 * np.std(kept)
        inside = [value for value in kept if abs(value - middle) <= reach]
        if len(inside) == len(kept):
            break
        kept = inside
    return float(np.mean(kept)), len(kept)


def test_clipping_drops_what_lies_far_out() -> None:
    rng = np.random.default_rng(2)
    block = rng.normal(10, 1, (50, 40))
    block[rng.random(block.shape) < 0.03] = 500.0
    block[rng.random(block.shape) < 0.1] = np.nan
    mean, count = _clipped_mean(block)
    expected = [naive_clip(row) for row in block.tolist()]
    assert mean == pytest.approx([value for value, _ in expected])
    assert count.tolist() == [kept for _, kept in expected]


def test_images_are_put_together_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.operations.stacking.BLOCK_BYTES", 8 * 100 * 7)
    monkeypatch.setattr("swathe.operations.stacking.IMAGES_PER_COPY", 9)
    rng = np.random.default_rng(4)
    cube = rng.normal(0, 1, (100, 11, 11)).astype(np.float32)
    paths = [tmp_path / f"{number}.npy" for number in range(len(cube))]
    for path, pixels in zip(paths, cube, strict=True):
        np.save(path, pixels)
    images = _Images(paths, lambda: False)
    sizes: list[int] = []

    def middle(block: NDArray[np.float64]) -> Any:
        sizes.append(block.size)
        return np.median(block, axis=1), np.full(len(block), 100, np.int32)

    found, _ = _by_blocks(images, Grid(0.0, 0.0, 11, 1.0), tmp_path / "r.fits", middle)
    assert max(sizes) == 700
    assert found == pytest.approx(np.median(cube, axis=0))
    assert not list(tmp_path.glob("*.cube"))


# ---- Colour


@pytest.mark.usefixtures("survey")
def test_three_bands_become_a_picture(jobs: Jobs, runner: Runner) -> None:
    options = Options(format="rgb", bands=("i", "r", "g"))
    table = places()
    job = ended(jobs, jobs.submit(table, options, "me"))
    rows = jobs.rows(job.id)
    assert [row.name for row in rows if row.name] == ["a.png"]
    assert [row.source.rpartition("/")[2] for row in rows[:3]] == [
        "disk:f4.fits",
        "disk:f0.fits",
        "disk:f3.fits",
    ]
    assert [row.status for row in rows[3:6]] == ["no-overlap"] * 3
    assert "no image of band" in rows[3].reason
    found = jobs.result(job.id, "a.png")
    assert found.media_type == "image/png"
    picture = np.asarray(Image.open(found.file))
    assert picture.shape == (30, 30, 3)
    # The star in the middle is white, the sky dark.
    assert picture[14:16, 14:16].min() > 150
    assert np.median(picture) < 40


def test_a_picture_shows_bands_beside_one_that_is_blank(tmp_path: Path) -> None:
    paths = []
    light = np.zeros((20, 20), np.float32)
    light[10, 10] = 100.0
    light += np.random.default_rng(1).normal(0, 1, light.shape).astype(np.float32)
    for number, pixels in enumerate((light, np.full_like(light, np.nan), light)):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], pixels)
    _picture(tmp_path / "a.png", paths)
    picture = np.asarray(Image.open(tmp_path / "a.png"))
    red, green, blue = picture[9, 10].tolist()
    assert min(red, blue) > 150
    assert green == 0


def test_a_target_keeps_its_name_in_colour(
    jobs: Jobs,
    runner: Runner,
    survey: list[Path],
) -> None:
    assert survey
    table = {name: [values[0]] * 3 for name, values in places().items()} | {"id": ["s"] * 3}
    job = ended(jobs, jobs.submit(table, Options(format="rgb", bands=("r", "r", "g")), "me"))
    assert sorted(row.name for row in jobs.rows(job.id) if row.name) == [
        "s-2.png",
        "s-3.png",
        "s.png",
    ]
