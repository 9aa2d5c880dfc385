"""Files of arrays of a job: described when it is submitted, after it is known that they may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.errors import AccessError, LimitError, OptionError, SwatheError
from swathe.files.array_outputs import suffix_of
from swathe.files.file import arrays_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable

MOST_ARRAY_FILES = 1000
"""Maximum number of files of arrays in one list: each is described when the job is submitted."""


@dataclass
class ArrayFiles:
    """Files of arrays of a list; each is described once it is known that it may be read.

    Attributes:
        check_source: function that refuses files.
        is_combined: whether results are made from several images; then arrays are refused.
        suffix: suffix of all results; `None`: that of the format of their source.
        suffixes: suffix of results, by file.
        unreadable: files that cannot be read.
    """

    check_source: Callable[[str], None]
    is_combined: bool
    suffix: str | None = None
    suffixes: dict[str, str] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)

    def tree_of(self, file: str) -> ArrayTree | None:
        """Return the arrays of a file; `None` for FITS.

        Raises:
            AccessError: If the file may not be read.
            LimitError: If there are too many files of arrays.
            OptionError: If images are combined.
            SwatheError: If the file cannot be read.
        """
        check_file(file, self.check_source)
        is_known = file in self.suffixes or file in self.unreadable
        if not is_known and len(self.suffixes) + len(self.unreadable) >= MOST_ARRAY_FILES:
            raise LimitError(
                f"{file}: expected up to {MOST_ARRAY_FILES:,} files of arrays in a job, found more"
            )
        try:
            tree = arrays_of(file)
        except SwatheError:
            self.unreadable.add(file)
            raise
        if tree is None:
            return None
        if self.is_combined:
            raise OptionError(f"{file}: expected images of FITS to combine, found arrays")
        self.suffixes[file] = self.suffix or suffix_of(tree.format)
        return tree


def check_file(file: str, check_source: Callable[[str], None]) -> None:
    """Check that a file may be read.

    Raises:
        AccessError: If it may not, or if its URL holds a secret: no job stores secrets.
    """
    if file:
        check_source(file)
    if _swathe.redact_url(file) != file:
        raise AccessError(f"{_swathe.redact_url(file)}: a job keeps no URL with credentials")


def refused_files(rows: RowTable, check_source: Callable[[str], None]) -> dict[int, Fault]:
    """Return the faults of rows whose file may not be read.

    Raises:
        AccessError: If no file may be read.
    """
    faults_by_file: dict[str, Fault] = {}
    for file in rows.source.values:
        try:
            check_file(file, check_source)
        except AccessError as error:
            faults_by_file[file] = ("error", str(error))
    if faults_by_file and len(faults_by_file) == len(rows.source.values):
        raise AccessError(next(iter(faults_by_file.values()))[1])
    if not faults_by_file:
        return {}
    files = enumerate(rows.source.list())
    return {row: faults_by_file[file] for row, file in files if file in faults_by_file}
