"""What compilers made, by a checksum of all that it was made of: each is made once on a machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from swathe.core.errors import LimitError
from swathe.core.paths import builds_folder

MOST_BYTES = 2 << 30
"""Most bytes of all builds together; those that were used least recently are removed first."""
LOOK_S = 0.1
NEW = "new-"
"""Start of the names of builds that are not complete."""
ABANDONED_S = 3600.0
"""Age at which such a build belongs to a process that is gone, in seconds."""


def build_folder(
    key: str,
    make: Callable[[Path], None],
    is_old: Callable[[Path], bool],
    is_gone: Callable[[], bool] | None = None,
) -> Path:
    """Return the folder of a build. If there is none, it is made, by one process at a time.

    Args:
        key: checksum of all that it is made of, in hexadecimal digits.
        make: writes the files of the build into an empty folder.
        is_old: whether a build is to be made anew, by its folder.
        is_gone: asked every 0.1 s while another process makes it; if true, the wait ends.

    Raises:
        LimitError: If the wait was cancelled.
    """
    home = builds_folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = home / key
    with _lock(home / f"lock-{key[:2]}", is_gone):
        if folder.is_dir() and is_old(folder):
            shutil.rmtree(folder)
        if not folder.is_dir():
            with TemporaryDirectory(prefix=NEW, dir=home) as new:
                content = Path(new) / "build"
                content.mkdir()
                make(content)
                content.rename(folder)
            with _lock(home / "lock-room", is_gone):
                _remove_oldest(home, folder)
        os.utime(folder)
    return folder


@contextmanager
def _lock(path: Path, is_gone: Callable[[], bool] | None) -> Iterator[None]:
    """Hold a lock; it ends with this process."""
    with path.open("ab") as file:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if is_gone is not None and is_gone():
                raise LimitError("the run was cancelled while it waited for a compiler")
            time.sleep(LOOK_S)
        yield


def _remove_oldest(home: Path, current: Path) -> None:
    """Remove builds until all take no more than their limit, and what killed processes left."""
    for new in home.glob(f"{NEW}*"):
        with suppress(FileNotFoundError):  # its process has just completed it
            if time.time() - new.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(new, ignore_errors=True)
    folders = [each for each in home.iterdir() if each.is_dir() and len(each.name) == 64]
    folders.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    total = 0
    for folder in folders:
        total += sum(file.stat().st_size for file in folder.iterdir())
        if total > MOST_BYTES and folder != current:
            shutil.rmtree(folder, ignore_errors=True)
