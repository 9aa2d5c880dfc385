"""Open files: HDUs, slices as NumPy's, and files that change."""

from __future__ import annotations

import copy
import gzip
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import swathe
from swathe.core import errors
from swathe.files import recent_files
from tests.conftest import BITPIX, assert_same, fits_bytes, padded
from tests.support.property_examples import examples

Index = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]


def ramp(*shape: int, kind: str = ">i2") -> Any:
    return np.arange(np.prod(shape), dtype=kind).reshape(shape)


def multi_extension(new_path: Callable[[str], Path], suffix: str = ".fits") -> Path:
    """Primary without data, SCI 1, a table, SCI 2, an empty image and a compressed one."""
    path = new_path(suffix)
    table = fits.BinTableHDU.from_columns([fits.Column("A", "J", array=[1, 2])], name="CAT")
    hdus = fits.HDUList([
        fits.PrimaryHDU(),
        fits.ImageHDU(ramp(5, 6), name="SCI", ver=1),
        table,
        fits.ImageHDU(ramp(7, 8), name="SCI", ver=2),
        fits.ImageHDU(name="NONE"),
        fits.CompImageHDU(ramp(20, 30, kind="i4"), name="MASK", tile_shape=(10, 30)),
    ])  # fmt: skip
    hdus.writeto(path)
    return path


@pytest.fixture(scope="module")
def several(new_path: Callable[[str], Path]) -> Path:
    return multi_extension(new_path)


# ---- Slices


@given(
    data=st.data(),
    shape=array_shapes(min_dims=1, max_dims=4, max_side=7),
    bitpix=st.sampled_from(list(BITPIX)),
)
@settings(max_examples=examples(100))
def test_section_slices_as_numpy(
    new_path: Callable[[str], Path], data: st.DataObject, shape: tuple[int, ...], bitpix: int
) -> None:
    whole = (np.arange(np.prod(shape)) % 251).reshape(shape).astype(BITPIX[bitpix])
    path = new_path(".fits")
    path.write_bytes(fits_bytes(whole))
    section = swathe.open(path)[0].section
    for _ in range(3):
        index: Index = data.draw(basic_indices(shape, allow_ellipsis=True))
        assert_same(section[index], whole[index])


@pytest.mark.parametrize("suffix", [".fits", ".fits.gz"])
def test_section_of_scaled_pixels_is_physical(suffix: str, new_path: Callable[[str], Path]) -> None:
    path = new_path(suffix)
    content = fits_bytes(ramp(9, 11), [("BSCALE", 0.5), ("BZERO", 3), ("BLANK", 7)])
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    expected = fits.getdata(path)
    section = swathe.open(path)[0].section
    for index in (..., 3, -1, (slice(None, None, -2), slice(8, 2, -3)), (0, 7), slice(4, 4)):
        assert_same(section[index], expected[index])


@pytest.mark.parametrize("index", [5, -6, (0, 6), (0, -7), (0, 0, 0), (..., ...), (0, ..., 0, 0)])
def test_section_refuses_what_is_out_of_range(index: Any, several: Path) -> None:
    with pytest.raises(errors.RegionError):
        swathe.open(several)[1].section[index]


@pytest.mark.parametrize("index", ["a", 1.5, None, [1, 2], (0, "b")])
def test_section_refuses_what_is_no_index(index: Any, several: Path) -> None:
    with pytest.raises(TypeError):
        swathe.open(several)[1].section[index]


def test_section_refuses_a_step_of_zero(several: Path) -> None:
    with pytest.raises(ValueError, match="zero"):
        swathe.open(several)[1].section[::0]


def test_section_takes_numpy_integers(several: Path) -> None:
    section = swathe.open(several)[1].section
    assert section[np.int64(2), np.uint8(3)] == ramp(5, 6)[2, 3]  # type: ignore[index]


# ---- HDUs


