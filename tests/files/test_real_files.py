"""Real files: every image that astropy reads, cut at random, against astropy and cfitsio."""

from __future__ import annotations

import gzip
import subprocess
import warnings
import zlib
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import fitsio
import numpy as np
import pytest
from astropy.io import fits
from astropy.io.fits.verify import VerifyWarning

import swathe
from tests.conftest import DATA, assert_same, random_box, raw_cards, real_files

IMAGES = (fits.PrimaryHDU, fits.ImageHDU, fits.CompImageHDU)
BOXES = 5
CHANGED = ("NAXIS", "CRPIX", "LTV", "LTM", "DATASUM", "CHECKSUM")

pytestmark = [
    # Real headers hold all kinds of small faults; astropy says so for source and cut alike.
    pytest.mark.filterwarnings("ignore::astropy.utils.exceptions.AstropyUserWarning"),
    pytest.mark.usefixtures("data"),
]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts share what they decode, as they do for users."""
    monkeypatch.setenv("SWATHE_MEMORY_BYTES", str(256 << 20))


@lru_cache(maxsize=1)
def whole(name: str) -> bytes:
    """The file as it is once decompressed as a whole."""
    path = DATA / name
    if path.suffix in (".gz", ".Z"):
        return subprocess.run(["gzip", "-dc", path], capture_output=True, check=True).stdout
    if path.suffix == ".bz2":
        return subprocess.run(["bzip2", "-dc", path], capture_output=True, check=True).stdout
    return path.read_bytes()


@lru_cache(maxsize=1)
def astropy_images(name: str) -> dict[int, Any]:
    """The HDUs with pixels that astropy can read, by number."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            hdus = fits.open(BytesIO(whole(name)), memmap=False)
            len(hdus)
        except OSError:
            return {}
        for number, hdu in enumerate(hdus):
            groups = isinstance(hdu, fits.GroupsHDU)
            if isinstance(hdu, IMAGES) and hdu.shape and 0 not in hdu.shape and not groups:
                found[number] = hdu
    return found


def seed(name: str, hdu: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), hdu])


@pytest.fixture(scope="module", params=real_files("sdss", "sky", "compressed", "odd"))
def name(request: pytest.FixtureRequest) -> str:
    """Every real file; a fixture, so that the tests of one file follow each other."""
    return str(request.param)


def test_the_same_images_are_found(name: str) -> None:
    expected = {number: hdu.data.shape for number, hdu in astropy_images(name).items()}
    try:
        file = swathe.open(DATA / name)
        found = {
            image.index: image.shape for image in file.images if image.shape and all(image.shape)
        }
    except swathe.errors.SwatheError:
        found = {}
    assert found == expected


@pytest.mark.more
def test_any_box_equals_astropy_and_reads_back(name: str, new_path: Callable[[str], Path]) -> None:
    for number, hdu in astropy_images(name).items():
        boxes_equal(name, number, hdu.data, new_path)


def boxes_equal(name: str, number: int, expected: Any, new_path: Callable[[str], Path]) -> None:
    image = swathe.open(DATA / name)[number]
    assert image.shape == expected.shape
    rng = seed(name, number)
    if expected.ndim < 2:
        first, last = sorted(rng.integers(0, expected.size + 1, 2))
        assert_same(image.section[first : last + 1], expected[first : last + 1])
        return
    for turn in range(BOXES):
        x0, y0, width, height = random_box(rng, *expected.shape[:-3:-1])
        part = expected[..., y0 : y0 + height, x0 : x0 + width]
        assert_same(image.section[..., y0 : y0 + height, x0 : x0 + width], part)
        cut = swathe.cut(DATA / name, box=(x0, y0, width, height), hdu=number, mode="strict")
        assert_same(cut.data, part)
        assert cut.box == (x0, y0, width, height)
        if turn < 2:
            reads_back(cut, part, new_path(".fits"))


def reads_back(cut: swathe.Cutout, expected: Any, path: Path) -> None:
    """What is written holds the same pixels for astropy and for cfitsio."""
    cut.write(path)
    extension = 0 if "SIMPLE" in cut.header else 1
    with fits.open(path, memmap=False) as hdus:
        found = hdus[extension].data
        assert found.shape == expected.shape
        # From tiles astropy gives native numbers, from plain files those of the file.
        if cut._native.native:
            assert found.dtype.newbyteorder("=") == expected.dtype
            found = found.astype(expected.dtype)
        assert_same(found, expected)
    with fitsio.FITS(str(path)) as file:
        other = file[extension].read()
    scaled = expected.dtype.kind == "f" and cut.stored.dtype.kind != "f"
    if scaled:  # cfitsio scales in double precision, astropy in single
        there = np.isfinite(expected)
        np.testing.assert_allclose(other[there], expected[there], rtol=2e-6)
    else:
        np.testing.assert_array_equal(other, expected)


def test_uncompressed_sources_keep_what_is_stored(name: str) -> None:
    for number, hdu in astropy_images(name).items():
        if not isinstance(hdu, fits.CompImageHDU):
            stored_is_kept(name, number)


