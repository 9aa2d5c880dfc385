"""Uploaded tables of targets: read in a confined process, within limits.

Columns and rows are counted before a reader parses a table, as far as this is possible from its
bytes. The limits on memory and time of the process cover the rest.
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from xml.parsers import expat

from swathe.core.confined import ProcessLimits
from swathe.core.errors import LimitError, TargetsError
from swathe.core.table_bytes import LONGEST_TEXT, pack_lists, pack_table, unpack_lists, unpack_table
from swathe.files.targets.list_tables import read_table
from swathe.files.targets.resolver import UnaskedError, asking_for
from swathe.files.targets.target_list import READERS
from swathe.files.targets.text_list import parse_lines
from swathe.portal.pasted_targets import PastedTargets, pack_paste, read_paste, unpack_paste
from swathe.portal.strict_json import parse_strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from astropy.table import Table

    from swathe.core.confined import ConfinedProcess

T = TypeVar("T")
SCALARS = {str, int, float, bool, type(None)}
LONGEST_NAME = 200
LONGEST_LINE = 20_000
"""Maximum length of a pasted line, and of the line with the column names of a table."""
MOST_COLUMNS = 200
MOST_CELL = 10_000
"""Maximum number of values or characters in one cell of a VOTable."""
LONGEST_INTEGER_BITS = 1024
"""Maximum size of an integer in JSON. Longer ones exceed a float; thousands take seconds."""
SMALL = 50_000
"""Maximum size of a list that is read in a thread of this process: a few 10 ms at most."""
LARGEST_INPUTS = 1_000_000
"""Maximum size of the inputs of a process beside its targets: lists of granules are among them."""
NAMES_S = 20.0
"""Time limit for resolving the object names of one list, which waits for another service."""
NAMES_THREADS, NAMES_WAITING = 2, 20
RETRY_S = 5
PACKED_STARTS = (b"\x1f\x8b", b"\x1f\x9d", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
IMPORTS = (
    "astropy.coordinates",
    "astropy.io.ascii",
    "astropy.io.votable",
    "astropy.table",
    "swathe.portal.uploads",
)
"""Modules that the launcher of confined processes imports for tables."""


class Uploads:
    """Reader of uploads, in confined processes."""

    def __init__(self, launcher: ConfinedProcess, most_rows: int, memory_mb: int) -> None:
        """Set the launcher of processes, and the limits of rows and memory."""
        self.launcher = launcher
        self._most_rows = most_rows
        self._bounds = ProcessLimits(memory_mb=memory_mb)
        self._names = ThreadPoolExecutor(NAMES_THREADS, "swathe-names")
        self._room = threading.BoundedSemaphore(NAMES_THREADS + NAMES_WAITING)

    async def table(self, file: IO[bytes], name: str) -> Table:
        """Read a table, whose format follows from the suffix of its name, as in `cut_many`.

        Raises:
            TargetsError: If the table cannot be read.
            LimitError: If it has too many rows, or needs too much memory or time.
        """
        if "\0" in name:
            raise TargetsError(
                f"the file's name: expected no character NUL, found {name[-LONGEST_NAME:]!r}"
            )
        suffix = Path(name[-LONGEST_NAME:]).suffix.lower()
        if suffix not in READERS:
            raise TargetsError(
                f"{name[-LONGEST_NAME:]!r}: expected a name ending in one of {', '.join(READERS)}"
            )
        content = await self._call("packed_table", file, suffix, name=name)
        return await asyncio.to_thread(unpack_table, content)

    async def body(
        self, body: bytes, inside: str = "", *, has_targets: bool = True
    ) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """Return the targets of a JSON body as columns, and its other fields, as `targets_of`.

        Raises:
            TargetsError: If the body is not an object with targets, or they are not a table.
            JobError: If the targets are inside of a field, and the body is no strict JSON.
            LimitError: If it has too many rows, or needs too much memory or time.
        """
        if len(body) <= SMALL:
            read = partial(targets_of, body, self._most_rows, inside, has_targets=has_targets)
            return await self._read(read)
        content = await self._call(
            "packed_body", io.BytesIO(body), ".json", inside=inside, has_targets=has_targets
        )
        return await asyncio.to_thread(unpack_lists, content)

    async def paste(self, text: str) -> PastedTargets:
        """Parse a pasted list of targets.

        Raises:
            TargetsError: If the list has no target.
            LimitError: If it has too many or too long lines, or needs too much memory or time.
        """
        if len(text) <= SMALL:
            return await self._read(partial(_read_paste, text, self._most_rows))
        # The text is passed on unchanged; half of a UTF-16 pair is not valid UTF-8.
        content = io.BytesIO(text.encode("utf-8", "surrogatepass"))
        packed_list = await self._call("packed_paste", content, ".txt")
        return await asyncio.to_thread(unpack_paste, packed_list)

    async def _read(self, read: Callable[[], T]) -> T:
        """Read a short list. Lists with object names use a few threads of their own."""
        table = await asyncio.to_thread(_without_asking, read)
        if table is not None:
            return table
        if not self._room.acquire(blocking=False):
            raise LimitError(
                "too many lists with object names are waiting; try again soon", RETRY_S
            )
        reading = self._names.submit(_asking, read)
        reading.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(reading)

    async def _call(self, function: str, file: IO[bytes], suffix: str, **more: Any) -> bytes:
        """Call a function of this module for a copy of a file, in a confined process."""
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="swathe-upload-")
        try:
            path = Path(folder) / f"targets{suffix}"
            await asyncio.to_thread(_copy, file, path)
            argument = {"path": str(path), "most_rows": self._most_rows, **more}
            return await self.launcher.call(
                "the table", f"{__name__}:{function}", argument, self._bounds
            )
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder))


def _without_asking(read: Callable[[], T]) -> T | None:
    """Read a list, or return None if object names have to be resolved."""
    try:
        with asking_for(0):
            return read()
    except UnaskedError:
        return None


def _asking(read: Callable[[], T]) -> T:
    """Read a list, and resolve its object names."""
    try:
        with asking_for(NAMES_S):
            return read()
    except UnaskedError as error:
        raise LimitError(
            f"{error}: resolving the names before it took {NAMES_S:g} s, the limit for one list; "
            "try again, as their positions are cached, or send fewer",
            RETRY_S,
        ) from error


def _copy(file: IO[bytes], path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def packed_table(path: str, name: str, most_rows: int) -> bytes:
    """Read a table, and return it packed. Runs in the confined process."""
    return _asking(lambda: pack_table(read_upload(Path(path), name[-LONGEST_NAME:], most_rows)))


def packed_body(path: str, most_rows: int, inside: str, *, has_targets: bool) -> bytes:
    """Return targets and other fields of a JSON body, packed. Runs in the confined process."""
    body = Path(path).read_bytes()
    return _asking(
        lambda: pack_lists(*targets_of(body, most_rows, inside, has_targets=has_targets))
    )


def packed_paste(path: str, most_rows: int) -> bytes:
    """Parse a pasted list, and return it packed. Runs in the confined process."""
    text = Path(path).read_bytes().decode("utf-8", "surrogatepass")
    check_lines(text, most_rows)
    return _asking(lambda: pack_paste(text))


def _read_paste(text: str, most_rows: int) -> PastedTargets:
    check_lines(text, most_rows)
    return read_paste(text)


def read_upload(path: Path, name: str, most_rows: int) -> Table:
    """Read a table of targets from a file. Errors use the name that the user knows.

    Raises:
        TargetsError: If the table cannot be read.
        LimitError: If it has too many rows.
    """
    check = CHECKS.get(READERS[path.suffix])
    if check is not _check_parquet:
        _check_plain(path)
    if check is not None:
        check(path, most_rows)
    try:
        table = read_table(path)
    except TargetsError as error:
        raise TargetsError(str(error).replace(str(path), name)) from error
    _check_columns(len(table.columns))
    _check_names(table.colnames)
    _check_rows(len(table), most_rows)
    return table


def targets_of(
    body: bytes, most_rows: int, inside: str = "", *, has_targets: bool = True
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the targets of a JSON body as columns, and its other fields.

    Args:
        body: the body.
        most_rows: largest number of rows.
        inside: field of the body, an object, whose `targets` are taken if they are a table or
            lines, in strict JSON; empty: the body itself, which must have targets.
        has_targets: whether `targets` inside of a field are targets, and not another value.

    Raises:
        TargetsError: If the body is not an object with targets, or they are not a table.
        JobError: If the targets are inside of a field, and the body is no strict JSON.
        LimitError: If it has too many rows.
    """
    most_values = 2 * (most_rows + 1) * MOST_COLUMNS
    if inside:
        content = parse_strict(body, "the body", most_values)
        holder = content.get(inside) if isinstance(content, dict) else None
        columns = {}
        if has_targets and isinstance(holder, dict) and _is_table(holder.get("targets")):
            columns = columns_of(holder.pop("targets"), most_rows)
    else:
        content = read_json(body, "the body", most_values)
        if not isinstance(content, dict) or "targets" not in content:
            raise TargetsError("the body: expected an object with targets, found none")
        columns = columns_of(content.pop("targets"), most_rows)
    most = LARGEST_INPUTS if inside else SMALL
    if len(body) > SMALL and (size := len(json.dumps(content))) > most:
        raise LimitError(
            f"the body: expected up to {most:,} bytes beside the targets, found {size:,}"
        )
    return columns, content


