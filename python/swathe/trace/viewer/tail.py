"""Growing and rotated files: what was added to each since the last look.

A file is kept open. A renamed one (`run.ulm.1`) may have received lines between the last look and
the renaming, and its inode may be reused by the next look. A removed file occupies the disk until
the next look.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from swathe.core.errors import SourceError

MOST_BYTES = 1 << 30
"""Bytes per look; the rest comes with the next one."""
LONGEST_BYTES = 64 << 10
"""Bytes per line."""
LINGER_S = 5.0
"""Seconds a renamed file is still read: its writer may not have noticed yet."""


class _Open:
    """An open file; closed when nothing refers to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = path.open("rb", buffering=0)
        self._file = file.fileno()
        self.close = weakref.finalize(self, file.close)
        at = os.fstat(self._file)
        self.identity = (at.st_dev, at.st_ino)
        self.read_bytes: int | None = None
        self.renamed_s: float | None = None

    @property
    def modified_ns(self) -> int:
        return os.fstat(self._file).st_mtime_ns

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def fresh(self, newest_bytes: int | None, is_finished: bool) -> tuple[bytes, int, bool]:
        """Return the added whole lines, the end position, and whether some were left out.

        Args:
            newest_bytes: limit for the first read.
            is_finished: whether the last line counts as whole without a line end.
        """
        size, start, left_out = self.size, self.read_bytes, False
        with open(self._file, "rb", closefd=False) as file:
            if start is None:
                start = 0 if newest_bytes is None else max(0, size - newest_bytes)
                if left_out := start > 0:
                    file.seek(start)
                    start += len(file.readline(LONGEST_BYTES))
            elif size < start:
                start = 0  # the file was truncated and restarted
            file.seek(start)
            content = file.read(min(MOST_BYTES, max(0, size - start)))
        if is_finished and start + len(content) >= size:
            return content if content[-1:] in (b"", b"\n") else content + b"\n", size, left_out
        content = content[: content.rfind(b"\n") + 1]
        return content, start + len(content), left_out


class GrowingFiles:
    """Files, by their original names."""

    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], newest_bytes: int | None = None
    ) -> None:
        """Take the names; a missing file may appear later.

        Args:
            paths: paths of the files.
            newest_bytes: approximate number of bytes read of existing and of already renamed files.
        """
        self._paths = [Path(path) for path in paths]
        self._newest_bytes = newest_bytes
        self._by_path: dict[Path, _Open] = {}
        # All files still read, older ones first.
        self._files: dict[tuple[int, int], _Open] = {}
        self.left_out = False

    def read_on(self, take: Callable[[bytes], None]) -> None:
        """Pass the added lines to `take`, file by file; lines for which it fails come again.

        Raises:
            SourceError: If a file cannot be read.
        """
        for path in self._paths:
            try:
                self._find(path)
            except OSError as error:
                raise SourceError(f"{error.filename or path}: {error.strerror}") from error
        now_s = time.monotonic()
        for file in list(self._files.values()):
            is_finished = file.renamed_s is not None and now_s - file.renamed_s >= LINGER_S
            try:
                lines, end, left_out = file.fresh(self._newest_bytes, is_finished)
            except OSError as error:
                raise SourceError(f"{file.path}: {error.strerror}") from error
            if lines:
                take(lines)
            file.read_bytes = end
            self.left_out = self.left_out or left_out
            if is_finished and end >= file.size:
                del self._files[file.identity]
                file.close()

    def _find(self, path: Path) -> None:
        """Find the file that has a name now."""
        before = self._by_path.get(path)
        try:
            at = path.stat()
            if before is not None and before.identity == (at.st_dev, at.st_ino):
                return
            file = _Open(path)
        except FileNotFoundError:
            return  # missing for now
        missed_files = [] if before is None else self._missed_files(path, before, file)
        for each in (*missed_files, file):
            self._files.setdefault(each.identity, each)
        entry = self._by_path[path] = self._files[file.identity]
        entry.renamed_s = None
        if before is not None and before not in self._by_path.values():
            before.renamed_s = time.monotonic()
        for each in missed_files:
            each.renamed_s = time.monotonic()

    def _missed_files(self, path: Path, before: _Open, now: _Open) -> list[_Open]:
        """Return the files that had this name since the last look and lost it."""
        files: dict[tuple[int, int], _Open] = {}
        ended_ns, bytes_ = before.modified_ns, now.size
        number = gaps = 0
        # During a rotation a number may be missing for a moment.
        while gaps < 2:
            number += 1
            try:
                each = _Open(path.with_name(f"{path.name}.{number}"))
            except FileNotFoundError:
                gaps += 1
                continue
            except OSError:  # another file, by the name
                self.left_out = True
                gaps += 1
                continue
            if each.identity == before.identity:
                return list(files.values())[::-1]
            if each.modified_ns < ended_ns:
                break
            if each.identity != now.identity and each.identity not in self._files:
                files.setdefault(each.identity, each)
                bytes_ += each.size
                if self._newest_bytes is not None and bytes_ > self._newest_bytes:
                    break
        # The earlier file is not among them: others may have been removed with it.
        self.left_out = self.left_out or bool(files)
        return list(files.values())[::-1]
