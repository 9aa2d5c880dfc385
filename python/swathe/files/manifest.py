"""The manifest: the outcome of every target, as a table and as `manifest.ecsv`."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
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
"""Content of a file; `bytes` is a column of the manifest."""
LINE_ENDS = re.compile("[\x00\r\v\f\x1c-\x1e\x85\u2028\u2029]")
UNPRINTABLE = re.compile("[^ -~]")
BLANKS = re.compile(r"\s+#?")
HARMLESS = re.compile(r"[ !$-+\--~]*").fullmatch
QUOTED = re.compile('[",\n]|^\\s*#')
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a spreadsheet cell that is a formula."""
PART = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r])")
"""Start of a part of a cell. With decimal commas, semicolons separate cells, and quotes count only
at the beginning of one."""
MANIFEST = "manifest.ecsv"
ARCHIVES = (".zip", ".tar", ".fits", ".fit", ".fts")
"""Suffixes of outputs that have their manifest beside them."""
BLOCK = 2880
EXTENSION = "MANIFEST"
"""Name of the last extension of a FITS file of cutouts."""
COLUMNS = ("id", "status", "reason", "path", "bytes", "source", "source_version", "sha256")
FAILED = ("no-overlap", "missing", "error")
"""Statuses of a target that is not `ok`."""


@dataclass
class Manifest:
    """One row per target, filled in when targets end: a list for each of the COLUMNS.

    Attributes:
        meta: metadata in the head of the file, such as the options of the run.
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
        """Return the number of targets with each status."""
        numbers = dict.fromkeys(("ok", *FAILED), 0)
        for status in self.status:
            numbers[status] += 1
        return numbers

    def table(self) -> Table:
        """Return the manifest as an astropy table."""
        import numpy as np
        from astropy.table import Table

        arrays = {
            name: np.array(getattr(self, name), np.int64 if name == "bytes" else str)
            for name in COLUMNS
        }
        return Table(arrays, meta=dict(self.meta), copy=False)

    def write(self, path: Path) -> Content:
        """Replace the file by the present state in one step; return its bytes.

        Rows are not written by astropy, which takes 20 s for 100,000.
        """
        content = (self.head() + self.rows()).encode()
        write_file(path, lambda file: file.write(content), overwrite=True, durable=True)
        return content

    def extension(self) -> Content:
        """Return the manifest as an extension of a FITS file, a table named MANIFEST.

        FITS allows ASCII only: other characters are written as Python escapes them.
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
        content = io.BytesIO()
        fits.HDUList([fits.PrimaryHDU(), table]).writeto(content)
        return content.getvalue()[BLOCK:]

    def head(self) -> str:
        """Return the part of the file before the rows."""
        types = [f"# - {{name: {name}, datatype: {_type(name)}}}" for name in COLUMNS]
        meta = [f"# - {_yaml(name)}: {_yaml(value)}" for name, value in self.meta.items()]
        lines = ["# %ECSV 1.0", "# ---", "# datatype:", *types, "# delimiter: ','"]
        lines += [*(["# meta: !!omap", *meta] if meta else []), "# schema: astropy-2.0"]
        return "\n".join([*lines, ",".join(COLUMNS), ""])

    def rows(self) -> str:
        """Return the rows of the file."""
        cells = (
            map(str, self.bytes) if name == "bytes" else _cells(getattr(self, name))
            for name in COLUMNS
        )
        return "".join(f"{row}\n" for row in map(",".join, zip(*cells, strict=True)))


def _type(name: str) -> str:
    return "int64" if name == "bytes" else "string"


def _yaml(value: Any) -> str:
    """Return a value as YAML in one line. Not by a library, whose import takes 0.1 s.

    Raises:
        TypeError: If it is not a plain value.
    """
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + UNPRINTABLE.sub(_escape, text) + '"'
    if value is None or isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
        text = repr(float(value))
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, Mapping):
        pairs = (f"{_yaml(name)}: {_yaml(each)}" for name, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    raise TypeError(f"a value in a manifest: expected text, number or list, found {value!r:.50}")


def _escape(letter: re.Match[str]) -> str:
    return "\\U" + f"{ord(letter[0]):08X}"


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
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def _before_comment(blanks: re.Match[str]) -> str:
    """Return blanks without line feeds, if the text after them would be taken for a comment."""
    text = blanks[0]
    return text.replace("\n", " ") if text.endswith("#") else text


def spreadsheet(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Return an ECSV manifest as CSV for spreadsheets: without its head, and without formulas.

    Spreadsheets run cells that begin with one of `FORMULA`. Such a cell gets an apostrophe in
    front, also after a semicolon, tab or line end, where some programs split a cell.
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
    """Return the manifest of an earlier run; `None` if there is none.

    Raises:
        OutputError: If the file is not a manifest.
    """
    if not path.exists():
        return None
    from astropy.table import Table

    try:
        table = Table.read(path, format="ascii.ecsv", fill_values=[])
    except Exception as error:  # the reader raises many kinds of errors
        raise OutputError(f"{path}: is not a manifest of Swathe: {error}") from error
    missing = [name for name in COLUMNS if name not in table.colnames]
    if missing:
        raise OutputError(f"{path}: is not a manifest of Swathe: it has no column {missing[0]!r}")
    return table


def manifest_path(output: Path, kind: OutputKind) -> Path:
    """Return the path of the manifest of an output.

    In a folder it is `manifest.ecsv`. For `o.zip` it is `o.manifest.ecsv`, or
    `o.zip.manifest.ecsv` if the former belongs to an `o.tar`.
    """
    if kind == "folder":
        return output / MANIFEST
    short = output.with_name(f"{output.stem}.{MANIFEST}")
    long = output.with_name(f"{output.name}.{MANIFEST}")
    owner = manifest_meta(short).get("output")
    if owner is None:  # no manifest, or one that was fetched from a portal
        is_of_another = short.exists() and not output.exists() and _has_sibling(output)
    else:
        is_of_another = owner != output.name
    return long if is_of_another or long.exists() else short


def _has_sibling(output: Path) -> bool:
    """Check whether there is an archive whose name differs only in its suffix."""
    others = (output.with_suffix(suffix) for suffix in ARCHIVES)
    return any(other.exists() for other in others if other != output)


def manifest_meta(path: Path) -> dict[str, Any]:
    """Return the metadata of a manifest; empty if there is no manifest."""
    head: list[str] = []
    try:
        with path.open() as file:
            for line in file:
                head.append(line)
                if not line.startswith("#"):
                    break
        from astropy.table import Table

        return dict(Table.read(head, format="ascii.ecsv").meta)
    except Exception:  # the reader raises many kinds of errors; replacing the file reports them
        return {}