def stored_is_kept(name: str, number: int) -> None:
    content = whole(name)
    with fits.open(BytesIO(content), memmap=False, do_not_scale_image_data=True) as hdus:
        stored = hdus[number].data
        at = hdus[number].fileinfo()
        cards = raw_cards(content[at["hdrLoc"] : at["datLoc"]])
    rng = seed(name, number)
    if stored.ndim < 2:
        return
    x0, y0, width, height = random_box(rng, *stored.shape[:-3:-1])
    cut = swathe.cut(DATA / name, box=(x0, y0, width, height), hdu=number)
    part = stored[..., y0 : y0 + height, x0 : x0 + width]
    assert cut.stored.tobytes() == part.astype(part.dtype.newbyteorder(">")).tobytes()

    # The source's cards, in their order.
    kept = raw_cards(cut._native.header)
    assert len(kept) > len(cards)
    start = dict(zip("12", (x0, y0), strict=True))
    for old, new in zip(cards, kept, strict=False):
        if old != new:
            keyword = old[:8].strip()
            assert keyword.startswith(CHANGED)
            assert new[:8] == old[:8]
            if keyword.startswith(("CRPIX", "LTV")):
                axis = keyword.removeprefix("CRPIX").removeprefix("LTV")[0]
                before, after = (float(fits.Card.fromstring(card).value) for card in (old, new))
                assert after == pytest.approx(before - start[axis], abs=1e-9)
    added = {card[:8].strip() for card in kept[len(cards) :]} - {"HISTORY", ""}
    assert all(keyword.startswith(CHANGED[1:4]) for keyword in added)
    history = "\n".join(card for card in kept[len(cards) :] if card.startswith("HISTORY"))
    assert f"{x0 + 1}:{x0 + width},{y0 + 1}:{y0 + height}" in history
    assert "version" in history


@pytest.mark.parametrize(
    "name",
    real_files("compressed"),
)
def test_compressed_sources_lose_only_the_cards_of_their_compression(name: str) -> None:
    for number, hdu in astropy_images(name).items():
        if isinstance(hdu, fits.CompImageHDU) and len(hdu.shape) > 1:
            codec_cards_are_gone(name, number, hdu.header)


def codec_cards_are_gone(name: str, number: int, expected: fits.Header) -> None:
    cut = swathe.cut(DATA / name, box=(1, 2, 5, 6), hdu=number)
    with fits.open(BytesIO(cut.to_bytes())) as hdus:
        found = hdus[0 if "SIMPLE" in cut.header else 1].header
    structure = ("SIMPLE", "XTENSION", "EXTEND", "BZERO", "BSCALE", "BLANK", "PCOUNT", "GCOUNT")
    for card in expected.cards:
        keyword = card.keyword
        if keyword in (*structure, "HISTORY", "COMMENT", "") or keyword.startswith(CHANGED):
            continue
        assert card.value in [found[keyword, n] for n in range(found.count(keyword))]
    prefixes = ("ZNAXIS", "ZTILE", "ZCMP", "ZVAL", "ZNAME", "ZIMAGE", "ZBITPIX", "ZQUANT",
                "ZDITHER", "ZHECKSUM", "ZDATASUM", "TFORM", "TTYPE", "TFIELDS")  # fmt: skip
    assert not [keyword for keyword in found if keyword.startswith(prefixes)]
    assert found["BITPIX"] == cut._native.bitpix


def test_gzip_z_and_plain_of_one_image_give_one_cut(new_path: Callable[[str], Path]) -> None:
    content = whole("compressed/lzw.fits.Z")
    plain, gz = new_path(".fits"), new_path(".fits.gz")
    plain.write_bytes(content)
    gz.write_bytes(gzip.compress(content, 1))
    cuts = [swathe.cut(p, box=(3, 4, 9, 8)) for p in (DATA / "compressed/lzw.fits.Z", plain, gz)]
    for cut in cuts[1:]:
        assert_same(cut.data, cuts[0].data)
    kinds = [swathe.open(p).compression for p in (DATA / "compressed/lzw.fits.Z", plain, gz)]
    assert kinds == ["compress", None, "gzip"]


def test_second_cut_through_the_index_is_the_same(new_path: Callable[[str], Path]) -> None:
    for name in ("sdss/fpC-005754-r3-0280.fit.gz", "sdss/reprojected_sdss_r.fits.bz2"):
        expected = astropy_images(name)[0].data
        for box in ((5, 1480, 20, 5), (5, 480, 20, 5), (600, 3, 20, 5), (0, 0, 2048, 1489)):
            x0, y0, width, height = box
            if y0 < expected.shape[0]:
                # A new path to the same file is another object to the list of recent ones.
                link = new_path(Path(name).suffix)
                link.symlink_to(DATA / name)
                part = expected[y0 : y0 + height, x0 : x0 + width]
                assert_same(swathe.cut(link, box=box).data, part)


def test_warnings_of_the_headers_are_astropys_own() -> None:
    """A cut of a clean file is read without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", VerifyWarning)
        cut = swathe.cut(DATA / "compressed/m13.fits", box=(10, 20, 30, 40))
        with fits.open(BytesIO(cut.to_bytes()), checksum=True) as hdus:
            hdus.verify("exception")
            assert hdus[0].header == cut.header
