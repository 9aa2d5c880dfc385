"""Swathe cuts regions from very large FITS images, at the speed of the storage.

>>> import swathe
>>> c = swathe.cut("frame.fit.gz", center=(812.4, 533.9), shape=(100, 100))
>>> c.data, c.header, c.wcs
>>> manifest = swathe.cut_many("targets.csv", output="cutouts/")
"""

import sys
from typing import TYPE_CHECKING

from swathe._swathe import __version__
from swathe.core import cache, errors
from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe import algorithms, datasets, runs, sandbox, stores, trace
    from swathe.algorithms.definition import Algorithm
    from swathe.algorithms.static_check import check_algorithm
    from swathe.algorithms.trial import try_algorithm
    from swathe.client.job import RemoteJob
    from swathe.client.portal import RemotePortal, connect
    from swathe.core.sample_granules import sample_swaths
    from swathe.core.sample_survey import sample
    from swathe.costs.predict_list import predict
    from swathe.costs.prediction import Prediction
    from swathe.costs.recorded_probe import probe, probe_buffer
    from swathe.cutting.many import cut_many
    from swathe.cutting.one import cut
    from swathe.datasets.named_datasets import mirror
    from swathe.datasets.search import find
    from swathe.files.cutout import Cutout
    from swathe.files.file import File, open
    from swathe.files.hdu import HduInfo
    from swathe.files.image import Image
    from swathe.operations.reduction.grid_spec import GridSpec
    from swathe.operations.reduction.reduction import reduce
    from swathe.operations.reduction.swath import Swath
    from swathe.runs import open_run, run
    from swathe.runs.superfiles.open_superfile import superfile
    from swathe.stores.filesystem import fs
    from swathe.workers.simulate.simulation_study import simulate_pool

# `import swathe.errors` and `from swathe.errors import ...`, though the module is in `core`.
sys.modules[f"{__name__}.cache"] = cache
sys.modules[f"{__name__}.errors"] = errors

__all__ = [
    "Algorithm",
    "Cutout",
    "File",
    "GridSpec",
    "HduInfo",
    "Image",
    "Prediction",
    "RemoteJob",
    "RemotePortal",
    "Swath",
    "__version__",
    "algorithms",
    "cache",
    "check_algorithm",
    "connect",
    "cut",
    "cut_many",
    "datasets",
    "errors",
    "find",
    "fs",
    "mirror",
    "open",
    "open_run",
    "predict",
    "probe",
    "probe_buffer",
    "reduce",
    "run",
    "runs",
    "sample",
    "sample_swaths",
    "sandbox",
    "simulate_pool",
    "stores",
    "superfile",
    "trace",
    "try_algorithm",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Algorithm": "swathe.algorithms.definition",
        "Cutout": "swathe.files.cutout",
        "File": "swathe.files.file",
        "GridSpec": "swathe.operations.reduction.grid_spec",
        "HduInfo": "swathe.files.hdu",
        "Image": "swathe.files.image",
        "Prediction": "swathe.costs.prediction",
        "RemoteJob": "swathe.client.job",
        "RemotePortal": "swathe.client.portal",
        "Swath": "swathe.operations.reduction.swath",
        "algorithms": "swathe.algorithms",
        "check_algorithm": "swathe.algorithms.static_check",
        "connect": "swathe.client.portal",
        "cut": "swathe.cutting.one",
        "cut_many": "swathe.cutting.many",
        "datasets": "swathe.datasets",
        "find": "swathe.datasets.search",
        "fs": "swathe.stores.filesystem",
        "mirror": "swathe.datasets.named_datasets",
        "open": "swathe.files.file",
        "open_run": "swathe.runs",
        "predict": "swathe.costs.predict_list",
        "probe": "swathe.costs.recorded_probe",
        "probe_buffer": "swathe.costs.recorded_probe",
        "reduce": "swathe.operations.reduction.reduction",
        "run": "swathe.runs",
        "runs": "swathe.runs",
        "sample": "swathe.core.sample_survey",
        "sample_swaths": "swathe.core.sample_granules",
        "sandbox": "swathe.sandbox",
        "simulate_pool": "swathe.workers.simulate.simulation_study",
        "stores": "swathe.stores",
        "superfile": "swathe.runs.superfiles.open_superfile",
        "trace": "swathe.trace",
        "try_algorithm": "swathe.algorithms.trial",
    },
)


def __dir__() -> list[str]:
    """Return the public names; the modules that define them are not part of the interface."""
    return list(__all__)
