"""The manifest: the outcome of every target, as columns, as a table and as `manifest.ecsv`."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from swathe.core.outputs import write_file
from swathe.core.row_record import END_STATUSES, STATUSES, RowStatus
from swathe.core.row_table import CODES, DIGEST_BYTES, DictColumn, TextColumn, hexadecimal
from swathe.files.hdu import BLOCK
from swathe.files.manifest import EXTENSION, INTEGERS, columns_as_table
from swathe.files.manifest_head import head_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from astropy.table import Table
    from numpy.typing import NDArray

Content: TypeAlias = bytes
"""Content of a file; `bytes` is a column of the manifest."""
LINE_ENDS = re.compile("[\x00\r\v\f\x1c-\x1e\x85\u2028\u2029]")
BLANKS = re.compile(r"\s+#?")
HARMLESS = re.compile(r"[ !$-+\--~]*").fullmatch
QUOTE_REASONS = re.compile('[",\n]|^\\s*#')
TEXT_ROWS = 10_000
"""Rows that are made text together."""


@dataclass
class Manifest:
    """One row per target, filled in when targets end.

    Attributes:
        id: id of each row.
        source: object of each row.
        meta: metadata in the head of the file, such as the options of the run.
        name: path of each row's result in the output, once its status is `ok`.
        status: status of each row, as an index in STATUSES.
        sha256: digests as bytes; zeros if there is none.
    """

    id: list[str]
    source: DictColumn[str]
    meta: dict[str, Any]
    name: list[str]
    status: NDArray[np.uint8] = field(init=False)
    reason: TextColumn | DictColumn[str] = field(init=False)
    bytes: NDArray[np.int64] = field(init=False)
    source_version: TextColumn | DictColumn[str] = field(init=False)
    sha256: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.id)
        self.status = np.full(count, CODES["error"], np.uint8)
        self.reason = TextColumn(count, "interrupted")
        self.bytes = np.zeros(count, np.int64)
        self.source_version = TextColumn(count)
        self.sha256 = np.zeros((count, DIGEST_BYTES), np.uint8)

    def enter(
        self,
        row: int,
        status: RowStatus,
        reason: str = "",
        size: int = 0,
        version: str = "",
        sha256: str = "",
    ) -> None:
        """Enter the outcome of a row."""
        assert isinstance(self.reason, TextColumn)
        assert isinstance(self.source_version, TextColumn)
        self.status[row], self.reason[row], self.bytes[row] = CODES[status], reason, size
        self.source_version[row] = version
        self.sha256[row] = np.frombuffer(bytes.fromhex(sha256), np.uint8) if sha256 else 0

    def enter_results(
        self,
        rows: NDArray[np.int64],
        size: NDArray[np.int64],
        versions: DictColumn[str],
        sha256: NDArray[np.uint8],
    ) -> None:
        """Enter the results of rows that are done."""
        assert isinstance(self.reason, TextColumn)
        assert isinstance(self.source_version, TextColumn)
        self.status[rows], self.bytes[rows], self.sha256[rows] = CODES["ok"], size, sha256
        self.reason.put(rows, [""], np.zeros(len(rows), np.int32))
        self.source_version.put(rows, versions.values, versions.codes)

    def is_ok(self, row: int) -> bool:
        """Check whether the result of a row exists."""
        return bool(self.status[row] == CODES["ok"])

    def counts(self) -> dict[str, int]:
        """Return the number of targets with each status."""
        numbers = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        return {status: numbers[CODES[status]] for status in END_STATUSES}

    def columns(self, rows: slice = slice(None)) -> dict[str, list[Any]]:
        """Return some rows as columns of plain values, in the order of COLUMNS."""
        status = [STATUSES[code] for code in self.status[rows].tolist()]
        paths = zip(status, self.name[rows], strict=True)
        return {
            "id": self.id[rows],
            "status": [str(each) for each in status],
            "reason": self.reason.list(rows),
            "path": [path if each == "ok" else "" for each, path in paths],
            "bytes": self.bytes[rows].tolist(),
            "source": self.source.list(rows),
            "source_version": self.source_version.list(rows),
            "sha256": hexadecimal(self.sha256[rows]),
        }

    def table(self, rows: slice = slice(None)) -> Table:
        """Return some rows, by default all, as an astropy table."""
        return columns_as_table(self.columns(rows), self.meta)

    def write(self, path: Path) -> None:
        """Replace the file by the present state in one step.

        Rows are not written by astropy, which takes 20 s for 100,000.
        """
        parts = chain([head_of(self.meta)], self.rows())
        write_file(path, lambda file: file.writelines(parts), overwrite=True, durable=True)

    def extension(self) -> Content:
        """Return the manifest as an extension of a FITS file, a table named MANIFEST.

        FITS allows ASCII only: other characters are written as Python escapes them.
        """
        from astropy.io import fits

        columns = []
        for name, values in self.columns().items():
            if name in INTEGERS:
                columns.append(fits.Column(name, "K", array=np.array(values, np.int64)))
                continue
            texts = np.array([text.encode("ascii", "backslashreplace") for text in values], "S")
            columns.append(fits.Column(name, f"{max(texts.itemsize, 1)}A", array=texts))
        table = fits.BinTableHDU.from_columns(columns, name=EXTENSION)
        content = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), table]).writeto(content)
        return content.getvalue()[BLOCK:]

    def rows(self) -> Iterator[Content]:
        """Yield the rows of the file, some at a time."""
        for first in range(0, len(self.id), TEXT_ROWS):
            cells = (
                map(str, column) if name in INTEGERS else _cells(column)
                for name, column in self.columns(slice(first, first + TEXT_ROWS)).items()
            )
            lines = map(",".join, zip(*cells, strict=True))
            yield "".join(f"{line}\n" for line in lines).encode()


def _cells(texts: list[str]) -> list[str]:
    """Return a column as cells of the file; each distinct value is converted once."""
    distinct = {text: _cell(text) for text in set(texts)}
    return [distinct[text] for text in texts]


def _cell(text: str) -> str:
    """Return a text as a cell of the file.

    Readers split lines at more characters than quotes protect. They take "#" at the start of a line
    for a comment, even within quotes.
    """
    if HARMLESS(text):
        return text
    text = LINE_ENDS.sub(" ", BLANKS.sub(_before_comment, text))
    return '"' + text.replace('"', '""') + '"' if QUOTE_REASONS.search(text) else text


def _before_comment(blanks: re.Match[str]) -> str:
    """Return blanks without line feeds, if the text after them would be taken for a comment."""
    text = blanks[0]
    return text.replace("\n", " ") if text.endswith("#") else text
