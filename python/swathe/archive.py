"""Archives of results that a killed process left behind: what of them can be kept."""

from __future__ import annotations

import math
import os
import tarfile
import zipfile
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.errors import FormatError, OutputError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path

    from swathe._swathe import OutputKind


def mend(
    output: Path, kind: OutputKind, sizes: Mapping[str, int], names: Container[str]
) -> set[str]:
    """Cut an archive back to what the manifest vouches for; gives the members that stay.

    After a power cut an archive may hold less than its manifest says, or more. Members stand one
    behind the other: from the first of our `names` that has not the size it should have, all go.
    A zip file without a sound directory at its end starts anew.

    Raises:
        OutputError: where it cannot be written.
    """
    kept: set[str] = set()
    end, sound = 0, False
    try:
        length = output.stat().st_size
        for name, size, after in _members(output, kind):
            if after > length or name in kept or (name in names and sizes.get(name) != size):
                break
            kept.add(name)
            end = after
        else:
            sound = True
    except FileNotFoundError:
        return set()
    except (tarfile.TarError, zipfile.BadZipFile, FormatError):
        pass
    except OSError as error:
        raise OutputError(f"{output}: {error}") from error
    try:
        if not kept or (kind == "zip" and not sound):
            output.unlink()
            return set()
        if kind != "zip":
            os.truncate(output, end)
    except OSError as error:
        raise OutputError(f"{output}: {error}") from error
    return kept


def _members(output: Path, kind: OutputKind) -> Iterator[tuple[str, int, int]]:
    """Give name, size and end of each member of an archive."""
    match kind:
        case "zip":
            with zipfile.ZipFile(output) as archive:
                yield from ((found.filename, found.file_size, 0) for found in archive.infolist())
        case "tar":
            with tarfile.open(output, "r:") as members:
                for found in members:
                    yield found.name, found.size, found.offset_data + -(-found.size // 512) * 512
        case _:
            before = 0
            for hdu in _swathe.open(str(output)).hdus():
                pixels = math.prod(hdu.shape) if hdu.shape else 0
                data = pixels * abs(hdu.bitpix or 0) // 8
                end = hdu.data_start + -(-data // 2880) * 2880
                if hdu.index > 0:
                    yield hdu.name or "", end - before, end
                before = end
