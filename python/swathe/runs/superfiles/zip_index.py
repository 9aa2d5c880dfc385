"""Where the entries of a zip file lie, from bytes that nobody vouches for (APPNOTE 6.3.10).

Only stored entries are read: nothing is inflated, so an entry is as long as its bytes. No entry
overlaps another, so all together are no longer than the object.
"""

from __future__ import annotations

import mimetypes
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swathe.core.errors import FormatError, LimitError, OptionError

END = struct.Struct("<4s4H2LH")
END_MAGIC = b"PK\x05\x06"
LOCATOR = struct.Struct("<4sLQL")
LOCATOR_MAGIC = b"PK\x06\x07"
END64 = struct.Struct("<4sQ2H2L4Q")
END64_MAGIC = b"PK\x06\x06"
ENTRY = struct.Struct("<4s6H3L5H2L")
ENTRY_MAGIC = b"PK\x01\x02"
LOCAL = struct.Struct("<4s5H3L2H")
LOCAL_MAGIC = b"PK\x03\x04"
MOST_COMMENT = 0xFFFF
IN_ZIP64, IN_ZIP64_SHORT = 0xFFFF_FFFF, 0xFFFF
IS_ENCRYPTED, IS_UTF8, STORE_METHOD = 1, 1 << 11, 0
ZIP64 = 1
"""Number of the extra field with lengths above 4 GiB."""
MOST_ENTRIES = 1_000_000
MOST_DIRECTORY = 256 << 20
"""Longest directory that is read, in bytes."""
MOST_NAME = 1000
"""Longest name of an entry, in bytes of UTF-8."""
MOST_HEADER = LOCAL.size + MOST_NAME + MOST_COMMENT
"""Longest header before the content of an entry, in bytes."""
MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the directory of a zip file lies.

    Attributes:
        start, end: its bytes in the object.
        entries: number of entries.
    """

    start: int
    end: int
    entries: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a zip file.

    Attributes:
        name: its name, with `/` between folders.
        start, end: its bytes in the object, with the header before its content.
        size: bytes of its content.
        crc: CRC-32 of its content.
        media_type: kind of its content, as `image/png`.
    """

    name: str
    start: int
    end: int
    size: int
    crc: int
    media_type: str


def check_entry_name(name: str) -> str:
    """Check that a name is one of a file below a folder, wherever it is unpacked.

    Raises:
        OptionError: If it is not.
    """
    parts = name.split("/")
    if {"", ".", ".."}.intersection(parts) or "\\" in name or not name.isprintable():
        raise OptionError(
            f"expected a name of letters, digits and '/' between folders, found {name!r:.80}"
        )
    if len(name.encode(errors="surrogatepass")) > MOST_NAME:
        raise OptionError(f"expected a name of at most {MOST_NAME} bytes, found {name!r:.80}")
    return name


def find_directory(
    tail: bytes, size: int, label: str, most_entries: int = MOST_ENTRIES
) -> Directory:
    """Return where the directory lies.

    Args:
        tail: the end of the object; at least its last 128 KiB, or all of it.
        size: bytes of the object.
        label: name of the object, for errors.
        most_entries: number of entries that it may have.

    Raises:
        FormatError: If the object does not end as a zip file does.
        LimitError: If it has too many entries.
    """
    at = _find_end(tail, label)
    _, disk, first_disk, here, entries, length, start, _ = END.unpack_from(tail, at)
    end = size - len(tail) + at
    if IN_ZIP64 in (length, start) or IN_ZIP64_SHORT in (here, entries):
        at = _find_end64(tail, at, size, label)
        _, _, _, _, disk, first_disk, here, entries, length, start = END64.unpack_from(tail, at)
        end = size - len(tail) + at
    if disk or first_disk or here != entries:
        raise FormatError(f"{label}: expected a zip file in one part, found one in several")
    if start + length != end:
        raise FormatError(
            f"{label}: expected the directory of the zip file to end at byte {end}, found "
            f"{start + length}"
        )
    if entries * ENTRY.size > length:
        raise FormatError(f"{label}: expected {entries} entries, found {length} bytes for them")
    if entries > most_entries or length > MOST_DIRECTORY:
        raise LimitError(
            f"{label}: expected at most {most_entries} entries, listed in {MOST_DIRECTORY} bytes, "
            f"found {entries} in {length}"
        )
    return Directory(start, end, entries)


