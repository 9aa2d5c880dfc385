"""One cutout: pixels of any image in any box, its header, and how it is written."""

from __future__ import annotations

import bz2
import copy
import gzip
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import fitsio
import numpy as np
import pytest
from astropy import units as u
from astropy.io import fits
from astropy.nddata import Cutout2D, NDData, NoOverlapError, PartialOverlapError
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import swathe
from swathe.core import errors
from tests.conftest import BITPIX, assert_same, fits_bytes, random_box, raw_cards, real_files
from tests.support.property_examples import examples

WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    ".fits": bytes,
    ".fits.gz": lambda content: gzip.compress(content, 6),
    ".fits.bz2": lambda content: bz2.compress(content, 1),
}
SHAPES = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 60)),
    st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 20)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 8), st.integers(1, 9)),
)


def pixels(shape: tuple[int, ...], bitpix: int, seed: int) -> NDArray[Any]:
    """Stored pixels over all of the type, with its limits, NaN and infinities."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(BITPIX[bitpix])
    if bitpix < 0:
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, shape)
        values[rng.random(shape) < 0.1] = np.nan
        values[rng.random(shape) < 0.05] = -np.inf
        return values.astype(kind)
    limits = np.iinfo(kind)
    stored = rng.integers(
        limits.min, limits.max, shape, dtype=kind.newbyteorder("="), endpoint=True
    )
    stored[rng.random(shape) < 0.1] = limits.min
    stored[rng.random(shape) < 0.1] = limits.max
    stored[rng.random(shape) < 0.1] = 7
    return stored.astype(kind)


def scalings(bitpix: int) -> list[list[tuple[str, Any]]]:
    """Ways to say what stored pixels mean."""
    found: list[list[tuple[str, Any]]] = [
        [],
        [("BSCALE", 1.0), ("BZERO", 0.0)],
        [("BSCALE", 0.25), ("BZERO", -17.5)],
        [("BSCALE", 1e-17)],
        [("BZERO", 1000)],
    ]
    if bitpix > 0:
        zero = -128 if bitpix == 8 else 2 ** (bitpix - 1)
        found += [
            [("BSCALE", 1), ("BZERO", zero)],
            [("BLANK", 7)],
            [("BLANK", 7), ("BSCALE", 2.5), ("BZERO", 3.0)],
            [("BLANK", 0), ("BSCALE", 2.5)],
        ]
    return found


def astropys(path: Path) -> tuple[int, NDArray[Any]]:
    """Number and physical pixels of the image."""
    with warnings.catch_warnings(), fits.open(path, memmap=False) as hdus:
        warnings.simplefilter("ignore")
        number = next(n for n, hdu in enumerate(hdus) if hdu.shape)
        return number, hdus[number].data


def equals_slices(path: Path, seed: int, boxes: int = 3) -> None:
    """Random boxes of the image are astropy's slices, and so are the files written of them."""
    number, expected = astropys(path)
    rng = np.random.default_rng(seed)
    for _ in range(boxes):
        x0, y0, width, height = random_box(rng, *expected.shape[:-3:-1])
        part = expected[..., y0 : y0 + height, x0 : x0 + width]
        cut = swathe.cut(path, box=(x0, y0, width, height))
        assert cut.hdu == number
        assert_same(cut.data, part)
        with warnings.catch_warnings(), fits.open(BytesIO(cut.to_bytes())) as hdus:
            warnings.simplefilter("ignore")
            again = hdus[-1].data
            np.testing.assert_array_equal(again, part)
            assert again.dtype.newbyteorder("=") == part.dtype.newbyteorder("=")


