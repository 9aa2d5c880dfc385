"""Swathe cuts regions out of very large FITS images, at the speed of the disk.

>>> import swathe
>>> c = swathe.cut("frame.fit.gz", center=(812.4, 533.9), shape=(100, 100))
>>> c.data, c.header, c.wcs
>>> manifest = swathe.cut_many("targets.csv", output="cutouts/")
"""

from swathe import errors, trace
from swathe._swathe import __version__
from swathe.client import connect
from swathe.cutout import Cutout
from swathe.datasets.search import find
from swathe.many import cut_many
from swathe.objects import File, Image, open
from swathe.predict import Prediction, predict
from swathe.single import cut

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
    """Return the public names: modules that these come from are no part of the interface."""
    return list(__all__)
