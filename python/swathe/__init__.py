"""Swathe cuts regions from very large FITS images, at the speed of the storage.

>>> import swathe
>>> c = swathe.cut("frame.fit.gz", center=(812.4, 533.9), shape=(100, 100))
>>> c.data, c.header, c.wcs
>>> manifest = swathe.cut_many("targets.csv", output="cutouts/")
"""

import sys
from typing import TYPE_CHECKING

from swathe import datasets, stores, trace
from swathe._swathe import __version__
from swathe.client.job import RemoteJob
from swathe.client.portal import RemotePortal, connect
from swathe.core import cache, errors
from swathe.core.lazy import lazy_names
from swathe.costs.prediction import Prediction, predict
from swathe.cutting.many import cut_many
from swathe.cutting.one import cut
from swathe.datasets.search import find
from swathe.files.cutout import Cutout
from swathe.files.file import File, Image, open
from swathe.files.hdu import HduInfo

if TYPE_CHECKING:
    from swathe.core.sample_survey import sample
    from swathe.costs.recorded_probe import probe, probe_buffer
    from swathe.datasets.named_datasets import mirror
    from swathe.workers.simulate.simulation_study import simulate_pool

# `import swathe.errors` and `from swathe.errors import ...`, though the module is in `core`.
sys.modules[f"{__name__}.cache"] = cache
sys.modules[f"{__name__}.errors"] = errors

__all__ = [
    "Cutout",
    "File",
    "HduInfo",
    "Image",
    "Prediction",
    "RemoteJob",
    "RemotePortal",
    "__version__",
    "cache",
    "connect",
    "cut",
    "cut_many",
    "datasets",
    "errors",
    "find",
    "mirror",
    "open",
    "predict",
    "probe",
    "probe_buffer",
    "sample",
    "simulate_pool",
    "stores",
    "trace",
]

__getattr__ = lazy_names(
    __name__,
    {
        "mirror": "swathe.datasets.named_datasets",
        "probe": "swathe.costs.recorded_probe",
        "probe_buffer": "swathe.costs.recorded_probe",
        "sample": "swathe.core.sample_survey",
        "simulate_pool": "swathe.workers.simulate.simulation_study",
    },
)


def __dir__() -> list[str]:
    """Return the public names; the modules that define them are not part of the interface."""
    return list(__all__)
