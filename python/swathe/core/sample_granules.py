"""Make synthetic swaths to try reductions on: HDF-EOS2 granules in the likeness of MODIS level 2.

A granule has 2030 x 1354 pixels of about 1 km, places for every fifth pixel with the dimension map
of HDF-EOS, its times in CoreMetadata, and the fields of its product. Values depend on place and day
with noise of the seed; clouds hide pixels.

Rules of this module:

- A granule depends only on the recipe, the seed, its product, its day and its number of the day.
- A file gets its final name only when it is complete. The same seed gives the same values.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.argument_checks import check_count
from swathe.core.errors import OptionError, OutputError, OutputExistsError
from swathe.core.outputs import EXISTS, write_file
from swathe.core.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECIPE = 1
"""Version of the recipe; raise it when the same seed gives other values."""
SHAPE = (2030, 1354)
EVERY = 5
"""Pixels from one place to the next."""
FIRST_DAY = datetime(2005, 5, 1, tzinfo=UTC)
GRANULE_S = 300
MOST_DAYS, MOST_GRANULES, MOST_SEED = 366, 288, (1 << 63) - 1
LABEL = "swaths.json"
KM_DEG = 1 / 111.2
CLOUDY = 0.55
"""Share of pixels that clouds leave free, about."""
SWATH = "mod_swath"
ROWS, COLUMNS = "Cell_Along_Swath", "Cell_Across_Swath"


@dataclass(frozen=True)
class Field:
    """A field of a product.

    Attributes:
        name: name in the file.
        kind: type of the stored numbers.
        fill: stored number of pixels without a value.
        scale: physical value of 1.
        unit: unit of the physical values.
        typical: physical values at the equator and at the poles, and the noise.
        under_clouds: whether clouds hide it.
    """

    name: str
    kind: str
    fill: int
    scale: float
    unit: str
    typical: tuple[float, float, float]
    under_clouds: bool = True


PRODUCTS: dict[str, tuple[Field, ...]] = {
    "MOD11_L2": (
        Field("LST", "uint16", 0, 0.02, "K", (305, 245, 3)),
        Field("QC", "uint16", 65535, 1, "bit field", (1, 1, 1), under_clouds=False),
    ),
    "MOD06_L2": (
        Field("Cloud_Fraction", "int16", -9999, 0.01, "none", (0.4, 0.7, 0.15), under_clouds=False),
        Field(
            "Cloud_Top_Temperature", "int16", -9999, 0.01, "K", (235, 225, 8), under_clouds=False
        ),
    ),
    "MOD05_L2": (
        Field("Water_Vapor_Near_Infrared", "int16", -9999, 0.001, "cm", (4.5, 0.4, 0.3)),
        Field("Optical_Depth_Land_And_Ocean", "int16", -9999, 0.001, "none", (0.25, 0.08, 0.03)),
    ),
}
"""Fields of each product. The optical depth is one of MOD04, with pixels of 10 km there."""


def sample_swaths(
    folder: str | os.PathLike[str],
    *,
    days: int = 7,
    granules: int = 4,
    seed: int = 1,
    shape: tuple[int, int] = SHAPE,
    overwrite: bool = False,
    progress: bool = True,
) -> Path:
    """Make swaths like MOD11_L2, MOD06_L2 and MOD05_L2 in HDF-EOS2, from 2005-05-01 on.

    Args:
        folder: folder of the swaths; made if missing. Each product has a folder in it.
        days: number of days.
        granules: granules of each product a day.
        seed: random seed; the same seed gives the same values.
        shape: pixels of a granule along and across its track.
        overwrite: whether swaths of another seed or shape may be replaced.
        progress: whether to show a bar, if standard error is a terminal.

    Returns:
        The folder.

    Raises:
        TypeError: If a number is not a whole number.
        ValueError: If a number is too small or too large.
        OptionError: If pyhdf is not installed.
        OutputError: If the folder cannot be written, or holds other swaths.
    """
    check_count("days", days, MOST_DAYS)
    check_count("granules", granules, MOST_GRANULES)
    check_count("seed", seed, MOST_SEED, least=0)
    for length in shape:
        check_count("shape", length, SHAPE[0], least=2 * EVERY)
    try:
        import pyhdf.SD  # noqa: F401
    except ImportError:
        raise OptionError("HDF-EOS2 needs pyhdf; try: pip install 'swathe[hdf4]'") from None
    path = Path(folder)
    label = (json.dumps({"recipe": RECIPE, "seed": seed, "shape": list(shape)}) + "\n").encode()
    with progress_bar("writing", progress, len(PRODUCTS) * days * granules) as show_count:
        try:
            is_same = _start(path, label, overwrite)
            number = 0
            for product in PRODUCTS:
                for day in range(days):
                    for granule in range(granules):
                        begin = FIRST_DAY + timedelta(days=day, minutes=_minute(granule, granules))
                        file = path / product / granule_name(product, begin)
                        if not (is_same and file.exists()):
                            _write(file, Granule(product, begin, seed, shape))
                        show_count(number := number + 1)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{os.fspath(folder)}: {error}") from error
    return path


def granule_name(product: str, begin: datetime) -> str:
    """Return the name of a granule, as the archive of MODIS has it: year, day of year, time."""
    return f"{product}.A{begin:%Y%j.%H%M}.hdf"


def _minute(granule: int, granules: int) -> int:
    """Return the minute of the day at which a granule begins, a multiple of 5."""
    return granule * (MOST_GRANULES // granules) * GRANULE_S // 60


def _start(folder: Path, label: bytes, overwrite: bool) -> bool:
    """Make the folders, and return whether swaths that are there are of this sample."""
    file = folder / LABEL
    is_same = file.is_file() and file.read_bytes() == label
    if not is_same and not overwrite and any(folder.glob("MOD*/*.hdf")):
        raise OutputExistsError(f"{folder}: swaths of another seed or shape {EXISTS}")
    for product in PRODUCTS:
        (folder / product).mkdir(parents=True, exist_ok=True)
    if not is_same:
        for each in folder.glob("MOD*/*.hdf"):
            each.unlink()
        write_file(file, lambda output: output.write(label), overwrite=overwrite)
    return is_same


@dataclass(frozen=True)
class Granule:
    """A granule: its product, when it begins, the seed, pixels along and across the track."""

    product: str
    begin: datetime
    seed: int
    shape: tuple[int, int]

    def rng(self, word: str) -> np.random.Generator:
        """Return the random numbers for a use, which depend on nothing else."""
        import numpy as np

        numbers = [RECIPE, self.seed, int(self.begin.timestamp()), *word.encode()]
        return np.random.default_rng(numbers)

    def places(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return latitude and longitude in degrees of every fifth pixel, along and across."""
        import numpy as np

        row, column = (EVERY // 2 + EVERY * np.arange(length // EVERY) for length in self.shape)
        rng = self.rng("place")
        middle, east = rng.uniform(-50, 50), rng.uniform(-180, 180)
        along = (row - self.shape[0] / 2)[:, None] * KM_DEG
        across = (column - self.shape[1] / 2)[None, :] * 1.7 * KM_DEG  # pixels grow to the edges
        latitude = middle + along + 0.17 * across
        longitude = east + (across - 0.17 * along) / np.cos(np.radians(latitude))
        return latitude.astype("f4"), ((longitude + 180) % 360 - 180).astype("f4")

    def values(self, field: Field, latitude: NDArray[np.float32]) -> NDArray[Any]:
        """Return the stored numbers of a field, in the shape of the granule."""
        import numpy as np

        rows, columns = (
            np.minimum(np.arange(length) // EVERY, length // EVERY - 1) for length in self.shape
        )
        warm, cold, noise = field.typical
        smooth = cold + (warm - cold) * np.cos(np.radians(latitude)) ** 2
        value = smooth[rows][:, columns]
        value += noise * self.rng(field.name).standard_normal(self.shape, dtype=np.float32)
        limits = np.iinfo(field.kind)
        numbers = np.rint(np.maximum(value, 0) / field.scale).clip(0, limits.max - 1)
        numbers = np.maximum(numbers, 1) if field.fill == 0 else numbers
        if field.under_clouds:
            # Clouds are patches of 20 pixels.
            patches = self.rng("clouds").random([length // 20 + 1 for length in self.shape])
            rows, columns = (np.arange(length) // 20 for length in self.shape)
            numbers[patches[rows][:, columns] > CLOUDY] = field.fill
        return numbers.astype(field.kind)


def _write(path: Path, granule: Granule) -> None:
    """Write a granule; its arrays first, then the groups of HDF-EOS that name them."""
    write_file(path, lambda file: _save(file.name, granule), overwrite=True)


def _save(path: str, granule: Granule) -> None:
    from pyhdf.HDF import HC, HDF
    from pyhdf.SD import SD, SDC
    from pyhdf.V import V  # noqa: F401  # adds `vgstart`

    types = {"uint16": SDC.UINT16, "int16": SDC.INT16, "float32": SDC.FLOAT32}
    places = granule.places()
    folders: dict[str, list[int]] = {"Geolocation Fields": [], "Data Fields": []}
    file = SD(path, SDC.WRITE | SDC.CREATE | SDC.TRUNC)

    def add(folder: str, name: str, values: NDArray[Any], ending: str, **attributes: Any) -> None:
        array = file.create(name, types[str(values.dtype)], values.shape)
        for axis, dimension in enumerate((ROWS, COLUMNS)):
            array.dim(axis).setname(f"{dimension}{ending}:{SWATH}")
        array.setcompress(SDC.COMP_DEFLATE, 1)
        if "fill" in attributes:
            array.setfillvalue(attributes.pop("fill"))
        for key, value in attributes.items():
            setattr(array, key, value)
        array[:] = values
        folders[folder].append(array.ref())
        array.endaccess()

    try:
        for name, values in zip(("Latitude", "Longitude"), places, strict=True):
            add("Geolocation Fields", name, values, "_5km", units="degrees")
        for field in PRODUCTS[granule.product]:
            add(
                "Data Fields", field.name, granule.values(field, places[0]), "_1km",
                fill=field.fill, scale_factor=field.scale, units=field.unit,
            )  # fmt: skip
        for name, text in (
            ("HDFEOSVersion", "HDFEOS_V2.19"),
            ("StructMetadata.0", structure_text(granule)),
            ("CoreMetadata.0", core_text(granule)),
        ):
            file.attr(name).set(SDC.CHAR, text)
    finally:
        file.end()
    hdf = HDF(path, HC.WRITE)
    groups = hdf.vgstart()
    swath = groups.create(SWATH)
    swath._class = "SWATH"
    for folder, references in folders.items():
        group = groups.create(folder)
        group._class = "SWATH Vgroup"
        for reference in references:
            group.add(HC.DFTAG_NDG, reference)
        swath.insert(group)
        group.detach()
    swath.detach()
    groups.end()
    hdf.close()


def structure_text(granule: Granule) -> str:
    """Return StructMetadata: the axes of the swath, and the map from places to pixels."""
    sizes = {
        f"{name}_1km": length for name, length in zip((ROWS, COLUMNS), granule.shape, strict=True)
    }
    sizes |= {name.replace("_1km", "_5km"): length // EVERY for name, length in sizes.items()}
    dimensions = [(f'DimensionName="{name}"', f"Size={length}") for name, length in sizes.items()]
    maps = [
        (f'GeoDimension="{name}_5km"', f'DataDimension="{name}_1km"', f"Offset={EVERY // 2}",
         f"Increment={EVERY}") for name in (ROWS, COLUMNS)
    ]  # fmt: skip

    def entries_of(kind: str, name: str, number: str, ending: str) -> tuple[str, ...]:
        axes = f'DimList=("{ROWS}{ending}","{COLUMNS}{ending}")'
        return f'{kind}Name="{name}"', f"DataType=DFNT_{number.upper()}", axes

    geo = [entries_of("GeoField", name, "float32", "_5km") for name in ("Latitude", "Longitude")]
    data = [
        entries_of("DataField", each.name, each.kind, "_1km") for each in PRODUCTS[granule.product]
    ]
    lines = ["GROUP=SwathStructure", "GROUP=SWATH_1", f'SwathName="{SWATH}"']
    for kind, objects in (
        ("Dimension", dimensions), ("DimensionMap", maps), ("GeoField", geo), ("DataField", data),
    ):  # fmt: skip
        lines += [f"GROUP={kind}"]
        for number, entries in enumerate(objects, 1):
            lines += [f"OBJECT={kind}_{number}", *entries, f"END_OBJECT={kind}_{number}"]
        lines += [f"END_GROUP={kind}"]
    return "\n".join([*lines, "END_GROUP=SWATH_1", "END_GROUP=SwathStructure", "END", ""])


def core_text(granule: Granule) -> str:
    """Return CoreMetadata: the times, and which product it is like."""
    end = granule.begin + timedelta(seconds=GRANULE_S)
    entries = {"SHORTNAME": granule.product, "ASSOCIATEDPLATFORMSHORTNAME": "synthetic"}
    for word, time in (("BEGINNING", granule.begin), ("ENDING", end)):
        entries |= {f"RANGE{word}DATE": f"{time:%Y-%m-%d}", f"RANGE{word}TIME": f"{time:%H:%M:%S}"}
    lines = ["GROUP=INVENTORYMETADATA"]
    for name, value in entries.items():
        lines += [f"OBJECT={name}", "NUM_VAL=1", f'VALUE="{value}"', f"END_OBJECT={name}"]
    return "\n".join([*lines, "END_GROUP=INVENTORYMETADATA", "END", ""])