def _find_end(tail: bytes, label: str) -> int:
    """Return where the last record begins: it ends with a comment, which ends the object."""
    at = len(tail)
    while (at := tail.rfind(END_MAGIC, max(0, len(tail) - MOST_COMMENT - END.size), at)) >= 0:
        if at + END.size <= len(tail):
            comment = END.unpack_from(tail, at)[-1]
            if at + END.size + comment == len(tail):
                return at
    raise FormatError(f"{label}: expected a zip file, found no end of its directory")


def _find_end64(tail: bytes, at: int, size: int, label: str) -> int:
    """Return where the last record of a large zip file begins, by the locator before `at`."""
    if at >= LOCATOR.size:
        magic, disk, start, disks = LOCATOR.unpack_from(tail, at - LOCATOR.size)
        first: int = start - (size - len(tail))
        is_inside = 0 <= first <= at - LOCATOR.size - END64.size
        is_locator = magic == LOCATOR_MAGIC and not disk and disks <= 1 and is_inside
        if is_locator and tail[first : first + 4] == END64_MAGIC:
            return first
    raise FormatError(f"{label}: expected the directory of a zip file above 4 GiB, found none")


def parse_directory(content: bytes, directory: Directory, label: str) -> list[Entry]:
    """Return the entries in the order in which they lie; folders are left out.

    Args:
        content: bytes of the directory.
        directory: where it lies.
        label: name of the object, for errors.

    Raises:
        FormatError: If an entry is damaged, not stored, or overlaps another.
    """
    entries = sorted(_entries(content, directory, label), key=lambda each: each.start)
    if len({each.name for each in entries}) != len(entries):
        raise FormatError(f"{label}: expected each name once, found one of two entries")
    starts = [each.start for each in entries]
    # The header may be longer than the directory says, by one field.
    ends = [
        min(limit, each.start + MOST_HEADER + each.size)
        for each, limit in zip(entries, [*starts[1:], directory.start], strict=True)
    ]
    for each, limit in zip(entries, ends, strict=True):
        if each.end > limit:
            raise FormatError(
                f"{label}, entry {each.name}: expected it to end before byte {limit}, where "
                f"another or the directory begins, found byte {each.end}"
            )
    whole = [
        Entry(each.name, each.start, end, each.size, each.crc, each.media_type)
        for each, end in zip(entries, ends, strict=True)
    ]
    return [each for each in whole if not each.name.endswith("/")]


def _entries(content: bytes, directory: Directory, label: str) -> Iterator[Entry]:
    """Yield the entries, each with the least byte at which it can end."""
    at = 0
    for number in range(directory.entries):
        if at + ENTRY.size > len(content):
            raise FormatError(f"{label}: expected {directory.entries} entries, found {number}")
        fields = ENTRY.unpack_from(content, at)
        magic, _, _, flags, method, _, _, crc, stored_size, size, *lengths = fields[:13]
        start, name_at = fields[-1], at + ENTRY.size
        name_length, extra_length, comment_length = lengths
        extra_at, comment_at = name_at + name_length, name_at + name_length + extra_length
        at = comment_at + comment_length
        if magic != ENTRY_MAGIC or at > len(content):
            raise FormatError(f"{label}: entry {number} of the directory is damaged")
        name = _name(content[name_at:extra_at], flags, f"{label}, entry {number}")
        what = f"{label}, entry {name}"
        if method != STORE_METHOD or flags & IS_ENCRYPTED:
            kind = "an encrypted one" if flags & IS_ENCRYPTED else f"compression {method}"
            raise FormatError(f"{what}: expected a stored entry, found {kind}")
        size, stored_size, start = _long_numbers(
            content[extra_at:comment_at], (size, stored_size, start), what
        )
        if size != stored_size:
            raise FormatError(f"{what}: expected {size} bytes stored, found {stored_size}")
        end = start + LOCAL.size + name_length + size
        yield Entry(name, start, end, size, crc, _media_type(content[comment_at:at], name))
    if at != len(content):
        raise FormatError(f"{label}: expected {at} bytes of directory, found {len(content)}")


def _name(raw: bytes, flags: int, what: str) -> str:
    try:
        name = raw.decode("utf-8" if flags & IS_UTF8 else "cp437")
        check_entry_name(name[:-1] if name.endswith("/") else name)
    except (UnicodeDecodeError, OptionError) as error:
        raise FormatError(f"{what}: {error}") from error
    return name


