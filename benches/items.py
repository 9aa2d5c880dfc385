"""How long a search of the STAC API takes among many items, by box and time.

    python benches/items.py [--smoke] [--items 1000000] [--searches 200] [--database URL]

Items are granules of 5 minutes of a satellite, 2000 x 2300 km each, one after another. Boxes of
5 degrees and days are drawn from a seed. What is timed is the search in the catalogue and the
documents of the first 10 items: a page as `/stac/search` answers it, without HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from find import measure, print_times
from swathe.catalog import Catalog, Granule, Replica
from swathe.catalog.datasets.objects import ObjectQuery
from swathe.catalog.records.datasets import EarthFootprint
from swathe.datasets.earth_outline import earth_footprint
from swathe.datasets.earth_search import EarthArea
from swathe.datasets.spherical import degrees
from swathe.files.places.bounds import Bounds
from swathe.portal.stac.items import Documents

GRANULE_D = 5 / 1440
ORBIT_GRANULES = 20
"""Granules of an orbit of 100 minutes."""
REPEAT_ORBITS = 60
"""Orbits after which places repeat, so that few footprints are computed."""
BATCH = 2000
PAGE = 10


def places() -> list[EarthFootprint]:
    """Return the footprints of granules until they repeat."""
    rows, columns = np.meshgrid(np.linspace(-9, 9, 7), np.linspace(-10, 10, 7), indexing="ij")
    along, across = np.radians(rows), np.radians(columns)
    footprints = []
    for number in range(ORBIT_GRANULES * REPEAT_ORBITS):
        turn = 2 * np.pi * number / ORBIT_GRANULES + along
        east = -2 * np.pi * number * GRANULE_D
        # A circular orbit inclined by 98 degrees.
        x, y, z = np.cos(across) * np.cos(turn), np.cos(across) * np.sin(turn), np.sin(across)
        tilt = np.radians(98.0)
        y, z = y * np.cos(tilt) - z * np.sin(tilt), y * np.sin(tilt) + z * np.cos(tilt)
        x, y = x * np.cos(east) - y * np.sin(east), x * np.sin(east) + y * np.cos(east)
        longitude, latitude = degrees(np.stack([x, y, z], axis=-1))
        footprints.append(earth_footprint(latitude, longitude, (1.0, 1.0)))
    return footprints


def granules(count: int) -> Iterator[Granule]:
    """Return granules one after another."""
    footprints = places()
    for number in range(count):
        start = 51_544.0 + number * GRANULE_D
        yield Granule(
            path=f"{number // 288:05}/MOD11_L2.{number:07}.hdf",
            hdu=0,
            name="LST",
            shape=(2030, 1354),
            size=3_000_000,
            version="v",
            t_min=start,
            t_max=start + GRANULE_D,
            instrument="MODIS",
            array="/MOD_Swath_LST/Data Fields/LST",
            place=footprints[number % len(footprints)],
        )


def fill(catalog: Catalog, count: int) -> None:
    """Put the granules into a catalogue."""
    catalog.add_store("disk", "/archive")
    catalog.add_dataset("MOD11_L2", "disk", "", None)
    batch = []
    for granule in granules(count):
        replica = Replica(granule.path, granule.path, granule.size, "1", "v", "ok")
        batch.append((replica, [granule]))
        if len(batch) == BATCH:
            catalog.put_objects("MOD11_L2", "disk", batch)
            batch = []
    catalog.put_objects("MOD11_L2", "disk", batch)
    catalog.set_sync_time("MOD11_L2")


def time_searches(catalog: Catalog, count: int, searches: int) -> None:
    """Print how long searches take: within a box and a day, a box alone, a day alone."""
    documents = Documents("http://archive.example", "archive.example")
    days = count * GRANULE_D
    print("| search | items of the page, median | median | 95 % |")
    print("|---|---|---|---|")
    for what in ("box of 5 degrees and a day", "box of 5 degrees", "a day", "all, latest first"):
        random = np.random.default_rng(3)
        took, counts = [], []
        for turn in range(searches + 3):
            west, south = random.uniform(-180, 174), random.uniform(-80, 75)
            day = 51_544.0 + random.uniform(0, max(0.0, days - 1))
            start_s = time.perf_counter()
            area = EarthArea(Bounds(west, south, west + 5, south + 5)) if "box" in what else None
            asked = ObjectQuery(
                ranges=None if area is None else area.ranges,
                touches=None if area is None else area.touches,
                time=(day, day + 1) if "day" in what else None,
                order="time" if "latest" in what else "added",
                is_descending="latest" in what,
                latitudes=None if area is None else area.latitudes,
            )
            page = [documents.item(each) for each in catalog.find_objects(asked, PAGE)]
            if turn >= 3:  # the first ones import
                took.append(time.perf_counter() - start_s)
                counts.append(len(page))
        print_times(what, counts, took)


if __name__ == "__main__":
    measure(__doc__, "items", 1_000_000, fill, time_searches)
