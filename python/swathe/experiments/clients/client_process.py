"""Clients of a ramp on one host: a process that receives an order, and splits into clients.

It reads the order as a line of JSON from standard input: the schedule, the numbers of its clients,
whether they are processes or threads, and their requests. After all imports it says `ready`, and
receives the time at which the first client joins. Only then it splits, so that a client costs
little memory and starts on time.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.errors import SourceError
from swathe.experiments.clients.frames_in_store import take_over
from swathe.experiments.clients.ramp_schedule import Schedule, SteadyClock, as_records, run_client

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

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
    chosen = order.permutation(len(what))

    def next_of(count: int) -> Any:
        return what[int(chosen[count % len(what)])]

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
    """Make one cut, or the median of several, and write it to a file."""
    from swathe.cutting.one import cut

    if len(several) == 1:
        content = cut(several[0][0], box=_box(several[0][1])).to_bytes()
        with tempfile.TemporaryFile() as file:
            return file.write(content)
    images = [cut(name, box=_box(box)).data.astype(np.float32) for name, box in several]
    with tempfile.TemporaryFile() as file:
        np.save(file, np.median(images, axis=0))
        return file.tell()


def _box(numbers: list[int]) -> tuple[int, int, int, int]:
    x0, y0, width, height = numbers
    return x0, y0, width, height


@cache
def _trusted() -> ssl.SSLContext:
    """Return the TLS context: loaded once for all clients, because it takes long."""
    import httpx

    return httpx.create_ssl_context()


@contextmanager
def _portal(work: dict[str, Any], next_of: Callable[[int], str]) -> Iterator[Callable[[int], int]]:
    import httpx

    token = os.environ.get("SWATHE_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    arguments = {"headers": headers, "timeout": ANSWER_S, "base_url": work["url"]}
    with httpx.Client(verify=_trusted(), **arguments) as http:

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
    numbers: list[int] = order["clients"]
    work = order["work"]

    def be(number: int) -> list[tuple[Any, ...]]:
        def tell(text: str) -> None:
            # In one write: all clients share standard error.
            sys.stderr.write(f"{FAILURE}{' '.join(text.split())[:500]}\n")
            sys.stderr.flush()

        with make_requester(work, number) as ask:
            return run_client(number, schedule, ask, SteadyClock(), tell)

    if order["kind"] == "thread":
        return as_records(_threads(be, numbers))
    return as_records(_processes(be, numbers, Path(order["records"]).parent))


def _threads(be: Callable[[int], list[Any]], numbers: list[int]) -> list[Any]:
    """Run each client in a thread."""
    records: list[Any] = []
    with ThreadPoolExecutor(len(numbers)) as pool:
        begun = {number: pool.submit(be, number) for number in numbers}
    for number, one in begun.items():
        if error := one.exception():
            raise SourceError(f"client {number + 1}: its thread ended early: {error}")
        records += one.result()
    return records


def _processes(be: Callable[[int], list[Any]], numbers: list[int], folder: Path) -> list[Any]:
    """Fork a process for each client; this process has no other threads."""
    with tempfile.TemporaryDirectory(prefix="clients-", dir=folder) as name:
        children = []
        for number in numbers:
            pid = os.fork()
            if pid:
                children.append(pid)
                continue
            code = 1
            try:
                np.save(f"{name}/{number}.npy", as_records(be(number)))
                code = 0
            except BaseException as error:
                Path(f"{name}/{number}.txt").write_text(f"{type(error).__name__}: {error}")
            finally:
                os._exit(code)
        for pid in children:
            os.waitpid(pid, 0)
        lost = [number for number in numbers if not Path(f"{name}/{number}.npy").exists()]
        if lost:
            error_file = Path(f"{name}/{lost[0]}.txt")
            why = f": {error_file.read_text()}" if error_file.exists() else ""
            raise SourceError(f"client {lost[0] + 1}: its process ended early{why}")
        return [row for number in numbers for row in np.load(f"{name}/{number}.npy").tolist()]


def main() -> None:
    """Execute the order; write the records to the file it names."""
    order = json.loads(sys.stdin.readline())
    take_over(order)
    portal = order["work"]["kind"] == "portal"
    if portal:
        _trusted()
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
