"""Store the results of jobs in a bucket as `PREFIX/JOB/0000/NAME`, each verified after writing.

A row is done when its object exists. If a process is killed after it wrote an object and before
it recorded that, the object is written again under the same name.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from swathe import _swathe
from swathe.core.errors import NoSuchResultError, NotFoundError, OutputError
from swathe.stores.registry import to_native
from swathe.stores.results import Folder, StoredResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swathe.catalog import Catalog, Store
    from swathe.stores.results import Files, ResultStore

THREADS = 32
"""Number of threads; each writes or removes one object at a time and mostly waits."""
LEAST_THREADS = 4
PUT_MEMORY = 128 << 20
"""Memory limit of objects being written, unless LEAST_THREADS need more."""
POLL_S = 0.1
PATIENCE_S = 60.0
"""Time to retry a bucket that cannot be reached, after the engine's own retries."""
PAUSE_S = 1.0
DRAIN_S = 10.0
"""Time to wait for objects in flight after a stop."""
AHEAD = 8
"""Number of objects opened ahead; objects up to SMALL are read whole."""
SMALL = 1 << 20
BUFFER = 1 << 16
LARGE_BUFFER = 4 << 20
"""Read buffer of objects that are read from start to end."""
MOST_AT_ONCE = 16 << 20


def result_store_by_name(catalog: Catalog, text: str, scratch: Path | None) -> ResultStore:
    """Return the result store `NAME:prefix` of a writable store of the catalogue.

    Args:
        catalog: catalogue that has the store.
        text: name of the store and a folder in it; nothing after the colon for its root.
        scratch: folder in which results for a bucket are made; `None` for a folder for temporary
            files.

    Raises:
        OutputError: If the text is not such a name, or if objects there cannot be written, read
            or removed.
        NoSuchStoreError: If the catalogue has no such store.
    """
    name, colon, prefix = text.partition(":")
    prefix = prefix.rstrip("/")
    parts = prefix.split("/") if prefix else []
    if not colon or any(part in ("", ".", "..") for part in parts):
        raise OutputError(f"expected NAME:prefix, a store and a folder in it, found {text[:200]!r}")
    store = catalog.store(name)
    if (folder := store.kind.local_path) is not None:
        return Folder(folder / prefix)
    if not (store.kind.is_bucket or store.over):
        raise OutputError(
            f"expected a store to write to, a folder, a bucket or a striped store; found {name!r}, "
            f"{store.url}"
        )
    bucket = Bucket(store, prefix, _temporary() if scratch is None else scratch)
    bucket.check()
    return bucket


def _temporary() -> Path:
    """Return a folder for temporary files that stays the same and belongs to this user only."""
    folder = Path(tempfile.gettempdir()) / f"swathe-results-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise OutputError(f"{folder}: cannot make results there: {error}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise OutputError(f"{folder}: other users may write to it; give another folder")
    return folder


