"""Python of the sandbox: the interpreter, and what it sees of this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM = Path("/usr")
"""Folder that each sandbox sees."""


@dataclass(frozen=True)
class BoxPython:
    """An interpreter, and what it sees.

    Attributes:
        executable: interpreter.
        folders: folders that it sees, at the same place as outside, and cannot change.
        paths: folders of modules besides those that it knows by itself.
    """

    executable: str
    folders: tuple[Path, ...]
    paths: tuple[Path, ...] = ()

    @classmethod
    def of(cls, executable: Path, folders: Sequence[Path]) -> BoxPython:
        """Return another interpreter, with folders of packages and with Swathe."""
        home = _home()
        return cls(str(executable), (*folders, home), (*folders, home.parent))

    @classmethod
    def here(cls) -> BoxPython:
        """Return the interpreter of this process, with its packages and with Swathe."""
        home = _home()
        prefixes = {Path(sys.prefix), Path(sys.base_prefix)}
        is_seen = any(home.is_relative_to(prefix) for prefix in prefixes)
        paths = () if is_seen else (home.parent,)
        folders = {home, *prefixes}
        outside = tuple(sorted(each for each in folders if not each.is_relative_to(SYSTEM)))
        return cls(sys.executable, outside, paths)


def obstacle(paths: Iterable[Path], user: int) -> str:
    """Return what keeps a user from reaching one of some files and folders; empty if nothing does.

    Only modes are looked at, which access lists may extend.
    """
    for path in paths:
        # A link's own folders have to be passed, then those of the file.
        for folder in dict.fromkeys(
            (*reversed(path.absolute().parents), *reversed(path.resolve().parents))
        ):
            status = folder.stat()
            if status.st_uid != user and not status.st_mode & 0o001:
                mode = f"{status.st_mode & 0o7777:04o}"
                return f"user {user} cannot reach {path}: {folder} has mode {mode}"
    return ""


def _home() -> Path:
    """Return the folder of the package `swathe`."""
    return Path(sys.modules["swathe"].__path__[0]).absolute()
