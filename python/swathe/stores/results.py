"""Result stores of jobs: a folder or a bucket.

Results are made in a local folder and then moved to their final names, where each appears only
when it is complete. Storing a result again changes nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Protocol

from swathe import _swathe
from swathe.core.errors import NoSuchResultError, OutputError

INPUTS = ".inputs"
"""Name of a folder in a job's local folder, for parts of results being made."""
REMOVAL_PREFIX = ".gone-"
"""Prefix of the folder of a deleted job, until it is removed."""

Files = Sequence[tuple[str, str]]
"""Local path of each result, and its name among the results of the job."""


@dataclass(frozen=True)
class StoredResult:
    """A stored result.

    Attributes:
        file: name for the engine: a path, or `STORE:path`.
        size: size in bytes.
        open: function that returns a file to read it from.
    """

    file: str
    size: int
    open: Callable[[], BinaryIO]


class ResultStore(Protocol):
    """Interface that jobs use to store and read results."""

    def scratch(self, job: str) -> Path:
        """Return the local folder in which a job's results are made; it may not exist yet."""

    def put(self, job: str, files: Files, should_stop: Callable[[], bool]) -> Iterator[int]:
        """Store files, and yield the number of each when it is stored, until stopped.

        Raises:
            OutputError: If a file cannot be stored.
        """

    def find(self, job: str, name: str) -> StoredResult:
        """Return a result.

        Raises:
            NoSuchResultError: If the result does not exist.
            SourceError, AccessError: If this cannot be found out.
        """

    def open_many(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Yield results as open files; each is closed when the next is requested.

        Raises:
            NoSuchResultError, SourceError, AccessError: As in `find`.
        """

    def clear_scratch(self, job: str) -> None:
        """Remove the intermediate files of a job."""

    def begin_removal(self, job: str) -> None:
        """Begin to remove all files of a job, with the steps that take no time.

        Raises:
            OutputError: If that fails.
        """

    def remove(self, job: str, should_stop: Callable[[], bool]) -> bool:
        """Remove all files of a job; return false if it was stopped before the end.

        Raises:
            OutputError, SourceError, AccessError: If a file cannot be removed.
        """


class Folder:
    """Results in a local folder. They are made inside it and renamed."""

    def __init__(self, root: Path) -> None:
        """Set the folder, and make it if it does not exist.

        Raises:
            OutputError: If the folder cannot be written to.
        """
        self._root = root.absolute()
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._root):
                pass
        except OSError as error:
            raise OutputError(f"{root}: cannot be a folder for results: {error}") from error

    def __str__(self) -> str:
        """Return the path."""
        return str(self._root)

    def scratch(self, job: str) -> Path:
        """Return the folder of a job."""
        return self._root / job

    def put(self, job: str, files: Files, should_stop: Callable[[], bool]) -> Iterator[int]:  # noqa: ARG002 - takes no time
        """Rename files."""
        # As text: Path objects would take as long as the renaming.
        top = f"{self._root}/{job}"
        moves = [(local, f"{top}/{name}") for local, name in files]
        count = 0
        while count < len(moves):
            renames = _swathe.rename_each(moves[count:])
            if count + renames < len(moves):
                # The first file of its folder, or a file that cannot be moved at all.
                move(*moves[count + renames], top)
                renames += 1
            yield from range(count, count + renames)
            count += renames

    def find(self, job: str, name: str) -> StoredResult:
        """Return a result."""
        path = self._root / job / name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise NoSuchResultError(f"{path.name}: the result no longer exists: {error}") from error
        return StoredResult(str(path), size, lambda: path.open("rb"))

    def open_many(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Yield results as open files, one after the other."""
        # As text: Path objects would take as long as the reading.
        top = f"{self._root}/{job}"
        for name in names:
            try:
                file = open(f"{top}/{name}", "rb")  # noqa: SIM115 - closed below
            except OSError as error:
                raise NoSuchResultError(
                    f"{os.path.basename(name)}: the result no longer exists: {error}"
                ) from error
            with file:
                yield file

    def clear_scratch(self, job: str) -> None:
        """Remove the intermediate files."""
        shutil.rmtree(self._root / job / INPUTS, ignore_errors=True)

    def begin_removal(self, job: str) -> None:
        """Rename the folder of a job, so that a worker still writing to it fails."""
        folder, hidden_folder = self._root / job, self._root / f"{REMOVAL_PREFIX}{job}"
        try:
            # A folder that came back after it was renamed is moved into the renamed one.
            folder.rename(hidden_folder / token_hex(8) if hidden_folder.exists() else hidden_folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise OutputError(f"{folder}: cannot remove it: {error}") from error

    def remove(self, job: str, should_stop: Callable[[], bool]) -> bool:
        """Remove the folder of a job."""
        self.begin_removal(job)
        if should_stop():
            return False
        path = self._root / f"{REMOVAL_PREFIX}{job}"
        try:
            # Not by shutil: of a busy portal it waits for the interpreter at each file, so that
            # jobs that are made and deleted all the time would fill the disk.
            _swathe.remove_folder(str(path))
        except FileNotFoundError:
            return True  # it had no results, or another process removed them
        except OSError as error:
            raise OutputError(f"{path}: cannot remove it: {error}") from error
        return True


def move(source: str, target: str, top: str) -> None:
    """Rename a file, and make its folders within `top`.

    Raises:
        OSError: If the file cannot be renamed.
    """
    try:
        os.replace(source, target)
    except FileNotFoundError:
        # Do not make the folder of the job: the folder of a deleted job must not come back.
        folder = Path(target).parent
        for missing in (folder.parent, folder):
            if str(missing) != top:
                missing.mkdir(exist_ok=True)
        os.replace(source, target)