def test_hdus_say_what_there_is(several: Path) -> None:
    file = swathe.open(several)
    assert len(file) == 6
    assert [hdu.index for hdu in file.hdus] == list(range(6))
    assert [hdu.name for hdu in file.hdus][1:] == ["SCI", "CAT", "SCI", "NONE", "MASK"]
    kinds = ["empty", "image", "table", "image", "empty", "compressed-image"]
    assert [hdu.kind for hdu in file.hdus] == kinds
    assert [hdu.shape for hdu in file.hdus if "image" in hdu.kind] == [(5, 6), (7, 8), (20, 30)]
    assert (file.hdus[5].codec, file.hdus[5].tile_shape) == ("RICE_1", (10, 30))
    assert file.hdus[3].version == 2
    assert isinstance(file.hdus[2], swathe.HduInfo)
    assert repr(file.hdus[5]).startswith("HduInfo(index=5, name='MASK', version=1, kind='compr")
    assert file.hdus == swathe.open(several).hdus
    assert file.compression is None
    assert file.size == several.stat().st_size
    assert str(file.size) in file.version
    assert file.url == str(several)
    assert str(several) in repr(file)
    assert "HDU 5" in repr(file["MASK"])
    assert [image.index for image in file.images] == [1, 3, 5]
    assert [hdu.index for hdu in file] == list(range(len(file)))


def descriptors(path: Path) -> int:
    names = (os.path.realpath(each) for each in Path("/proc/self/fd").iterdir())
    return sum(name == str(path) for name in names)


def test_a_file_is_closed_by_with_and_by_close(several: Path) -> None:
    with swathe.open(several) as file:
        image, cutout = file["SCI"], file["SCI"].cut((0, 0, 2, 2))
        other = swathe.open(several)
        assert descriptors(several) >= 1
    for use in (lambda: image[0, 0], lambda: file["SCI"], lambda: file.header(1)):
        with pytest.raises(ValueError, match="expected an open file"):
            use()
    assert (file.url, image.url, cutout.url) == (str(several),) * 3
    assert file.version == image.version == cutout.version == other.version
    assert cutout.data.shape == (2, 2)
    assert other["SCI"][0, 0] == cutout.data[0, 0]
    other.close()
    other.close()
    assert descriptors(several) == 0
    assert swathe.open(several)["SCI"].shape == (5, 6)


def test_tables_are_refused_at_once(several: Path) -> None:
    with pytest.raises(errors.NotAnImageError, match="a table"):
        swathe.open(several)["CAT"]


def test_hdus_by_number_name_and_version(several: Path) -> None:
    with swathe.open(several) as file:
        assert file["SCI"].index == 1
        assert file["sci"].index == 1
        assert file["SCI", 2].index == 3
        assert file[3].shape == (7, 8)
        assert file[-1].index == 5
        assert file.image().index == 1
        assert file.image("MASK").index == 5
        assert_same(file["SCI", 2].section[...], ramp(7, 8))
        assert_same(file["MASK"].section[5:15, 2:4], ramp(20, 30, kind="i4")[5:15, 2:4])


@pytest.mark.parametrize("hdu", [6, 99, -7, "NOPE", ("SCI", 3), ("NOPE", 1), ""])
def test_no_such_hdu(hdu: Any, several: Path) -> None:
    with pytest.raises(errors.NoSuchHduError) as caught:
        swathe.open(several)[hdu]
    assert str(several) in str(caught.value)
    if hdu not in (-7,):
        with pytest.raises(KeyError):
            swathe.cut(several, box=(0, 0, 1, 1), hdu=hdu)


@pytest.mark.parametrize("hdu", [0, 2, -2, "CAT", "NONE"])
def test_hdus_without_an_image_are_refused_and_those_with_one_named(
    hdu: Any, several: Path
) -> None:
    images = r"images are in HDUs 1 \(SCI\), 3 \(SCI\), 5 \(MASK\)$"
    with pytest.raises(errors.NotAnImageError, match=images) as caught:
        swathe.open(several)[hdu]
    holding = "a table" if hdu in (2, "CAT") else "no data"
    assert f"{several}, HDU " in str(caught.value)
    assert f": expected an image, found {holding}; " in str(caught.value)
    with pytest.raises(errors.NotAnImageError, match=images):
        swathe.cut(several, box=(0, 0, 1, 1), hdu=hdu)


def test_the_sequence_of_a_file_is_that_of_its_hdus(several: Path) -> None:
    file = swathe.open(several)
    assert len(file) == len(list(file)) == len(file.hdus) == 6
    assert [hdu.index for hdu in file] == list(range(6))
    for image in file.images:
        assert list(file)[image.index].shape == file[image.index].shape


