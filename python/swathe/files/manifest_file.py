"""The manifest of a run, written while the pieces of its list end."""

from __future__ import annotations

import csv
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from swathe.core.errors import OutputError
from swathe.core.outputs import write_file
from swathe.core.row_record import END_STATUSES, STATUSES
from swathe.core.row_table import CODES
from swathe.files.manifest import (
    COLUMNS,
    columns_as_table,
    manifest_meta,
    rows_as_tables,
)
from swathe.files.manifest_head import head_of
from swathe.files.manifest_table import ManifestTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from astropy.table import Table

    from swathe.files.manifest_columns import Manifest

MOST_FAILURES = 1000
"""Number of failed rows in a LongManifest; the file has all."""
TABLE_ROWS = 100_000
LARGEST_TABLE_BYTES = 64 << 20
"""Size of a manifest that is read as a table: some 300,000 rows."""
ROWS_BEFORE = "rows_before"
"""Number of rows of the manifest before those of the present piece, in the head of its file."""


@dataclass(frozen=True)
class LongManifest:
    """Manifest of a list that was cut in pieces, which is too long for one table.

    Attributes:
        path: the file; `None` for the output `null:`.
        meta: counts and seconds, as in the head of the file.
        failed: id, status and reason of the first 1,000 targets that are not `ok`.
    """

    path: Path | None
    meta: dict[str, Any]
    failed: Table

    @classmethod
    def of(cls, path: Path) -> LongManifest:
        """Count the rows of a file, and read the first that failed.

        Raises:
            OutputError: If a row has a status that no manifest has.
        """
        counts = dict.fromkeys(STATUSES, 0)
        failed: list[Sequence[str]] = []
        for row in read_rows(path):
            if row[1] not in counts:
                raise OutputError(
                    f"{path}: expected a status of {', '.join(counts)}, found {row[1][:40]!r}"
                )
            counts[row[1]] += 1
            if row[1] != "ok" and len(failed) < MOST_FAILURES:
                failed.append(row[:3])
        return cls(path, manifest_meta(path) | counts, _failed_table(failed))

    def __len__(self) -> int:
        return sum(self.meta.get(status, 0) for status in STATUSES)

    def __iter__(self) -> Iterator[Any]:
        for table in self.tables():
            yield from table

    def __getitem__(self, item: Any) -> NoReturn:
        raise TypeError(f"manifest of a long list: expected use of tables(), found [{item!r:.50}]")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"manifest of a long list: expected use of tables(), found .{name}")

    def tables(self, rows: int = TABLE_ROWS) -> Iterator[Table]:
        """Yield the manifest as tables of at most `rows` rows.

        Raises:
            OutputError: If the output was `null:`, which keeps no manifest.
        """
        if self.path is None:
            raise OutputError("null:: expected an output with a manifest; null: only counts")
        yield from rows_as_tables(read_rows(self.path), rows, self.meta)


def read_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a manifest; a killed process may have left half a row at the end.

    Raises:
        OutputError: If the file has other columns, or a row before the last has more or fewer
            cells.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#") and line.endswith("\n"))
        rows = csv.reader(lines)
        columns = next(rows, list(COLUMNS))
        if columns != list(COLUMNS):
            raise OutputError(
                f"{path}: expected the columns {', '.join(COLUMNS)}, found "
                f"{', '.join(columns)[:200]}; write to another output, or give --overwrite"
            )
        is_short = False
        for number, row in enumerate(rows, 1):
            if is_short or len(row) > len(COLUMNS):
                raise OutputError(
                    f"{path}: row {number - is_short}: expected {len(COLUMNS)} cells, found "
                    f"{'fewer' if is_short else 'more'}"
                )
            is_short = len(row) < len(COLUMNS)
            if not is_short:
                yield row


def piece_path(path: Path) -> Path:
    """Return the file with the rows of the present piece of an unfinished manifest."""
    return path.with_name(f".{path.name.lstrip('.')}.piece.part")


def is_in_pieces(path: Path) -> bool:
    """Check whether a manifest is that of an unfinished run in pieces, or too large for a table."""
    return piece_path(path).exists() or path.stat().st_size > LARGEST_TABLE_BYTES


