"""Resolve names of objects to positions, by a service like Sesame of the CDS.

Off unless `SWATHE_RESOLVER` is set to `sesame`, or to the URL of a compatible service.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock

from swathe.core.errors import RegionError

VARIABLE = "SWATHE_RESOLVER"
SESAME = "sesame"
TIMEOUT_S, PAUSE_S = 10.0, 30.0
"""Time limit of an answer, and the wait before a service that failed is asked again."""
MOST_ENTRIES = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 +.*_()\[\]-]{0,59}")

_lock = Lock()
_silent_until: dict[str, float] = {}
_until: ContextVar[float] = ContextVar("_until", default=math.inf)


class UnaskedError(Exception):
    """A name must be looked up, and the time for that is over."""


@contextmanager
def asking_for(seconds: float) -> Iterator[None]:
    """Allow look-ups of names for some seconds (0: none); then `resolve` raises UnaskedError."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def is_configured() -> bool:
    """Check whether a resolver is configured."""
    return bool(os.environ.get(VARIABLE, "").strip())


def resolve(name: str) -> tuple[float, float]:
    """Return right ascension and declination (ICRS, degrees) of an object.

    Raises:
        RegionError: If no resolver is configured, it does not answer, or it knows no such object.
        UnaskedError: If the time of `asking_for` is over.
    """
    words = " ".join(name.split())
    if not NAME.fullmatch(words):
        raise RegionError(f"{words[:60]!r} is not the name of an object")
    service = os.environ.get(VARIABLE, "").strip()
    if not service:
        raise RegionError(f"{words}: names of objects need a resolver; set {VARIABLE}={SESAME}")
    if service != SESAME and not service.startswith(("http://", "https://")):
        raise RegionError(f"{VARIABLE}: expected {SESAME} or a URL, found {service[:60]!r}")
    if time.monotonic() >= _until.get():
        raise UnaskedError(words)
    return _ask(service, words)


@lru_cache(MOST_ENTRIES)
def _ask(service: str, name: str) -> tuple[float, float]:
    """Look up a name; answers are cached, errors are not."""
    from astropy.coordinates import get_icrs_coordinates
    from astropy.coordinates.name_resolve import NameResolveError, sesame_url
    from astropy.utils.data import conf

    urls = sesame_url.get() if service == SESAME else [service.rstrip("/") + "/"]
    # Settings of astropy are shared by all threads.
    with _lock:
        if time.monotonic() < _silent_until.get(service, 0):
            raise RegionError(f"{name}: the resolver did not answer; try again in a minute")
        try:
            with sesame_url.set(urls), conf.set_temp("remote_timeout", TIMEOUT_S):
                place = get_icrs_coordinates(name)
        except (NameResolveError, ValueError, OSError) as error:
            if "queries failed" in str(error):
                _silent_until[service] = time.monotonic() + PAUSE_S
            text = " ".join(str(error).split())[:200]
            raise RegionError(f"{name}: the resolver returned no position: {text}") from error
    return float(place.ra.deg), float(place.dec.deg)
