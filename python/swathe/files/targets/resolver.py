"""Names of objects as positions, by a resolver that speaks as Sesame of the CDS does.

Off unless `SWATHE_RESOLVER` is set: `sesame`, or the URL of a service that answers as it does.
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
"""How long an answer may take, and how long a service that gave none is not asked again."""
MOST_CACHED = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 +.*_()\[\]-]{0,59}")

_lock = Lock()
_silent_until: dict[str, float] = {}
_until: ContextVar[float] = ContextVar("_until", default=math.inf)


class UnaskedError(Exception):
    """A name has to be asked about, and the time for that is over."""


@contextmanager
def asking_for(seconds: float) -> Iterator[None]:
    """Ask about names for so many seconds; then `resolve` raises UnaskedError. For 0, ask none."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def is_configured() -> bool:
    """Tell whether names can be asked about."""
    return bool(os.environ.get(VARIABLE, "").strip())


def resolve(name: str) -> tuple[float, float]:
    """Give right ascension and declination (ICRS, degrees) of an object.

    Raises:
        RegionError: where no resolver is configured, it does not answer, or knows no such object.
        UnaskedError: where the time of `asking_for` is over.
    """
    words = " ".join(name.split())
    if not NAME.fullmatch(words):
        raise RegionError(f"{words[:60]!r} is no name of an object")
    service = os.environ.get(VARIABLE, "").strip()
    if not service:
        raise RegionError(f"{words}: names of objects need a resolver; set {VARIABLE}={SESAME}")
    if service != SESAME and not service.startswith(("http://", "https://")):
        raise RegionError(f"{VARIABLE}: expected {SESAME} or a URL, found {service[:60]!r}")
    if time.monotonic() >= _until.get():
        raise UnaskedError(words)
    return _ask(service, words)


@lru_cache(MOST_CACHED)
def _ask(service: str, name: str) -> tuple[float, float]:
    """Ask a service; answers are kept, errors are not."""
    from astropy.coordinates import get_icrs_coordinates
    from astropy.coordinates.name_resolve import NameResolveError, sesame_url
    from astropy.utils.data import conf

    urls = sesame_url.get() if service == SESAME else [service.rstrip("/") + "/"]
    # The settings of astropy are those of all threads.
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
            raise RegionError(f"{name}: the resolver gives no position: {text}") from error
    return float(place.ra.deg), float(place.dec.deg)
