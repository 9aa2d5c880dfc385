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
