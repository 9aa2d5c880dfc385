"""Write objects of a run to stores by threads of their own, with bounded memory."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.core.errors import OutputError, SourceError
from swathe.core.outputs import make_folder, write_file
from swathe.stores.copies import copy_object
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from typing import Self

Content = Sequence[bytes | memoryview]
MOST_WAITING = 512 << 20
"""Bytes that wait to be written, at most; a write of more waits until it is alone."""
THREADS = 8


class ObjectWriter:
    """Threads that write objects; the caller goes on as long as few bytes wait.

    Once a store does not answer, what waits for it is not written.
    """

    def __init__(self, threads: int = THREADS, most_waiting: int = MOST_WAITING) -> None:
        """Set the number of threads, and the bytes that may wait."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="swathe-run")
        self._most, self._waiting = most_waiting, 0
        self._room = threading.Condition()
        self._silent: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for all writes."""
        self.close()

    def close(self) -> None:
        """Wait for all writes."""
        self._pool.shutdown()

    def write(self, objects: Iterable[tuple[str, Content]]) -> list[Future[float]]:
        """Write objects in parallel; wait first while too many bytes wait.

        Args:
            objects: `STORE:path` and content of each. An object of this name is replaced.

        Returns:
            A future for each: when it was durable (`time.perf_counter`). Its errors are those of
            `write_object`.
        """
        return [self._submit(name, content) for name, content in objects]

    def _submit(self, name: str, content: Content) -> Future[float]:
        size = sum(map(len, content))
        with self._room:
            self._room.wait_for(lambda: not self._waiting or self._waiting + size <= self._most)
            self._waiting += size
        return self._pool.submit(self._write, name, content, size)

    def _write(self, name: str, content: Content, size: int) -> float:
        store = name.partition(":")[0]
        try:
            if store in self._silent:
                raise SourceError(f"{name}: not written: {self._silent[store]}")
            write_object(name, content)
        except SourceError as error:
            # Each object would wait for an answer as long as this one.
            self._silent.setdefault(store, str(error))
            raise
        finally:
            with self._room:
                self._waiting -= size
                self._room.notify_all()
        return time.perf_counter()


def write_object(name: str, content: Content) -> None:
    """Write an object; it has its name only when it is whole and durable.

    A file is synced. Elsewhere the object is compared with what was written, as each copy is.

    Args:
        name: `STORE:path`.
        content: its bytes, in parts.

    Raises:
        OutputError, AccessError, SourceError: If it cannot be written.
    """
    local = native_stores().local_path(name)
    if local is not None:
        make_folder(local.parent)
        write_file(local, lambda file: file.writelines(content), overwrite=True, durable=True)
        return
    with tempfile.TemporaryDirectory(prefix="swathe-run-") as folder:
        spool = Path(folder) / "object"
        try:
            with spool.open("wb") as file:
                file.writelines(content)
        except OSError as error:
            raise OutputError(f"{folder}: cannot write: {error.strerror}") from error
        copy_object(os.fspath(spool), name, overwrite=True)
