"""Clients of a ramp on one host: a process that receives an order, and splits into clients.

It reads the order as a line of JSON from standard input: the schedule, the numbers of its clients,
whether they are processes or threads, and their requests. After all imports it says `ready`, and
receives the time at which the first client joins. Only then it splits, so that a client costs
little memory and starts on time.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.errors import SourceError
from swathe.experiments.clients.frames_in_store import take_over
from swathe.experiments.clients.ramp_schedule import Schedule, SteadyClock, as_records, run_client

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from numpy.typing import NDArray

ANSWER_S = 60.0
FAILURE = "a request failed: "
"""Prefix on standard error for the first failed request of a client."""


@contextmanager
def make_requester(work: dict[str, Any], client: int) -> Iterator[Callable[[int], int]]:
    """Yield the function that makes a client's requests, each a different one.

    Args:
        work: `kind` and `what`: `cut`: object and box of each; `portal`: paths below `url`; `mix`:
            lists of object and box; of several the median is computed.
        client: number of the client: each client has its own order of requests.
    """
    order = np.random.default_rng([work.get("seed", 0), client])
    what = work["what"]
    turns = order.permutation(len(what))

    def next_of(count: int) -> Any:
        return what[int(turns[count % len(what)])]

    if work["kind"] == "portal":
        with _portal(work, next_of) as ask:
            yield ask
        return
    makers: dict[str, Callable[[Any], int]] = {"cut": _cut, "mix": _reduce}
    make = makers[work["kind"]]
    yield lambda count: make(next_of(count))


def _cut(one: tuple[str, list[int]]) -> int:
    from swathe.cutting.one import cut

    name, (x0, y0, width, height) = one
    return len(cut(name, box=(x0, y0, width, height)).to_bytes())


def _reduce(several: list[tuple[str, list[int]]]) -> int:
    """Make one cut, or the median of several, and write it to a file.

    Returns the bytes that servers sent.
    """
    from swathe.cutting.one import cut

    bytes_before = _swathe.received_bytes()
    cuts = [cut(name, box=_box(box)) for name, box in several]
    with tempfile.TemporaryFile() as file:
        if len(cuts) == 1:
            file.write(cuts[0].to_bytes())
        else:
            np.save(file, np.median([each.data.astype(np.float32) for each in cuts], axis=0))
    return _swathe.received_bytes() - bytes_before


def _box(numbers: list[int]) -> tuple[int, int, int, int]:
    x0, y0, width, height = numbers
    return x0, y0, width, height


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context: loaded once for all clients, because it takes long."""
    import httpx

    return httpx.create_ssl_context()


@contextmanager
def _portal(work: dict[str, Any], next_of: Callable[[int], str]) -> Iterator[Callable[[int], int]]:
    import httpx

    token = os.environ.get("SWATHE_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    arguments = {"headers": headers, "timeout": ANSWER_S, "base_url": work["url"]}
    with httpx.Client(verify=_tls_context(), **arguments) as http:

        def ask(count: int) -> int:
            answer = http.get(next_of(count))
            if answer.status_code != 200:
                reason = f"answered {answer.status_code} {answer.text[:200]!r}"
                raise SourceError(f"{_swathe.redact_url(work['url'])}: {reason}")
            return len(answer.content)

        yield ask


def run(order: dict[str, Any], start: float) -> NDArray[Any]:
    """Run the ordered clients, the first from `start` on; return the records of all."""
    schedule = Schedule(start, order["join_s"], start + order["length_s"], order["rate"])
    return as_records(
        run_clients(order["kind"], order["clients"], partial(_client, schedule, order["work"]))
    )


def _client(schedule: Schedule, work: dict[str, Any], number: int) -> list[tuple[Any, ...]]:
    def tell(text: str) -> None:
        # In one write: all clients share standard error.
        sys.stderr.write(f"{FAILURE}{' '.join(text.split())[:500]}\n")
        sys.stderr.flush()

    with make_requester(work, number) as ask:
        return run_client(number, schedule, ask, SteadyClock(), tell)


def run_clients(kind: str, numbers: list[int], client: Callable[[int], list[Any]]) -> list[Any]:
    """Run each client in a thread or a process of its own; return their records.

    Processes are forked at once, while this process has no other threads.

    Raises:
        SourceError: If a client fails.
    """
    count = len(numbers)
    pool: Executor
    if kind == "thread":
        pool = ThreadPoolExecutor(count)
    else:
        pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork"))
    records: list[Any] = []
    with pool:
        futures = {number: pool.submit(client, number) for number in numbers}
    for number, future in futures.items():
        if error := future.exception():
            # A process that dies breaks the pool: then each future has the error.
            name = "a client" if isinstance(error, BrokenExecutor) else f"client {number + 1}"
            reason = f"{type(error).__name__}: {error}"
            raise SourceError(f"{name}: its {kind} ended early: {reason}")
        records += future.result()
    return records


def main() -> None:
    """Execute the order; write the records to the file it names."""
    order = json.loads(sys.stdin.readline())
    take_over(order)
    portal = order["work"]["kind"] == "portal"
    if portal:
        _tls_context()
    else:
        importlib.import_module("swathe.cutting.one")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if line:
        np.save(order["records"], run(order, float(line)))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