def read_part_file(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a manifest, complete or as a killed process left it."""
    piece = piece_path(path)
    before = manifest_meta(piece).get(ROWS_BEFORE)
    if before is None:
        yield from read_rows(path)
        return
    present = list(read_rows(piece))
    rows, count = read_rows(path), 0
    for row in islice(rows, before):
        count += 1
        yield row
    if count < before:  # it is of an earlier run
        return
    # If the piece has ended, the manifest has all of its rows; else some of them, or none.
    complete_rows = list(islice(rows, len(present)))
    yield from complete_rows if len(complete_rows) == len(present) else present
    yield from rows


class ManifestFile:
    """File to which the manifests of pieces are written; without a path they are only counted.

    During a run it holds the rows of the pieces that have ended. The rows of the present piece, as
    of the last `save`, are in a file beside it, except for the first piece. Only `finish` writes
    the final head.

    Attributes:
        path: the file.
        meta: metadata in its head, which may change until the end.
        pieces: number of pieces that have ended.
        counts: number of rows by status, of the pieces that have ended.
        last: the only piece of a short list.
    """

    def __init__(self, path: Path | None, meta: dict[str, Any]) -> None:
        """Begin without pieces."""
        self.path, self.meta = path, meta
        self.pieces = 0
        self.counts: dict[str, int] = dict.fromkeys(END_STATUSES, 0)
        self.last: Manifest | None = None
        self._failed: list[tuple[str, str, str]] = []
        self._stores: Counter[str] = Counter()
        self._head_bytes = self._end = 0

    def save(self, manifest: Manifest) -> None:
        """Write the state of the present piece.

        Raises:
            OutputError: If the file cannot be written.
        """
        if self.path is None:
            return
        if not self.pieces:
            self._write_first(manifest)
            return
        parts = chain([head_of({ROWS_BEFORE: sum(self.counts.values())})], manifest.rows())
        _replace(piece_path(self.path), parts)

    def _write_first(self, manifest: Manifest) -> None:
        """Write the first piece, and remove the file of a piece that an earlier run left."""
        assert self.path is not None
        piece_path(self.path).unlink(missing_ok=True)
        manifest.write(self.path)
        self._head_bytes = len(head_of(manifest.meta))

    def _append(self, manifest: Manifest) -> None:
        """Add the rows of a piece that has ended.

        Raises:
            OutputError: If the file cannot be written.
        """
        if self.path is None:
            return
        if not self.pieces:
            self._write_first(manifest)
        else:
            try:
                with self.path.open("r+b") as file:
                    file.truncate(self._end)
                    file.seek(self._end)
                    file.writelines(manifest.rows())
                    file.flush()
                    os.fsync(file.fileno())
                piece_path(self.path).unlink(missing_ok=True)
            except OSError as error:
                raise OutputError(f"{self.path}: cannot write: {error.strerror}") from error
        self._end = self.path.stat().st_size

    def end_piece(self, manifest: Manifest, *, is_only: bool) -> None:
        """Write and count a piece that has ended; the only one is written by `finish`.

        Raises:
            OutputError: If the file cannot be written.
        """
        self._count_stores(manifest)
        self.last = manifest if is_only else None
        if not is_only:
            self._append(manifest)
        for status, count in manifest.counts().items():
            self.counts[status] += count
        room = MOST_FAILURES - len(self._failed)
        for row in np.flatnonzero(manifest.status != CODES["ok"])[:room].tolist():
            status = STATUSES[manifest.status[row]]
            self._failed.append((manifest.id[row], status, manifest.reason.list()[row]))
        self.pieces += 1

    def _count_stores(self, manifest: Manifest) -> None:
        """Count the rows of each store that targets were divided between, by their sources."""
        if "stores" not in self.meta:
            return
        counts = np.bincount(manifest.source.codes, minlength=len(manifest.source.values))
        for source, count in zip(manifest.source.values, counts.tolist(), strict=True):
            self._stores[source.partition(":")[0]] += count
        self.meta["stores"] = {name: self._stores[name] for name in self.meta["stores"]}

    def finish(self) -> None:
        """Write the final head of the file.

        Raises:
            OutputError: If the file cannot be written.
        """
        if self.path is None or not self.pieces:
            return
        if self.last is not None:
            self._write_first(self.last)
            return
        head = head_of(self.meta)
        with self.path.open("rb") as rows:
            rows.seek(self._head_bytes)

            def save(file: Any) -> None:
                file.write(head)
                shutil.copyfileobj(rows, file, 1 << 20)

            write_file(self.path, save, overwrite=True, durable=True)
        piece_path(self.path).unlink(missing_ok=True)

    def result(self, path: Path | None) -> ManifestTable | LongManifest:
        """Return the manifest; its file is now at `path`."""
        if self.last is not None:
            return ManifestTable(self.last)
        return LongManifest(path, self.meta, _failed_table(self._failed))


def _failed_table(rows: Sequence[Sequence[str]]) -> Table:
    """Return id, status and reason of rows as a table."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return columns_as_table(dict(zip(("id", "status", "reason"), columns, strict=True)), {})


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file in one step."""
    write_file(path, lambda file: file.writelines(parts), overwrite=True, durable=True)
