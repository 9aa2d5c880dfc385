"""A store in memory, as another package would add it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from swathe.core.errors import ChangedError, NotFoundError, OutputExistsError
from swathe.stores import StoredObject

SCHEME = "memory"


class MemoryStore:
    """Objects of a process."""

    def __init__(self, url: str, options: dict[str, str]) -> None:
        self.url, self.options = url, options
        self.objects: dict[str, tuple[StoredObject, bytes]] = {}
        self.lock = threading.Lock()
        self.count = 0

    def _entry(self, path: str) -> tuple[StoredObject, bytes]:
        if (entry := self.objects.get(path)) is None:
            raise NotFoundError(f"{self.url}: no object {path}")
        return entry

    def stat(self, path: str) -> StoredObject:
        return self._entry(path)[0]

    def read(self, path: str, version: str, start: int, stop: int) -> bytes:
        status, content = self._entry(path)
        if status.version != version:
            raise ChangedError(path)
        return content[start:stop]

    def list(self, prefix: str) -> Iterator[StoredObject]:
        for path, (status, _) in list(self.objects.items()):
            if not prefix or path == prefix or path.startswith(f"{prefix}/"):
                yield status

    def create(self, path: str) -> MemoryWriter:
        return MemoryWriter(self, path)

    def remove(self, path: str) -> None:
        self._entry(path)
        del self.objects[path]


class MemoryWriter:
    """An object on its way."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self.store, self.path, self.content = store, path, bytearray()

    def write(self, part: bytes) -> None:
        self.content += part

    def finish(self, replace: bool) -> None:
        with self.store.lock:
            if self.path in self.store.objects and not replace:
                raise OutputExistsError(self.path)
            self.store.count += 1
            now = datetime.now(UTC).isoformat()
            version, content = f"number {self.store.count}", bytes(self.content)
            status = StoredObject(self.path, len(content), version, now)
            self.store.objects[self.path] = (status, content)

    def abort(self) -> None:
        self.content.clear()


def write_package(folder: Path, scheme: str, value: str, name: str = "example-stores") -> None:
    """Make a folder one in which a package is installed that adds a scheme."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[swathe.stores]\n{scheme} = {value}\n")
