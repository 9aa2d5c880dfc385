"""Execution of job batches: by threads of this process, or by workers of a Dask scheduler.

>>> runner = Runner(jobs)
>>> runner.start()

`Runner` takes chunks of jobs from the catalogue, gives them to a `Pool` as batches, and keeps what
comes back. A pool knows neither catalogue nor queue: whatever becomes of it, the queue is durable.
"""

from swathe.workers.local import LocalPool
from swathe.workers.pool import Pool
from swathe.workers.runner import Runner

__all__ = ["LocalPool", "Pool", "Runner"]
