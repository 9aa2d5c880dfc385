"""A run that workers of Dask write together, and what becomes of it when one fails."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import OptionError, OutputError
from swathe.runs.writing.dask_ranks import DaskRanks
from tests.runs.test_run import block_of

if TYPE_CHECKING:
    from distributed import Client

pytestmark = pytest.mark.more
WHOLE = np.arange(17 * 18 * 19, dtype="f8").reshape(17, 18, 19)
LIMIT_S = 60.0
"""Seconds within which a failure must be known to all."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Three workers, each a process; a store `disk` in a catalogue of its own."""
    from distributed import Client, LocalCluster

    folder = tmp_path_factory.mktemp("dask")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", f"sqlite:///{folder / 'catalog.sqlite'}")
        with Catalog.open() as catalog:
            catalog.add_store("disk", str(folder / "disk"), "local")
        with (
            LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(3)
            yield client


def simulate(ranks: DaskRanks, failure: str) -> int:
    """Write a run; rank 2 fails at the second iteration."""
    with swathe.run("app", iterations=2, comm=ranks) as run:
        a, b = (run.array(name, WHOLE.shape, "f8", pattern="BBB") for name in "ab")
        for iteration in range(3):
            if ranks.rank == 2 and iteration == 1 and failure:
                if failure == "killed":
                    os._exit(1)
                raise ValueError("no convergence")
            for array in (a, b):
                array.write(iteration, block_of(WHOLE, "BBB", ranks) + iteration)
            run.sync()
    return ranks.rank


def test_workers_write_together(client: Client) -> None:
    ranks = DaskRanks.make(client, 3)
    futures = [client.submit(simulate, each, "", workers=each.worker) for each in ranks]
    assert client.gather(futures) == [0, 1, 2]
    run = swathe.open_run("app")
    assert (run.record.ranks, run.record.state) == (3, "complete")
    for array in run.values():
        for iteration in range(3):
            np.testing.assert_array_equal(array[iteration][...], WHOLE + iteration)
    with pytest.raises(OptionError, match="expected 1 to 3, the workers of the cluster, found 4"):
        DaskRanks.make(client, 4)


@pytest.mark.parametrize(
    ("failure", "text"),
    # The one that is killed comes last: the cluster then has another worker instead.
    [("raised", "rank 2 .*no convergence"), ("killed", "rank 2: its worker .* does not answer")],
)
def test_a_worker_that_fails_is_an_error_of_all(client: Client, failure: str, text: str) -> None:
    ranks = DaskRanks.make(client, 3)
    futures = [client.submit(simulate, each, failure, workers=each.worker) for each in ranks]
    faults = []
    for future in futures[:2]:
        with pytest.raises(OutputError, match=f"{text}|rank [01] has left the run") as caught:
            future.result(timeout=LIMIT_S)
        faults.append(str(caught.value))
    assert any(re.search(text, fault) for fault in faults), faults
    run = swathe.open_run("app")
    assert run.record.state == "failed"
    np.testing.assert_array_equal(run["a"][0][...], WHOLE)
