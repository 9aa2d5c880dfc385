"""Checks of the stores: each is listed, and the clocks of web servers are compared."""

from __future__ import annotations

import threading
import time
from email.utils import parsedate_to_datetime
from queue import Empty, Queue
from typing import TYPE_CHECKING

import httpx

from swathe.core.errors import DatasetError, SwatheError
from swathe.core.format import seconds_text
from swathe.portal.doctor.check import Check
from swathe.portal.doctor.machine import LATE_S, clock_check
from swathe.stores.registry import to_native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swathe.catalog import Store

LIST_S = 60.0
"""Time for all stores to answer."""
ANSWER_S = 10.0
SCHEMES = {"http": "http", "https": "https", "dav": "http", "davs": "https"}
"""Schemes of stores that are web servers, and those of their URLs."""


def check_stores(stores: Sequence[Store]) -> Iterator[Check]:
    """Yield the checks of all stores, which are asked at the same time."""
    if not stores:
        yield Check("stores", "OK", "none are registered", "add one: swathe store add NAME URL")
        return
    results: Queue[tuple[str, list[Check]]] = Queue()

    def check(store: Store) -> None:
        results.put((store.name, [_list(store), *_clock(store)]))

    # Daemons: a server that never answers must not keep the command from its end.
    for store in stores:
        threading.Thread(target=check, args=(store,), daemon=True).start()
    checks: dict[str, list[Check]] = {}
    until_s = time.monotonic() + LIST_S
    try:
        while len(checks) < len(stores):
            name, of_store = results.get(timeout=max(0.0, until_s - time.monotonic()))
            checks[name] = of_store
    except Empty:
        late = Check("", "FAIL", f"no answer within {LIST_S:g} s")
        for store in stores:
            name = f"store {store.name}"
            one = Check(name, late.state, late.text, "see whether its server is reached from here")
            checks.setdefault(store.name, [one])
    for store in stores:
        yield from checks[store.name]


def _list(store: Store) -> Check:
    """List the begin of a store."""
    name = f"store {store.name}"
    start_s = time.monotonic()
    try:
        listing = to_native([store]).list(f"{store.name}:", may_lack=False)
        page = listing.next_page() or []
    except DatasetError as error:
        # A web server without an index: its files are read by their names.
        return Check(name, "WARN", str(error), "catalogue it by a list of its files")
    except SwatheError as error:
        return Check(name, "FAIL", str(error), f"see `swathe store show {store.name}`")
    except Exception as error:  # a kind of store of another package
        return Check(name, "FAIL", f"{type(error).__name__}: {error}", "ask who made its package")
    duration = seconds_text(time.monotonic() - start_s)
    faults = [why for *_, why in page if why is not None]
    if faults:
        return Check(name, "WARN", f"{store.url}: {faults[0]}", "see who may read its folders")
    what = "lists no objects" if not page else "lists objects"
    return Check(name, "OK", f"{store.url}: {what}, first answer after {duration}")


def _clock(store: Store) -> Iterator[Check]:
    """Yield the check of the clock of a web server, if it is wrong."""
    scheme, _, rest = store.url.partition("://")
    endpoint = store.options.get("endpoint", "")
    url = endpoint or (f"{SCHEMES[scheme]}://{rest}" if scheme in SCHEMES else "")
    if not url:
        return
    try:
        sent_s = time.time()
        answer = httpx.head(url, timeout=ANSWER_S, follow_redirects=False)
        middle_s = (sent_s + time.time()) / 2
        server_s = parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError):
        return  # whether the store works is another check; some servers tell no time
    # The header has whole seconds.
    offset_s = server_s + 0.5 - middle_s
    if abs(offset_s) > LATE_S:
        yield clock_check(f"clock of {store.name}", offset_s)
