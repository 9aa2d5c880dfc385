"""Output of the collector: a writing thread, and rotated files."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from swathe.core.errors import OutputError
from swathe.core.outputs import check_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HIGH_BYTES, LOW_BYTES = 8 << 20, 4 << 20
"""Bytes waiting above which reading pauses, and below which it resumes."""
AT_ONCE_BYTES = 256 << 10
RETRY_S = 1.0
ROTATE_AGAIN_S = 60.0
"""Seconds between attempts to rename a file; it grows meanwhile."""
STDOUT = 1


class RotatingWriter:
    """A file, or standard output, to which whole lines are appended in order.

    A thread of its own writes, so that a slow disk delays only callers that wait for room. A failed
    write is retried every second until the outlet is closed. A file that cannot be renamed grows
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
        self.path, self.rotate_bytes, self.keep = path, rotate_bytes, keep
        self._room, self._warn = room, warn
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._closing = self._over = self._full = False
        self._file = STDOUT if path is None else None
        self._size = 0
        self._rotate_at_s = 0.0
        self._stays = False
        # Opening a FIFO blocks until it has a reader.
        if path is not None and not path.is_fifo():
            check_trace(path, rotates=rotate_bytes is not None)
            try:
                self._file = self._open(path)
            except OSError as error:
                raise OutputError(f"{path}: {error.strerror}") from error
        self._thread = threading.Thread(target=self._run, name="outlet", daemon=True)
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        """Bytes not written yet."""
        return self._waiting_bytes

    def put(self, lines: bytes) -> bool:
        """Queue whole lines; return whether there is room for more."""
        with self._changed:
            self._waiting.append(lines)
            self._waiting_bytes += len(lines)
            self._full = self._full or self._waiting_bytes >= HIGH_BYTES
            self._changed.notify_all()
            return not self._full

    def close(self, patience_s: float) -> int:
        """Write the queue within a time limit, and close; return the number of unwritten lines."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(patience_s)
        with self._changed:
            self._over = True
            return sum(lines.count(b"\n") for lines in self._waiting)

    def _run(self) -> None:
        while (lines := self._next()) is not None:
            if not self._write(lines):
                return
            with self._changed:
                self._waiting.popleft()
                self._waiting_bytes -= len(lines)
                has_room = self._full and self._waiting_bytes <= LOW_BYTES
                self._full = self._full and not has_room
            if has_room:
                self._room()
        if self._file is not None and self._file != STDOUT:
            os.close(self._file)

    def _next(self) -> bytes | None:
        """Return the next bytes to write; they stay in the queue until written."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
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
        rest, warned = memoryview(lines), False
        while rest and not self._over:
            last = self._closing
            try:
                if self._file is None or len(rest) == len(lines):
                    self._file = self._ready(len(rest))
                count = os.write(self._file, rest)
            except OSError as error:
                if not warned:
                    self._warn(f"{self.path or 'standard output'}: {error.strerror}; retrying")
                warned = True
                if last:
                    return False
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, RETRY_S)
                continue
            self._size += count
            rest = rest[count:]
        return not rest

    def _ready(self, more: int) -> int:
        """Return the file for the next bytes."""
        if self.path is None:
            return STDOUT
        if self._file is None:
            return self._open(self.path)
        is_full = self.rotate_bytes is not None and self._size + more > self.rotate_bytes
        if is_full and self._size and self._rotate(self.path):
            os.close(self._file)
            self._file = None
            return self._open(self.path)
        return self._file

    def _open(self, path: Path) -> int:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            status = os.fstat(file)
            self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            if self._size and not _ends_a_line(path):
                # The writer was killed: its last line is lost, but not our first.
                self._size += os.write(file, b"\n")
        except BaseException:
            os.close(file)
            raise
        return file

    def _rotate(self, path: Path) -> bool:
        """Rename the file and the earlier ones; return whether the name is free."""
        now_s = time.monotonic()
        if now_s < self._rotate_at_s:
            return False
        try:
            names = [path, *(path.with_name(f"{path.name}.{n + 1}") for n in range(self.keep))]
            # Only down to a free name: repeated attempts would lose the oldest otherwise.
            free = next((n for n, name in enumerate(names) if n and not name.exists()), self.keep)
            for number in range(free, 0, -1):
                with suppress(FileNotFoundError):
                    names[number - 1].replace(names[number])
        except OSError as error:
            self._rotate_at_s = now_s + ROTATE_AGAIN_S
            if not self._stays:
                self._warn(f"{path}: cannot be renamed: {error.strerror}; it grows beyond its size")
            self._stays = True
            return False
        self._stays = False
        return True


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