def _is_table(targets: Any) -> bool:
    """Return whether targets are columns, rows or lines, and not one value or a reference."""
    if isinstance(targets, dict):
        return "value" not in targets and all(isinstance(each, list) for each in targets.values())
    return isinstance(targets, list)


def read_json(text: str | bytes, what: str, most_values: int) -> Any:
    """Parse JSON, after counting its brackets and commas.

    Raises:
        TargetsError: If the text is not JSON.
        LimitError: If it has too many values.
    """
    text = text.encode() if isinstance(text, str) else text
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > most_values:
        raise LimitError(f"{what}: expected at most {most_values:,} values, found {values:,}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TargetsError(f"{what}: expected JSON: {str(error)[:100]}") from error


def check_lines(text: str, most_rows: int) -> None:
    """Check the number and length of pasted lines.

    Raises:
        LimitError: If there are too many lines, or one is too long.
    """
    most = 2 * most_rows + 1000
    lines = text.splitlines() if text.count("\n") + text.count("\r") <= 2 * most else None
    # Other characters end lines too.
    if lines is None or len(lines) > 2 * most:
        raise LimitError(f"the list: expected at most {most:,} lines, found more")
    longest = max(map(len, lines), default=0)
    if longest > LONGEST_LINE:
        raise LimitError(
            f"the list: expected lines of at most {LONGEST_LINE} characters, found {longest}"
        )


def _check_text(path: Path, most_rows: int) -> None:
    """Check the number of columns and rows of a text table, by counting delimiters and lines."""
    lines = 0
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE + 1)
        about = 0
        while first.startswith(b"#") and about < MOST_COLUMNS + LONGEST_NAME:
            about += 1
            first = file.readline(LONGEST_LINE + 1)
        if first.startswith(b"#"):
            raise TargetsError(
                f"the table: expected at most {about} lines before its columns, found more"
            )
        if len(first) > LONGEST_LINE:
            raise TargetsError(
                f"the table: expected column names of at most {LONGEST_LINE} characters, found more"
            )
        _check_columns(1 + max(first.count(mark) for mark in (b",", b"\t", b";", b"|")))
        while part := file.read(1 << 20):
            lines += part.count(b"\n")
    # Quoted cells may have several lines.
    if lines > 4 * most_rows + 10_000:
        _check_rows(lines, most_rows)


