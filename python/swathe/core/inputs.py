"""Check files that are read whole."""

from __future__ import annotations

import errno
from pathlib import Path


def check_regular(path: Path) -> None:
    """Check that a path is not a pipe or a device, which may never end.

    Raises:
        OSError: If it exists and is neither a file nor a folder.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "expected a regular file, found another", str(path))


def read_regular(path: Path, most: int) -> bytes:
    """Read a file; of one with more than `most` bytes the first `most + 1`.

    Raises:
        OSError: If it cannot be read, or is no regular file.
    """
    check_regular(path)
    with path.open("rb") as file:
        return file.read(most + 1)
