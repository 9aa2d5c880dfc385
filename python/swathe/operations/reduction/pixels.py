"""Pixels of a granule, checked: values with their places, as they are added to a grid.

They can be written to a file, so that another process adds them later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import OptionError, RegionError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LARGEST_INTEGER = 2**53
MOST_LATITUDE = 90.0
ATTRIBUTES = ("units", "long_name", "standard_name")
"""Attributes of the values that a result has, too."""


@dataclass(frozen=True)
class Pixels:
    """Values of any shape with the place of each.

    Attributes:
        values: numbers in the byte order of the machine.
        latitude: degrees, of a shape that broadcasts to that of `values`; NaN without a place.
        longitude: degrees, in the same way.
        flags: 1 where a value is valid, of the shape of `values`; `None`: everywhere.
        attrs: some attributes of the values.
    """

    values: NDArray[Any]
    latitude: NDArray[Any]
    longitude: NDArray[Any]
    flags: NDArray[np.uint8] | None
    attrs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: Any,
        latitude: Any,
        longitude: Any,
        where: NDArray[np.bool_] | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> Pixels:
        """Check values and places.

        Args:
            data: numbers of any shape; masked elements and values that are not finite are fill.
            latitude: degrees, of a shape that broadcasts to that of `data`; masked or NaN elements
                have no place.
            longitude: degrees, in the same way.
            where: values that are taken; others count as fill. All by default.
            attrs: attributes of the values.

        Raises:
            RegionError: If shapes differ.
            OptionError: If values are no real numbers.
        """
        values = np.ma.getdata(data)
        if values.dtype.kind not in "biuf":
            raise OptionError(f"values: expected real numbers, found {values.dtype}")
        valid = _valid(data, where)
        if values.dtype.itemsize == 8 and values.dtype.kind in "iu":
            wrong = np.abs(values.astype(np.float64)) > LARGEST_INTEGER
            if (wrong if valid is None else wrong & valid).any():
                raise OptionError("values: expected integers of at most 2^53, found larger ones")
        places = _places(latitude, longitude, values.shape)
        if values.dtype.kind == "b":
            values = values.view(np.uint8)
        elif values.dtype == np.float16 or not values.dtype.isnative:
            kind = values.dtype.newbyteorder("=")
            values = values.astype(np.float32 if kind == np.float16 else kind)
        flags = None if valid is None else np.ascontiguousarray(valid).view(np.uint8)
        names = {name: attrs[name] for name in ATTRIBUTES if name in attrs} if attrs else {}
        return cls(values, *places, flags, names)

    def flat(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.uint8] | None]:
        """Return latitudes, longitudes, values and flags, one for each pixel."""
        latitude, longitude = (
            np.ascontiguousarray(np.broadcast_to(each, self.values.shape)).ravel()
            for each in (self.latitude, self.longitude)
        )
        flags = None if self.flags is None else self.flags.ravel()
        return latitude, longitude, np.ascontiguousarray(self.values).ravel(), flags

    def check_places(self) -> None:
        """Check that all places lie on the sphere; NaN is no place.

        Raises:
            RegionError: If a latitude lies beyond a pole, or a longitude is infinite.
        """
        beyond = self.latitude[np.abs(self.latitude) > MOST_LATITUDE]
        if beyond.size:
            raise RegionError(f"expected a latitude from -90 to 90, found {beyond.flat[0]}")
        endless = self.longitude[np.isinf(self.longitude)]
        if endless.size:
            raise RegionError(f"expected a finite longitude, found {endless.flat[0]}")

    def save(self, path: Path) -> None:
        """Write them to a file that `load` reads."""
        has_flags = self.flags is not None
        # Numbers as texts, as the result has them.
        attributes = [(name, str(value)) for name, value in self.attrs.items()]
        with path.open("wb") as file:
            np.save(file, np.array(attributes, np.str_).reshape(-1, 2))
            np.save(file, np.array(has_flags))
            flags = (self.flags,) if has_flags else ()
            for each in (self.values, self.latitude, self.longitude, *flags):
                np.save(file, np.asarray(each), allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> Pixels:
        """Read the pixels that `save` wrote."""
        with path.open("rb") as file:
            attrs = dict(np.load(file, allow_pickle=False).tolist())
            has_flags = bool(np.load(file, allow_pickle=False))
            values, latitude, longitude = (np.load(file, allow_pickle=False) for _ in range(3))
            flags = np.load(file, allow_pickle=False) if has_flags else None
        return cls(values, latitude, longitude, flags, attrs)


def _places(
    latitude: Any, longitude: Any, shape: tuple[int, ...]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return latitudes and longitudes of one type, NaN where there is no place.

    Raises:
        RegionError: If one does not broadcast to the shape.
        OptionError: If they are no real numbers.
    """
    kind = np.result_type(np.float32, *map(np.ma.getdata, (latitude, longitude)))
    if kind not in (np.float32, np.float64):
        raise OptionError(f"places: expected real numbers of at most 64 bits, found {kind}")
    places = []
    for name, degrees in (("latitude", latitude), ("longitude", longitude)):
        place = np.asarray(np.ma.getdata(degrees), dtype=kind)
        if np.any(np.ma.getmask(degrees)):
            place = np.where(np.ma.getmaskarray(degrees), kind.type(np.nan), place)
        try:
            np.broadcast_to(place, shape)
        except ValueError as error:
            raise RegionError(
                f"{name}: expected a shape that broadcasts to {shape}, found {place.shape}"
            ) from error
        places.append(place)
    return places[0], places[1]


def _valid(data: Any, where: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return where values are neither masked nor left out; `None` if all are taken."""
    mask = np.ma.getmask(data)
    valid = None if mask is np.ma.nomask else ~mask
    if where is None:
        return valid
    shape = np.shape(data)
    try:
        where = np.broadcast_to(where, shape)
    except ValueError as error:
        raise RegionError(
            f"where: expected a shape that broadcasts to {shape}, found {where.shape}"
        ) from error
    return where.copy() if valid is None else valid & where
