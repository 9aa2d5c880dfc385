"""Read a superfile: all entries at once if that costs less than each alone."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.catalog import Catalog
from swathe.core.errors import FormatError, NotFoundError
from swathe.costs.cost_model import Costs
from swathe.costs.store_costs import reading_costs
from swathe.runs.superfiles.array_content import array_of
from swathe.runs.superfiles.zip_index import (
    MOST_ENTRIES,
    MOST_HEADER,
    Entry,
    check_crc,
    content_start,
    entry_content,
    find_directory,
    parse_directory,
)
from swathe.stores.object_ranges import read_pieces, read_ranges
from swathe.stores.objects import store_of
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAIL = 256 << 10
"""Bytes that are read at the end: the directory of some thousand entries."""
MOST_AT_ONCE = 256 << 20
"""Bytes of all entries up to which the first read may bring them all."""
GROUP = 4 << 20
"""Bytes of entries that are read together."""
GROUPS_AT_ONCE = 2


def entry_groups(entries: Iterable[Entry], most_bytes: int) -> Iterator[list[Entry]]:
    """Yield entries in groups of at most so many bytes; a longer one is alone."""
    group: list[Entry] = []
    size = 0
    for each in entries:
        if group and size + each.size > most_bytes:
            yield group
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        yield group


class Superfile(Mapping[str, bytes]):
    """The entries of a superfile by name, in the order in which they lie.

    Attributes:
        name: `STORE:path`, a URL or a path.
        entries: what the directory says of each.
        reads_all: whether the first read brings all entries, which then stay in memory.
    """

    def __init__(
        self, name: str, *, reads_all: bool | None = None, most_entries: int = MOST_ENTRIES
    ) -> None:
        """Open a superfile, and read its directory.

        Args:
            name: `STORE:path`, a URL or a path.
            reads_all: whether the first read brings all entries; `None`: if that is predicted to
                take less time than a read of each, and they have at most 256 MiB.
            most_entries: number of entries that it may have.

        Raises:
            NotFoundError, AccessError, SourceError: If it cannot be read.
            FormatError: If it is no zip file of stored entries, or damaged.
            LimitError: If it has more entries.
        """
        self.name = name
        with ThreadPoolExecutor(1) as thread:
            # The catalogue is read while the store answers.
            costs = thread.submit(_costs_of, name) if reads_all is None else None
            self._source = native_stores().open(name)
            self.entries = {each.name: each for each in self._read_directory(most_entries)}
        self.reads_all = bool(reads_all) if costs is None else self._is_cheaper(costs.result())
        self._contents: dict[str, bytes | FormatError] | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Return the version of the object; all reads are of this one."""
        return self._source.version

    def __getitem__(self, name: str) -> bytes:
        """Return the content of an entry.

        Raises:
            NotFoundError: If there is none of this name.
            AccessError, SourceError: If it cannot be read.
            FormatError: If it is damaged.
        """
        return self.read([name])[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def entry(self, name: str) -> Entry:
        """Return what the directory says of an entry.

        Raises:
            NotFoundError: If there is none of this name.
        """
        if name not in self.entries:
            raise NotFoundError(f"{self.name}: expected the name of an entry, found {name!r:.80}")
        return self.entries[name]

    def array(self, name: str) -> NDArray[Any]:
        """Return an entry that is an array (`.npy`); it cannot be written to.

        Raises:
            NotFoundError, AccessError, SourceError, FormatError: As of an entry.
        """
        return array_of(self[name], f"{self.name}, entry {name}")

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of some entries; those that lie close are read together.

        Raises:
            NotFoundError, AccessError, SourceError, FormatError: As of an entry.
        """
        entries = [self.entry(name) for name in names]
        contents = self._all_contents() if self.reads_all and entries else self._read(entries)
        return {each.name: _valid_content(contents[each.name]) for each in entries}

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content of an entry in pieces of at most 16 MiB; its CRC-32 is compared last.

        Raises:
            NotFoundError, AccessError, SourceError, FormatError: As of an entry.
        """
        entry, crc = self.entry(name), 0
        head = read_ranges(self._source, [(entry.start, min(entry.start + MOST_HEADER, entry.end))])
        first = entry.start + content_start(head[0], entry, self.name)
        for piece in read_pieces(self._source, first, first + entry.size):
            crc = zlib.crc32(piece, crc)
            yield piece
        check_crc(crc, entry, self.name)

    def read_all(self) -> dict[str, bytes]:
        """Return the contents of all entries.

        Raises:
            AccessError, SourceError, FormatError: As of an entry.
        """
        return self.read(self.entries)

    def _all_contents(self) -> dict[str, bytes | FormatError]:
        with self._lock:
            if self._contents is None:
                self._contents = self._read(list(self.entries.values()))
            return self._contents

    def _read(self, entries: Sequence[Entry]) -> dict[str, bytes | FormatError]:
        """Return contents, or why an entry is damaged.

        Some are compared with their CRC-32 while others are read.
        """
        groups = list(entry_groups(sorted(entries, key=lambda each: each.start), GROUP))
        contents: dict[str, bytes | FormatError] = {}
        with ThreadPoolExecutor(GROUPS_AT_ONCE) as threads:
            for group in threads.map(self._read_group, groups):
                contents |= group
        return contents

    def _read_group(self, entries: Sequence[Entry]) -> dict[str, bytes | FormatError]:
        parts = read_ranges(self._source, [(each.start, each.end) for each in entries])
        return {
            each.name: self._content_of(raw, each) for each, raw in zip(entries, parts, strict=True)
        }

    def _content_of(self, raw: bytes, entry: Entry) -> bytes | FormatError:
        try:
            return entry_content(raw, entry, self.name)
        except FormatError as error:
            return error

    def _read_directory(self, most_entries: int) -> list[Entry]:
        size = self._source.size
        first = max(0, size - TAIL)
        tail = read_ranges(self._source, [(first, size)])[0]
        directory = find_directory(tail, size, self.name, most_entries)
        if directory.start >= first:
            content = tail[directory.start - first : directory.end - first]
        else:
            content = read_ranges(self._source, [(directory.start, directory.end)])[0]
        return parse_directory(content, directory, self.name)

    def _is_cheaper(self, costs: Costs) -> bool:
        """Check whether reading all entries at once takes less time than reading each."""
        ranges = [each.end - each.start for each in self.entries.values()]
        if len(ranges) < 2 or sum(ranges) > MOST_AT_ONCE:
            return False
        streams = min(costs.streams, len(ranges))
        all_s = min(float(costs.read_s(sum(ranges), count, count)) for count in {1, streams})
        return all_s < float(costs.request_s(ranges).sum())


def _valid_content(content: bytes | FormatError) -> bytes:
    if isinstance(content, FormatError):
        raise content
    return content


def _costs_of(name: str) -> Costs:
    """Return what reading of an object costs from here, as measured or assumed."""
    if store := store_of(name):
        with Catalog.open() as catalog:
            return reading_costs(catalog, catalog.store(store))[0]
    is_local = native_stores().local_path(name) is not None
    return Costs.from_dict(json.loads(_swathe.assumed_costs(is_local)))