@given(
    shape=SHAPES,
    bitpix=st.sampled_from(list(BITPIX)),
    meaning=st.integers(0, 8),
    suffix=st.sampled_from(list(WRAPPERS)),
    name=st.sampled_from([None, "SCI"]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(120))
def test_any_box_of_any_image_is_the_slice(
    new_path: Callable[[str], Path],
    shape: tuple[int, ...],
    bitpix: int,
    meaning: int,
    suffix: str,
    name: str | None,
    seed: int,
) -> None:
    stored = pixels(shape, bitpix, seed)
    ways = scalings(bitpix)
    content = fits_bytes(stored, ways[meaning % len(ways)], name)
    if name is not None:
        content = fits.PrimaryHDU().header.tostring().encode() + content
    path = new_path(suffix)
    path.write_bytes(WRAPPERS[suffix](content))
    equals_slices(path, seed)
    # What is stored is kept.
    x0, y0, width, height = random_box(np.random.default_rng(seed), *shape[:-3:-1])
    cut = swathe.cut(path, box=(x0, y0, width, height))
    part = stored[..., y0 : y0 + height, x0 : x0 + width]
    assert_same(cut.stored, part)
    for keyword in ("BITPIX", "BSCALE", "BZERO", "BLANK"):
        written = fits.Header.fromstring(content if name is None else content[2880:])
        assert cut.header.get(keyword) == written.get(keyword)


CODECS = ("RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1")


def compressible(codec: str, kind: str, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """Pixels that a codec can hold."""
    rng = np.random.default_rng(seed)
    smooth = rng.normal(300, 25, shape) + np.linspace(0, 900, shape[-1])
    smooth[rng.random(shape) < 0.02] = 20_000
    if codec == "PLIO_1":
        return np.abs(smooth).astype(kind)
    if kind.startswith("f"):
        return smooth.astype(kind)
    return np.where(rng.random(shape) < 0.02, np.iinfo(kind).min, smooth).astype(kind)


@given(
    shape=st.one_of(
        st.tuples(st.integers(4, 50), st.integers(4, 70)),
        st.tuples(st.integers(1, 3), st.integers(4, 14), st.integers(4, 22)),
    ),
    codec=st.sampled_from(CODECS),
    kind=st.sampled_from(["u1", "i2", "u2", "i4", "u4"]),
    tile=st.tuples(st.integers(4, 30), st.integers(4, 80)) | st.none(),
    scaling=st.sampled_from([[], [("BSCALE", 0.5), ("BZERO", 10.0)], [("BLANK", 300)]]),
    suffix=st.sampled_from([".fits", ".fits.fz", ".fits.gz", ".fits.bz2"]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(80))
def test_any_box_of_compressed_integers_is_the_slice(
    new_path: Callable[[str], Path],
    shape: tuple[int, ...],
    codec: str,
    kind: str,
    tile: tuple[int, int] | None,
    scaling: list[tuple[str, float]],
    suffix: str,
    seed: int,
) -> None:
    if kind == "u4" and codec in ("PLIO_1", "HCOMPRESS_1"):
        kind = "i4"
    if kind == "u2" and codec == "PLIO_1":
        kind = "i2"
    image = compressible(codec, kind, shape, seed)
    tile = tile or (shape[-2], shape[-1])
    # HCOMPRESS wants at least 4 pixels a side, of the last tile too.
    if codec == "HCOMPRESS_1":
        tile = (shape[-2], shape[-1])
    tiles = (*[1] * (len(shape) - 2), *np.minimum(tile, shape[-2:]).tolist())
    hdu = fits.CompImageHDU(image, compression_type=codec, tile_shape=tiles)
    content = BytesIO()
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(content)
    if scaling and not kind.startswith("u"):
        content.seek(0)
        with fits.open(content, disable_image_compression=True) as hdus:
            for keyword, value in scaling:
                hdus[1].header[keyword] = value
            content = BytesIO()
            hdus.writeto(content)
    path = new_path(suffix)
    path.write_bytes(WRAPPERS.get(suffix, bytes)(content.getvalue()))
    equals_slices(path, seed)


@given(
    shape=st.tuples(st.integers(4, 40), st.integers(4, 60)),
    codec=st.sampled_from(["RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1"]),
    kind=st.sampled_from(["f4", "f8"]),
    method=st.sampled_from([-1, 1, 2]),
    level=st.sampled_from([0.0, 4.0, 16.0, -0.5]),
    blanks=st.sampled_from([0.0, 0.05, 1.0]),
    suffix=st.sampled_from([".fits", ".fits.fz", ".fits.gz"]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(70))
def test_any_box_of_quantised_floats_is_the_slice(
    new_path: Callable[[str], Path],
    shape: tuple[int, int],
    codec: str,
    kind: str,
    method: int,
    level: float,
    blanks: float,
    suffix: str,
    seed: int,
) -> None:
    if level == 0 and not codec.startswith("GZIP"):
        level = 4.0
    image = compressible(codec, kind, shape, seed)
    rng = np.random.default_rng(seed)
    if codec != "HCOMPRESS_1":
        image[rng.random(shape) < blanks] = np.nan
        image[rng.random(shape) < 0.05] = 0
    hdu = fits.CompImageHDU(
        image,
        compression_type=codec,
        tile_shape=shape if codec == "HCOMPRESS_1" else (max(1, shape[0] // 3), shape[1]),
        quantize_level=level,
        quantize_method=method,
        dither_seed=1 + seed % 10_000,
    )
    content = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(content)
    path = new_path(suffix)
    path.write_bytes(WRAPPERS.get(suffix, bytes)(content.getvalue()))
    equals_slices(path, seed)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["u1", "i2", "u2", "i4", "f4", "f8"])
def test_files_of_cfitsio_are_read_the_same(
    codec: str, kind: str, new_path: Callable[[str], Path]
) -> None:
    if codec == "PLIO_1" and kind in ("f4", "f8"):
        pytest.skip("PLIO_1 holds no floats")
    path = new_path(".fits.fz")
    image = compressible(codec, kind, (37, 53), 5)
    tiles = [37, 53] if codec == "HCOMPRESS_1" else [9, 20]
    with fitsio.FITS(str(path), "rw") as file:
        file.write(image, compress=codec.removesuffix("_1"), tile_dims=tiles)
    equals_slices(path, 3)
    number = astropys(path)[0]
    if (codec, kind) == ("PLIO_1", "u2"):
        return  # cfitsio takes BZERO to be applied already; astropy, whom we follow, applies it
    with fitsio.FITS(str(path)) as file:
        expected = file[number].read()
    np.testing.assert_array_equal(swathe.cut(path, box=(0, 0, 53, 37)).data, expected)


# ---- Modes


@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    x=st.floats(-15, 35) | st.integers(-30, 70).map(lambda n: n / 2),
    y=st.floats(-15, 35) | st.integers(-30, 70).map(lambda n: n / 2),
    height=st.integers(1, 25),
    width=st.integers(1, 25),
    mode=st.sampled_from(["trim", "partial", "strict"]),
    bitpix=st.sampled_from([8, 16, -32]),
)
@settings(max_examples=examples(150))
def test_centers_and_modes_are_those_of_cutout2d(
    new_path: Callable[[str], Path],
    shape: tuple[int, int],
    x: float,
    y: float,
    height: int,
    width: int,
    mode: Literal["trim", "partial", "strict"],
    bitpix: int,
) -> None:
    stored = pixels(shape, bitpix, 1)
    path = new_path(".fits")
    path.write_bytes(fits_bytes(stored))
    options: dict[str, Any] = {"center": (x, y), "shape": (height, width), "mode": mode}
    fill = np.nan if bitpix < 0 else 0
    try:
        expected = Cutout2D(stored, (x, y), (height, width), mode=mode, fill_value=fill)
    except NoOverlapError:
        with pytest.raises(errors.NoOverlapError):
            swathe.cut(path, **options)
        return
    except PartialOverlapError:
        with pytest.raises(errors.PartialOverlapError):
            swathe.cut(path, **options)
        return
    cut = swathe.cut(path, **options)
    np.testing.assert_array_equal(cut.data, expected.data)
    assert cut.data.dtype == stored.dtype
    inside, within = expected.slices_original, expected.slices_cutout
    assert cut.box[:2] == (
        inside[1].start - within[1].start,
        inside[0].start - within[0].start,
    )
    again = fits.getdata(BytesIO(cut.to_bytes()))
    np.testing.assert_array_equal(again, expected.data)


@pytest.mark.parametrize(
    ("cards", "fill", "outside"),
    [
        ([], None, 0),
        ([], 12, 12),
        ([("BLANK", 7)], None, np.nan),
        ([("BLANK", 7)], 9, 9),
        ([("BSCALE", 0.5), ("BZERO", 10)], None, 10),
        ([("BSCALE", 0.5), ("BZERO", 10)], 12.5, 12.5),
        ([("BSCALE", 1), ("BZERO", 32768)], 65535, 65535),
        ([("BSCALE", 1), ("BZERO", 32768)], 0, 0),
    ],
)
def test_fill_is_a_physical_value(
    cards: list[tuple[str, float]],
    fill: float | None,
    outside: float,
    new_path: Callable[[str], Path],
) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(pixels((6, 8), 16, 2), cards))
    cut = swathe.cut(path, box=(-2, -1, 5, 4), mode="partial", fill=fill)
    inside = swathe.cut(path, box=(0, 0, 3, 3)).data
    if fill is None and cards == [("BSCALE", 0.5), ("BZERO", 10)]:
        # "NaN, BLANK or 0": what is 0 is the physical value, where it can be stored.
        outside = float(cut.data[0, 0])
        assert outside in (0, 10)
    assert_same(cut.data[1:, 2:].copy(), inside)
    edge = np.ones((4, 5), bool)
    edge[1:, 2:] = False
    np.testing.assert_array_equal(cut.data[edge], np.full(edge.sum(), outside))
    assert cut.box == (-2, -1, 5, 4)
    assert cut.header["LTV1"] == 2
    np.testing.assert_array_equal(fits.getdata(BytesIO(cut.to_bytes())), cut.data)


@pytest.mark.parametrize("fill", [np.nan, np.inf, 1.5, 40_000, -1e300])
def test_fill_that_cannot_be_stored_is_refused(
    fill: float, new_path: Callable[[str], Path]
) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(pixels((6, 8), 16, 2)))
    with pytest.raises(errors.RegionError, match="fill"):
        swathe.cut(path, box=(-2, -1, 5, 4), mode="partial", fill=fill)


@pytest.mark.parametrize("fill", [2.0**63, -1e300])
def test_fill_beyond_the_longest_integers_is_refused(
    fill: float, new_path: Callable[[str], Path]
) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(pixels((6, 8), 64, 2)))
    with pytest.raises(errors.RegionError, match="fill"):
        swathe.cut(path, box=(-2, -1, 5, 4), mode="partial", fill=fill)
    lowest = swathe.cut(path, box=(-2, -1, 5, 4), mode="partial", fill=-(2.0**63))
    assert lowest.data[0, 0] == -(2**63)


# ---- Planes


@pytest.mark.parametrize("planes", ["0", 1.5, (1, 2, 3), (1,), slice("a", "b"), b"0"])
def test_planes_that_are_none_are_named(tmp_path: Path, planes: Any) -> None:
    path = tmp_path / "c.fits"
    path.write_bytes(fits_bytes(pixels((3, 4, 5), 16, 3)))
    targets = {"file": [str(path)], "x0": [0], "y0": [0], "width": [1], "height": [1]}
    message = r"planes: expected a plane, a slice, \(first, last\) or a list of planes, found"
    with pytest.raises(errors.RegionError, match=message):
        swathe.cut(path, box=(0, 0, 1, 1), planes=planes)
    with pytest.raises(errors.RegionError, match=message):
        swathe.cut_many(targets, tmp_path / "out", planes=planes)


def test_arguments_that_are_no_unicode_are_named(tmp_path: Path) -> None:
    path = tmp_path / "c.fits"
    path.write_bytes(fits_bytes(pixels((4, 5), 16, 3)))
    targets = {"file": [str(path)], "x0": [0], "y0": [0], "width": [1], "height": [1]}
    wrong: Any = "a\udcff"
    with pytest.raises(ValueError, match="path: expected valid Unicode"):
        swathe.cut(wrong, box=(0, 0, 1, 1))
    with pytest.raises(ValueError, match="mode: expected valid Unicode"):
        swathe.cut(path, box=(0, 0, 1, 1), mode=wrong)
    with pytest.raises(ValueError, match="mode: expected valid Unicode"):
        swathe.cut_many(targets, tmp_path / "out", mode=wrong)
    with pytest.raises(ValueError, match="output: expected valid Unicode"):
        swathe.cut_many(targets, wrong)


@given(
    first=st.integers(-7, 7) | st.none(),
    last=st.integers(-7, 7) | st.none(),
    axes=st.sampled_from([3, 4]),
)
@settings(max_examples=examples(40))
def test_planes_are_a_slice_of_naxis3(
    new_path: Callable[[str], Path], first: int | None, last: int | None, axes: int
) -> None:
    shape = (2, 5, 4, 6)[4 - axes :]
    path = new_path(".fits")
    path.write_bytes(fits_bytes(pixels(shape, 16, 3)))
    whole = astropys(path)[1]
    planes = slice(first, last)
    expected = whole[..., planes, 1:3, 2:5]
    if 0 in expected.shape:
        with pytest.raises(errors.RegionError):
            swathe.cut(path, box=(2, 1, 3, 2), planes=planes)
        return
    cut = swathe.cut(path, box=(2, 1, 3, 2), planes=planes)
    assert_same(cut.data, expected)
    assert cut.header["NAXIS3"] == expected.shape[-3]


def test_planes_by_number_and_by_pair(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(pixels((5, 4, 6), 16, 3)))
    whole = astropys(path)[1]
    assert_same(swathe.cut(path, box=(0, 0, 6, 4)).data, whole)
    assert_same(swathe.cut(path, box=(0, 0, 6, 4), planes=2).data, whole[2:3])
    assert_same(swathe.cut(path, box=(0, 0, 6, 4), planes=-1).data, whole[4:])
    assert_same(swathe.cut(path, box=(0, 0, 6, 4), planes=(1, 3)).data, whole[1:3])
    for wrong in (5, -6, (1, 6), (3, 3), (3, 1), (-1, 2), slice(0, 5, 2), slice(3, 1)):
        with pytest.raises(errors.RegionError):
            swathe.cut(path, box=(0, 0, 6, 4), planes=wrong)


def test_zblank_of_integers_is_blank(new_path: Callable[[str], Path]) -> None:
    content, path = BytesIO(), new_path(".fits")
    image = compressible("RICE_1", "i2", (9, 12), 5)
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(image)]).writeto(content)
    content.seek(0)
    with fits.open(content, disable_image_compression=True) as hdus:
        hdus[1].header["ZBLANK"] = int(image[4, 5])
        hdus.writeto(path)
    equals_slices(path, 1)


