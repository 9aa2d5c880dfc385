"""Pixels that were read for viewers, in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 128 << 20
"""Pixels that are cached."""


class Pixels(Protocol):
    """What is cached: an array, or several."""

    @property
    def nbytes(self) -> int:
        """Return its bytes."""


T = TypeVar("T", bound=Pixels)


class PixelCache:
    """Arrays that were read last, within a limit of bytes; each is read once at a time."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        """Set the limit of bytes."""
        self._most, self._bytes = most, 0
        self._arrays: OrderedDict[tuple[Any, ...], Pixels] = OrderedDict()
        self._locks: dict[tuple[Any, ...], tuple[threading.Lock, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], read: Callable[[], T]) -> T:
        """Return an array from the cache, or read it."""
        with self._lock:
            own, waiting = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = own, waiting + 1
        try:
            with own:
                array = self._find(key)
                if array is None:
                    array = read()
                    self._put(key, array)
                return cast("T", array)
        finally:
            with self._lock:
                own, waiting = self._locks.pop(key)
                if waiting > 1:
                    self._locks[key] = own, waiting - 1

    def _find(self, key: tuple[Any, ...]) -> Pixels | None:
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
            return self._arrays.get(key)

    def _put(self, key: tuple[Any, ...], array: Pixels) -> None:
        with self._lock:
            self._arrays[key] = array
            self._bytes += array.nbytes
            while self._bytes > self._most:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
