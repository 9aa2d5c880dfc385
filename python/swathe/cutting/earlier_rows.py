"""The manifest of an earlier run of a long list, as a database beside the output."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OutputError
from swathe.cutting.resume import LEFT, whole_members
from swathe.files.manifest import COLUMNS, columns_as_table, manifest_meta
from swathe.files.manifest_file import read_part_file
from swathe.files.targets import pieces
from swathe.files.targets.result_names import PieceNames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from astropy.table import Table

    from swathe.cutting.output_paths import OutputPaths

ID, PATH = COLUMNS.index("id"), COLUMNS.index("path")
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS result (
    member TEXT PRIMARY KEY, {", ".join(COLUMNS)}, is_sound INTEGER
) WITHOUT ROWID;
CREATE TEMP TABLE wanted (member TEXT PRIMARY KEY);
"""
# A failed row has no path. If its id is repeated, its name may be that of a result.
INSERT = f"""
INSERT INTO result VALUES ({", ".join("?" * (len(COLUMNS) + 2))}) ON CONFLICT (member) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in COLUMNS)}
WHERE excluded.status = 'ok' OR result.status != 'ok'
"""
MARK = f"""
INSERT INTO result VALUES ({", ".join("?" * (len(COLUMNS) + 2))})
ON CONFLICT (member) DO UPDATE SET is_sound = 1
"""


def earlier_rows_path(output_paths: OutputPaths) -> Path:
    """Return the path of the database of an output."""
    return output_paths.manifest.with_name(f".{output_paths.manifest.name}.earlier.part")


class EarlierRows:
    """Rows of an earlier run, by the path of their result.

    A run that resumes writes a new manifest, in the order of its list. Until it has come to the end
    of the list, rows that it has not reached are only here, so the file outlives a killed run.

    An archive may hold results of targets that an earlier list had. They are kept, with the status
    LEFT.

    Attributes:
        meta: metadata of the earlier manifest.
        end: length in bytes up to which an archive is kept.
    """

    def __init__(self, output_paths: OutputPaths) -> None:
        """Add the rows of the latest manifest.

        Raises:
            OutputError: If the file is not a manifest, or the database cannot be written.
        """
        self._paths = output_paths
        self.meta = manifest_meta(output_paths.latest_manifest)
        if "output" not in self.meta:
            raise OutputError(f"{output_paths.latest_manifest}: is not a manifest of Swathe")
        self.path = earlier_rows_path(output_paths)
        try:
            self._database = sqlite3.connect(self.path)
            with closing(self._database.cursor()) as cursor:
                cursor.executescript(SCHEMA)
            with self._database:
                self._database.executemany(INSERT, self._rows())
        except sqlite3.Error as error:
            raise OutputError(f"{self.path}: {error}; remove it, and begin anew") from error
        self.end = None if output_paths.kind == "folder" else self._check_archive()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        rows, names = read_part_file(self._paths.latest_manifest), PieceNames()
        # As the list was read, so that repeated ids give the same names.
        while block := list(islice(rows, pieces.PIECE_ROWS)):
            for row, name in zip(block, names([row[ID] for row in block]), strict=True):
                yield row[PATH] or self._paths.member(name), *row, 0

    def _check_archive(self) -> int:
        """Mark the results that the archive holds; return the end of the last of them."""
        with self._database:
            self._database.execute("UPDATE result SET is_sound = 0")
            _, end = whole_members(
                self._paths.archive,
                self._paths.kind,
                self.get,
                _RowsOf(self._database),
                self._paths.result_options.kind.hdus,
                members=self,
            )
        return end

    def get(self, member: str) -> int | None:
        """Return the size of a result; `None` if it is not done."""
        query = "SELECT bytes FROM result WHERE member = ? AND status = 'ok'"
        row = self._database.execute(query, (member,)).fetchone()
        return None if row is None else int(row[0])

    def add(self, member: str) -> None:
        """Mark a result as whole."""
        values = {"status": LEFT, "path": member, "bytes": 0}
        row = (values.get(name, "") for name in COLUMNS)
        self._database.execute(MARK, (member, *row, 1))

    def __contains__(self, member: object) -> bool:
        query = "SELECT is_sound FROM result WHERE member = ?"
        row = self._database.execute(query, (member,)).fetchone()
        return row is not None and bool(row[0])

    def table(self, members: list[str]) -> Table:
        """Return the rows of some results; of an archive, done ones only if it holds them.

        The column `member` has their paths in the output, also of failed ones.
        """
        with self._database:
            self._database.execute("DELETE FROM wanted")
            self._database.executemany(
                "INSERT INTO wanted VALUES (?)", ((each,) for each in members)
            )
        names = (*COLUMNS, "member")
        query = f"SELECT {', '.join(names)} FROM result JOIN wanted USING (member)"
        if self.end is not None:
            query += " WHERE status != 'ok' OR is_sound = 1"
        columns = list(zip(*self._database.execute(query), strict=True)) or [()] * len(names)
        return columns_as_table(dict(zip(names, columns, strict=True)), self.meta)

    def close(self, *, is_whole: bool) -> None:
        """Close the database; remove it if the whole list was done."""
        self._database.close()
        if is_whole:
            self.path.unlink(missing_ok=True)


class _RowsOf:
    """Names of results with a row in a manifest."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __contains__(self, member: object) -> bool:
        query = f"SELECT 1 FROM result WHERE member = ? AND status != '{LEFT}'"
        return self._database.execute(query, (member,)).fetchone() is not None
