"""Find arrays of a file by their paths, or by the last names of these."""

from __future__ import annotations

import posixpath
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_PATHS = 20
"""Paths in an error that lists all arrays."""
MOST_NEAR = 5
"""Paths in an error that lists arrays of a name, or of names like it."""
MOST_CANDIDATES = 2000
"""Names that are compared with one that no array has."""
LONGEST_NAME = 100
"""Characters of a name that are compared."""


class ArrayNames:
    """The paths of the arrays of a file, by their last names."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Sort the paths by their last names."""
        self._all = dict.fromkeys(paths)
        self._paths: dict[str, list[str]] = {}
        for path in self._all:
            self._paths.setdefault(posixpath.basename(path), []).append(path)

    def path_of(self, text: str) -> str | None:
        """Return the path that a text is, or the only one with it as its last name; else `None`.

        `/` at the start may be left out. A path comes before the last names of others.
        """
        name = text.removeprefix("/")
        if f"/{name}" in self._all:
            return f"/{name}"
        alike = self._paths.get(name, ())
        return alike[0] if len(alike) == 1 else None

    def hint(self, text: str) -> str:
        """Return which arrays a text may mean that is no path and not the name of one array."""
        alike = self._paths.get(text.removeprefix("/"))
        if alike:
            return f"{len(alike)} arrays have this name: {_some(alike, MOST_NEAR)}"
        near = self._near(text)
        return f"near it are {_some(near, MOST_NEAR)}" if near else self.text

    @property
    def text(self) -> str:
        """Return which arrays there are, for an error."""
        paths = [*self._all]
        return f"arrays are {_some(paths, MOST_PATHS)}" if paths else "the file has no array"

    def _near(self, text: str) -> list[str]:
        """Return the paths whose last name is like that of a text, or has it in it."""
        from difflib import get_close_matches

        name = posixpath.basename(text)[:LONGEST_NAME].lower()
        paths: dict[str, list[str]] = {}
        for other, alike in islice(self._paths.items(), MOST_CANDIDATES):
            paths.setdefault(other[:LONGEST_NAME].lower(), []).extend(alike)
        names = get_close_matches(name, paths, MOST_NEAR)
        names += [each for each in paths if name and name in each and each not in names]
        return [path for each in names for path in paths[each]]


def _some(paths: list[str], most: int) -> str:
    return ", ".join(paths[:most]) + (", ..." if len(paths) > most else "")
