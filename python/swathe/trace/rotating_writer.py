"""Output of the collector: a writing thread, and rotated files."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.errors import OutputError
from swathe.core.outputs import check_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HIGH_BYTES, LOW_BYTES = 8 << 20, 4 << 20
"""Bytes waiting above which reading pauses, and below which it resumes."""
AT_ONCE_BYTES = 256 << 10
RETRY_S = 1.0
STDOUT = 1


class RotatingWriter:
    """A file, or standard output, to which whole lines are appended in order.

    A thread of its own writes, so that a slow disk delays only callers that wait for room. A failed
    write is retried every second until the writer is closed. A file that cannot be renamed grows
    beyond its size; renaming is retried every minute.

    Args:
        path: path of the file or FIFO; `None`: standard output.
        rotate_bytes: file size above which the file is renamed `NAME.1`, and that `NAME.2`.
        keep: number of rotated files to keep.
        room: called when there is room again after there was none.
        warn: called with each warning.

    Raises:
        OutputError: If it cannot be opened.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        rotate_bytes: int | None,
        keep: int,
        room: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self.path, self.rotate_bytes = path, rotate_bytes
        self._room, self._warn = room, warn
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._change = threading.Condition()
        self._closing = self._over = self._full = False
        self._file: _swathe.RotatingFile | None = None
        if path is not None:
            check_trace(path, rotates=rotate_bytes is not None)
            try:
                self._file = _swathe.RotatingFile(path, rotate_bytes=rotate_bytes, keep=keep)
            except OSError as error:
                raise OutputError(f"{path}: {error.strerror}") from error
        self._thread = threading.Thread(target=self._run, name="trace-writer", daemon=True)
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        """Bytes not written yet."""
        return self._waiting_bytes

    def put(self, lines: bytes) -> bool:
        """Queue whole lines; return whether there is room for more."""
        with self._change:
            self._waiting.append(lines)
            self._waiting_bytes += len(lines)
            self._full = self._full or self._waiting_bytes >= HIGH_BYTES
            self._change.notify_all()
            return not self._full

    def close(self, patience_s: float) -> int:
        """Write the queue within a time limit, and close; return the number of unwritten lines."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join(patience_s)
        with self._change:
            self._over = True
            return sum(lines.count(b"\n") for lines in self._waiting)

    def _run(self) -> None:
        while (lines := self._next()) is not None:
            if not self._write(lines):
                return
            with self._change:
                self._waiting.popleft()
                self._waiting_bytes -= len(lines)
                has_room = self._full and self._waiting_bytes <= LOW_BYTES
                self._full = self._full and not has_room
            if has_room:
                self._room()
        self._file = None

    def _next(self) -> bytes | None:
        """Return the next bytes to write; they stay in the queue until written."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting or self._over:
                return None
            chunks = [self._waiting.popleft()]
            size = len(chunks[0])
            most = min(AT_ONCE_BYTES, self.rotate_bytes or AT_ONCE_BYTES)
            while self._waiting and size + len(self._waiting[0]) <= most:
                chunks.append(self._waiting.popleft())
                size += len(chunks[-1])
            lines = b"".join(chunks)
            self._waiting.appendleft(lines)
            return lines

    def _write(self, lines: bytes) -> bool:
        """Write lines with as many calls as needed; return whether all were written."""
        rest, has_warned = lines, False
        while rest and not self._over:
            last = self._closing
            try:
                rest = rest[self._append(rest, begins=len(rest) == len(lines)) :]
            except OSError as error:
                if not has_warned:
                    self._warn(f"{self.path or 'standard output'}: {error.strerror}; retrying")
                has_warned = True
                if last:
                    return False
                with self._change:
                    self._change.wait_for(lambda: self._closing, RETRY_S)
        return not rest

    def _append(self, rest: bytes, *, begins: bool) -> int:
        """Write some of the bytes and return how many; the file may be rotated before a line."""
        if self._file is None:
            return os.write(STDOUT, rest)
        if begins and (error := self._file.begin(len(rest))):
            self._warn(
                f"{self.path}: cannot be renamed: {error.strerror}; it grows beyond its size"
            )
        return self._file.append(rest)
