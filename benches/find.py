"""How long a search takes among many images.

    python benches/find.py [--smoke] [--granules 100000] [--searches 200] [--database URL]

Images of 0.25 degree lie in strips over a part of the sky, in five bands and three epochs, as
those of a survey do; one in a thousand is a hundred times larger, and ten show the whole sky.
Places are drawn from a seed. What is timed is `swathe.find`: from the call to the table.
"""

from __future__ import annotations

import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import swathe
from harness import options, work_folder
from swathe.catalog import Catalog, Footprint, Granule, Replica
from swathe.datasets import healpix
from swathe.datasets.spherical import degrees, directions, distances, middle

SIDE_DEG = 0.25
BANDS = "ugriz"
EPOCHS = 3
BATCH = 2000


def square(ra_deg: float, dec_deg: float, side_deg: float) -> Footprint:
    """What a square image covers."""
    centre = directions(np.array(ra_deg), np.array(dec_deg))
    lon = math.radians(ra_deg)
    east = np.array([-math.sin(lon), math.cos(lon), 0.0])
    north = np.cross(centre, east)
    half = math.tan(math.radians(side_deg / 2))
    corners = np.array([centre + half * (x * east + y * north) for x, y in SQUARE])
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    _, radius = middle(corners)
    order = healpix.order_for(radius / 3)
    near = healpix.cells_around(centre, radius, order)
    polygons = np.broadcast_to(corners, (len(near), 4, 3))
    apart = distances(polygons, healpix.centres(near, order))
    cells = near[apart <= healpix.cell_radius(order)]
    outline = np.column_stack(degrees(corners)).ravel().tolist()
    ranges = healpix.ranges(cells, order)
    return Footprint(ra_deg, dec_deg, 2 * math.degrees(radius), 0.4, ranges, outline)


SQUARE = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def granules(count: int) -> Iterator[Granule]:
    """Return images side by side, from right ascension 300 over 0 to 60, from declination -1 up."""
    columns = round(120 / SIDE_DEG)
    place = square(0, 0, SIDE_DEG)
    for number in range(count):
        field, layer = divmod(number, len(BANDS) * EPOCHS)
        if layer == 0:
            row, column = divmod(field, columns)
            side = SIDE_DEG if field % 1000 else 100 * SIDE_DEG
            ra, dec = (300 + column * SIDE_DEG) % 360, -1 + row * SIDE_DEG
            place = square(ra, dec, side)
        if number % (count // 10) == 5:
            footprint = Footprint(0, 0, 360, 3600, [healpix.ALL_SKY], None, ALL_SKY_WCS)
            yield granule(number, layer, footprint, (180, 360))
        else:
            yield granule(number, layer, place, (2048, 2048))


ALL_SKY_WCS = "".join(
    card.ljust(80)
    for card in (
        "WCSAXES =                    2",
        "CRPIX1  =                180.5",
        "CRPIX2  =                 90.5",
        "CDELT1  =                 -1.0",
        "CDELT2  =                  1.0",
        "CUNIT1  = 'deg'",
        "CUNIT2  = 'deg'",
        "CTYPE1  = 'RA---AIT'",
        "CTYPE2  = 'DEC--AIT'",
        "CRVAL1  =                  0.0",
        "CRVAL2  =                  0.0",
        "RADESYS = 'ICRS'",
    )
)


def granule(number: int, layer: int, place: Footprint, shape: tuple[int, int]) -> Granule:
    """Return an image of this place."""
    epoch, band = divmod(layer, len(BANDS))
    start = 53_000.0 + 300 * epoch + number * 1e-4
    return Granule(
        path=f"run{epoch}/frame-{BANDS[band]}-{number:07}.fits",
        hdu=0,
        name=None,
        shape=shape,
        size=12_000_000,
        version="v",
        t_min=start,
        t_max=start + 1e-3,
        band=BANDS[band],
        em_min=4e-7 + 1e-7 * band,
        em_max=5e-7 + 1e-7 * band,
        footprint=place,
    )


def fill(catalog: Catalog, count: int) -> None:
    """Put the images into a catalogue."""
    catalog.add_store("disk", "/survey")
    catalog.add_dataset("survey", "disk", "", None)
    batch = []
    for image in granules(count):
        replica = Replica(image.path, image.path, image.size, "1", "v", "ok")
        batch.append((replica, [image]))
        if len(batch) == BATCH:
            catalog.put_objects("survey", "disk", batch)
            batch = []
    catalog.put_objects("survey", "disk", batch)
    catalog.set_sync_time("survey")


def time_searches(catalog: Catalog, count: int, searches: int) -> None:
    """Print how long searches take, by radius."""
    rng = np.random.default_rng(3)
    rows = math.ceil(count / len(BANDS) / EPOCHS / (120 / SIDE_DEG))
    print("| search | found, median | median | 95 % |")
    print("|---|---|---|---|")
    cases: list[tuple[str, float, dict[str, Any]]]
    cases = [("a point", 0.0, {}), ("a circle of 1'", 1 / 60, {}), ("of 6'", 0.1, {})]
    cases += [("of 6', in r", 0.1, {"band": "r"}), ("of 1 degree", 1.0, {})]
    for what, radius, more in cases:
        took, counts = [], []
        for turn in range(searches + 3):
            ra = (300 + 120 * rng.random()) % 360
            dec = -1 + rows * SIDE_DEG * rng.random()
            start_s = time.perf_counter()
            table = swathe.find((ra, dec), radius, catalog=catalog, **more)
            if turn >= 3:  # the first ones import
                took.append(time.perf_counter() - start_s)
                counts.append(len(table))
        print_times(what, counts, took)


def print_times(what: str, counts: list[int], took: list[float]) -> None:
    """Print a row of the table: what was found, and how long searches took."""
    ordered = sorted(took)
    print(
        f"| {what} | {statistics.median(counts):g} | {1e3 * statistics.median(took):.1f} ms "
        f"| {1e3 * ordered[int(0.95 * len(ordered))]:.1f} ms |",
        flush=True,
    )


def measure(
    text: str | None,
    name: str,
    usual: int,
    fill: Callable[[Catalog, int], None],
    time_searches: Callable[[Catalog, int, int], None],
) -> None:
    """Fill a catalogue with as many as the option `name` says, and search in it."""
    parser = options(text)
    parser.add_argument(f"--{name}", dest="count", type=int, default=usual)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--database", help="an empty one; else SQLite in a new folder")
    arguments = parser.parse_args()
    count, searches = (1000, 5) if arguments.smoke else (arguments.count, arguments.searches)
    with work_folder() as folder:
        url = arguments.database or f"sqlite:///{folder}/catalog.sqlite"
        with Catalog.open(url) as catalog:
            start_s = time.perf_counter()
            fill(catalog, count)
            print(
                f"{count:,} {name} in {time.perf_counter() - start_s:.1f} s, "
                f"{url.partition(':')[0]}, {platform.processor() or platform.machine()}"
            )
            time_searches(catalog, count, searches)


if __name__ == "__main__":
    measure(__doc__, "granules", 100_000, fill, time_searches)
