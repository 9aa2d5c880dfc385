"""Resolve names of objects to positions: by the lists of `object_names`, or by a service.

A service is asked for what the lists do not have, if `SWATHE_RESOLVER` is `sesame` (of the CDS) or
the URL of a compatible service. If it is `none`, there are no names.
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
from swathe.files.targets.object_names import has_nebulae, place_of

VARIABLE = "SWATHE_RESOLVER"
SESAME, NONE = "sesame", "none"
TIMEOUT_S, PAUSE_S = 10.0, 30.0
"""Time limit of an answer, and the wait before a service that failed is asked again."""
MOST_ENTRIES = 10_000
NAME = re.compile(r"[^\W_][\w '\u2019+.*()\[\]-]{0,59}")

_lock = Lock()
_silent_until: dict[str, float] = {}
_until: ContextVar[float] = ContextVar("_until", default=math.inf)


class UnaskedError(Exception):
    """A name must be looked up, and the time for that is over."""


class UnknownNameError(RegionError):
    """No list has an object of this name, and there is no service to ask; says what is known."""


@contextmanager
def asking_for(seconds: float) -> Iterator[None]:
    """Allow look-ups of names for some seconds (0: none); then `resolve` raises UnaskedError."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def is_on() -> bool:
    """Check whether names are resolved."""
    return os.environ.get(VARIABLE, "").strip() != NONE


def resolve(name: str) -> tuple[float, float]:
    """Return right ascension and declination (ICRS, degrees) of an object.

    Raises:
        UnknownNameError: If no list has the object, and there is no service.
        RegionError: If names are off, the service does not know it or does not answer, or several
            stars have this name.
        UnaskedError: If a service must be asked, and the time of `asking_for` is over.
    """
    words = " ".join(name.split())
    if not NAME.fullmatch(words):
        raise RegionError(f"{words[:60]!r} is not the name of an object")
    service = os.environ.get(VARIABLE, "").strip()
    if service == NONE:
        raise RegionError(f"{words}: names of objects are off ({VARIABLE}={NONE})")
    if (place := place_of(words)) is not None:
        return place
    if not service:
        what = "a star, galaxy or nebula" if has_nebulae() else "a star (more: swathe[names])"
        raise UnknownNameError(f"the name of {what}; to ask a service, {VARIABLE}={SESAME}")
    if service != SESAME and not service.startswith(("http://", "https://")):
        raise RegionError(f"{VARIABLE}: expected {SESAME}, {NONE} or a URL, found {service[:60]!r}")
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
