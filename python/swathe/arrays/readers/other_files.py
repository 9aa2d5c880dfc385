"""Files that a file names, as far as they lie in its folder: for local use that a user allows.

The process may open nothing else (`swathe.core.landlock`). What is checked here besides gives a
plain reason, and keeps pipes from being opened.
"""

from __future__ import annotations

import os

from swathe.core.errors import FormatError

HOW_TO_READ = (
    "; in a local file, --allow-external (allow_external=True) reads files of the same folder"
)
"""End of the reason why an array is refused that another file has."""


def file_within(folder: str, name: str, around: str) -> str:
    """Return the path of a file that another file names.

    Args:
        folder: folder that it must lie in, as a real path.
        name: the name, absolute or relative to the folder of the other file.
        around: path of the other file.

    Raises:
        FormatError: If it leads out of the folder, has a second name, or there is no such file.
    """
    path = os.path.realpath(os.path.join(os.path.dirname(around), name))
    if os.path.commonpath([path, folder]) != folder:
        raise FormatError(f"{name!r:.200}: expected a file in {folder}, found one outside")
    if not os.path.isfile(path):
        what = "no regular file" if os.path.exists(path) else "none"
        raise FormatError(f"{name!r:.200}: expected a file in {folder}, found {what}")
    if (names := os.stat(path).st_nlink) > 1:
        # The system lets a process read it, though it may be of another folder.
        raise FormatError(
            f"{name!r:.200}: expected a file of one name, found one with {names} (hard links), "
            "which may lie elsewhere: copy it"
        )
    return path
