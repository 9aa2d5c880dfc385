"""Where the results of jobs are: in a folder, or in a bucket.

They are made in a local folder, and then put in their place, where each is seen when it is whole.
To put one there again changes nothing.
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
"""In the local folder of a job: what goes into results, until they are made."""
GONE, GONE_BYTES = ".gone-", 8

Files = Sequence[tuple[str, str]]
"""Path of what was made, and of its place among the results of a job."""


@dataclass(frozen=True)
class StoredResult:
    """A result.

    Attributes:
        file: as the engine opens it: a path, or `STORE:path`.
        size: bytes.
        open: gives a file to read it from.
    """

    file: str
    size: int
    open: Callable[[], BinaryIO]


class ResultStore(Protocol):
    """What jobs ask of the place of their results."""

    def scratch(self, job: str) -> Path:
        """Give the local folder, which may not be there yet, where those of a job are made."""

    def put(self, job: str, files: Files, stopped: Callable[[], bool]) -> Iterator[int]:
        """Put files in their place; tells the number of each that is there, until stopped.

        Raises:
            OutputError: where some cannot be put there.
        """

    def find(self, job: str, name: str) -> StoredResult:
        """Give a result.

        Raises:
            NoSuchResultError: where it is not there.
            SourceError, AccessError: where that cannot be told.
        """

    def opened(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Give results to be read one after the other, each closed when the next is asked for.

        Raises:
            NoSuchResultError, SourceError, AccessError: as `find`.
        """

    def leave(self, job: str) -> None:
        """Remove what was made of a job on the way to its results."""

    def put_away(self, job: str) -> None:
        """Begin to remove all of a job: what takes no time.

        Raises:
            OutputError: where that cannot be.
        """

    def remove(self, job: str, stopped: Callable[[], bool]) -> bool:
        """Remove all of a job; tells whether it was not stopped before.

        Raises:
            OutputError, SourceError, AccessError: where some of it cannot be removed.
        """


class Folder:
    """Results in a local folder; they are made within it, too, and renamed."""

    def __init__(self, root: Path) -> None:
        """Take the folder; it is made if need be.

        Raises:
            OutputError: where nothing can be written there.
        """
        self._root = root.absolute()
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._root):
                pass
        except OSError as error:
            raise OutputError(f"{root}: no folder for results: {error}") from error

    def __str__(self) -> str:
        """Give its path."""
        return str(self._root)

    def scratch(self, job: str) -> Path:
        """Give the folder of a job."""
        return self._root / job

    def put(self, job: str, files: Files, stopped: Callable[[], bool]) -> Iterator[int]:  # noqa: ARG002 - takes no time
        """Rename files."""
        # As text: paths would take as long as the rest.
        top = f"{self._root}/{job}"
        moves = [(made, f"{top}/{name}") for made, name in files]
        done = 0
        while done < len(moves):
            moved = _swathe.rename_each(moves[done:])
            if done + moved < len(moves):
                # The first of its folder, or it cannot be moved at all.
                move(*moves[done + moved], top)
                moved += 1
            yield from range(done, done + moved)
            done += moved

    def find(self, job: str, name: str) -> StoredResult:
        """Give a result."""
        path = self._root / job / name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise NoSuchResultError(f"{path.name}: the result is gone: {error}") from error
        return StoredResult(str(path), size, lambda: path.open("rb"))

    def opened(self, job: str, names: Sequence[str]) -> Iterator[BinaryIO]:
        """Give results to be read one after the other."""
        for name in names:
            with self.find(job, name).open() as file:
                yield file

    def leave(self, job: str) -> None:
        """Remove what went into results."""
        shutil.rmtree(self._root / job / INPUTS, ignore_errors=True)

    def put_away(self, job: str) -> None:
        """Rename the folder of a job: whoever still writes into it finds it no more."""
        try:
            (self._root / job).rename(self._root / f"{GONE}{token_hex(GONE_BYTES)}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise OutputError(f"{self._root / job}: cannot remove it: {error}") from error

    def remove(self, job: str, stopped: Callable[[], bool]) -> bool:  # noqa: ARG002 - takes little time
        """Remove the folder of a job, and what was put away."""
        self.put_away(job)
        fault: OSError | None = None
        for path in list(self._root.glob(GONE + "[0-9a-f]" * (2 * GONE_BYTES))):
            try:
                shutil.rmtree(path)
            except FileNotFoundError:
                continue  # another process removes it, too
            except OSError as error:
                fault = fault or error
        if fault is not None:
            raise OutputError(f"{fault.filename}: cannot remove it: {fault}") from fault
        return True


def move(made: str, place: str, top: str) -> None:
    """Rename a file; folders are made for it within `top`.

    Raises:
        OSError: where it cannot be.
    """
    try:
        os.replace(made, place)
    except FileNotFoundError:
        # Not with the folder of the job: one that is deleted must not come back.
        folder = Path(place).parent
        for missing in (folder.parent, folder):
            if str(missing) != top:
                missing.mkdir(exist_ok=True)
        os.replace(made, place)
