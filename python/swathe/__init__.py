"""Swathe cuts regions from very large FITS images, at the speed of the storage.

>>> import swathe
>>> c = swathe.cut("frame.fit.gz", center=(812.4, 533.9), shape=(100, 100))
>>> c.data, c.header, c.wcs
>>> manifest = swathe.cut_many("targets.csv", output="cutouts/")
"""

import sys

from swathe import trace
from swathe._swathe import __version__
from swathe.client.portal import connect
from swathe.core import errors
from swathe.costs.prediction import Prediction, predict
from swathe.cutting.many import cut_many
from swathe.cutting.one import cut
from swathe.datasets.search import find
from swathe.files.cutout import Cutout
from swathe.files.file import File, Image, open

# `import swathe.errors` and `from swathe.errors import ...`, though the module is in `core`.
sys.modules[f"{__name__}.errors"] = errors

__all__ = [
    "Cutout",
    "File",
    "Image",
    "Prediction",
    "__version__",
    "connect",
    "cut",
    "cut_many",
    "errors",
    "find",
    "open",
    "predict",
    "trace",
]


def __dir__() -> list[str]:
    """Return the public names; the modules that define them are not part of the interface."""
    return list(__all__)
