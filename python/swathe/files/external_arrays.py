"""Arrays of a local file that lie in other files of its folder, where the user allows it."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.arrays.array_tree import ArrayTree
from swathe.arrays.indexing import run_external
from swathe.core.errors import ChangedError, OptionError
from swathe.files.array_file import ArrayFile

if TYPE_CHECKING:
    from swathe.arrays.array_tree import ArrayDescription

FORMATS = ("hdf5", "asdf")
"""Formats whose arrays may lie in other files."""
HEAD = struct.Struct("<8sQ")
"""Start of a chunk index: magic, and length of its JSON."""


class ExternalFile(ArrayFile):
    """A file some of whose arrays lie in other files of its folder.

    The library of the format reads these, in a process that may read this folder and nothing else.
    """

    def __init__(self, file: ArrayFile) -> None:
        """Describe the arrays that the file refuses because they lie in others.

        Args:
            file: the file; it may be used further.

        Raises:
            OptionError: If it is not a local file, or compressed as a whole.
            SettingsError: If the system cannot confine a process to a folder.
            FormatError: If it is damaged.
            ChangedError: If it has changed since it was opened.
        """
        super().__init__(file._native, file.tree, file._notes, file.name)
        if "://" in file.url or file.name is not None or file.compression is not None:
            raise OptionError(
                f"{file.url}: allow_external: expected a local file, not compressed as a whole, "
                f"found {file.compression or 'an object of a store'}"
            )
        self._paths: frozenset[str] = frozenset()
        is_whole = not any(each.is_refused for each in file.arrays)
        if is_whole or self.format not in FORMATS:
            return
        index = self._run("describe")
        start = HEAD.size
        tree = ArrayTree(index[start : start + HEAD.unpack(index[:start])[1]])
        self._paths = frozenset(tree.arrays)
        self.tree = file.tree.with_arrays(tree)

    def read_by_library(self, array: ArrayDescription, start: list[int], stop: list[int]) -> bytes:
        """Return the elements `[start, stop)` of an array of this file, or of others."""
        if array.path not in self._paths:
            return super().read_by_library(array, start, stop)
        return self._run("read", array=array.path, start=start, stop=stop)

    def _run(self, function: str, **argument: object) -> bytes:
        folder, name = os.path.split(os.path.realpath(self.url))
        argument |= {"folder": folder, "name": name}
        answer = run_external(function, argument, self.format, self.url, folder)
        if (version := _swathe.open(self.url).version) != self.version:
            raise ChangedError(
                f"{self.url}: expected the version {self.version}, found {version}: it changed; "
                "open it again"
            )
        return answer
