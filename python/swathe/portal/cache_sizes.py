"""Sizes of the cache on disk, for metrics."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from swathe.core import cache
from swathe.core.errors import SwatheError

if TYPE_CHECKING:
    from swathe.core.cache import CacheFolder

log = logging.getLogger(__name__)
CACHE_S = 60.0
"""Seconds for which sizes of the cache hold: to count them, its folder is listed."""


class CacheSizes:
    """Sizes of the folders of the cache, counted once a minute at most."""

    def __init__(self) -> None:
        """Start without sizes."""
        self._lock = threading.Lock()
        self._until_s = 0.0
        self._folders: list[CacheFolder] = []

    def folders(self) -> list[CacheFolder]:
        """Return the folders; none if they cannot be read, which the log says."""
        with self._lock:
            if time.monotonic() >= self._until_s:
                try:
                    self._folders = cache.show()
                except SwatheError as error:
                    log.warning("sizes of the cache are not in /metrics: %s", error)
                    self._folders = []
                self._until_s = time.monotonic() + CACHE_S
            return self._folders
