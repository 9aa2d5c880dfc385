"""Results of jobs in a bucket: `PREFIX/JOB/0000/NAME`, each object written once and verified.

A row is done when its object is there: what was put by a process that was killed before it said so
is put again, under the same name.
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
from urllib.parse import unquote

from swathe import _swathe
from swathe.catalog import BUCKETS
from swathe.core.errors import NoSuchResultError, NotFoundError, OutputError
from swathe.stores.registry import to_native
from swathe.stores.results import Folder, StoredResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swathe.catalog import Catalog, Store
    from swathe.stores.results import Files, ResultStore

THREADS = 32
"""Each puts or removes one object at a time: most of the time it waits for the server."""
LEAST_THREADS = 4
PUT_MEMORY = 128 << 20
"""What those that put objects may hold together, unless LEAST_THREADS hold more."""
POLL_S = 0.1
PATIENCE_S = 60.0
"""A bucket that cannot be reached is tried for so long, after what the engine tries."""
PAUSE_S = 1.0
DRAIN_S = 10.0
"""Objects on their way are waited for so long, when the rest is not wanted any more."""
AHEAD = 8
"""Objects that are opened before they are wanted, those up to SMALL as a whole."""
SMALL = 1 << 20
BUFFER = 1 << 16
LARGE_BUFFER = 4 << 20
"""Of objects that are read from end to end."""
MOST_AT_ONCE = 16 << 20


def result_store_named(catalog: Catalog, text: str, scratch: Path | None) -> ResultStore:
    """Give `NAME:prefix` of a store of the catalogue that results can be written to.

    Args:
        catalog: where the store is.
        text: its name, and the folder in it; nothing behind the colon for all of it.
        scratch: where results for a bucket are made; else a folder for temporary files.

    Raises:
        OutputError: where the name is none, or what is put there cannot be written, read or
            removed.
        NoSuchStoreError: where there is no such store.
    """
    name, colon, prefix = text.partition(":")
    prefix = prefix.rstrip("/")
    parts = prefix.split("/") if prefix else []
    if not colon or any(part in ("", ".", "..") for part in parts):
        raise OutputError(f"expected NAME:prefix, a store and a folder in it, found {text[:200]!r}")
    store = catalog.store(name)
    scheme = store.url.partition("://")[0]
    if scheme == "file":
        return Folder(Path(unquote(store.url.removeprefix("file://"))) / prefix)
    if scheme not in BUCKETS:
        raise OutputError(
            f"expected a store to write to, a folder or a bucket ({', '.join(BUCKETS)}); "
            f"the store {name!r} is of {scheme}://"
        )
    bucket = Bucket(store, prefix, _temporary() if scratch is None else scratch)
    bucket.check()
    return bucket


def _temporary() -> Path:
    """Give a folder for temporary files that is the same the next time, and nobody else's."""
    folder = Path(tempfile.gettempdir()) / f"swathe-results-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise OutputError(f"{folder}: cannot make results there: {error}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise OutputError(f"{folder}: others may write there; give another folder")
    return folder


