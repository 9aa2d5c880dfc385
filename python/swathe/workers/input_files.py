"""Files of this machine that a user's program reads: opened once, as their store opened them.

Whoever may write to a store could replace a file by a link between the moment when Swathe looks at
it and the moment when the launcher, which may be root, opens it. So the launcher gets no path in a
store: it gets a link to a file that this process has open.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from swathe import _swathe
from swathe.core.errors import ChangedError, LimitError, NotFoundError

MOST_OPEN = 256
"""Files that are open at the same time for a run; further ones are copied."""
PART = 8 << 20
"""Bytes of a file that are copied at once."""


class InputFiles:
    """Files that stay open until they are closed together.

    Args:
        folder: folder for links and copies, which only this service can write to.
        should_stop: function that returns whether to stop copying.
    """

    def __init__(self, folder: Path, should_stop: Callable[[], bool]) -> None:
        """Begin without files."""
        self._folder, self._should_stop = folder, should_stop
        self._open: list[int] = []
        self._links: list[Path] = []

    def add(self, source: _swathe.Source, path: Path, name: str) -> Path:
        """Return a file of a name in the folder that leads to what a store has opened.

        Args:
            source: file as its store opened it, which no link leads out of.
            path: where the store has it.
            name: name of the link or copy.

        Raises:
            ChangedError: If the path leads to another file now.
            NotFoundError: If it leads to none.
            SwatheError, LimitError: If it is copied, as in `copy_source`.
        """
        new = self._folder / name
        self._links.append(new)
        if len(self._open) >= MOST_OPEN:
            copy_source(source, new, self._should_stop)
            return new
        try:
            number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise NotFoundError(f"{path}: expected a local file, found none ({error})") from error
        self._open.append(number)
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or version_of(status) != source.version:
            raise ChangedError(f"{path}: expected the file that was opened, found another")
        new.symlink_to(f"/proc/{os.getpid()}/fd/{number}")
        return new

    def close(self) -> None:
        """Close the files, and remove links and copies."""
        for number in self._open:
            os.close(number)
        for path in self._links:
            path.unlink(missing_ok=True)
        self._open.clear()
        self._links.clear()


def version_of(status: os.stat_result) -> str:
    """Return the version of a local file, as stores give it."""
    seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
    return f"{status.st_size} mtime:{seconds}.{nanoseconds:09}-ino:{status.st_ino}"


def copy_source(source: _swathe.Source, new: Path, should_stop: Callable[[], bool]) -> None:
    """Write the content of a source into a file.

    Raises:
        SwatheError: If it cannot be read.
        LimitError: If it was stopped.
    """
    with new.open("wb") as copy:
        for start in range(0, source.size, PART):
            if should_stop():
                raise LimitError("stopped")
            copy.write(source.read(start, min(start + PART, source.size)))