def test_headers_of_all_hdus_can_be_read(several: Path) -> None:
    file = swathe.open(several)
    with fits.open(several, disable_image_compression=False) as hdus:
        for number in (0, 1, 2, 3):
            assert file.header(number) == hdus[number].header
    assert file.header("CAT")["TTYPE1"] == "A"
    assert "SIMPLE" in file.header()


def test_an_image_is_an_array(several: Path) -> None:
    image = swathe.open(several)["MASK"]
    expected = ramp(20, 30, kind="i4")
    assert_same(image.data, expected)
    assert_same(image[0:3, 0:3], expected[0:3, 0:3])
    assert image[3, 4] == expected[3, 4]
    assert (image.dtype, image.ndim, len(image)) == (expected.dtype, 2, 20)
    assert_same(np.asarray(image), expected)
    assert np.asarray(image, float).dtype == float
    assert np.mean(image) == expected.mean()
    with pytest.raises(ValueError, match="copy"):
        np.array(image, copy=False)


def test_dask_reads_an_image_by_its_chunks(several: Path) -> None:
    import dask.array as da

    chunks = da.from_array(swathe.open(several)["SCI", 2], chunks=3)  # type: ignore[no-untyped-call]
    assert_same(chunks.sum(axis=0).compute(), ramp(7, 8).sum(axis=0))


# ---- Copies


def test_files_and_images_are_pickled_by_path_and_version(several: Path) -> None:
    file = pickle.loads(pickle.dumps(swathe.open(several)))
    assert (file.url, file.version, len(file)) == (str(several), swathe.open(several).version, 6)
    image = pickle.loads(pickle.dumps(file["SCI", 2]))
    assert (image.index, image.url) == (3, str(several))
    assert_same(image.data, ramp(7, 8))
    assert len(pickle.dumps(image)) < 1000
    assert copy.copy(file).url == copy.deepcopy(image).url == str(several)


def test_a_pickled_file_that_changed_is_an_error(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(ramp(5, 6)))
    pickled = [pickle.dumps(of) for of in (swathe.open(path), swathe.open(path)[0])]
    path.write_bytes(fits_bytes(ramp(50, 60)))
    for content in pickled:
        with pytest.raises(errors.ChangedError, match=r"expected the version .*, found "):
            pickle.loads(content)


def corner(image: swathe.Image) -> swathe.Cutout:
    """Cut where the image is sent to."""
    return image.cut((0, 0, 3, 2))


@pytest.mark.more
def test_images_go_to_other_processes_and_cutouts_come_back(several: Path) -> None:
    images = swathe.open(several).images
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        cutouts = pool.map(corner, images)
    for image, cutout in zip(images, cutouts, strict=True):
        assert cutout.to_bytes() == corner(image).to_bytes()