class _Votable:
    """Checks of a VOTable before a reader trusts its own description."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._counts = dict.fromkeys(("TABLE", "FIELD", "PARAM", "TR", "TD"), 0)

    def no_types(self, *_: Any) -> None:
        """Refuse a document type, as it can define entities."""
        raise TargetsError("the VOTable: expected no document type, found one")

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """Check one element."""
        name = name.rpartition(":")[2].upper()
        values = {key.lower(): value for key, value in attributes.items()}
        if name == "STREAM" and "href" in values:
            raise TargetsError("the VOTable: expected its data inline, found a STREAM with href")
        if name in self._counts:
            self._counts[name] += 1
            self._check_counts()
        if name == "TABLE" and values.get("nrows", "").isdecimal():
            _check_rows(int(values["nrows"][:19]), self._most_rows)
        if "arraysize" in values:
            _check_cell(values["arraysize"])

    def _check_counts(self) -> None:
        if self._counts["TABLE"] > 1:
            raise TargetsError("the VOTable: expected one TABLE, found more")
        _check_columns(self._counts["FIELD"])
        _check_columns(self._counts["PARAM"])
        _check_rows(self._counts["TR"], self._most_rows)
        _check_rows(self._counts["TD"] // MOST_COLUMNS, self._most_rows)


def _check_cell(arraysize: str) -> None:
    """Check the size of cells, by the arraysize of their column."""
    size = 1
    for side in arraysize[:LONGEST_NAME].rstrip("*sS").split("x"):
        if side.strip().isdecimal():
            size *= max(1, int(side.strip()[:9]))
    if size > MOST_CELL:
        raise TargetsError(
            f"the VOTable: expected cells of at most {MOST_CELL:,} values, found arraysize="
            f"{arraysize[:40]!r}"
        )


def check_votable(path: Path, most_rows: int) -> None:
    """Check a VOTable, and refuse data at another URL, which readers would fetch from here.

    Raises:
        TargetsError: If the file has such data or a document type, or is not XML.
        LimitError: If it has too many rows.
    """
    parser = expat.ParserCreate()
    look = _Votable(most_rows)
    parser.StartDoctypeDeclHandler = look.no_types
    parser.StartElementHandler = look.begin
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise TargetsError(f"the VOTable cannot be read: {error}") from error


def _check_plain(path: Path) -> None:
    """Refuse a compressed file, which readers might inflate to a thousand times its size."""
    with path.open("rb") as file:
        if file.read(8).startswith(PACKED_STARTS):
            raise TargetsError("the table: expected no compression, found a compressed file")


def _check_parquet(path: Path, most_rows: int) -> None:
    """Check rows and columns in the metadata. These may be false, so reading has limits too."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise TargetsError(
            "Parquet tables are not supported here: pyarrow is not installed"
        ) from error
    try:
        metadata = parquet.ParquetFile(path).metadata
    except (ArrowException, OSError) as error:
        raise TargetsError(f"the Parquet table cannot be read: {error}") from error
    _check_columns(metadata.num_columns)
    _check_rows(metadata.num_rows, most_rows)


