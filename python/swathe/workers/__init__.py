"""Execution of job batches: by threads of this process, or by workers of a Dask scheduler.

>>> runner = Runner(jobs)
>>> runner.start()

`Runner` leases chunks of jobs from the catalogue, sends them to a `Pool` as batches, and saves the
results. A pool knows neither catalogue nor queue. If a pool fails, the queue is durable.
"""

from typing import TYPE_CHECKING

from swathe.core.lazy import lazy_names

if TYPE_CHECKING:
    from swathe.workers.local import LocalPool
    from swathe.workers.pool import Pool
    from swathe.workers.runner import Runner

__all__ = ["LocalPool", "Pool", "Runner"]

__getattr__ = lazy_names(
    __name__,
    {
        "LocalPool": "swathe.workers.local",
        "Pool": "swathe.workers.pool",
        "Runner": "swathe.workers.runner",
    },
)