# ---- Headers

ODD_CARDS = [
    "COMMENT   a comment with  spaces inside, before anything else",
    "OBJECT  = 'It''s M 31'         / quotes doubled",
    "EXPTIME =             1.50D+02 / a D exponent",
    "GAIN    = 2.0                  / free format",
    "NULLVAL =                      / no value at all",
    "COMPLEX =            (1.0, -2) / complex",
    "HIERARCH ESO TEL AMBI FWHM START = 1.25 / [arcsec] hierarch",
    "LONGSTR = 'This string goes on and on and on, over one card, and then it &'",
    "CONTINUE  'continues in another one, and in yet one more, as there is &'",
    "CONTINUE  ' here.'             / and has a comment",
    "HISTORY   old history, kept",
    "",
    "        blank keyword with text",
    "DUPLICAT=                    1 / first",
    "DUPLICAT=                    2 / second",
    "BIGINT  =  123456789012345678901234567890",
    "lowercas=                    1 / against the standard, and not ours to change",
]
WCS_CARDS = [
    "WCSAXES =                    2",
    "CTYPE1  = 'RA---TAN'",
    "CTYPE2  = 'DEC--TAN'",
    "CRPIX1  =                 10.5 / reference pixel",
    "CRPIX2  =             -3.25E+2 / another",
    "CRVAL1  =                150.0",
    "CRVAL2  =                  2.0",
    "CDELT1  =               -0.001",
    "CDELT2  =                0.001",
    "CTYPE1A = 'XPLATE  '",
    "CTYPE2A = 'YPLATE  '",
    "CRPIX1A =                  1.0 / of A",
    "CRPIX2B =                  7.0 / of B, alone",
    "LTV1    =                 -100 / cut before",
    "LTM1_1  =                    2 / and binned",
    "DATASUM = '0       '           / wrong",
    "CHECKSUM= 'AAAAAAAAAAAAAAAA'   / wrong",
]


