"""What it takes to make results of other formats from the cutouts that the engine writes.

One thread makes them while the engine cuts. `swathe probe` measures it with the other computing
costs of a host.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import OptionError
from swathe.core.stored_record import stored_record
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from swathe.core.row_table import RowTable

BOUND = 1.3
"""It takes at least a 1.3th and at most 1.3 times as long in 80 of 100 cases."""
ASSUMED_BOUND = 2.0
"""The same for results whose time is not measured, but assumed."""


@dataclass(frozen=True)
class FormatCosts:
    """Seconds to make results of one format.

    Attributes:
        row_s: for each result: its cutout is read, the result hashed and written.
        pixel_s: for each pixel.
        job_s: for each call.
    """

    row_s: float
    pixel_s: float
    job_s: float = 0.0

    @classmethod
    def of(cls, compute: str | None, name: str, usual: FormatCosts | None = None) -> FormatCosts:
        """Return what the computing costs of a host say, as JSON; else what is assumed.

        Args:
            compute: computing costs of the host; `None` if it was not measured.
            name: name of the format.
            usual: what the operation says of a format that hosts do not measure.

        Raises:
            OptionError: If nothing is known of the format.
            CatalogError: If a cost is missing of those that were measured.
        """
        name = AS_SOURCE if name == SOURCE else name
        costs = USUAL_COSTS.get(name, usual) if isinstance(name, str) else None
        if costs is None:
            raise OptionError(
                f"format: expected one of fits, {', '.join(USUAL_COSTS)}, found {short_text(name)}"
            )
        measurements = {} if compute is None else json.loads(compute).get("formats", {})
        if name not in measurements:
            return costs
        return stored_record(cls, measurements[name], f"costs of {name} results on this host")

    def seconds(self, results: int, pixels: float) -> float:
        """Return the seconds of some results, and of all their pixels."""
        return self.job_s + results * self.row_s + pixels * self.pixel_s


IMAGE_FORMATS = ("npy", "png")
"""Formats of results of images and of arrays; the others are of arrays alone."""
USUAL_COSTS = {
    "npy": FormatCosts(0.3e-3, 4e-9),
    "png": FormatCosts(0.6e-3, 150e-9),
    "nc": FormatCosts(5e-3, 10e-9),
    "h5": FormatCosts(5e-3, 10e-9),
    "tif": FormatCosts(5e-3, 10e-9),
    "asdf": FormatCosts(25e-3, 10e-9),
}
"""A 2.5 GHz Xeon of 2019, for a host that was not measured."""
SOURCE = "source"
"""Name of the format of results that have the format of their sources."""
AS_SOURCE = "nc"
"""Format whose costs are those of results in the format of their source."""


def pixels_of(rows: RowTable) -> float:
    """Return the pixels in the boxes of rows; of a cube, those of one plane."""
    return float((rows.box[:, 2].astype(float) * rows.box[:, 3]).sum())


def beside(cutting_s: float, making_s: float, results: int) -> float:
    """Return the seconds of cutting, and of making results as soon as their cutouts are there."""
    return max(cutting_s + making_s / results, making_s + cutting_s / results)
