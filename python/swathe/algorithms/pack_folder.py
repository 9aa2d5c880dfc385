"""Pack a folder into a tar, the same for the same files on each machine."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

from swathe.algorithms.tar_files import MOST_FILES, MOST_PACKAGE_BYTES
from swathe.core.errors import AlgorithmError
from swathe.core.format import size_text


def pack_folder(folder: Path) -> bytes:
    """Return a tar of the files of a folder, without hidden ones and those of `__pycache__`.

    Raises:
        AlgorithmError: If they are too many or too large, or one is a link or no file.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for count, path in enumerate(_files(folder)):
            if path.is_symlink() or not path.is_file():
                raise AlgorithmError(f"{path}: expected a file, found a link or another kind")
            size = path.stat().st_size
            if count == MOST_FILES or content.tell() + size > MOST_PACKAGE_BYTES:
                raise AlgorithmError(
                    f"{folder}: expected at most {MOST_FILES} files and "
                    f"{size_text(MOST_PACKAGE_BYTES)} in all, found more"
                )
            member = tarfile.TarInfo(str(path.relative_to(folder)))
            member.size = size
            with path.open("rb") as file:
                tar.addfile(member, file)
    return content.getvalue()


def _files(folder: Path) -> list[Path]:
    """Return the files below a folder, by name. Links to folders are not followed."""
    paths: list[Path] = []
    for home, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        paths += [Path(home, name) for name in names if not name.startswith(".")]
        paths += [Path(home, name) for name in folders if Path(home, name).is_symlink()]
        if len(paths) > MOST_FILES:
            break
    return sorted(paths)
