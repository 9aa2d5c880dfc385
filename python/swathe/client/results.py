"""The results of a job that are fetched, and the archive that must hold them."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.errors import SourceError
from swathe.files.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swathe.jobs.types import Row

DIGEST_BYTES = 32
SHA256 = re.compile(r"[0-9a-f]{64}")


class ResultFile(NamedTuple):
    """Name, size and checksum of a result."""

    name: str
    bytes: int
    sha256: str


class ResultList:
    """The results of a job, in about 100 bytes each: a job may have a million.

    Attributes:
        names: name of each result.
        sources: objects that the job read.
    """

    def __init__(self) -> None:
        """Begin without results."""
        self.names: list[str] = []
        self.sources: set[str] = set()
        self._sizes = array("q")
        self._digests = bytearray()

    def add(self, row: Row) -> None:
        """Add the result of a row, if it has one; inputs of a stack have no result.

        Raises:
            ValueError: If the checksum of the result is not a SHA-256.
        """
        self.sources.add(row.source)
        if not row.name and not row.sha256:
            return
        if not SHA256.fullmatch(row.sha256):
            raise ValueError(
                f"row {row.number}: expected a SHA-256 of its result, found {row.sha256[:100]!r}"
            )
        self.names.append(row.name)
        self._sizes.append(row.bytes)
        self._digests += bytes.fromhex(row.sha256)

    @property
    def bytes(self) -> int:
        """Return the size of all results."""
        return sum(self._sizes)

    def sha256(self, number: int) -> str:
        """Return the checksum of a result."""
        return self._digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES].hex()

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[ResultFile]:
        for number, name in enumerate(self.names):
            yield ResultFile(name, self._sizes[number], self.sha256(number))


def compare(path: Path, kind: str, results: ResultList) -> None:
    """Compare the members of an archive with the checksums of the results.

    Raises:
        SourceError: If a member is missing, differs, or is not a result, or the archive cannot be
            read.
    """
    number_of = {name: number for number, name in enumerate(results.names)}
    has_manifest = False
    for name, sha256 in _members(path, kind):
        number = number_of.pop(name, None)
        if number is None:
            # Of two members of a name, readers take the last; some write wherever a name leads.
            if has_manifest or name != MANIFEST:
                raise SourceError(
                    f"{path}: expected each result once, and {MANIFEST}, found {name[:100]!r}, too"
                )
            has_manifest = True
        elif results.sha256(number) != sha256:
            raise SourceError(f"{path}: {name}: bytes do not match the checksum")
    if number_of:
        raise SourceError(f"{path}: expected a member {min(number_of)}, found none")


def _members(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and checksum of the members of an archive."""
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                # Portals do not pack results: a packed member may be a million times larger.
                if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
                    raise ValueError("its members are larger than itself")
                for info in archive.infolist():
                    with archive.open(info) as member:
                        yield info.filename, _sha256(member)
        else:
            with tarfile.open(path, "r:") as archive_file:
                members: Any = archive_file
                while (entry := members.next()) is not None:
                    # Links have no content, and a sparse member has any size.
                    if not entry.isreg() or entry.issparse():
                        raise ValueError(f"{entry.name[:100]!r} is no plain file")
                    tar_member = members.extractfile(entry)
                    assert tar_member is not None
                    yield entry.name, _sha256(tar_member)
                    members.members.clear()  # it would grow by 1 kB for each member
    except Exception as error:  # the readers raise many kinds of errors
        raise SourceError(f"{path}: the archive is broken: {error}") from error


def _sha256(file: Any) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()