def test_a_file_without_an_image(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    fits.PrimaryHDU().writeto(path)
    assert len(swathe.open(path)) == 1
    assert swathe.open(path).images == []
    with pytest.raises(errors.NoSuchHduError, match="image"):
        swathe.cut(path, box=(0, 0, 1, 1))


def test_one_axis_has_sections_but_no_boxes(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(ramp(50)))
    image = swathe.open(path)[0]
    assert_same(image.section[3:9:2], ramp(50)[3:9:2])
    with pytest.raises(errors.RegionError, match="plane"):
        image.cut((0, 0, 3, 1))


def test_planes_need_a_cube(several: Path) -> None:
    with pytest.raises(
        errors.RegionError, match=r"planes 0 of NAXIS3 are not within .* \[\d+, \d+\]"
    ):
        swathe.cut(several, box=(0, 0, 3, 1), planes=0)


def test_header_of_a_compressed_image_is_that_of_an_image(several: Path) -> None:
    header = swathe.open(several)["MASK"].header
    assert header["XTENSION"] == "IMAGE"
    assert (header["NAXIS1"], header["NAXIS2"], header["BITPIX"]) == (30, 20, 32)
    assert not [keyword for keyword in header if keyword.startswith(("Z", "TFORM", "TTYPE"))]


# ---- Paths


def test_a_file_open_for_reading_is_its_path(several: Path, tmp_path: Path) -> None:
    expected = ramp(5, 6)[:2, :2]
    with several.open("rb") as file:
        file.seek(100)
        assert_same(swathe.cut(file, box=(0, 0, 2, 2)).data, expected)
        assert file.tell() == 100
    zipped = tmp_path / "x.fits.gz"
    zipped.write_bytes(gzip.compress(several.read_bytes()))
    with gzip.open(zipped) as unzipped:
        assert_same(swathe.cut(unzipped, box=(0, 0, 2, 2)).data, expected)  # type: ignore[arg-type]


def test_what_is_no_path_is_refused_in_plain_words(several: Path, tmp_path: Path) -> None:
    content = several.read_bytes()
    replaced = tmp_path / "x.fits"
    replaced.write_bytes(content)
    with (
        fits.open(several) as hdus,
        replaced.open("rb") as gone,
        (tmp_path / "new.fits").open("wb") as writing,
    ):
        replaced.unlink()
        sources = [content, bytearray(content), memoryview(content), BytesIO(content), hdus]
        for source in [*sources, hdus[1], gone, writing, 3, None, object()]:
            for use in (swathe.open, lambda source: swathe.cut(source, box=(0, 0, 1, 1))):
                with pytest.raises(TypeError, match=r"expected a path or URL, found ") as caught:
                    use(source)
                assert len(str(caught.value)) < 300


def test_paths_of_any_kind(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(several.parent)
    expected = ramp(5, 6)[:2, :2]
    for path in (several, str(several), os.fsencode(several), several.name, several.as_uri()):
        assert_same(swathe.cut(path, box=(0, 0, 2, 2)).data, expected)


def test_names_of_any_characters(several: Path, tmp_path: Path) -> None:
    for name in ("a b.fits", "größe[1:2].fits", "50%25.fits", "#?&=.fits", "x.fits.gz", "noname"):
        (tmp_path / name).write_bytes(several.read_bytes())
        cut = swathe.cut(tmp_path / name, box=(0, 0, 2, 2))
        assert_same(cut.data, ramp(5, 6)[:2, :2])
        assert cut.header["NAXIS1"] == 2


def test_relative_paths_follow_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.fits").write_bytes(fits_bytes(np.full((3, 4), value, "u1")))
        monkeypatch.chdir(tmp_path / name)
        assert swathe.cut("x.fits", box=(0, 0, 1, 1)).data == value


@pytest.mark.parametrize("suffix", [".fits", ".fits.gz"])
def test_a_replaced_file_is_read_anew(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    for value in range(4):
        content = fits_bytes(np.full((30, 40), value, ">i2"))
        new = tmp_path / f"new{value}"
        new.write_bytes(gzip.compress(content, mtime=0) if suffix.endswith("gz") else content)
        os.utime(new, ns=(10**18, 10**18 + value))
        new.replace(path)
        cut = swathe.cut(path, box=(3, 3, 2, 2))
        assert (cut.data == value).all()


def test_a_file_that_changed_under_an_open_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.fits"
    path.write_bytes(fits_bytes(np.zeros((300, 400), ">i2")))
    image = swathe.open(path)[0]
    path.unlink()
    path.write_bytes(fits_bytes(np.ones((30, 40), ">i2")))
    try:  # what was opened, or an error; never a mixture
        assert_same(image.section[299, :], np.zeros(400, ">i2"))
    except errors.SourceError as error:
        assert "changed" in str(error)


def test_recent_files_are_bounded(new_path: Callable[[str], Path]) -> None:
    for number in range(recent_files.MOST_FILES + 5):
        path = new_path(".fits")
        path.write_bytes(fits_bytes(np.full((3, 4), number, "u1")))
        assert swathe.cut(path, box=(0, 0, 1, 1)).data == number
        assert swathe.cut(path, box=(0, 0, 1, 1)).data == number
    assert len(recent_files._recent) <= recent_files.MOST_FILES


def test_one_file_from_many_threads(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits.gz")
    whole = np.random.default_rng(1).integers(0, 9999, (400, 300)).astype(">i2")
    path.write_bytes(gzip.compress(fits_bytes(whole), 1))
    image = swathe.open(path)[0]
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x, y = int(rng.integers(290)), int(rng.integers(390))
            if not np.array_equal(image.section[y : y + 10, x : x + 10], whole[y:, x:][:10, :10]):
                wrong.append((x, y))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_padding_after_a_header_may_be_anything(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    whole = ramp(5, 6)
    content = fits_bytes(whole)[:2880] + padded(whole.tobytes())[:-1] + b"x"
    path.write_bytes(content)
    assert_same(swathe.open(path)[0].section[...], whole)
