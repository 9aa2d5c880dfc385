"""Read the files of a tar in memory: plain files with plain names, within limits.

This is no `tarfile`: that module follows links, takes sparse files of any size, and parses chains
of headers without a bound. A member that is neither a file nor a folder is an error here.

References:
    POSIX.1-2001, pax interchange format and ustar.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NoReturn

from swathe.core.errors import AlgorithmError
from swathe.core.format import size_text
from swathe.core.value_errors import short_text

MOST_PACKAGE_BYTES = 10_000_000
"""Largest package, as it is sent."""
MOST_TAR_BYTES = 40_000_000
"""Largest tar after decompression, its headers included."""
MOST_FILES = 1000
MOST_HEADERS = 4 * MOST_FILES
MOST_DEPTH = 10
"""Most folders above a file."""
MOST_EXTENSION_BYTES = 1_000_000
"""Most bytes of headers of long names and times (pax) together."""
BLOCK = 512
GZIP, USTAR = b"\x1f\x8b", b"ustar"
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
PART_FORM = "names of letters, digits and '_.+-', which begin with a letter, a digit or '_'"
OTHER_KINDS = {
    b"1": "a link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
    b"K": "the name of a link",
}
PLAIN, FOLDER, PAX, PAX_ALL, LONG_NAME = (b"0", b"5", b"x", b"g", b"L")
SAFE_KEYS = ("path", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment")
"""Keys of pax headers that say nothing of size, links or holes."""


def is_tar(content: bytes) -> bool:
    """Check whether a file is a tar or a gzip file, by its first bytes."""
    return content.startswith(GZIP) or (content[257:262] == USTAR and b"\0" in content[:BLOCK])


def tar_files(content: bytes, label: str) -> dict[str, bytes]:
    """Return the content of each file of a tar, plain or gzip, by its name.

    The folder that all files are in, as `mine/` or `./`, is no part of the names.

    Args:
        content: the tar.
        label: its name in errors.

    Raises:
        AlgorithmError: If it is damaged or too large, or has links, devices, names that lead
            elsewhere, that are no ASCII, or that differ in case only.
    """
    return _TarReader(content, label).files()


class _TarReader:
    """Reader of one tar, whose errors name it."""

    def __init__(self, content: bytes, label: str) -> None:
        self._label = label
        if len(content) > MOST_PACKAGE_BYTES:
            self._refuse(f"expected at most {size_text(MOST_PACKAGE_BYTES)}, found more")
        self._content = self._plain(content) if content.startswith(GZIP) else content

    def files(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for name, kind, start, size in self._members():
            parts = self._parts(name)
            if kind == FOLDER or not parts:
                continue
            path = "/".join(parts)
            if path in files:
                self._refuse(f"expected each file once, found {path} twice")
            if len(files) == MOST_FILES:
                self._refuse(f"expected at most {MOST_FILES} files, found more")
            files[path] = self._content[start : start + size]
        self._check_names(files)
        return _without_common_folder(files)

    def _refuse(self, text: str) -> NoReturn:
        raise AlgorithmError(f"{self._label}: {text}")

    def _plain(self, content: bytes) -> bytes:
        """Return the content of a gzip file."""
        stream = zlib.decompressobj(31)
        try:
            plain = stream.decompress(content, MOST_TAR_BYTES + 1)
        except zlib.error as error:
            self._refuse(f"expected a gzip file, found a damaged one: {error}")
        if len(plain) > MOST_TAR_BYTES:
            self._refuse(
                f"expected at most {size_text(MOST_TAR_BYTES)} after decompression, found more"
            )
        if not stream.eof:
            self._refuse("expected a whole gzip file, found the start of one")
        if stream.unused_data.strip(b"\0"):
            self._refuse("expected one gzip stream, found more behind it")
        return plain

    def _members(self) -> Iterator[tuple[str, bytes, int, int]]:
        """Yield name, kind, first byte and size of each file and folder."""
        offset = headers = extension_bytes = 0
        long_name: bytes | None = None
        while (header := self._content[offset : offset + BLOCK]).strip(b"\0"):
            headers += 1
            if headers > MOST_HEADERS:
                self._refuse(f"expected at most {MOST_HEADERS} headers, found more")
            self._check_header(header, offset)
            kind, size = header[156:157].replace(b"\0", b"0"), self._number(header[124:136])
            start = offset + BLOCK
            if start + size > len(self._content):
                self._refuse("expected a whole tar, found the start of one")
            offset = start + -(-size // BLOCK) * BLOCK
            if kind in (PAX, PAX_ALL, LONG_NAME):
                extension_bytes += size
                if extension_bytes > MOST_EXTENSION_BYTES:
                    self._refuse(
                        f"expected at most {size_text(MOST_EXTENSION_BYTES)} of headers, found more"
                    )
                data = self._content[start : start + size]
                if kind == LONG_NAME:
                    long_name = data.rstrip(b"\0")
                elif (path := self._pax_path(data)) is not None and kind == PAX:
                    long_name = path
                continue
            raw = header[:100].partition(b"\0")[0] if long_name is None else long_name
            prefix = header[345:500].partition(b"\0")[0]
            if long_name is None and prefix and header[257:263] == USTAR + b"\0":
                raw = prefix + b"/" + raw
            long_name = None
            name = self._text(raw)
            if kind not in (PLAIN, FOLDER):
                other = OTHER_KINDS.get(kind, "another kind of member")
                self._refuse(f"{short_text(name)}: expected a file or a folder, found {other}")
            yield name, kind, start, size

    def _check_header(self, header: bytes, offset: int) -> None:
        # The sum of the bytes, with spaces instead of the sum itself.
        total = sum(header) - sum(header[148:156]) + 8 * ord(" ")
        if header[257:262] != USTAR or self._number(header[148:156]) != total:
            self._refuse(f"expected a tar, found other bytes at {offset:,}")

    def _number(self, field: bytes) -> int:
        """Return an octal number; other forms are for sizes that are refused anyway."""
        text = field.rstrip(b"\0 ").lstrip(b" ")
        if not text:
            return 0
        if not all(ord("0") <= byte <= ord("7") for byte in text):
            self._refuse(f"expected an octal number in a header, found {field!r}")
        return int(text, 8)

    def _pax_path(self, data: bytes) -> bytes | None:
        """Return the name that a pax header gives; `None` if it gives none."""
        path = None
        offset = 0
        while offset < len(data):
            digits, space, _ = data[offset : offset + 8].partition(b" ")
            end = offset + (int(digits) if space and digits.isdigit() else 0)
            key, equals, value = data[offset + len(digits) + 1 : end].partition(b"=")
            if not equals or not value.endswith(b"\n") or end > len(data):
                self._refuse("expected a pax header of keys and values, found other bytes")
            name = self._text(key)
            if name not in SAFE_KEYS and not name.startswith(("SCHILY.xattr", "LIBARCHIVE.")):
                self._refuse(f"expected plain files, found a header with {short_text(name)}")
            path = value[:-1] if name == "path" else path
            offset = end
        return path

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("ascii")
        except UnicodeDecodeError:
            self._refuse(f"expected {PART_FORM}, found {raw[:100]!r}")

    def _parts(self, name: str) -> list[str]:
        """Return the folders and the name of a member."""
        parts = name.rstrip("/").split("/")
        parts = parts[1:] if parts[0] == "." else parts
        for part in parts:
            if not PART.fullmatch(part):
                self._refuse(f"expected {PART_FORM}, found {short_text(name)}")
        if len(parts) > MOST_DEPTH + 1:
            self._refuse(f"expected at most {MOST_DEPTH} folders above a file, found {len(parts)}")
        return parts

    def _check_names(self, files: dict[str, bytes]) -> None:
        """Check that names differ in more than case, and that no file is a folder too."""
        lower_case: dict[str, str] = {}
        for path in files:
            other = lower_case.setdefault(path.lower(), path)
            if other != path:
                self._refuse(f"expected names that differ in more than case, found {other}, {path}")
        for path in lower_case:
            folder = path
            while folder := folder.rpartition("/")[0]:
                if folder in lower_case:
                    self._refuse(f"expected {folder} as a file or as a folder, found both")


def _without_common_folder(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files without the one folder that all are in."""
    tops = {path.partition("/")[0] for path in files}
    if len(tops) != 1 or not all("/" in path for path in files):
        return files
    return {path.partition("/")[2]: content for path, content in files.items()}
