"""Folders that a store's files lie in: its root, and those that its links may lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import unquote


def folders_of(url: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the root of a store, and the folders of its option `roots`.

    Args:
        url: `file://...`, percent-encoded.
        options: of the store.
    """
    root = unquote(url.removeprefix("file://"), errors="surrogateescape") or "/"
    return (root, *(folder for folder in options.get("roots", "").split(":") if folder))


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path leads into one of these folders, all links followed.

    It says where the path leads now. The engine opens files of stores in a way that holds.
    """
    real = _real(path)
    roots = (os.path.realpath(folder) for folder in folders)
    return any(os.path.commonpath([root, real]) == root for root in roots)


def _real(path: str) -> str:
    """Return a path with all links followed.

    Nothing is looked for behind the first part that is not there: names of strangers may have a
    thousand parts, and lists of them a hundred thousand names.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts:
        return os.path.realpath(path)
    there = ""
    for at, part in enumerate(parts, 1):
        there += f"/{part}"
        if not os.path.lexists(there):
            return os.path.join(os.path.realpath(there), *parts[at:])
    return os.path.realpath(path)