def ones_complement_sum(content: bytes) -> int:
    """The sum that CHECKSUM makes all ones (FITS Standard 4.0, appendix J)."""
    total = int(np.frombuffer(content, ">u4").sum(dtype="u8"))
    while total >> 32:
        total = (total >> 32) + (total & 0xFFFFFFFF)
    return total


def image_of_cards(cards: list[str]) -> bytes:
    """20 x 30 pixels under these cards, byte for byte."""
    stored = pixels((20, 30), 16, 9)
    head = raw_cards(fits_bytes(stored)) + [card.ljust(80) for card in cards]
    assert {len(card) for card in head} == {80}
    text = "".join(head) + "END".ljust(80)
    return text.ljust(-(-len(text) // 2880) * 2880).encode() + fits_bytes(stored)[2880:]


@pytest.mark.parametrize("suffix", [".fits", ".fits.gz"])
def test_cards_are_verbatim_but_for_what_a_cut_changes(
    suffix: str, new_path: Callable[[str], Path]
) -> None:
    path = new_path(suffix)
    path.write_bytes(WRAPPERS[suffix](image_of_cards(ODD_CARDS + WCS_CARDS)))
    cut = swathe.cut(path, box=(3, 4, 10, 11))
    content = cut.to_bytes()
    cards = raw_cards(content)
    expected = [card.ljust(80) for card in ODD_CARDS + WCS_CARDS]
    kept = cards[5 : 5 + len(expected)]
    changed = {
        old[:8].strip(): (new[10:30].strip(), new[30:].strip())
        for old, new in zip(expected, kept, strict=True)
        if old != new
    }
    assert [new[:8] for new in kept] == [old[:8] for old in expected]
    assert float(changed.pop("CRPIX1")[0]) == 7.5
    assert float(changed.pop("CRPIX2")[0]) == -329
    assert float(changed.pop("CRPIX1A")[0]) == -2
    assert float(changed.pop("CRPIX2B")[0]) == 3
    assert float(changed.pop("LTV1")[0]) == -103
    assert set(changed) == {"DATASUM", "CHECKSUM"}
    comments = {card[:8].strip(): card[30:].strip() for card in kept if "/" in card[30:33]}
    assert comments["CRPIX1"] == "/ reference pixel"
    assert comments["CRPIX2B"] == "/ of B, alone"

    added = cards[5 + len(expected) :]
    keywords = [card[:8].strip() for card in added if not card.startswith("HISTORY")]
    # CRPIXja that are not there are 0, before the cut.
    assert sorted(keywords) == ["CRPIX1B", "CRPIX2A", "LTM2_2", "LTV2"]
    history = "".join(card[8:].strip() for card in added if card.startswith("HISTORY"))
    assert "[4:13,5:15]" in history
    assert str(path).replace("/", "") in history.replace("/", "")
    assert cut.version in history
    # The checksums are right now, and the file is whole blocks.
    assert len(content) % 2880 == 0
    # astropy would compare a header it has repaired before.
    assert ones_complement_sum(content) == 0xFFFFFFFF
    assert int(cut.header["DATASUM"]) == ones_complement_sum(content[-2880:])


def test_a_cut_from_the_corner_changes_only_the_lengths(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(image_of_cards(ODD_CARDS + WCS_CARDS[:-2]))
    cards = raw_cards(swathe.cut(path, box=(0, 0, 10, 11)).to_bytes())
    expected = [card.ljust(80) for card in ODD_CARDS + WCS_CARDS[:-2]]
    assert cards[5 : 5 + len(expected)] == expected
    assert all(card.startswith("HISTORY") for card in cards[5 + len(expected) :])
    assert [card.split("/")[1].strip() for card in cards[3:5]] == [
        "length of axis 1",
        "length of axis 2",
    ]


def test_a_cut_of_a_cut_leads_back_to_the_source(new_path: Callable[[str], Path]) -> None:
    path, between = new_path(".fits"), new_path(".fits")
    path.write_bytes(image_of_cards(WCS_CARDS[:9]))
    swathe.cut(path, box=(3, 4, 20, 15)).write(between)
    twice = swathe.cut(between, box=(5, 6, 7, 8))
    once = swathe.cut(path, box=(8, 10, 7, 8))
    assert_same(twice.data, once.data)
    for keyword in ("CRPIX1", "CRPIX2", "LTV1", "LTV2", "LTM1_1", "LTM2_2"):
        assert twice.header[keyword] == once.header[keyword]
    assert (twice.header["LTV1"], twice.header["LTV2"]) == (-8, -10)


def test_extensions_keep_the_primary_header(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    primary = fits.PrimaryHDU()
    primary.header["TELESCOP"] = ("Swathe 1", "inherited")
    second = fits_bytes(pixels((9, 8), 16, 2), [("INHERIT", True), ("EXTVER", 2)], "SCI")
    first = fits_bytes(pixels((9, 8), 16, 1), [("INHERIT", True), ("EXTVER", 1)], "SCI")
    path.write_bytes(primary.header.tostring().encode() + first + second)
    cut = swathe.cut(path, box=(1, 2, 3, 4), hdu=("SCI", 2))
    with fits.open(BytesIO(cut.to_bytes())) as hdus:
        assert len(hdus) == 2
        assert hdus[0].header["TELESCOP"] == "Swathe 1"
        assert hdus[1].name == "SCI"
        assert hdus[1].ver == 2
        assert_same(hdus[1].data, pixels((9, 8), 16, 2)[2:6, 1:4])


# ---- fitsverify


def faults(paths: list[Path]) -> dict[str, str]:
    """What `fitsverify -q` finds, by path; empty where a file is clean."""
    result = {}
    for path in paths:  # one by one, as it gives up after a bad one
        found = subprocess.run(
            ["fitsverify", "-q", path], capture_output=True, text=True, check=False, timeout=120
        ).stdout
        result[str(path)] = "" if found.startswith("verification OK") else found
    return result


needs_fitsverify = pytest.mark.skipif(
    shutil.which("fitsverify") is None, reason="the program fitsverify is not installed"
)


@needs_fitsverify
def test_cuts_of_clean_real_files_are_clean(data: Path, tmp_path: Path) -> None:
    sources = [data / name for name in real_files("sky", "sdss", "compressed")]
    before = faults(sources)
    clean = [Path(name) for name, told in before.items() if not told]
    assert len(clean) > 20
    cuts = {}
    for path in clean:
        for image in swathe.open(path).images:
            if len(image.shape) >= 2:
                height, width = image.shape[-2:]
                box = (width // 3, height // 3, max(1, width // 4), max(1, height // 5))
                target = tmp_path / f"{path.name}-{image.index}.fits"
                swathe.cut(path, box=box, hdu=image.index).write(target)
                cuts[str(target)] = path
    after = faults([Path(name) for name in cuts])
    assert len(after) == len(cuts)
    assert {name: told for name, told in after.items() if told} == {}


@needs_fitsverify
@pytest.mark.parametrize("codec", [None, *CODECS])
def test_cuts_of_clean_new_files_are_clean(codec: str | None, tmp_path: Path) -> None:
    source = tmp_path / "source.fits"
    hdu: Any = fits.ImageHDU(compressible("RICE_1", "u2", (40, 50), 1), name="SCI")
    if codec is not None:
        image = compressible(codec, "i2", (40, 50), 1)
        hdu = fits.CompImageHDU(image, compression_type=codec, name="SCI", tile_shape=(20, 50))
    for card in WCS_CARDS[:12]:
        hdu.header.append(fits.Card.fromstring(card))
    hdu.header["LONGSTRN"] = "OGIP 1.0"
    hdu.header["LONGSTR"] = "long " * 30
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(source, checksum=True)
    cuts = [tmp_path / f"cut{number}.fits" for number in range(3)]
    swathe.cut(source, box=(3, 4, 10, 11)).write(cuts[0])
    swathe.cut(source, box=(0, 0, 50, 40)).write(cuts[1])
    swathe.cut(source, box=(-3, -4, 10, 11), mode="partial").write(cuts[2])
    found = faults([source, *cuts])
    assert len(found) == 4
    assert set(found.values()) == {""}


# ---- Writing


@pytest.fixture
def cutout(new_path: Callable[[str], Path]) -> swathe.Cutout:
    path = new_path(".fits")
    path.write_bytes(image_of_cards(WCS_CARDS[:9]))
    return swathe.cut(path, box=(3, 4, 10, 11))


@pytest.mark.parametrize("suffix", [".fits", ".fit", ".fts", ".FITS"])
def test_write_fits(cutout: swathe.Cutout, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut{suffix}"
    cutout.write(path)
    assert path.read_bytes() == cutout.to_bytes()
    assert_same(fits.getdata(path), cutout.data)
    with pytest.raises(swathe.errors.OutputExistsError, match="exists already"):
        cutout.write(str(path))
    path.write_bytes(b"other")
    cutout.write(str(path), overwrite=True)
    assert path.read_bytes() == cutout.to_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_write_npy(cutout: swathe.Cutout, tmp_path: Path) -> None:
    cutout.write(tmp_path / "cut.npy")
    assert_same(np.load(tmp_path / "cut.npy"), cutout.data)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cut.npy"]
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "cut.npy").stat().st_mode & 0o777 == 0o666 & ~umask


def test_write_png(cutout: swathe.Cutout, tmp_path: Path) -> None:
    from PIL import Image

    cutout.write(tmp_path / "cut.png")
    with Image.open(tmp_path / "cut.png") as picture:
        assert picture.size == (10, 11)
        grey = np.asarray(picture)
    # y points up: the brightest pixel of the top row is in the first row of the picture.
    top = cutout.data[-1].astype(float)
    assert grey[0, int(np.argmax(top))] == grey[0].max()
    assert [entry.name for entry in tmp_path.iterdir()] == ["cut.png"]


@pytest.mark.parametrize("name", ["cut.jpg", "cut", "cut.fits.gz", ".fits", "cut.fits.fz"])
def test_write_refuses_unknown_suffixes(cutout: swathe.Cutout, name: str, tmp_path: Path) -> None:
    with pytest.raises(errors.OutputError, match="known"):
        cutout.write(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".fits", ".npy", ".png"])
def test_write_says_what_cannot_be_written(
    cutout: swathe.Cutout, suffix: str, tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / f"cut{suffix}"
    with pytest.raises(errors.OutputError, match="missing"):
        cutout.write(missing)
    assert not missing.parent.exists()
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    with pytest.raises(errors.OutputError, match="folder"):
        cutout.write(folder)
    assert not list(folder.iterdir())
    with pytest.raises(OSError, match="file"):
        (tmp_path / "file").touch()
        cutout.write(tmp_path / "file" / f"cut{suffix}")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", folder.name]


FULL_DISK = """
import os, resource, signal, sys
import swathe
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
cut = swathe.cut(sys.argv[1], box=(0, 0, 300, 300))
cut.data, cut.header
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
for name in sys.argv[2:]:
    try:
        cut.write(name, overwrite=True)
    except swathe.errors.OutputError as error:
        print(type(error).__name__, error)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, new_path: Callable[[str], Path]) -> None:
    source = new_path(".fits")
    source.write_bytes(fits_bytes(pixels((300, 300), -64, 1)))
    targets = [tmp_path / f"cut{suffix}" for suffix in (".fits", ".npy", ".png")]
    for target in targets:
        target.write_bytes(b"precious")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, source, *targets],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.count("OutputError") == 3
    for target in targets:
        assert str(target) in done.stdout
        assert target.read_bytes() == b"precious"
    assert sorted(tmp_path.iterdir()) == sorted(targets)


def test_data_is_the_users_to_change(cutout: swathe.Cutout) -> None:
    before = cutout.to_bytes()
    cutout.data[:] = 0
    assert cutout.to_bytes() == before
    with pytest.raises(ValueError, match="read-only"):
        cutout.stored[0, 0] = 1


def test_repr_says_where(cutout: swathe.Cutout) -> None:
    assert "[3, 4] 10 x 11" in repr(cutout)
    assert "HDU 0" in repr(cutout)
    assert cutout.shape == (11, 10)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            {"box": (0, 0, 5)},
            r"box: expected 4 numbers, \(x0, y0, width, height\), found \(0, 0, 5\)",
        ),
        ({"box": 5}, "box: expected 4 numbers"),
        ({"center": (5,), "shape": 3}, r"center: expected 2 numbers, \(x, y\), found \(5,\)"),
        ({"center": (5, 5), "shape": (1, 2, 3)}, r"shape: expected 2 numbers, \(height, width\)"),
    ],
)
def test_regions_of_another_number_of_numbers(
    region: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((9, 9), np.int16)).writeto(path)
    with pytest.raises(errors.RegionError, match=message):
        swathe.cut(path, **region)


# ---- An array and a value


@pytest.fixture
def counts(new_path: Callable[[str], Path]) -> swathe.Cutout:
    """A cutout of scaled pixels with a WCS and a unit."""
    path = new_path(".fits")
    header = fits.Header({"BUNIT": "adu", "BSCALE": 0.5, "BZERO": 3.0, "BLANK": 7})
    header.update({"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CRVAL2": 20.0})
    header.update({"CRPIX1": 25.0, "CRPIX2": 20.0, "CDELT1": -1e-3, "CDELT2": 1e-3})
    cards = list(header.items())
    path.write_bytes(fits_bytes(np.arange(2000, dtype=">i2").reshape(40, 50), cards))
    return swathe.cut(path, box=(3, 4, 10, 8))


def test_numpy_takes_a_cutout_as_its_pixels(counts: swathe.Cutout) -> None:
    data = counts.data
    assert np.asarray(counts) is data
    assert_same(np.array(counts), data)
    assert np.array(counts) is not data
    assert_same(np.asarray(counts, ">i4"), data.astype(">i4"))
    with pytest.raises(ValueError, match="copy"):
        np.array(counts, "i4", copy=False)
    assert (counts.dtype, counts.ndim, counts.size) == (data.dtype, 2, 80)
    assert np.mean(counts) == data.mean()
    assert_same(counts - np.median(counts), data - np.median(data))
    for result, expected in (
        (counts + 1, data + 1),
        (1 - counts, 1 - data),
        (counts - counts, data - data),
        (2 * counts / (counts + 1), 2 * data / (data + 1)),
        (-counts, -data),
        (1 / counts, 1 / data),
        (data * counts, data * data),
        (np.sqrt(counts), np.sqrt(data)),
    ):
        assert_same(result, expected)


def same_cutout(first: swathe.Cutout, second: swathe.Cutout) -> None:
    assert first.to_bytes() == second.to_bytes()
    assert_same(first.stored, second.stored)
    assert_same(first.data, second.data)
    assert first._native.header == second._native.header
    assert (first.box, first.shape, repr(first)) == (second.box, second.shape, repr(second))
    for name in ("url", "version", "hdu"):
        assert getattr(first, name) == getattr(second, name)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_of_a_cutout_are_the_same(
    how: Callable[[swathe.Cutout], swathe.Cutout], counts: swathe.Cutout
) -> None:
    same_cutout(how(counts), counts)
    again = how(how(counts))
    same_cutout(again, counts)
    assert again.wcs.wcs.compare(counts.wcs.wcs)


@pytest.mark.parametrize("name", real_files("sky", "sdss", "compressed"))
def test_a_pickled_cutout_of_a_real_file_is_the_same(name: str, data: Path) -> None:
    try:
        image = swathe.open(data / name).image()
        cutout = image.cut((2, 3, 20, 10))
    except errors.SwatheError as error:
        pytest.skip(str(error))
    same_cutout(pickle.loads(pickle.dumps(cutout)), cutout)


def test_changed_pixels_stay_with_copies_and_not_in_the_file(counts: swathe.Cutout) -> None:
    content = counts.to_bytes()
    counts.data[0, 0] = -5
    counts.header["OBSERVER"] = "me"
    for again in (copy.copy(counts), copy.deepcopy(counts), pickle.loads(pickle.dumps(counts))):
        assert again.data[0, 0] == -5
        assert again.header["OBSERVER"] == "me"
        assert again.to_bytes() == content


def test_a_cutout_becomes_nddata(counts: swathe.Cutout) -> None:
    for made in (counts.to_nddata(), counts.to_ccddata()):
        assert made.unit == u.adu
        assert made.data is counts.data
        assert made.meta["BUNIT"] == "adu"
        assert made.wcs.wcs.compare(counts.wcs.wcs)
    assert counts.to_nddata("Jy").unit == u.Jy
    assert counts.to_ccddata(u.dimensionless_unscaled).unit == u.dimensionless_unscaled
    assert_same(NDData(counts).data, counts.data)
    assert_same(counts.to_ccddata().multiply(2).data, counts.data * 2)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("adu", u.adu),
        ("ADU", u.adu),
        ("DN/s", u.DN / u.s),
        ("ELECTRONS/S", u.electron / u.s),
        ("counts", u.ct),
        ("Jy/beam", u.Jy / u.beam),
        ("MJy/sr", u.MJy / u.sr),
        ("10**(-17) erg/s/cm**2", 1e-17 * u.erg / u.s / u.cm**2),
        ("MJY/SR", None),
        ("nonsense", None),
    ],
)
def test_units_of_bunit(text: str, unit: Any, new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(np.ones((4, 5), ">f4"), [("BUNIT", text)]))
    cutout = swathe.cut(path, box=(0, 0, 2, 2))
    if unit is not None:
        assert cutout.to_nddata().unit == cutout.to_ccddata().unit == u.Unit(unit)
        return
    for convert in (cutout.to_nddata, cutout.to_ccddata):
        with pytest.raises(errors.FormatError, match=f"found '{text}': give one"):
            convert()
        assert convert("Jy").unit == u.Jy


def test_a_cutout_without_a_unit(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(np.ones((4, 5), ">f4")))
    cutout = swathe.cut(path, box=(0, 0, 2, 2))
    assert cutout.to_nddata().unit is None
    with pytest.raises(errors.FormatError, match="no BUNIT"):
        cutout.to_ccddata()
    assert cutout.to_ccddata("").unit == u.dimensionless_unscaled


def test_reproject_takes_a_cutout(counts: swathe.Cutout) -> None:
    from reproject import reproject_interp

    expected, _ = reproject_interp((np.array(counts.data), counts.wcs), counts.wcs, (8, 10))
    for source in ((counts.data, counts.wcs), counts.to_nddata(), counts.to_ccddata()):
        pixels, _ = reproject_interp(source, counts.wcs, (8, 10))
        np.testing.assert_array_equal(pixels, expected)
    np.testing.assert_allclose(expected[1:-1, 1:-1], counts.data[1:-1, 1:-1])


def test_photutils_takes_a_cutout(counts: swathe.Cutout) -> None:
    from photutils.aperture import CircularAperture, aperture_photometry

    aperture = CircularAperture((5, 4), 2)
    total = aperture_photometry(counts.data, aperture)["aperture_sum"][0]
    assert aperture_photometry(counts, aperture)["aperture_sum"][0] == total
    assert aperture_photometry(counts.to_nddata(), aperture)["aperture_sum"][0].value == total


def middle(path: Path) -> swathe.Cutout:
    return swathe.cut(path, box=(3, 4, 10, 8))


@pytest.mark.more
def test_dask_brings_cutouts_from_other_processes(counts: swathe.Cutout) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        result = client.submit(middle, Path(counts.url)).result(60)
    same_cutout(result, counts)


def test_slices_cut_what_numpy_selects(tmp_path: Path) -> None:
    cube = np.arange(4 * 50 * 60, dtype="i4").reshape(4, 50, 60)
    fits.writeto(path := tmp_path / "cube.fits", cube)
    for slices in (
        np.s_[1:3, 5:15, 20:40],
        np.s_[..., -10:, :7],
        np.s_[2:],
        np.s_[:, 40:99, -5:-1],
    ):
        cutout = swathe.cut(path, section=slices)
        np.testing.assert_array_equal(cutout.data, cube[slices])
    assert cutout.box == (55, 40, 4, 10)
    assert swathe.cut(path, section="[1:20,6:15]", planes=1).box == (0, 5, 20, 10)
    for wrong in (np.s_[::2], np.s_[5:5], np.s_[0], np.s_[:, :, :, :], np.s_[9:]):
        with pytest.raises(errors.RegionError):
            swathe.cut(path, section=wrong)
    with pytest.raises(errors.RegionError, match="planes"):
        swathe.cut(path, section=np.s_[1:2], planes=1)
    with pytest.raises(errors.RegionError, match="box, section"):
        swathe.cut(path, section=np.s_[1:2], box=(0, 0, 1, 1))


def test_planes_mean_the_same_everywhere(tmp_path: Path) -> None:
    cube = np.arange(9 * 8 * 8, dtype="i2").reshape(9, 8, 8)
    fits.writeto(path := tmp_path / "cube.fits", cube)
    table = {"file": [str(path)], "x0": [0], "y0": [0], "width": [8], "height": [8]}
    ways: tuple[Any, ...] = (4, np.int64(4), slice(4, 5), (4, 5), [4])
    for number, planes in enumerate(ways):
        one = swathe.cut(path, box=(0, 0, 8, 8), planes=planes)
        assert one.shape == (1, 8, 8) and one.data[0, 0, 0] == cube[4, 0, 0]
        out = tmp_path / str(number)
        swathe.cut_many(table, output=out, planes=planes, progress=False)
        assert (out / "0.fits").read_bytes() == one.to_bytes()
        assert swathe.predict(table, planes=planes).bytes == 8 * 8 * 2
    assert swathe.cut(path, box=(0, 0, 8, 8), planes=-1).data[0, 0, 0] == cube[8, 0, 0]
    for many in (-1, slice(3, None), slice(0, 4, 2), (4, 4), [1, 3]):
        with pytest.raises(errors.RegionError, match="planes"):
            swathe.predict(table, planes=many)
