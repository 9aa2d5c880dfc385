"""Threads that continue after errors, and report them."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.workers.pool import describe_error, pauses

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


class RestartingThread:
    """A thread that repeats a function until the end.

    An error in one turn is logged, a bug with its traceback. The next turn begins after a pause
    that grows until a turn succeeds.
    """

    def __init__(self, name: str, turn: Callable[[], None], ending: threading.Event) -> None:
        """Take the thread's name, the function, and the event that ends it."""
        self.name = name
        self._turn, self._ending = turn, ending
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return whether it came in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def trouble(self) -> str:
        """Last error; empty if it works."""
        if self._fault:
            return f"{self.name}: {self._fault}"
        return "" if self._thread.is_alive() else f"{self.name}: not running"

    def _run(self) -> None:
        waits = pauses()
        while not self._ending.is_set():
            try:
                self._turn()
            except BaseException as error:  # a panic of the engine is not an `Exception`
                pause_s = next(waits)
                self._fault = describe_error(error)
                is_expected = isinstance(error, SwatheError)
                log.log(
                    logging.WARNING if is_expected else logging.ERROR,
                    "%s: %s; continuing in %g s",
                    self.name,
                    self._fault,
                    pause_s,
                    exc_info=None if is_expected else error,
                )
                self._ending.wait(pause_s)
            else:
                self._fault = ""
                waits = pauses()
