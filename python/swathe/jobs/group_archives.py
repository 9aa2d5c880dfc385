"""The archive of a group's outputs: its files are stored uncompressed, and are read in place."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from swathe.algorithms.media_types import MEDIA_TYPES
from swathe.core.errors import NoSuchResultError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.jobs.types import Result

HEADER = 30
"""Bytes of a member's header, before its name and extra field (APPNOTE.TXT 6.3, 4.3.7)."""


class Output(NamedTuple):
    """An output in the archive of its group.

    Attributes:
        name: name of the file, `OUTPUT.suffix`.
        start: its first byte in the archive.
        size: number of its bytes.
        crc: its CRC-32.
    """

    name: str
    start: int
    size: int
    crc: int


def outputs_in(archive: BinaryIO) -> list[Output]:
    """Return the outputs in the archive of a group.

    Raises:
        SourceError: If it is no such archive.
    """
    try:
        with ZipFile(archive) as content:
            members = content.infolist()
            return [
                Output(each.filename, _start(archive, each.header_offset), each.file_size, each.CRC)
                for each in members
                if each.compress_type == ZIP_STORED
            ]
    except (BadZipFile, NotImplementedError, ValueError) as error:
        raise SourceError(f"archive of a group: it is broken: {error}") from error


def output_of(archive: Result, name: str) -> Result:
    """Return an output of a group as a result of its own.

    Args:
        archive: the result of the group.
        name: name of the output, with or without its suffix.

    Raises:
        NoSuchResultError: If the group has no such output.
        SourceError: If the archive cannot be read.
    """
    with archive.open() as content:
        outputs = outputs_in(content)
    for output in outputs:
        if name in (output.name, output.name.rpartition(".")[0]):
            return replace(
                archive,
                name=output.name,
                size=output.size,
                etag=f'"{archive.sha256[:32]}-{output.crc:08x}"',
                media_type=_media_type(output.name),
                sha256="",
                open=OutputFile.opener(archive.open, output),
            )
    names = ", ".join(output.name for output in outputs) or "none"
    raise NoSuchResultError(f"{archive.name}: expected an output ({names}), found {name[:100]!r}")


def _media_type(name: str) -> str:
    """Return the media type of an output, by the suffix of its name."""
    types = (kind for kind, each in MEDIA_TYPES.items() if name.endswith(each.suffix))
    return next(types, "application/octet-stream")


def _start(archive: BinaryIO, header: int) -> int:
    """Return where the content of a member starts."""
    archive.seek(header)
    content = archive.read(HEADER)
    lengths = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
    return header + HEADER + sum(lengths)


class OutputFile(io.RawIOBase):
    """An output as a file; closing it closes the archive."""

    def __init__(self, archive: BinaryIO, output: Output) -> None:
        """Take the open archive."""
        self._archive, self._output, self._at = archive, output, 0

    @classmethod
    def opener(cls, open_archive: Callable[[], BinaryIO], output: Output) -> Callable[[], BinaryIO]:
        """Return a function that opens an output."""
        return lambda: io.BufferedReader(cls(open_archive(), output))

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte of the output."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._output.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes of the output; 0 at its end."""
        rest = max(0, self._output.size - self._at)
        self._archive.seek(self._output.start + self._at)
        content = self._archive.read(min(len(buffer), rest))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        """Close the archive."""
        self._archive.close()
        super().close()
