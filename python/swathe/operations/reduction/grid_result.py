"""The result of a resolution reduction: statistics of the cells of a grid."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from swathe.core.errors import OptionError, OutputError
from swathe.core.folder_output import refuse_in_zarr
from swathe.core.outputs import check_output, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from swathe.operations.reduction.grid_spec import GridSpec

COUNTS = ("count", "pixels")
SUFFIXES = (".nc", ".npy", ".fits")


@dataclass(frozen=True)
class GridResult:
    """Statistics of the cells of a grid.

    Rows go from the south to the north, columns to the east. A cell without valid pixels has NaN.

    Attributes:
        grid: the grid.
        data: arrays by statistic, shape (rows, columns), or (cells,) for HEALPix; always with
            `pixels`, the number of all pixels of a cell, and `count`, that of the valid ones.
        row_edges: latitudes of the edges of rows in degrees; `None` for HEALPix.
        column_edges: longitudes of the edges of columns in degrees; `None` for HEALPix.
        gaussian: latitudes of a Gaussian grid in degrees; else `None`.
        outside: number of pixels in no cell: outside of the bounds, or without a place.
        attrs: units and names of the values, and the condition.
        sources: paths and URLs of the files that were read; none of them is ever replaced.
        bytes_moved: bytes read from stores, as stored, in `requests` requests.
    """

    grid: GridSpec
    data: dict[str, NDArray[Any]]
    row_edges: NDArray[np.float64] | None
    column_edges: NDArray[np.float64] | None
    gaussian: NDArray[np.float64] | None
    outside: int
    attrs: dict[str, Any]
    sources: tuple[str, ...] = ()
    bytes_moved: int = 0
    requests: int = 0

    def __getitem__(self, statistic: str) -> NDArray[Any]:
        """Return the array of a statistic.

        Raises:
            OptionError: If it was not asked for.
        """
        if statistic not in self.data:
            raise OptionError(
                f"statistic: expected one of {', '.join(self.data)}, found {statistic!r:.40}"
            )
        return self.data[statistic]

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the names of the axes."""
        return ("cell",) if self.row_edges is None else ("lat", "lon")

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Return the centres of rows and columns in degrees; numbers of cells for HEALPix."""
        if self.row_edges is None or self.column_edges is None:
            return {"cell": np.arange(len(self.data["pixels"]))}
        middle = (self.row_edges[:-1] + self.row_edges[1:]) / 2
        lat = middle if self.gaussian is None else self.gaussian
        return {"lat": lat, "lon": (self.column_edges[:-1] + self.column_edges[1:]) / 2}

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Return the cells into which no pixel fell."""
        return np.asarray(self.data["pixels"] == 0)

    @property
    def is_all_fill(self) -> NDArray[np.bool_]:
        """Return the cells into which pixels fell that are all fill."""
        return np.asarray((self.data["pixels"] > 0) & (self.data["count"] == 0))

    def _attributes_of(self, name: str) -> dict[str, Any]:
        if name in COUNTS:
            return {"long_name": f"number of {'valid ' if name == 'count' else ''}pixels"}
        attributes = {key: value for key, value in self.attrs.items() if key != "where"}
        return {
            **attributes,
            "cell_methods": f"area: {'standard_deviation' if name == 'std' else name}",
        }

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset`.

        Raises:
            OptionError: If xarray is not installed.
        """
        try:
            import xarray
        except ImportError as error:
            raise OptionError(
                "to_xarray: expected xarray, found none: pip install xarray"
            ) from error
        variables = {
            name: (self.dims, each, self._attributes_of(name)) for name, each in self.data.items()
        }
        return xarray.Dataset(variables, self.coords, self._globals())

    def _globals(self) -> dict[str, Any]:
        where = {"where": self.attrs["where"]} if "where" in self.attrs else {}
        return {"Conventions": "CF-1.8", "grid": str(self.grid), "outside": self.outside, **where}

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write to a file: `.nc` (NetCDF classic), `.fits`, or `.npy` (the first statistic).

        Raises:
            OutputExistsError: If the file exists, and `overwrite` is false.
            OutputError: If it cannot be written, or its suffix is another.
        """
        target = Path(path)
        refuse_in_zarr(target)
        check_target(target, overwrite=overwrite, sources=self.sources)
        writers = {".nc": self._write_nc, ".npy": self._write_npy, ".fits": self._write_fits}
        save = writers[target.suffix.lower()]
        write_file(target, save, overwrite=overwrite, sources=self.sources)

    def _write_npy(self, output: BinaryIO) -> None:
        np.save(output, next(iter(self.data.values())))

    def _write_nc(self, output: BinaryIO) -> None:
        from scipy.io import netcdf_file  # type: ignore[import-untyped]

        content = BytesIO()
        with netcdf_file(content, "w", version=2) as file:
            for name, value in self._globals().items():
                setattr(file, name, np.float64(value) if name == "outside" else value.encode())
            units = {"lat": "degrees_north", "lon": "degrees_east"}
            for name, values in self.coords.items():
                file.createDimension(name, len(values))
                variable = file.createVariable(name, "i4" if name == "cell" else "f8", (name,))
                variable[:] = values
                if name in units:
                    variable.units = units[name]
                    variable.standard_name = {"lat": "latitude", "lon": "longitude"}[name]
            for name, values in self.data.items():
                small = name in COUNTS and values.max(initial=0) <= np.iinfo(np.int32).max
                variable = file.createVariable(name, "i4" if small else "f8", self.dims)
                variable[:] = values
                for key, value in self._attributes_of(name).items():
                    setattr(variable, key, str(value).encode())
                if name not in COUNTS:
                    variable._FillValue = np.float64(np.nan)
            file.flush()
            output.write(content.getvalue())

    def _write_fits(self, output: BinaryIO) -> None:
        from astropy.io import fits

        hdus = [fits.PrimaryHDU()]
        hdus[0].header["GRID"] = str(self.grid)
        arrays = {**self.data, **self.coords}
        hdus += [fits.ImageHDU(values, name=name.upper()) for name, values in arrays.items()]
        content = BytesIO()  # astropy knows no file that was opened as new
        fits.HDUList(hdus).writeto(content)
        output.write(content.getvalue())


def check_target(target: Path, *, overwrite: bool = False, sources: Iterable[str] = ()) -> None:
    """Check that a result can be written to a file, before it is computed.

    Raises:
        OutputExistsError: If the file exists, and `overwrite` is false.
        OutputError: If its folder is not there, its suffix is no format of results, or it is one of
            the sources.
    """
    if target.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{target}: expected {', '.join(SUFFIXES)}, found {target.suffix!r}")
    check_output(target, overwrite=overwrite, sources=sources)
