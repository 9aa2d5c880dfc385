"""A run whose location is a database."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import swathe
from tests.support.fits_frames import Runner


def test_a_run_is_written_to_a_database_and_read_back(run: Runner, tmp_path: Path) -> None:
    swathe.stores.add("rows", f"db:sqlite://{tmp_path}/objects.db")
    blocks = [np.full((16, 8), number, "f4") for number in range(3)]
    with swathe.run("astro", iterations=2) as writer:
        array = writer.array("temp", shape=(16, 8), dtype="f4", every=1, location="rows")
        for number, block in enumerate(blocks):
            array.write(number, block)
    reader = swathe.open_run("astro")["temp"]
    for number, block in enumerate(blocks):
        np.testing.assert_array_equal(np.asarray(reader[number]), block)
    assert list(swathe.stores.list_objects("rows:"))