def columns_of(content: Mapping[str, Any] | Sequence[Any], most_rows: int) -> dict[str, list[Any]]:
    """Return the columns of a table in JSON: `{column: [values]}`, `[{column: value}]` or lines.

    Raises:
        TargetsError: If the value is none of these.
        LimitError: If it has too many rows.
    """
    if isinstance(content, list) and content and all(isinstance(line, str) for line in content):
        return _of_lines(content, most_rows)
    if isinstance(content, list):
        return _of_rows(content, most_rows)
    if not isinstance(content, dict):
        raise TargetsError(
            "targets: expected columns {name: [values]} or rows [{name: value}], found "
            f"{type(content).__name__}"
        )
    _check_columns(len(content))
    _check_names(content)
    lengths = set()
    for name, values in content.items():
        if not isinstance(values, list):
            raise TargetsError(
                f"targets: column {name[:LONGEST_NAME]!r}: expected a list, found "
                f"{type(values).__name__}"
            )
        _check_rows(len(values), most_rows)
        _check_scalars(name, values)
        lengths.add(len(values))
    if len(lengths) > 1:
        raise TargetsError(
            f"targets: expected columns of one length, found {sorted(lengths)}"[:LONGEST_NAME]
        )
    return content


def _of_lines(lines: list[str], most_rows: int) -> dict[str, list[Any]]:
    """Return the columns of lines, in the grammar of the portal's form."""
    _check_rows(len(lines), most_rows)
    text_list = parse_lines(lines)
    if text_list.faults:
        number, fault = text_list.faults[0]
        raise TargetsError(f"targets: line {number}: {fault}")
    return {name: list(column) for name, column in text_list.columns.items()}


def _of_rows(rows: list[Any], most_rows: int) -> dict[str, list[Any]]:
    _check_rows(len(rows), most_rows)
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise TargetsError(
                f"targets: row {number}: expected {{name: value}}, found {type(row).__name__}"
            )
        names |= dict.fromkeys(row)
        _check_columns(len(names))
    _check_names(names)
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        _check_scalars(name, values)
    return columns


def _check_scalars(name: str, values: list[Any]) -> None:
    kinds = list(map(type, values))
    if wrong := set(kinds) - SCALARS:
        number = next(number for number, kind in enumerate(kinds) if kind in wrong)
        raise TargetsError(
            f"targets: row {number}: column {name[:LONGEST_NAME]!r}: expected a number or text, "
            f"found {kinds[number].__name__}"
        )
    if str in kinds:
        _check_sizes(name, values, str, len, LONGEST_TEXT, "characters")
    if int in kinds:
        _check_sizes(name, values, int, int.bit_length, LONGEST_INTEGER_BITS, "bits")


def _check_sizes(
    name: str, values: list[Any], kind: type, size: Callable[[Any], int], most: int, unit: str
) -> None:
    for number, value in enumerate(values):
        if type(value) is kind and size(value) > most:
            raise TargetsError(
                f"targets: row {number}: column {name!r}: expected up to {most:,} {unit}, found "
                f"{size(value):,}"
            )


def _check_rows(rows: int, most_rows: int) -> None:
    if rows > most_rows:
        raise LimitError(f"the table: expected at most {most_rows:,} rows, found {rows:,}")


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if len(name) > LONGEST_NAME:
            raise TargetsError(
                f"the table: expected column names of at most {LONGEST_NAME} characters, found "
                f"{len(name):,}: {name[:40]!r}..."
            )


def _check_columns(columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise TargetsError(f"the table: expected at most {MOST_COLUMNS} columns, found more")


CHECKS = {
    "ascii.csv": _check_text,
    "ascii.ecsv": _check_text,
    "votable": check_votable,
    "parquet": _check_parquet,
    "text": _check_text,
}
"""Check of a table before its reader, by format."""
