"""The manifest: what became of every target, as a table and as `manifest.ecsv`."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from swathe.core.errors import OutputError
from swathe.core.outputs import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from astropy.table import Table

    from swathe._swathe import OutputKind

Content: TypeAlias = bytes
"""What a file holds; `bytes` is a column of the manifest."""
LINE_ENDS = re.compile("[\x00\r\v\f\x1c-\x1e\x85\u2028\u2029]")
BLANKS = re.compile(r"\s+#?")
HARMLESS = re.compile(r"[ !$-+\--~]*").fullmatch
QUOTED = re.compile('[",\n]|^\\s*#')
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What cells of a spreadsheet begin with that are formulas."""
PART = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r])")
"""Before such a part of a cell. Where commas are decimal points, semicolons divide cells; quotes
count only at the beginning of one."""
MANIFEST = "manifest.ecsv"
BLOCK = 2880
EXTENSION = "MANIFEST"
"""Of a FITS file of cutouts: its last extension."""
COLUMNS = ("id", "status", "reason", "path", "bytes", "source", "source_version", "sha256")
FAILED = ("no-overlap", "missing", "error")
"""What a target is that is not `ok`."""


@dataclass
class Manifest:
    """One row per target, filled in as targets end: a list for each of the COLUMNS.

    Attributes:
        meta: what stands in the head of the file: what was asked for.
    """

    id: list[str]
    source: list[str]
    meta: dict[str, Any]
    status: list[str] = field(init=False)
    reason: list[str] = field(init=False)
    path: list[str] = field(init=False)
    bytes: list[int] = field(init=False)
    source_version: list[str] = field(init=False)
    sha256: list[str] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.id)
        self.status = ["error"] * count
        self.reason = ["interrupted"] * count
        self.path = [""] * count
        self.bytes = [0] * count
        self.source_version = [""] * count
        self.sha256 = [""] * count

    def counts(self) -> dict[str, int]:
        """How many targets have each status."""
        found = dict.fromkeys(("ok", *FAILED), 0)
        for status in self.status:
            found[status] += 1
        return found

    def table(self) -> Table:
        """Give it as an astropy table."""
        import numpy as np
        from astropy.table import Table

        arrays = {
            name: np.array(getattr(self, name), np.int64 if name == "bytes" else str)
            for name in COLUMNS
        }
        return Table(arrays, meta=dict(self.meta), copy=False)

    def write(self, path: Path) -> Content:
        """Write the file, at once and whole, in place of an earlier state of it; return its bytes.

        The rows are not left to astropy's writer, which takes 20 s for 100,000.
        """
        content = (self.head() + self.rows()).encode()
        write_file(path, lambda file: file.write(content), overwrite=True, durable=True)
        return content

    def extension(self) -> Content:
        """Return it as an extension of a FITS file, a table of the name MANIFEST.

        FITS has ASCII only: other characters stand there as Python escapes them.
        """
        import numpy as np
        from astropy.io import fits

        columns = []
        for name in COLUMNS:
            values = getattr(self, name)
            if name == "bytes":
                columns.append(fits.Column(name, "K", array=np.array(values, np.int64)))
                continue
            texts = np.array([text.encode("ascii", "backslashreplace") for text in values], "S")
            columns.append(fits.Column(name, f"{max(texts.itemsize, 1)}A", array=texts))
        table = fits.BinTableHDU.from_columns(columns, name=EXTENSION)
        made = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), table]).writeto(made)
        return made.getvalue()[BLOCK:]

    def head(self) -> str:
        """Give what stands in the file before the rows."""
        head = io.StringIO()
        Manifest([], [], self.meta).table().write(head, format="ascii.ecsv", delimiter=",")
        return head.getvalue()

    def rows(self) -> str:
        """Give the rows as they stand in the file."""
        cells = (
            map(str, self.bytes) if name == "bytes" else _cells(getattr(self, name))
            for name in COLUMNS
        )
        return "".join(f"{row}\n" for row in map(",".join, zip(*cells, strict=True)))


def _cells(texts: list[str]) -> list[str]:
    """Give a column as it stands in the file, by way of its distinct values, often few."""
    distinct = {text: _cell(text) for text in set(texts)}
    return [distinct[text] for text in texts]


def _cell(text: str) -> str:
    """Give a text as it stands in the file.

    Readers split lines at more characters than quotes protect, and take for a comment what starts
    with "#", within quotes too.
    """
    if HARMLESS(text):
        return text
    text = LINE_ENDS.sub(" ", BLANKS.sub(_before_comment, text))
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def _before_comment(blanks: re.Match[str]) -> str:
    """Return blanks without line feeds, if what follows would be taken for a comment."""
    text = blanks[0]
    return text.replace("\n", " ") if text.endswith("#") else text


def spreadsheet(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Return a manifest in ECSV as CSV for people: without its head, and with no cell a formula.

    Spreadsheets run what begins with one of `FORMULA`: it gets an apostrophe in front, also behind
    a semicolon, tab or line end, at which some divide a cell.
    """
    for part in parts:
        text = io.StringIO()
        source = io.StringIO(part.decode(), newline="")
        lines = (line for line in source if not line.startswith("#"))
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerows([_harmless(cell) for cell in row] for row in csv.reader(lines))
        yield text.getvalue().encode()


def _harmless(cell: str) -> str:
    return PART.sub(r"\1'", cell)


def read_manifest(path: Path) -> Table | None:
    """Give the manifest of an earlier run; `None` where there is none.

    Raises:
        OutputError: where there is a file that is no manifest.
    """
    from astropy.table import Table

    if not path.exists():
        return None
    try:
        table = Table.read(path, format="ascii.ecsv", fill_values=[])
    except Exception as error:  # the reader raises many kinds
        raise OutputError(f"{path}: is no manifest of Swathe: {error}") from error
    missing = [name for name in COLUMNS if name not in table.colnames]
    if missing:
        raise OutputError(f"{path}: is no manifest of Swathe: it has no column {missing[0]!r}")
    return table


def manifest_path(output: Path, kind: OutputKind) -> Path:
    """Return where the manifest of an output is.

    In a folder it is `manifest.ecsv`, beside `o.zip` it is `o.manifest.ecsv`, or
    `o.zip.manifest.ecsv` where the other is that of an `o.tar`.
    """
    if kind == "folder":
        return output / MANIFEST
    short = output.with_name(f"{output.stem}.{MANIFEST}")
    long = output.with_name(f"{output.name}.{MANIFEST}")
    is_of_another = long.exists() or manifest_meta(short).get("output", output.name) != output.name
    return long if is_of_another else short


def manifest_meta(path: Path) -> dict[str, Any]:
    """Return what the head of a manifest says; nothing if there is no manifest."""
    from astropy.table import Table

    head: list[str] = []
    try:
        with path.open() as file:
            for line in file:
                head.append(line)
                if not line.startswith("#"):
                    break
        return dict(Table.read(head, format="ascii.ecsv").meta)
    except Exception:  # the reader raises many kinds; whoever replaces the file is told
        return {}
