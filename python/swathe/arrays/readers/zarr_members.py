"""The members of a Zarr: files of a folder, or of a zip file, as ranges of one object.

A folder is one object with a head that names its members (`crates/engine/src/folder/table.rs`).
"""

from __future__ import annotations

import encodings.cp437  # noqa: F401 - zipfile needs it, and a confined process opens no file
import json
import struct
import zipfile
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.readers.limits import BoundedFile
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = b"SWFOLDER"
ZIP = b"PK\x03\x04"
HEAD = struct.Struct("<8s4Q")
"""Head of a folder: magic, members, bytes of its path, of all names, and of all stamps."""
LOCAL_HEAD = struct.Struct("<4s22xHH")
"""Header before a file of a zip file: magic, and the bytes of the name and of what follows it."""
MOST_MEMBERS = 2_000_000
MOST_METADATA = 128 << 20
"""Limit of one member with metadata, in bytes."""
IS_ENCRYPTED = 1


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member lies.

    Attributes:
        offset: first byte in the object.
        length: bytes.
        why: why it cannot be read by ranges; empty if it can.
    """

    offset: int
    length: int
    why: str = ""


class Members:
    """All members, by their names.

    Attributes:
        names: names in ascending order.
        end: first position after all bytes.
    """

    def __init__(self, file: BoundedFile, members: dict[str, Member]) -> None:
        """Take the file that holds them."""
        self._file = file
        self._members = members
        self.names = sorted(members)
        self.end = file.size

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def below(self, prefix: str) -> Iterator[str]:
        """Iterate over the names that begin with a prefix."""
        at = bisect_left(self.names, prefix)
        while at < len(self.names) and self.names[at].startswith(prefix):
            yield self.names[at]
            at += 1

    def part(self, name: str, start: int, length: int) -> bytes:
        """Return bytes of a member that is read by ranges.

        Raises:
            FormatError: If it does not have them.
        """
        member = self[name]
        if member.why or start < 0 or start + length > member.length:
            raise FormatError(
                f"{name}: expected {length} bytes at {start}, found "
                f"{member.why or f'{member.length} bytes'}"
            )
        self._file.seek(member.offset + start)
        return _exactly(self._file, length, name)

    def json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a member.

        Raises:
            FormatError: If it is not one, or too large.
        """
        length = self[name].length
        if length > MOST_METADATA:
            raise FormatError(f"{name}: expected at most {MOST_METADATA} bytes, found {length}")
        try:
            value = json.loads(self._content(name))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{name}: expected JSON, found: {str(error)[:100]}") from error
        if not isinstance(value, dict):
            raise FormatError(f"{name}: expected an object of JSON, found {type(value).__name__}")
        return value

    def _content(self, name: str) -> bytes:
        return self.part(name, 0, self[name].length)


class ZipMembers(Members):
    """The members of a zip file; those with metadata may be compressed."""

    def __init__(self, file: BoundedFile, archive: zipfile.ZipFile) -> None:
        """Read the positions of all members.

        Raises:
            FormatError: If there are too many.
        """
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise FormatError(f"expected at most {MOST_MEMBERS} members, found {len(infos)}")
        self._archive = archive
        self._infos = {each.filename: each for each in infos if not each.is_dir()}
        starts = sorted({each.header_offset for each in infos} | {archive.start_dir})
        ends = dict(pairwise(starts))
        members = {
            name: _zip_member(file, each, ends.get(each.header_offset, 0))
            for name, each in self._infos.items()
        }
        super().__init__(file, members)

    def _content(self, name: str) -> bytes:
        if not self[name].why:
            return super()._content(name)
        with self._archive.open(self._infos[name]) as member:
            content = member.read(MOST_METADATA + 1)
        if len(content) > MOST_METADATA:
            raise FormatError(f"{name}: expected at most {MOST_METADATA} bytes, found more")
        return content


def members_of(file: IO[bytes]) -> Members:
    """Return the members of a folder or a zip file.

    Raises:
        FormatError: If it is neither, or damaged.
    """
    whole = BoundedFile(file)
    first = whole.read(len(FOLDER))
    whole.seek(0)
    if first.startswith(ZIP):
        try:
            return ZipMembers(whole, zipfile.ZipFile(whole))
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError) as error:
            raise FormatError(f"expected a zip file, found: {error}") from error
    if first != FOLDER:
        raise FormatError(f"expected a folder or a zip file, found {first!r}")
    return _folder_members(whole)


def _folder_members(file: BoundedFile) -> Members:
    """Read the head of a folder; the engine wrote it."""
    _, count, path_bytes, name_bytes, _ = HEAD.unpack(_exactly(file, HEAD.size, "the head"))
    if count > MOST_MEMBERS:
        raise FormatError(f"expected at most {MOST_MEMBERS} members, found {count}")
    columns = np.frombuffer(_exactly(file, 16 * count, "the head"), "<u8").reshape(2, count)
    _exactly(file, path_bytes, "the head")
    names = _exactly(file, name_bytes, "the head").decode().split("\0")[:-1]
    places = zip(*columns.tolist(), strict=True)
    members = {name: Member(*place) for name, place in zip(names, places, strict=True)}
    return Members(file, members)


def _zip_member(file: BoundedFile, info: zipfile.ZipInfo, end: int) -> Member:
    """Return where a file of a zip file lies; `end`: where the next one begins, or 0."""
    length = info.compress_size
    if info.flag_bits & IS_ENCRYPTED or info.compress_type != zipfile.ZIP_STORED:
        return Member(0, info.file_size, "it is compressed or encrypted in the zip file")
    head = LOCAL_HEAD.size + len(info.orig_filename.encode("utf-8"))
    # What lies close together needs no read of its header.
    if end - info.header_offset == head + length:
        return Member(info.header_offset + head, length)
    file.seek(info.header_offset)
    magic, name_bytes, rest = LOCAL_HEAD.unpack(_exactly(file, LOCAL_HEAD.size, info.filename))
    start = info.header_offset + LOCAL_HEAD.size + name_bytes + rest
    if magic != ZIP:
        raise FormatError(f"{info.filename}: expected the header of a file, found {magic!r}")
    return Member(start, length)


def _exactly(file: BoundedFile, length: int, what: str) -> bytes:
    content = file.read(length)
    if len(content) != length:
        raise FormatError(f"{what}: expected {length} bytes, found {len(content)}")
    return content
