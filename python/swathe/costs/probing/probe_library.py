"""Measure the time to start the confined process of a library, and to call it."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from swathe.arrays.indexing import call_reader, new_process
from swathe.core.served_file import FileReads

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "hdf5"
CALLS = 5
SHAPE = (8, 8)


def measure_library(folder: Path) -> dict[str, float]:
    """Return `start_s` and `call_s` of `LibraryCosts`; nothing without h5py.

    Args:
        folder: folder for a file to read.
    """
    if find_spec("h5py") is None:
        return {}
    content = _write_array(folder / "library.h5")
    file = FileReads(lambda at, size: content[at : at + size], len(content))
    region: dict[str, Any] = {"name": "/made", "start": [0, 0], "stop": list(SHAPE)}
    process = new_process(FORMAT)
    try:
        times_s = []
        for _ in range(1 + CALLS):  # the first call starts the process
            began_s = time.perf_counter()
            call_reader(process, "read", region, file, FORMAT, "a file of the probe")
            times_s.append(time.perf_counter() - began_s)
    finally:
        process.close()
    call_s = sorted(times_s[1:])[CALLS // 2]
    return {"start_s": max(times_s[0] - call_s, 1e-6), "call_s": call_s}


def _write_array(path: Path) -> bytes:
    """Return a file with an array made of another one, which only h5py reads."""
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        file.create_dataset("values", data=np.zeros(SHAPE, "<i2"))
        layout = h5py.VirtualLayout(SHAPE, "<i2")
        layout[:] = h5py.VirtualSource(".", "values", SHAPE)
        file.create_virtual_dataset("made", layout)
    return path.read_bytes()
