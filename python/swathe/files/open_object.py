"""What every open file has: a path, a version, notes, and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from swathe import _swathe


class OpenObject:
    """An open file, at the version it had when it was opened.

    Attributes:
        url: absolute path or URL, without credentials.
        version: size, and ETag or modification time.
        name: its name in a store, `NAME:path`, if it was opened by that.
    """

    def __init__(
        self, native: _swathe.Object, notes: list[str] | None = None, name: str | None = None
    ) -> None:
        """Wrap the engine's file and its warnings. Users call `swathe.open`.

        `name` is the name of an object in a store, `NAME:path`.
        """
        self._object: _swathe.Object | None = native
        self.url, self.version = native.url, native.version
        self._notes = [] if notes is None else notes
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file. To use it then raises ValueError; cutouts stay valid."""
        self._object = None

    @property
    def _native(self) -> _swathe.Object:
        if self._object is None:
            raise ValueError(
                f"{self.url}: expected an open file, found a closed one; open it again"
            )
        return self._object

    @property
    def compression(self) -> str | None:
        """Return the compression of the whole file: gzip, bzip2 or compress; `None` without."""
        return None if self._native.kind == "plain" else self._native.kind

    @property
    def size(self) -> int:
        """Return the stored size in bytes."""
        return self._native.size

    @property
    def traffic(self) -> dict[str, Any]:
        """Return `bytes_moved`, `requests`, `from_peers` and `from_cache` since it was opened."""
        return self._native.traffic()

    @property
    def notes(self) -> list[str]:
        """Return warnings about ignored parts of the file, such as bytes after its end."""
        # The engine reports each warning once; collect them here.
        self._notes.extend(note for note in self._native.notes() if note not in self._notes)
        return list(self._notes)