class Bucket:
    """Results in a bucket; they are made in a local folder."""

    def __init__(self, store: Store, prefix: str, scratch: Path) -> None:
        """Take the store, the folder in it, and the local folder.

        Raises:
            OutputError: where the local folder cannot be made.
        """
        self.store, self.prefix = store, prefix
        self._engine = to_native([store])
        self._scratch = scratch.absolute()
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{scratch}: cannot make results there: {error}") from error

    def __str__(self) -> str:
        """Give its name."""
        return f"{self.store.name}:{self.prefix}"

    def check(self) -> None:
        """Put an object there, look for it, read it and remove it.

        Raises:
            OutputError: where one of these cannot be done.
        """
        folder = f".probe-{token_hex(8)}"
        content = token_bytes(64)
        local = self._scratch / folder
        where = self._file(folder, "probe")
        try:
            local.write_bytes(content)
            for copied in self._copy([(str(local), where)], _never):
                if copied.kind is not None:
                    raise OutputError(f"{self}: nothing can be put there: {copied.reason}")
            if self._engine.open(where).read(0, len(content)) != content:
                raise OutputError(f"{self}: what is put there is not what is read")
            if not self._listed(folder):
                raise OutputError(f"{self}: what is put there is not listed")
            self._engine.remove(where)
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{self}: cannot be used: {error}") from error
        finally:
            local.unlink(missing_ok=True)

    def scratch(self, job: str) -> Path:
        """Give the local folder of a job."""
        return self._scratch / job

    def put(self, job: str, files: Files, stopped: Callable[[], bool]) -> Iterator[int]:
        """Copy files, and remove them; a bucket that cannot be reached is tried for a while."""
        left = dict(enumerate(files))
        until = time.monotonic() + PATIENCE_S
        while left and not stopped():
            numbers = list(left)
            orders = [(made, self._file(job, name)) for made, name in left.values()]
            for copied in self._copy(orders, stopped):
                number = numbers[copied.number]
                if copied.kind is None:
                    until = time.monotonic() + PATIENCE_S
                    os.unlink(left.pop(number)[0])
                    yield number
                elif copied.kind != "SourceError" or time.monotonic() > until:
                    name = left[number][1]
                    raise OutputError(f"{self}: {name} cannot be put there: {copied.reason}")
            if left:
                time.sleep(PAUSE_S)

    def _copy(
        self, orders: Sequence[tuple[str, str]], stopped: Callable[[], bool]
    ) -> Iterator[_swathe.Copied]:
        """Copy local files; tells of each what became of it, until stopped."""
        versions = [self._engine.open(made).version for made, _ in orders]
        largest = max(os.path.getsize(made) for made, _ in orders)
        copies = _swathe.Copies(
            [(made, version, to) for (made, to), version in zip(orders, versions, strict=True)],
            max(LEAST_THREADS, min(THREADS, PUT_MEMORY // max(1, largest))),
            self._engine,
        )
        try:
            while (done := copies.poll(POLL_S)) is not None:
                yield from done
                if stopped():
                    return
        finally:
            copies.cancel()
            limit = time.monotonic() + DRAIN_S
            # None must arrive later, and be taken for what is put there next.
            while copies.poll(POLL_S) is not None and time.monotonic() < limit:
                pass

    def find(self, job: str, name: str) -> StoredResult:
        """Give a result."""
        file = self._file(job, name)
        source = self._source(file)
        return StoredResult(file, source.size, lambda: reader(source, BUFFER))

    def opened(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Give results to be read one after the other; some are fetched before."""
        pool = ThreadPoolExecutor(AHEAD, "swathe-results")
        coming: deque[Future[BinaryIO]] = deque()
        try:
            for name in names:
                file = self._file(job, name)
                coming.append(pool.submit(copy_context().run, self._opened, file))
                if len(coming) > AHEAD:
                    with coming.popleft().result() as opened:
                        yield opened
            while coming:
                with coming.popleft().result() as opened:
                    yield opened
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _opened(self, file: str) -> BinaryIO:
        source = self._source(file)
        if source.size <= SMALL:
            return io.BytesIO(source.read(0, source.size))
        return reader(source, LARGE_BUFFER)

    def _source(self, file: str) -> _swathe.Source:
        try:
            return self._engine.open(file)
        except NotFoundError as error:
            name = file.rpartition("/")[2]
            raise NoSuchResultError(f"{name}: the result is gone: {error}") from error

    def leave(self, job: str) -> None:
        """Remove the local folder of a job."""
        shutil.rmtree(self.scratch(job), ignore_errors=True)

    def put_away(self, job: str) -> None:
        """Remove the local folder of a job: whoever still works on it can put nothing more."""
        self.leave(job)

    def remove(self, job: str, stopped: Callable[[], bool]) -> bool:
        """Remove the objects of a job."""
        self.leave(job)
        paths = self._listed(job)
        pool = ThreadPoolExecutor(THREADS, "swathe-remove")
        try:
            done = pool.map(self._engine.remove, [f"{self.store.name}:{path}" for path in paths])
            for _ in done:
                if stopped():
                    return False
        finally:
            pool.shutdown(cancel_futures=True)
        return True

    def _listed(self, folder: str) -> list[str]:
        """Give the paths in the store of all that is in a folder."""
        listing = self._engine.list(self._file(f"{folder}/"))
        found = []
        while (page := listing.next_page()) is not None:
            found += [path for path, *_ in page]
        return found

    def _file(self, *parts: str) -> str:
        return f"{self.store.name}:{'/'.join(filter(None, (self.prefix, *parts)))}"


class _Object(io.RawIOBase):
    """The bytes of an object, read by ranges."""

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
        wanted = min(len(buffer), MOST_AT_ONCE, max(0, self._source.size - self._at))
        buffer[:wanted] = self._source.read(self._at, self._at + wanted)
        self._at += wanted
        return wanted


def reader(source: _swathe.Source, buffer: int) -> BinaryIO:
    """Return an open object as a file that reads so many bytes at once."""
    return cast("BinaryIO", io.BufferedReader(_Object(source), buffer))


def _never() -> bool:
    return False
