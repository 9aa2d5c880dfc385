"""What notebooks show: facts and small pictures, escaped and bounded."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from PIL import Image

import swathe
from swathe.files import notebook
from tests.conftest import fits_bytes
from tests.support.servers import nginx

ATTACK = "<script>alert(1)</script>&\"'"


class Checked(HTMLParser):
    """Reads HTML; elements must be closed, and be those of tables and pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.pictures: list[dict[str, str | None]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p", "img")
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "img":
            self.pictures.append(dict(attrs))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "

    def picture(self) -> Image.Image:
        (attributes,) = self.pictures
        source = attributes["src"] or ""
        assert source.startswith("data:image/png;base64,")
        return Image.open(BytesIO(base64.b64decode(source.partition(",")[2])))


@pytest.fixture
def image(new_path: Callable[[str], Path]) -> Path:
    """A large image whose header is an attack."""
    path = new_path(".fits")
    cards = [("OBJECT", ATTACK), ("BUNIT", "adu"), ("FILTER", "<img src=x>")]
    path.write_bytes(fits_bytes(np.arange(1_500_000, dtype=">i4").reshape(1000, 1500), cards))
    return path


def test_a_cutout_shows_facts_and_a_small_picture(image: Path) -> None:
    cutout = swathe.cut(image, box=(100, 200, 1200, 600))
    shown = Checked(cutout._repr_html_())
    for text in (ATTACK, "adu", "x 100 to 1299, y 200 to 799", str(image), "(600, 1200)"):
        assert text in shown.text
    picture = shown.picture()
    assert max(picture.size) <= notebook.SIDE
    assert picture.size == (240, 120)
    content = cutout._repr_png_()
    assert content is not None
    assert Image.open(BytesIO(content)).size == picture.size
    # The upper edge of the sky is the upper edge of the picture; values grow upwards.
    pixels = np.asarray(picture)
    assert pixels[0].mean() > pixels[-1].mean()
    assert "data" not in vars(cutout)  # not all pixels were made physical


def test_a_cube_says_which_plane_is_shown(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(np.arange(5 * 300, dtype=">i2").reshape(5, 15, 20)))
    assert "plane 0 of 5" in Checked(swathe.cut(path, box=(0, 0, 9, 8))._repr_html_()).text


def test_an_axis_alone_has_no_picture(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    path.write_bytes(fits_bytes(np.arange(50, dtype=">i2")))
    image = swathe.open(path)[0]
    cutout = image.cut_all_axes([3], [9], "strict")
    for of in (image, cutout):
        assert not Checked(of._repr_html_()).pictures
        assert of._repr_png_() is None


def test_an_image_shows_its_middle(image: Path) -> None:
    shown = Checked(swathe.open(image)[0]._repr_html_())
    assert ATTACK in shown.text
    assert "the middle, 256 x 256 pixels from [622, 372]" in shown.text
    assert shown.picture().size == (256, 256)


@pytest.mark.parametrize(
    "how", ["gzip", pytest.param("server", marks=pytest.mark.more), "one tile"]
)
def test_an_image_that_would_take_much_reading_shows_no_picture(
    how: str, image: Path, tmp_path: Path
) -> None:
    content = image.read_bytes()
    if how == "one tile":
        path = tmp_path / "x.fits"
        pixels = np.zeros((3000, 3000), "i4")
        packed = fits.CompImageHDU(pixels, tile_shape=(3000, 3000))
        fits.HDUList([fits.PrimaryHDU(), packed]).writeto(path)
        shown = Checked(swathe.open(path).image()._repr_html_())
    elif how == "gzip":
        path = tmp_path / "x.fits.gz"
        path.write_bytes(gzip.compress(content, 1))
        shown = Checked(swathe.open(path)[0]._repr_html_())
    else:
        with nginx(tmp_path) as server:
            (server.folder / "x.fits").write_bytes(content)
            of = swathe.open(f"{server.url}/x.fits")[0]
            shown = Checked(of._repr_html_())
            assert of._repr_png_() is None
    assert "picture none: too many bytes to read" in " ".join(shown.text.split())
    assert not shown.pictures


def test_a_damaged_image_says_so(image: Path) -> None:
    whole = image.read_bytes()
    image.write_bytes(whole[:100_000])
    shown = Checked(swathe.open(image)[0]._repr_html_())
    assert re.search(r"picture\s+none: .*ends at byte 100000", shown.text)


def test_a_file_shows_its_hdus(new_path: Callable[[str], Path]) -> None:
    path = new_path(".fits")
    hdus = [fits.PrimaryHDU()]
    hdus += [fits.ImageHDU(np.zeros((2, 3), "i2"), name="<B>SCI") for _ in range(80)]
    fits.HDUList(hdus).writeto(path)
    shown = Checked(swathe.open(path)._repr_html_())
    assert "<B>SCI" in shown.text
    assert "(2, 3)" in shown.text
    assert f"and {81 - notebook.MOST_ROWS} more" in shown.text


def test_a_prediction_shows_its_stores_and_faults(image: Path) -> None:
    targets = {"file": [str(image), "/none/<i>.fits"], "x0": [1, 1], "y0": [1, 1]}
    targets |= {"width": [9, 9], "height": [9, 9]}
    shown = Checked(swathe.predict(targets)._repr_html_())
    assert "in 80 of 100 cases" in shown.text
    assert "cannot be cut" in shown.text
    assert "/none/<i>.fits" in shown.text


def test_long_values_are_cut(image: Path) -> None:
    shown = notebook.page("x", {"value": "y" * 100_000})
    assert len(shown) < 1000
