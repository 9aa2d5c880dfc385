"""Catalogues of images that are made up, and queries to them in ADQL."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from astropy.wcs import WCS

from swathe.catalog import Catalog
from swathe.catalog.read_only import ReadLimit
from swathe.catalog.records.datasets import Granule, Replica
from swathe.core.sky import SkyMapping
from swathe.datasets.footprint import footprint
from swathe.portal.vo.tap.answers import write_answer
from swathe.portal.vo.tap.query_request import CSV, QueryRequest
from swathe.portal.vo.tap.sources import Sources, Upload

AUTHORITY = "archive.example"
LINKS = "http://portal.example/vo/links"
FILTERS = {"g": (4e-7, 5.5e-7), "r": (5.5e-7, 7e-7), "i": (6.9e-7, 8.2e-7)}
TARGETS = ("NGC 99", "M 31", "it's é", "M%31_", None)


@dataclass(frozen=True)
class Image:
    """An image of the test, with the values that the catalogue should have of it."""

    dataset: str
    granule: Granule
    wcs: WCS | None


def _wcs(rng: np.random.Generator, width: int, height: int) -> WCS:
    wcs = WCS(naxis=2)
    turn, scale = rng.uniform(0, 2 * math.pi), rng.uniform(1e-3, 8e-3)
    wcs.wcs.ctype = "RA---TAN", "DEC--TAN"
    wcs.wcs.crval = rng.uniform(0, 360), math.degrees(math.asin(rng.uniform(-1, 1)))
    wcs.wcs.crpix = (width + 1) / 2, (height + 1) / 2
    cos, sin = math.cos(turn), math.sin(turn)
    wcs.wcs.cd = scale * np.array([[-cos, sin], [sin, cos]])
    return wcs


@cache
def images(count: int = 300, seed: int = 5) -> tuple[Image, ...]:
    """Images all over the sky: some without place, time or band, cubes, one of the whole sky."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        width, height = (int(each) for each in rng.integers(100, 400, 2))
        shape: tuple[int, ...] = (height, width)
        if number % 11 == 0:
            shape = (int(rng.integers(1, 4)), *shape)
        wcs = None if number % 13 == 5 else _wcs(rng, width, height)
        if number == 7:
            wcs, shape = _whole_sky(), (180, 360)
        place = None if wcs is None else footprint(SkyMapping(lambda wcs=wcs: wcs, "x"), shape)  # type: ignore[misc]
        begin = None if number % 7 == 3 else float(rng.uniform(50_000, 60_000))
        band = [None, *FILTERS][int(rng.integers(0, 4))]
        em = (None, None) if band is None else FILTERS[band]
        granule = Granule(
            path=f"night {number % 9}/a+b,{number:04d}é.fits",
            hdu=number % 3,
            name=None if number % 2 else f"CCD{number}",
            shape=shape,
            size=int(rng.integers(1, 10**12)),
            version="v",
            t_min=begin,
            t_max=None if begin is None else begin + float(rng.uniform(0, 1)),
            band=band,
            em_min=em[0],
            em_max=em[1],
            footprint=place,
            facility=None if number % 4 == 0 else "Mayall",
            instrument=f"Cam{number % 5}",
            target=TARGETS[number % 5],
            pol=("I", "Q", "U", "V")[: number % 5],
        )
        made.append(Image("deep" if number % 3 else "wide", granule, wcs))
    return tuple(made)


def _whole_sky() -> WCS:
    wcs = WCS(naxis=2)
    wcs.wcs.ctype = "RA---CAR", "DEC--CAR"
    wcs.wcs.crval, wcs.wcs.crpix, wcs.wcs.cdelt = (180.0, 0.0), (180.5, 90.5), (-1.0, 1.0)
    return wcs


def fill(catalog: Catalog, folder: str, of: Sequence[Image]) -> None:
    """Put images into a catalogue; an array, and an object that cannot be read, are there, too."""
    catalog.add_store("disk", folder)
    for dataset, level in (("deep", 3), ("wide", 2)):
        catalog.add_dataset(dataset, "disk", dataset, None, calib_level=level)
        granules = [each.granule for each in of if each.dataset == dataset]
        entries: list[Any] = [
            (Replica(each.path, each.path, each.size, None, each.version, "ok"), [each])
            for each in granules
        ]
        array = Granule("cube.h5", 0, None, (5, 5), 9, "v", array="/a")
        entries.append((Replica("cube.h5", "cube.h5", 9, None, "v", "ok"), [array]))
        lost = Granule("lost.fits", 0, None, (5, 5), 9, "v")
        entries.append((Replica("lost.fits", "lost.fits", 9, None, "v", "vanished"), [lost]))
        catalog.put_objects(dataset, "disk", entries)


def rows(
    catalog: Catalog,
    text: str,
    *,
    uploads: Sequence[Upload] = (),
    owner: str | None = None,
    most: int = 10_000,
    seconds: float = 60.0,
) -> list[tuple[str, ...]]:
    """The rows of an answer as text, as CSV has them."""
    sources = Sources(catalog.is_sqlite, AUTHORITY, LINKS, owner, lambda _job_id: [], uploads)
    file = io.BytesIO()
    write_answer(catalog, sources, QueryRequest(text, most, CSV), ReadLimit.of(seconds), file)
    return [tuple(row) for row in csv.reader(io.StringIO(file.getvalue().decode()))][1:]


def values(rows: Sequence[Sequence[str]]) -> list[tuple[Any, ...]]:
    """Rows with floats where texts are numbers; of ten digits, since sums differ in their last."""

    def value(text: str) -> Any:
        try:
            return float(f"{float(text):.10g}")
        except ValueError:
            return text

    return [tuple(map(value, row)) for row in rows]
