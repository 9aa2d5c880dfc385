"""Files of lines beside a catalogue file; the lines are entered into it later.

To enter something takes 10 ms, the import of SQLAlchemy for it 0.2 s, and all processes then read
the catalogue again: more than many cuts. A line in a file takes 0.1 ms. A process that is killed
loses no line that it has written.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from swathe.core.errors import CatalogError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Iterator


FULL_BYTES = 1 << 18
"""Size from which the lines should be entered: about 700 outcomes, or 2,500 reads."""
LOCK_S, LOCK_PAUSE_S = 10.0, 0.005
"""Longest wait for the lock of a log, and the pause between two tries."""
NO_RECORD = (
    *(ValueError, TypeError, AttributeError, OverflowError, RecursionError, OSError),
    SwatheError,
)
"""Errors of a line that is no record: the power failed, or another program wrote it."""


class LineLog:
    """A file of lines that several processes append to.

    Attributes:
        path: the file.
    """

    SUFFIX: ClassVar[str]
    """Ending of its name, after that of the catalogue."""

    def __init__(self, database: str) -> None:
        """Name the log of a catalogue in the file `database`."""
        self.path = Path(f"{database}{self.SUFFIX}")

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Return the log of a catalogue by its URL; `None` if it is not a file."""
        kind, _, database = url.partition(":///")
        in_memory = database in ("", ":memory:")
        is_file = kind.startswith("sqlite") and not in_memory and "?" not in database
        return cls(database) if is_file else None

    def append_lines(self, lines: bytes) -> int:
        """Append lines, all or none; return the size of the file in bytes.

        Raises:
            CatalogError: If they cannot be written.
        """
        try:
            self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
            with self._open_alone(os.O_CREAT) as handle:
                size = os.fstat(handle).st_size
                if os.write(handle, lines) != len(lines):
                    os.ftruncate(handle, size)
                    raise CatalogError(
                        f"{self.path}: expected {len(lines)} bytes written; no space"
                    )
        except CatalogError:
            raise
        except OSError as error:
            raise CatalogError(f"{self.path}: cannot write: {error.strerror}") from error
        return size + len(lines)

    @contextmanager
    def draining_lines(self) -> Iterator[list[bytes]]:
        """Yield the lines, oldest first; they are removed if the caller's block succeeds.

        Raises:
            CatalogError: If the log cannot be read.
        """
        if not self.size():
            yield []
            return
        try:
            with self._open_alone(0) as handle:
                yield os.pread(handle, os.fstat(handle).st_size, 0).splitlines()
                os.ftruncate(handle, 0)
        except CatalogError:
            raise
        except OSError as error:
            raise CatalogError(f"{self.path}: cannot read: {error.strerror}") from error

    def size(self) -> int:
        """Return the size in bytes; 0 if there is no file."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def is_full(self) -> bool:
        """Check whether the lines should be entered."""
        return self.size() > FULL_BYTES

    def lines_from(self, start: int) -> tuple[list[bytes], int]:
        """Return the lines from an offset in bytes on, and the offset after them.

        Raises:
            CatalogError: If the log cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                text = file.read()
        except FileNotFoundError:
            return [], 0
        except OSError as error:
            raise CatalogError(f"{self.path}: cannot read: {error.strerror}") from error
        end = text.rfind(b"\n") + 1
        return text[:end].splitlines(), start + end

    @contextmanager
    def _open_alone(self, flags: int) -> Iterator[int]:
        """Open the file for reading and appending; no other process has it open so."""
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o666)
        try:
            self._wait_for_lock(handle)
            yield handle
        finally:
            os.close(handle)

    def _wait_for_lock(self, handle: int) -> None:
        """Lock the open log; any reader of the file may hold the lock, too, and for ever.

        Raises:
            CatalogError: If another process holds it for LOCK_S.
        """
        until = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise CatalogError(
                        f"{self.path}: locked by another process for {LOCK_S:g} s"
                    ) from None
                time.sleep(LOCK_PAUSE_S)
            else:
                return