def _long_numbers(extra: bytes, numbers: Sequence[int], what: str) -> list[int]:
    """Return size, stored size and start; what is above 4 GiB stands in an extra field."""
    at, field = 0, b""
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == ZIP64:
            field = extra[at + 4 : at + 4 + length]
        at += 4 + length
    result = []
    for number in numbers:
        if number == IN_ZIP64:
            if len(field) < 8:
                raise FormatError(f"{what}: expected its length in 64 bits, found none")
            number, field = int.from_bytes(field[:8], "little"), field[8:]
        result.append(number)
    return result


def _media_type(comment: bytes, name: str) -> str:
    """Return the media type that the comment of an entry is, else the one of its name."""
    text = comment.decode("latin-1")
    return text if MEDIA_TYPE.fullmatch(text) else media_type_of(name)


def media_type_of(name: str) -> str:
    """Return the media type that files of such a name have."""
    return mimetypes.guess_type(name)[0] or UNKNOWN_TYPE


def content_start(raw: bytes, entry: Entry, label: str) -> int:
    """Return where the content of an entry begins, in bytes from the start of the entry.

    Args:
        raw: bytes of the object from the start of the entry on, with its header.
        entry: the entry.
        label: name of the object, for errors.

    Raises:
        FormatError: If the header is damaged.
    """
    what = f"{label}, entry {entry.name}"
    if len(raw) < LOCAL.size or raw[:4] != LOCAL_MAGIC:
        raise FormatError(f"{what}: expected a header at byte {entry.start}, found none")
    _, _, flags, *_, name_length, extra_length = LOCAL.unpack_from(raw)
    name = _name(raw[LOCAL.size : LOCAL.size + name_length], flags, what)
    if name != entry.name:
        raise FormatError(f"{what}: expected this name at byte {entry.start}, found {name!r:.80}")
    first: int = LOCAL.size + name_length + extra_length
    left = max(0, entry.end - entry.start - first)
    if left < entry.size:
        raise FormatError(f"{what}: expected {entry.size} bytes, found {left}")
    return first


def entry_content(raw: bytes, entry: Entry, label: str) -> bytes:
    """Return the content of an entry, after its CRC-32 was compared.

    Args:
        raw: bytes of the object from the start to the end of the entry.
        entry: the entry.
        label: name of the object, for errors.

    Raises:
        FormatError: If it is damaged.
    """
    first = content_start(raw, entry, label)
    content = raw[first : first + entry.size]
    check_crc(zlib.crc32(content), entry, label)
    return content


def check_crc(crc: int, entry: Entry, label: str) -> None:
    """Check the CRC-32 of the content of an entry.

    Raises:
        FormatError: If it is another.
    """
    if crc != entry.crc:
        raise FormatError(
            f"{label}, entry {entry.name}: expected CRC-32 {entry.crc:08x}, found {crc:08x}"
        )


def entry_at(raw: bytes, start: int, label: str) -> tuple[Entry, int]:
    """Return the entry whose header lies at some place, and where its content begins.

    Args:
        raw: bytes of the object from there on, `MOST_HEADER` or up to its end.
        start: the place.
        label: name of the object, for errors.

    Raises:
        FormatError: If there is none, or it is none of a superfile.
    """
    what = f"{label}, byte {start}"
    if len(raw) < LOCAL.size or raw[:4] != LOCAL_MAGIC:
        raise FormatError(f"{what}: expected the header of an entry, found none")
    *_, crc, stored_size, size, name_length, extra_length = LOCAL.unpack_from(raw)
    _, _, flags, method, *_ = LOCAL.unpack_from(raw)
    if method != STORE_METHOD or flags & IS_ENCRYPTED:
        raise FormatError(f"{what}: expected a stored entry, found another")
    extra_at = LOCAL.size + name_length
    first: int = extra_at + extra_length
    name = _name(raw[LOCAL.size : extra_at], flags, what)
    size, stored_size = _long_numbers(raw[extra_at:first], (size, stored_size), what)
    if size != stored_size:
        raise FormatError(f"{what}: expected {size} bytes stored, found {stored_size}")
    return Entry(name, start, start + first + size, size, crc, media_type_of(name)), first