class Bucket:
    """Results in a bucket, made first in a local folder."""

    def __init__(self, store: Store, prefix: str, scratch: Path) -> None:
        """Set the store, the folder in it, and the local folder.

        Raises:
            OutputError: If the local folder cannot be made.
        """
        self.store, self.prefix = store, prefix
        self._engine = to_native([store])
        self._scratch = scratch.absolute()
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{scratch}: cannot make results there: {error}") from error

    def __str__(self) -> str:
        """Return `STORE:prefix`."""
        return f"{self.store.name}:{self.prefix}"

    def check(self) -> None:
        """Check the bucket: write, list, read and remove one object.

        Raises:
            OutputError: If one of these fails.
        """
        folder = f".probe-{token_hex(8)}"
        content = token_bytes(64)
        local = self._scratch / folder
        file = self._file(folder, "probe")
        try:
            local.write_bytes(content)
            for copy in self._copy([(str(local), file)], _never):
                if copy.kind is not None:
                    raise OutputError(f"{self}: cannot write to it: {copy.reason}")
            if self._engine.open(file).read(0, len(content)) != content:
                raise OutputError(f"{self}: an object read back differs from what was written")
            if not self._list_paths(folder):
                raise OutputError(f"{self}: an object just written is not listed")
            self._engine.remove(file)
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{self}: cannot be used: {error}") from error
        finally:
            local.unlink(missing_ok=True)

    def scratch(self, job: str) -> Path:
        """Return the local folder of a job."""
        return self._scratch / job

    def put(self, job: str, files: Files, should_stop: Callable[[], bool]) -> Iterator[int]:
        """Copy files and remove the local ones; retry for a while if the bucket is unreachable."""
        remaining = dict(enumerate(files))
        until = time.monotonic() + PATIENCE_S
        while remaining and not should_stop():
            numbers = list(remaining)
            orders = [(local, self._file(job, name)) for local, name in remaining.values()]
            for copy in self._copy(orders, should_stop):
                number = numbers[copy.number]
                if copy.kind is None:
                    until = time.monotonic() + PATIENCE_S
                    os.unlink(remaining.pop(number)[0])
                    yield number
                elif copy.kind != "SourceError" or time.monotonic() > until:
                    name = remaining[number][1]
                    raise OutputError(f"{self}: cannot write {name} to it: {copy.reason}")
            if remaining:
                time.sleep(PAUSE_S)

    def _copy(
        self, orders: Sequence[tuple[str, str]], should_stop: Callable[[], bool]
    ) -> Iterator[_swathe.CopyOutcome]:
        """Copy local files, and yield the outcome of each, until stopped."""
        versions = [self._engine.open(local).version for local, _ in orders]
        largest = max(os.path.getsize(local) for local, _ in orders)
        copies = _swathe.Copies(
            [
                (local, version, to, True)
                for (local, to), version in zip(orders, versions, strict=True)
            ],
            max(LEAST_THREADS, min(THREADS, PUT_MEMORY // max(1, largest))),
            self._engine,
        )
        try:
            while (outcomes := copies.poll(POLL_S)) is not None:
                yield from outcomes
                if should_stop():
                    return
        finally:
            copies.cancel()
            limit = time.monotonic() + DRAIN_S
            # No copy may arrive later and count as one of the next call.
            while copies.poll(POLL_S) is not None and time.monotonic() < limit:
                pass

    def find(self, job: str, name: str) -> StoredResult:
        """Return a result of a job."""
        file = self._file(job, name)
        source = self._source(file)
        return StoredResult(file, source.size, lambda: reader(source, BUFFER))

    def open_many(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Yield results as open files, one after the other; some are fetched ahead."""
        pool = ThreadPoolExecutor(AHEAD, "swathe-results")
        coming: deque[Future[BinaryIO]] = deque()
        try:
            for name in names:
                file = self._file(job, name)
                coming.append(pool.submit(copy_context().run, self._open_result, file))
                if len(coming) > AHEAD:
                    with coming.popleft().result() as result:
                        yield result
            while coming:
                with coming.popleft().result() as result:
                    yield result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _open_result(self, file: str) -> BinaryIO:
        source = self._source(file)
        if source.size <= SMALL:
            return io.BytesIO(source.read(0, source.size))
        return reader(source, LARGE_BUFFER)

    def _source(self, file: str) -> _swathe.Source:
        try:
            return self._engine.open(file)
        except NotFoundError as error:
            name = file.rpartition("/")[2]
            raise NoSuchResultError(f"{name}: the result no longer exists: {error}") from error

    def clear_scratch(self, job: str) -> None:
        """Remove the local folder of a job."""
        shutil.rmtree(self.scratch(job), ignore_errors=True)

    def begin_removal(self, job: str) -> None:
        """Remove the local folder of a job, so that a worker still running it can write no more."""
        self.clear_scratch(job)

    def remove(self, job: str, should_stop: Callable[[], bool]) -> bool:
        """Remove the objects of a job."""
        self.clear_scratch(job)
        paths = self._list_paths(job)
        pool = ThreadPoolExecutor(THREADS, "swathe-remove")
        try:
            removals = pool.map(
                self._engine.remove, [f"{self.store.name}:{path}" for path in paths]
            )
            for _ in removals:
                if should_stop():
                    return False
        finally:
            pool.shutdown(cancel_futures=True)
        return True

    def _list_paths(self, folder: str) -> list[str]:
        """Return the paths in the store of all objects in a folder."""
        place = self._file(f"{folder}/")
        listing = self._engine.list(place, with_hidden=True, may_lack=True)
        listed_paths = []
        while (page := listing.next_page()) is not None:
            listed_paths += [path for path, *_ in page]
        return listed_paths

    def _file(self, *parts: str) -> str:
        return f"{self.store.name}:{'/'.join(filter(None, (self.prefix, *parts)))}"


class _Object(io.RawIOBase):
    """Bytes of an object, read by ranges."""

    def __init__(self, source: _swathe.Source) -> None:
        self._source, self._at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size}
        self._at = max(0, starts[whence] + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readall(self) -> bytes:
        return b"".join(iter(partial(self.read, MOST_AT_ONCE), b""))

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), MOST_AT_ONCE, max(0, self._source.size - self._at))
        buffer[:count] = self._source.read(self._at, self._at + count)
        self._at += count
        return count


def reader(source: _swathe.Source, buffer: int) -> BinaryIO:
    """Return an open object as a file with a read buffer of this size."""
    return cast("BinaryIO", io.BufferedReader(_Object(source), buffer))


def _never() -> bool:
    return False
