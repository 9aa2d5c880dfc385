"""Measure what the process of GWCS costs: its start, opened systems, positions, results."""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from swathe.arrays.indexing import TOOLS, call_reader, new_process
from swathe.core.served_file import FileReads

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = "gwcs"
PATH = "/wcs"
CALLS = 5
"""Number of calls of each kind; the time of the quickest is kept."""
PLACES = 1000
"""As many as a list sends together. 500 took 0.03 s, which is lost in what a call takes."""


def measure_gwcs() -> dict[str, float]:
    """Return the costs of GWCS and of positions that `LibraryCosts` has.

    The system is that of `readers.gwcs.sample`. Nothing is measured if a library is missing.
    """
    if any(find_spec(name) is None for name in TOOLS[FORMAT].libraries):
        return {}
    process = new_process(FORMAT)

    def call(function: str, file: FileReads | None = None, **argument: Any) -> bytes:
        return call_reader(process, function, argument, file, FORMAT, "a file of the probe")

    try:
        began_s = time.perf_counter()
        content = call("sample")
        first_s = time.perf_counter() - began_s
        file = FileReads(lambda at, size: content[at : at + size], len(content))

        def locate(count: int) -> None:
            call("locate", file, path=PATH, longitudes=[30.0] * count, latitudes=[10.0] * count)

        one_s, all_s = _least_s(partial(locate, 1)), _least_s(partial(locate, PLACES))
        start_s = first_s - _least_s(lambda: call("sample"))
        part = call("shift", file, path=PATH, start=[1, 1])
    finally:
        process.close()
    return {
        "gwcs_start_s": max(start_s, 1e-6),
        "gwcs_s": one_s,
        "gwcs_result_s": _result_s(part),
        "position_s": max((all_s - one_s) / (PLACES - 1), 1e-9),
    }


def _result_s(content: bytes) -> float:
    """Return the seconds to write the system of a file into a result, as a plain node."""
    import asdf

    with asdf.open(BytesIO(content), _force_raw_types=True) as file:
        node = file.tree["wcs"]

    def write(tree: dict[str, Any]) -> None:
        asdf.AsdfFile(tree).write_to(BytesIO())

    return max(_least_s(partial(write, {"wcs": node})) - _least_s(partial(write, {})), 1e-6)


def _least_s(run: Callable[[], object]) -> float:
    """Return the least seconds of some calls: the work of others makes none of them shorter."""
    times_s = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        run()
        times_s.append(time.perf_counter() - began_s)
    return min(times_s)
