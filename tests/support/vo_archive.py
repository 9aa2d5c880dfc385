"""An archive with images of every kind, catalogued, and a portal that serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.conftest import DATA
from tests.support.fits_frames import contents, fits_bytes, noise, sky_header
from tests.support.portals import RunningPortal, database_in, served

AUTHORITY = "archive.example"
SETTINGS = f'[vo]\nauthority = "{AUTHORITY}"\ntitle = "An archive"\n'
NEAR_POLE = 89.99
BEGIN_MJD = 53_600.0
UWS = {"uws": "http://www.ivoa.net/xml/UWS/v1.0", "xlink": "http://www.w3.org/1999/xlink"}


def did(dataset: str, path: str, hdu: int = 0) -> str:
    return f"ivo://{AUTHORITY}/{dataset}?{path},{hdu}"


def cube() -> bytes:
    """A cube of 6 planes of 1 GHz from 100 GHz on, and 4 Stokes parameters."""
    header = sky_header(150.0, 2.0)
    header["NAXIS"] = 4
    for axis, (kind, value, step, unit) in enumerate(
        [("FREQ", 100e9, 1e9, "Hz"), ("STOKES", 1.0, 1.0, "")], 3
    ):
        header[f"CTYPE{axis}"], header[f"CRVAL{axis}"] = kind, value
        header[f"CDELT{axis}"], header[f"CRPIX{axis}"] = step, 1.0
        header[f"CUNIT{axis}"] = unit
    pixels = np.random.default_rng(3).normal(0, 1, (4, 6, 40, 50)).astype("f4")
    header["CRPIX1"], header["CRPIX2"] = 25.0, 20.0
    return fits_bytes(fits.PrimaryHDU(pixels, header))


def film() -> bytes:
    """A cube whose third axis is time: ten planes of a day."""
    header = sky_header(160.0, 2.0)
    header["NAXIS"] = 3
    header["CTYPE3"], header["CRVAL3"], header["CDELT3"] = "UTC", 0.5, 1.0
    header["CRPIX3"], header["CUNIT3"], header["MJDREF"] = 1.0, "d", BEGIN_MJD
    header["CRPIX1"], header["CRPIX2"] = 25.0, 20.0
    pixels = np.random.default_rng(4).normal(0, 1, (10, 40, 50)).astype("f4")
    return fits_bytes(fits.PrimaryHDU(pixels, header))


def make_archive(folder: Path) -> None:
    """Write files into a folder."""
    folder.mkdir()
    plain = sky_header(10.0, -1.0)
    plain.update({"DATE-OBS": "2005-09-20T04:30:00", "EXPTIME": 54.0, "FILTER": "r"})
    plain.update({"ORIGIN": "SDSS", "TELESCOP": "2.5m", "INSTRUME": "Camera", "OBJECT": "NGC 99 "})
    (folder / "plain.fits").write_bytes(contents(noise(1), "fit", plain))
    for kind in ("fit.gz", "fit.bz2", "fit.fz"):
        (folder / f"packed.{kind}").write_bytes(contents(noise(2), kind, sky_header(11.0, -1.0)))
    (folder / "a b+c,d#é.fits").write_bytes(contents(noise(3), "fit", sky_header(12.0, -1.0)))
    (folder / "zero.fits").write_bytes(contents(noise(4), "fit", sky_header(0.001, 30.0)))
    (folder / "pole.fits").write_bytes(contents(noise(5), "fit", sky_header(45.0, NEAR_POLE)))
    (folder / "cube.fits").write_bytes(cube())
    (folder / "film.fits").write_bytes(film())
    nowhere = fits.PrimaryHDU(np.arange(200, dtype="i2").reshape(10, 20))
    (folder / "nowhere.fits").write_bytes(fits_bytes(nowhere))
    two = fits_bytes(
        fits.PrimaryHDU(),
        fits.ImageHDU(noise(6), sky_header(20.0, 5.0), name="SCI"),
        fits.ImageHDU(noise(7), sky_header(20.0, 5.0), name="ERR"),
    )
    (folder / "two.fits").write_bytes(two)


def catalogue(catalog: Catalog, name: str, folder: Path, pattern: str | None = None) -> Any:
    """Add a folder as a store and a dataset of one name."""
    store = catalog.add_store(name, str(folder))
    catalog.add_dataset(name, name, "", pattern)
    return scan(catalog, name, list_objects(store, "", pattern), threads=2)


@contextmanager
def observatory(
    folder: Path, settings: str = "", *, real: bool = True, more: Mapping[str, bytes] = {}
) -> Iterator[RunningPortal]:
    """Serve an archive: the datasets `made`, `sky` of the real files, and `more` of other files."""
    make_archive(folder / "made")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        catalogue(catalog, "made", folder / "made")
        if real and DATA.is_dir():
            catalogue(catalog, "sky", DATA / "sky")
        if more:
            (folder / "more").mkdir()
            for name, content in more.items():
                (folder / "more" / name).write_bytes(content)
            catalogue(catalog, "more", folder / "more")
    with served(folder, SETTINGS + settings) as portal:
        yield portal


class Visitor:
    """Asks a portal."""

    def __init__(self, portal: RunningPortal) -> None:
        self.portal, self.folder = portal, portal.folder / "made"
        self.base = f"{portal.url}/vo"
        self.client = httpx.Client(base_url=f"{self.base}/", timeout=120)

    def sync(self, identifier: str | None = None, **parameters: Any) -> httpx.Response:
        ids = {} if identifier is None else {"ID": identifier}
        return self.client.get("sync", params={**ids, **parameters})

    def cut(self, identifier: str, **parameters: Any) -> fits.HDUList:
        answer = self.sync(identifier, **parameters)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/fits"
        return fits.open(BytesIO(answer.content))

    def pixels(self, identifier: str, **parameters: Any) -> NDArray[Any]:
        """The image that a cut is; of an extension it is one too."""
        with self.cut(identifier, **parameters) as hdus:
            return next(np.array(hdu.data) for hdu in hdus if hdu.data is not None)

    def refused(
        self, *ids: str, label: str = "UsageError", status: int = 400, **parameters: Any
    ) -> str:
        """Ask in vain; gives what is told."""
        answer = self.sync(*ids, **parameters)
        assert answer.headers.get("content-type", "").startswith("text/plain")
        assert answer.status_code == status, (answer.status_code, answer.text)
        assert answer.text.startswith(f"{label}: "), answer.text
        return answer.text.strip()


@contextmanager
def visited(
    folder: Path, settings: str = "", *, real: bool = True, more: Mapping[str, bytes] = {}
) -> Iterator[Visitor]:
    """Serve an archive and give a visitor."""
    with observatory(folder, settings, real=real, more=more) as portal:
        visitor = Visitor(portal)
        with visitor.client:
            yield visitor


def create(visitor: Visitor, *, files: Any = None, **parameters: Any) -> str:
    """Make a job; gives its URL."""
    answer = visitor.client.post("async", data=parameters, files=files)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def ended(url: str) -> ElementTree.Element:
    """Wait for the end of a job as a client of UWS 1.1 does; gives its document."""
    phase = "EXECUTING"
    for _ in range(100):
        answer = httpx.get(url, params={"WAIT": 10, "PHASE": phase}, timeout=120)
        tree = ElementTree.fromstring(answer.content)
        phase = str(tree.findtext("uws:phase", "", UWS))
        if phase in ("COMPLETED", "ERROR", "ABORTED"):
            return tree
    raise AssertionError(phase)


def results(tree: ElementTree.Element) -> dict[str, tuple[str, str]]:
    """URL and media type of each result."""
    return {
        str(each.get("id")): (
            str(each.get("{http://www.w3.org/1999/xlink}href")),
            str(each.get("mime-type")),
        )
        for each in tree.iterfind(".//uws:result", UWS)
    }


def image(content: bytes) -> np.ndarray[Any, Any]:
    with fits.open(BytesIO(content)) as hdus:
        return next(np.array(hdu.data) for hdu in hdus if hdu.data is not None)
