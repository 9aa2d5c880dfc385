"""Write objects of a run to stores by threads of their own, with bounded memory."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from swathe import _swathe, trace
from swathe.core import errors
from swathe.core.errors import NotFoundError, OutputError, SourceError, SwatheError
from swathe.core.outputs import make_folder, write_file
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from typing import Self

log = logging.getLogger(__name__)

Content = Sequence[bytes | memoryview]
MOST_WAITING = 512 << 20
"""Bytes that wait to be written, at most; a write of more waits until it is alone."""
THREADS = 8
"""Of each store: a slow one holds up no other."""
METADATA_THREADS = 4
"""Objects with metadata that are written to a store at the same time."""
DRAIN_THREADS = 2
"""Copies from store to store at the same time, of each store; each has 40 MiB in memory at most."""
PIECE_BYTES = 8 << 20
"""Read at once to see whether an object can be read."""
POLL_S = 0.1


@dataclass
class ObjectWrite:
    """An object that is written, or waits for it.

    Attributes:
        name: `STORE:path`.
        size: its bytes that wait in memory.
        is_rewrite: whether an object of this name may have what is durable already: it is never
            removed.
        cancelled: set when it is no longer wanted.
        future: when it was durable (`time.perf_counter`).
    """

    name: str
    size: int
    is_rewrite: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    future: Future[float] = field(default_factory=Future)


class ObjectWriter:
    """Threads that write objects; the caller goes on as long as few bytes wait.

    Once a store does not answer, what waits for it is not written. Each store is as the catalogue
    has it when the first object is written there: a run changes the catalogue with each dump, and
    reading all stores anew for each object would take longer than a small one.

    Attributes:
        label: the run, which events of the trace carry as their job.
    """

    def __init__(self, threads: int = THREADS, most_waiting: int = MOST_WAITING) -> None:
        """Set the number of threads of each store, and the bytes that may wait."""
        self.label: str | None = None
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._threads = threads
        self._most, self._waiting = most_waiting, 0
        self._room = threading.Condition()
        self._silent: dict[str, str] = {}
        self._stores: dict[str, _swathe.Stores] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for all writes."""
        self.close()

    def close(self) -> None:
        """Wait for all writes."""
        for pool in self._pools.values():
            pool.shutdown()

    def write(
        self, objects: Iterable[tuple[str, Content]], is_rewrite: bool = False
    ) -> list[ObjectWrite]:
        """Write objects in parallel; wait first while too many bytes wait.

        Args:
            objects: `STORE:path` and content of each. An object of this name is replaced.
            is_rewrite: see `ObjectWrite`.

        Returns:
            The writes. Errors of their futures are those of `write_object`.
        """
        return [self._submit(name, content, is_rewrite) for name, content in objects]

    def write_now(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write small objects at the same time, before what waits; return when they are durable.

        Raises:
            OutputError, AccessError, SourceError: If one cannot be written; the others may be.
        """
        writes = []
        for name, content in objects:
            pool = self._pool(f"metadata {name.partition(':')[0]}", METADATA_THREADS)
            goes_on = threading.Event().is_set
            writes.append(pool.submit(write_object, name, [content], goes_on, self.stores_of(name)))
        wait(writes)
        for write in writes:
            write.result()

    def stores_of(self, name: str) -> _swathe.Stores:
        """Return the stores to write an object with, `STORE:path`."""
        store = name.partition(":")[0]
        if store not in self._stores:
            self._stores[store] = native_stores()
        return self._stores[store]

    def copy(self, pairs: Iterable[tuple[str, str]]) -> list[ObjectWrite]:
        """Copy objects from store to store in the background.

        Args:
            pairs: `STORE:path` of each, and of its copy.

        Returns:
            The copies. Errors of their futures are those of `copy_one`; `NotFoundError` if an
            object cannot be read.
        """
        writes = []
        for source, name in pairs:
            write = ObjectWrite(name, 0)
            pool = self._pool(f"drain {name.partition(':')[0]}", DRAIN_THREADS)
            write.future = pool.submit(self._copy, write, source)
            writes.append(write)
        return writes

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects in the background."""
        for name in names:
            pool = self._pool(f"drain {name.partition(':')[0]}", DRAIN_THREADS)
            pool.submit(self._remove, ObjectWrite(name, 0))

    def abandon(self, writes: Iterable[ObjectWrite]) -> None:
        """Give up writes; what was written of them is removed, if its store answers.

        What may have durable content besides stays, with the old content or the new one.
        """
        for write in writes:
            write.cancelled.set()
            if not write.future.cancel() and write.future.done():
                pool = self._pool(write.name.partition(":")[0], self._threads)
                pool.submit(self._remove, write)

    def _pool(self, name: str, threads: int) -> ThreadPoolExecutor:
        if name not in self._pools:
            prefix = f"swathe-run-{name}"
            self._pools[name] = ThreadPoolExecutor(threads, thread_name_prefix=prefix)
        return self._pools[name]

    def _submit(self, name: str, content: Content, is_rewrite: bool) -> ObjectWrite:
        size = sum(map(len, content))
        with self._room:
            self._room.wait_for(lambda: not self._waiting or self._waiting + size <= self._most)
            self._waiting += size
        write = ObjectWrite(name, size, is_rewrite)
        work = self._pool(name.partition(":")[0], self._threads).submit(self._write, write, content)
        write.future = work
        # Also of a write that was cancelled before it began.
        work.add_done_callback(lambda _: self._release(size))
        return write

    def _release(self, size: int) -> None:
        with self._room:
            self._waiting -= size
            self._room.notify_all()

    def _write(self, write: ObjectWrite, content: Content) -> float:
        stores = self.stores_of(write.name)
        self._guard(
            write, partial(write_object, write.name, content, write.cancelled.is_set, stores)
        )
        if write.cancelled.is_set():
            self._remove(write)
        return time.perf_counter()

    def _copy(self, write: ObjectWrite, source: str) -> float:
        stores = self.stores_of(write.name)
        self._guard(write, partial(_move_on, source, write.name, write.cancelled.is_set, stores))
        if write.cancelled.is_set():
            self._remove(write)
        return time.perf_counter()

    def _guard(self, write: ObjectWrite, act: Callable[[], object]) -> None:
        store = write.name.partition(":")[0]
        if store in self._silent:
            raise SourceError(f"{write.name}: not written: {self._silent[store]}")
        try:
            with trace.event("WRITE", job=self.label, object=write.name, bytes=write.size or None):
                act()
        except SourceError as error:
            # Each object would wait for an answer as long as this one.
            self._silent.setdefault(store, str(error))
            raise

    def _remove(self, write: ObjectWrite) -> None:
        """Remove an object that is no longer wanted. The store may be the one that has failed."""
        if write.is_rewrite or write.name.partition(":")[0] in self._silent:
            return
        try:
            self.stores_of(write.name).remove(write.name)
        except NotFoundError:
            return
        except SwatheError as error:
            log.warning("%s: is left over: %s", write.name, error)


def _move_on(
    source: str, name: str, is_cancelled: Callable[[], bool], stores: _swathe.Stores
) -> None:
    """Copy an object from a near store, with errors that are those of the other store only.

    Raises:
        NotFoundError: If the near one cannot be read: no other copy of it would succeed.
        OutputError, AccessError, SourceError: If the copy cannot be written.
    """
    try:
        copy_one(source, name, is_cancelled, stores)
    except SwatheError as error:
        if is_cancelled():
            raise
        _check_readable(source, error, stores)
        if isinstance(error, NotFoundError):
            raise OutputError(str(error)) from error
        if not isinstance(error, SourceError):
            raise
        # It may have been the near store, which is well again.
        copy_one(source, name, is_cancelled, stores)


def _check_readable(source: str, error: SwatheError, stores: _swathe.Stores) -> None:
    """Check that an object can be read whose copying failed.

    Raises:
        NotFoundError: If it cannot.
    """
    try:
        near = stores.open(source)
        for first in range(0, near.size, PIECE_BYTES):
            near.read(first, min(first + PIECE_BYTES, near.size))
    except SwatheError as problem:
        raise NotFoundError(f"{source}: cannot be moved on: {problem}") from error


def write_object(
    name: str,
    content: Content,
    is_cancelled: Callable[[], bool] = lambda: False,
    stores: _swathe.Stores | None = None,
) -> None:
    """Write an object; it has its name only when it is whole and durable.

    A file is synced. Elsewhere the object is compared with what was written, as each copy is.

    Args:
        name: `STORE:path`.
        content: its bytes, in parts.
        is_cancelled: asked now and then whether to give up.
        stores: the stores of the catalogue; by default as it has them now.

    Raises:
        OutputError, AccessError, SourceError: If it cannot be written.
    """
    stores = stores or native_stores()
    local = stores.local_path(name)
    if local is not None:
        make_folder(local.parent)
        write_file(local, lambda file: file.writelines(content), overwrite=True, durable=True)
        return
    # A file in memory: the disk of temporary files may be busy, and what waits is in memory anyway.
    with os.fdopen(os.memfd_create("swathe-run"), "wb") as spool:
        try:
            spool.writelines(content)
            spool.flush()
        except OSError as error:
            raise OutputError(f"{name}: no memory to send it: {error.strerror}") from error
        copy_one(f"/proc/self/fd/{spool.fileno()}", name, is_cancelled, stores)


def copy_one(
    source: str,
    name: str,
    is_cancelled: Callable[[], bool] = lambda: False,
    stores: _swathe.Stores | None = None,
) -> None:
    """Copy an object, and verify the copy; one of this name is replaced.

    Args:
        source: `STORE:path` or a path.
        name: `STORE:path`.
        is_cancelled: asked now and then whether to give up.
        stores: the stores of the catalogue; by default as it has them now.

    Raises:
        NotFoundError, OutputError, AccessError, SourceError: If it cannot be copied.
    """
    stores = stores or native_stores()
    if not stores.is_writable(name):
        raise OutputError(f"{name}: cannot be written: its store is for reading only")
    copies = _swathe.Copies([(source, None, name, True)], 1, stores)
    try:
        while (outcomes := copies.poll(POLL_S)) is not None:
            if is_cancelled():
                raise OutputError(f"{name}: its writing was given up")
            for outcome in outcomes:
                if outcome.kind is not None:
                    raise getattr(errors, outcome.kind)(outcome.reason)
    finally:
        copies.cancel()
