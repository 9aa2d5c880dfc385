"""Find the part of an earlier run's archive that can be kept."""

from __future__ import annotations

import math
import tarfile
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.errors import FormatError, OutputError
from swathe.files.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path

    from swathe._swathe import OutputKind


def whole_members(
    archive: Path,
    kind: OutputKind,
    sizes: Mapping[str, int],
    names: Container[str],
    extensions: int = 1,
) -> tuple[set[str], int]:
    """Return the valid members of an archive, and the end of the last of them in bytes.

    After a power cut an archive may hold less than its manifest says, or more. Members follow each
    other. From the first of our `names` with a wrong size on, no member is kept. The manifest is
    not kept either; it is written anew. In `.fits` a result has this many `extensions`.

    Raises:
        OutputError: If the archive cannot be read.
    """
    valid_members: set[str] = set()
    end = 0
    try:
        length = archive.stat().st_size
        for name, size, after in _members(archive, kind, extensions):
            if (
                after > length
                or name in valid_members
                or (name in names and sizes.get(name) != size)
            ):
                break
            valid_members.add(name)
            end = after
    except FileNotFoundError:
        return set(), 0
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
            yield from _swathe.zip_members(str(archive))
        case "tar":
            with tarfile.open(archive, "r:") as members:
                for member in members:
                    end = member.offset_data + -(-member.size // 512) * 512
                    yield member.name, member.size, end
        case _:
            before, name = 0, ""
            for hdu in _swathe.open(str(archive)).hdus():
                if hdu.index > 0 and hdu.kind != "image":
                    return
                pixels = math.prod(hdu.shape) if hdu.shape else 0
                data = pixels * abs(hdu.bitpix or 0) // 8
                end = hdu.data_start + -(-data // 2880) * 2880
                if hdu.index % extensions == 1 % extensions:
                    name = hdu.name or ""
                if hdu.index % extensions == 0:
                    if hdu.index > 0:
                        yield name, end - before, end
                    before = end
