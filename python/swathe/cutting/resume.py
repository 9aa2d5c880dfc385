"""Find the part of an earlier run's archive that can be kept."""

from __future__ import annotations

import math
import tarfile
from typing import TYPE_CHECKING, Protocol

from swathe import _swathe
from swathe.core.errors import FormatError, OutputError
from swathe.files.hdu import whole_blocks
from swathe.files.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from pathlib import Path

    from swathe._swathe import OutputKind

LEFT = "left"
"""Status of a result in an archive that is in no manifest: its target was taken off the list."""


class Members(Protocol):
    """Names of members."""

    def add(self, member: str, /) -> None:
        """Add a name."""

    def __contains__(self, member: object, /) -> bool: ...


def whole_members(
    archive: Path,
    kind: OutputKind,
    size_of: Callable[[str], int | None],
    names: Container[str],
    extensions: int = 1,
    members: Members | None = None,
) -> tuple[Members, int]:
    """Return the valid members of an archive, and the end of the last of them in bytes.

    After a power cut an archive may hold less than its manifest says, or more. Members follow each
    other. From the first of our `names` with a wrong size on, no member is kept. The manifest is
    not kept either; it is written again. In `.fits` a result has this many `extensions`. The valid
    members are added to `members`, by default a new set.

    Raises:
        OutputError: If the archive cannot be read.
    """
    valid_members: Members = set() if members is None else members
    end = 0
    try:
        length = archive.stat().st_size
        for name, size, after in _members(archive, kind, extensions):
            if after > length or name in valid_members or (name in names and size_of(name) != size):
                break
            valid_members.add(name)
            end = after
    except FileNotFoundError:
        return valid_members, 0
    except (tarfile.TarError, FormatError):
        pass
    except OSError as error:
        raise OutputError(f"{archive}: {error}") from error
    return valid_members, end


def _members(archive: Path, kind: OutputKind, extensions: int) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and end of each member of an archive, up to its manifest."""
    for name, size, end in _all_members(archive, kind, extensions):
        if name == MANIFEST and kind != "fits":
            return
        yield name, size, end


def _all_members(
    archive: Path, kind: OutputKind, extensions: int
) -> Iterator[tuple[str, int, int]]:
    match kind:
        case "zip":
            yield from _swathe.ZipMembers(str(archive))
        case "tar":
            with tarfile.open(archive, "r:") as members:
                for member in members:
                    vars(members)["members"] = []  # else all are kept in memory
                    end = member.offset_data + -(-member.size // 512) * 512
                    yield member.name, member.size, end
        case _:
            before, name = 0, ""
            for hdu in _swathe.open(str(archive)).hdus():
                if hdu.index > 0 and hdu.kind != "image":
                    return
                pixels = math.prod(hdu.shape) if hdu.shape else 0
                data = pixels * abs(hdu.bitpix or 0) // 8
                end = hdu.data_start + whole_blocks(data)
                if hdu.index % extensions == 1 % extensions:
                    name = hdu.name or ""
                if hdu.index % extensions == 0:
                    if hdu.index > 0:
                        yield name, end - before, end
                    before = end
