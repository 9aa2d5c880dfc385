"""What Swathe stores on local disk to read less: blocks of files on servers, and the index.

>>> swathe.cache.show()
>>> swathe.cache.clear()
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from swathe import _swathe

CacheName = Literal["blocks", "index"]

__all__ = ["CacheFolder", "clear", "show"]


def __dir__() -> tuple[str, ...]:
    """Return the public names, for completion."""
    return tuple(__all__)


@dataclass(frozen=True)
class CacheFolder:
    """A folder of the cache.

    Attributes:
        name: `blocks` of files on servers, or the `index` of layouts and seek points.
        folder: path of the folder.
        files: number of files.
        bytes: bytes used on disk.
        limit_bytes: bytes allowed.
    """

    name: CacheName
    folder: Path
    files: int
    bytes: int
    limit_bytes: int


def show() -> list[CacheFolder]:
    """Return both folders of the cache, with size and limit.

    Example:
        >>> [(each.name, each.bytes) for each in swathe.cache.show()]
        [('blocks', 1064960), ('index', 24576)]

    Raises:
        SwatheError: If a folder cannot be read.
    """
    return [_folder(name) for name in get_args(CacheName)]


def clear() -> dict[CacheName, int]:
    """Remove all cached blocks and the index. Later reads fill them again.

    Example:
        >>> swathe.cache.clear()
        {'blocks': 1064960, 'index': 24576}

    Returns:
        The number of bytes that each folder no longer uses.

    Raises:
        SwatheError: If a file cannot be removed.
    """
    freed_bytes = {}
    for before in show():
        _swathe.clear_cache(before.name)
        freed_bytes[before.name] = before.bytes - _folder(before.name).bytes
    return freed_bytes


def _folder(name: CacheName) -> CacheFolder:
    usage = _swathe.cache_usage(name)
    return CacheFolder(name, usage.folder, usage.values, usage.bytes, usage.limit)
