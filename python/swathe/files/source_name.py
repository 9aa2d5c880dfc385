"""Paths and URLs that users open."""

from __future__ import annotations

import os
from typing import IO, Any, TypeAlias

from swathe.core.argument_checks import check_unicode

Source: TypeAlias = "str | bytes | os.PathLike[str] | IO[bytes]"
"""Path, URL, or file on disk that is open for reading."""
LONGEST_PATH = 4096
"""Longest path in bytes; longer values are the content of a file."""


def name_of(source: Source) -> str:
    """Return the path or URL of a source.

    Raises:
        TypeError: If it has none, or the content at its path may differ.
        ValueError: If it is not valid Unicode.
    """
    if isinstance(source, str):
        return check_unicode("path", source)
    if isinstance(source, bytes) and (len(source) > LONGEST_PATH or b"\0" in source):
        raise _refusal("the bytes of a file; write them to a file")
    if isinstance(source, bytes | os.PathLike):
        return check_unicode("path", os.fsdecode(source))
    if hasattr(source, "read"):
        return _name_of_open(source)
    if hasattr(source, "filename") or hasattr(source, "writeto"):
        raise _refusal(f"an astropy {type(source).__name__}; write it to a file, or give its path")
    kind = type(source).__name__
    memory = isinstance(source, bytearray | memoryview)
    raise _refusal(f"a {kind}; write it to a file" if memory else f"{kind}: {source!r:.100}")


def _name_of_open(file: Any) -> str:
    """Return the path of an open file, if reading the path gives the same content."""
    name, kind = getattr(file, "name", None), type(file).__name__
    try:
        path = os.path.abspath(name) if isinstance(name, str) else ""
        same = bool(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:  # in memory, or deleted since
        same = False
    if not same:
        raise _refusal(f"a {kind} that is not a file on disk; write it to a file")
    if file.writable():
        raise _refusal(f"{path} open for writing; close it")
    return path


def _refusal(description: str) -> TypeError:
    return TypeError(f"swathe.open: expected a path or URL, found {description}")
