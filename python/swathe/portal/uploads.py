"""Tables of targets that users send: read in a confined process, within bounds.

Columns and rows are counted before a reader sees a table, as far as its bytes tell of them. What
they do not tell is bounded by the memory and the time of the process.
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

from swathe.core.confined import Bounds
from swathe.core.errors import LimitError, TargetsError
from swathe.core.table_bytes import LONGEST_TEXT, pack_lists, pack_table, unpack_lists, unpack_table
from swathe.files.targets.resolver import UnaskedError, asking_for
from swathe.files.targets.target_list import READERS, read_table
from swathe.files.targets.text_list import parse_lines
from swathe.portal.pasted_targets import Pasted, pack_pasted, read_pasted, unpack_pasted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from astropy.table import Table

    from swathe.core.confined import Confined

T = TypeVar("T")
SCALARS = {str, int, float, bool, type(None)}
LONGEST_NAME = 200
LONGEST_LINE = 20_000
"""Characters of a line that is pasted, or that names the columns of a table."""
MOST_COLUMNS = 200
MOST_CELL = 10_000
"""Numbers or characters of one cell of a VOTable."""
LONGEST_INTEGER_BITS = 1024
"""Of a number in JSON; a longer one is no float either, and thousands of them take seconds."""
SMALL = 50_000
"""Bytes that are read in a thread of this process: in a few hundredths of a second at most."""
NAMES_S = 20.0
"""How long one list may ask about names of objects: its readers wait for another service."""
NAMES_THREADS, NAMES_WAITING = 2, 20
RETRY_S = 5
COMPRESSED = (b"\x1f\x8b", b"\x1f\x9d", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
IMPORTS = (
    "astropy.coordinates",
    "astropy.io.ascii",
    "astropy.io.votable",
    "astropy.table",
    "swathe.portal.uploads",
)
"""What the nursery of confined calls imports for tables."""


class Uploads:
    """Reads what users send, in confined processes."""

    def __init__(self, confined: Confined, most_rows: int, memory_mb: int) -> None:
        """Take what runs the processes, and what a table may have and take."""
        self._confined = confined
        self._most_rows = most_rows
        self._bounds = Bounds(memory_mb=memory_mb)
        self._names = ThreadPoolExecutor(NAMES_THREADS, "swathe-names")
        self._room = threading.BoundedSemaphore(NAMES_THREADS + NAMES_WAITING)

    async def table(self, file: IO[bytes], name: str) -> Table:
        """Return a table whose kind the suffix of its name tells, as `cut_many` reads files.

        Raises:
            TargetsError: where it cannot be read.
            LimitError: where it has more rows than are allowed, or takes too much to read.
        """
        suffix = Path(name[-LONGEST_NAME:]).suffix.lower()
        if suffix not in READERS:
            raise TargetsError(
                f"{name[-LONGEST_NAME:]!r}: a table of targets ends in one of {', '.join(READERS)}"
            )
        packed = await self._call("packed_table", file, suffix, name=name)
        return await asyncio.to_thread(unpack_table, packed)

    async def body(self, body: bytes) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """Return the targets of a body of JSON as columns, and what else it says.

        Raises:
            TargetsError: where it is no object with targets, or they make no table.
            LimitError: where they have more rows than are allowed, or it takes too much to read.
        """
        if len(body) <= SMALL:
            return await self._read(partial(targets_of, body, self._most_rows))
        packed = await self._call("packed_body", io.BytesIO(body), ".json")
        return await asyncio.to_thread(unpack_lists, packed)

    async def pasted(self, text: str) -> Pasted:
        """Return the list of targets that somebody pasted.

        Raises:
            TargetsError: where it has no target.
            LimitError: where it has too many or too long lines, or takes too much to read.
        """
        if len(text) <= SMALL:
            return await self._read(partial(_read_pasted, text, self._most_rows))
        # As it came: half of a pair of UTF-16 is no UTF-8.
        content = io.BytesIO(text.encode("utf-8", "surrogatepass"))
        packed = await self._call("packed_pasted", content, ".txt")
        return await asyncio.to_thread(unpack_pasted, packed)

    async def _read(self, read: Callable[[], T]) -> T:
        """Return what a short list gives; the few threads that ask about names do nothing else."""
        made = await asyncio.to_thread(_without_asking, read)
        if made is not None:
            return made
        if not self._room.acquire(blocking=False):
            raise LimitError("too many lists of names are waiting to be read", RETRY_S)
        reading = self._names.submit(_asking, read)
        reading.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(reading)

    async def _call(self, function: str, file: IO[bytes], suffix: str, **more: str) -> bytes:
        """Return what a function of this module makes of a file, which is a copy with a suffix."""
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="swathe-upload-")
        try:
            path = Path(folder) / f"targets{suffix}"
            await asyncio.to_thread(_copy, file, path)
            argument = {"path": str(path), "most_rows": self._most_rows, **more}
            return await self._confined.call(
                "the table", f"{__name__}:{function}", argument, self._bounds
            )
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder))


def _without_asking(read: Callable[[], T]) -> T | None:
    """Return what a list gives, or nothing where names have to be asked about."""
    try:
        with asking_for(0):
            return read()
    except UnaskedError:
        return None


def _asking(read: Callable[[], T]) -> T:
    """Return what a list gives, asking about its names."""
    try:
        with asking_for(NAMES_S):
            return read()
    except UnaskedError as error:
        raise LimitError(
            f"{error}: the names before it took {NAMES_S:g} s, more than one list may ask; "
            "try again, as their positions are cached, or send fewer",
            RETRY_S,
        ) from error


def _copy(file: IO[bytes], path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def packed_table(path: str, name: str, most_rows: int) -> bytes:
    """Return a table packed; runs in the confined process."""
    return _asking(lambda: pack_table(read_upload(Path(path), name[-LONGEST_NAME:], most_rows)))


def packed_body(path: str, most_rows: int) -> bytes:
    """Return the targets of a body of JSON, and the rest, packed; runs in the confined process."""
    return _asking(lambda: pack_lists(*targets_of(Path(path).read_bytes(), most_rows)))


def packed_pasted(path: str, most_rows: int) -> bytes:
    """Return a pasted list packed; runs in the confined process."""
    text = Path(path).read_bytes().decode("utf-8", "surrogatepass")
    check_lines(text, most_rows)
    return _asking(lambda: pack_pasted(text))


def _read_pasted(text: str, most_rows: int) -> Pasted:
    check_lines(text, most_rows)
    return read_pasted(text)


def read_upload(path: Path, name: str, most_rows: int) -> Table:
    """Return a table of targets, of a file that users know by another name.

    Raises:
        TargetsError: where it cannot be read.
        LimitError: where it has more rows than are allowed.
    """
    check = CHECKS.get(READERS[path.suffix])
    if check is not _check_parquet:
        _refuse_compressed(path)
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


def targets_of(body: bytes, most_rows: int) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the targets of a body of JSON as columns, and what else it says.

    Raises:
        TargetsError: where it is no object with targets, or they make no table.
        LimitError: where they have more rows than are allowed.
    """
    given = read_json(body, "the body", 2 * (most_rows + 1) * MOST_COLUMNS)
    if not isinstance(given, dict) or "targets" not in given:
        raise TargetsError("the body: expected an object with targets")
    columns = columns_of(given.pop("targets"), most_rows)
    if len(body) > SMALL and (size := len(json.dumps(given))) > SMALL:
        raise LimitError(
            f"the body: expected up to {SMALL:,} bytes beside the targets, found {size:,}"
        )
    return columns, given


def read_json(text: str | bytes, what: str, most_values: int) -> Any:
    """Return what JSON says; brackets and commas are counted first.

    Raises:
        TargetsError: where it is none.
        LimitError: where it has too many values.
    """
    text = text.encode() if isinstance(text, str) else text
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > most_values:
        raise LimitError(f"{what} has {values:,} values; at most {most_values:,} are taken")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TargetsError(f"{what}: is no JSON: {str(error)[:100]}") from error


def check_lines(text: str, most_rows: int) -> None:
    """Check that pasted lines are not too many nor too long.

    Raises:
        LimitError: where they are.
    """
    most = 2 * most_rows + 1000
    lines = text.splitlines() if text.count("\n") + text.count("\r") <= 2 * most else None
    # Other characters divide lines, too.
    if lines is None or len(lines) > 2 * most:
        raise LimitError(f"the list has more than {most:,} lines")
    longest = max(map(len, lines), default=0)
    if longest > LONGEST_LINE:
        raise LimitError(f"the list: expected lines of {LONGEST_LINE} characters, found {longest}")


def _check_text(path: Path, most_rows: int) -> None:
    """Check how many columns and rows lines of text are, by counting delimiters and lines."""
    lines = 0
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE + 1)
        about = 0
        while first.startswith(b"#") and about < MOST_COLUMNS + LONGEST_NAME:
            about += 1
            first = file.readline(LONGEST_LINE + 1)
        if first.startswith(b"#"):
            raise TargetsError(f"the table has more than {about} lines before its columns")
        if len(first) > LONGEST_LINE:
            raise TargetsError(f"the table: its names have more than {LONGEST_LINE} characters")
        _check_columns(1 + max(first.count(mark) for mark in (b",", b"\t", b";", b"|")))
        while part := file.read(1 << 20):
            lines += part.count(b"\n")
    # Cells in quotes may have several lines.
    if lines > 4 * most_rows + 10_000:
        _check_rows(lines, most_rows)


class _Votable:
    """A look at a VOTable before a reader believes what it says of itself."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._counts = dict.fromkeys(("TABLE", "FIELD", "PARAM", "TR", "TD"), 0)

    def no_types(self, *_: Any) -> None:
        """Refuse a document type: entities are of it."""
        raise TargetsError("the VOTable has a document type, which is not taken")

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """Look at one element."""
        name = name.rpartition(":")[2].upper()
        given = {key.lower(): value for key, value in attributes.items()}
        if name == "STREAM" and "href" in given:
            raise TargetsError("the VOTable has a STREAM with href: data elsewhere are not taken")
        if name in self._counts:
            self._counts[name] += 1
            self._check_counts()
        if name == "TABLE" and given.get("nrows", "").isdecimal():
            _check_rows(int(given["nrows"][:19]), self._most_rows)
        if "arraysize" in given:
            _check_cell(given["arraysize"])

    def _check_counts(self) -> None:
        if self._counts["TABLE"] > 1:
            raise TargetsError("the VOTable: expected one TABLE, found more")
        _check_columns(self._counts["FIELD"])
        _check_columns(self._counts["PARAM"])
        _check_rows(self._counts["TR"], self._most_rows)
        _check_rows(self._counts["TD"] // MOST_COLUMNS, self._most_rows)


def _check_cell(arraysize: str) -> None:
    """Check that a cell is not too large, by what its column says of it."""
    size = 1
    for side in arraysize[:LONGEST_NAME].rstrip("*sS").split("x"):
        if side.strip().isdecimal():
            size *= max(1, int(side.strip()[:9]))
    if size > MOST_CELL:
        raise TargetsError(
            f"the VOTable: expected cells of up to {MOST_CELL:,} values, found arraysize="
            f"{arraysize[:40]!r}"
        )


def check_votable(path: Path, most_rows: int) -> None:
    """Check a VOTable; data that lie elsewhere are refused: readers fetch them, from this machine.

    Raises:
        TargetsError: where it has such, a document type, or is no XML.
        LimitError: where it has too many rows.
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


def _refuse_compressed(path: Path) -> None:
    """Refuse what readers would inflate, perhaps to a thousand times its size."""
    with path.open("rb") as file:
        if file.read(8).startswith(COMPRESSED):
            raise TargetsError("the table is compressed: send it as it is")


def _check_parquet(path: Path, most_rows: int) -> None:
    """Check what the metadata say; they are the sender's word, and reading is bounded besides."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise TargetsError("Parquet tables are not taken here: pyarrow is not installed") from error
    try:
        metadata = parquet.ParquetFile(path).metadata
    except (ArrowException, OSError) as error:
        raise TargetsError(f"the Parquet table cannot be read: {error}") from error
    _check_columns(metadata.num_columns)
    _check_rows(metadata.num_rows, most_rows)


def columns_of(given: Mapping[str, Any] | Sequence[Any], most_rows: int) -> dict[str, list[Any]]:
    """Give columns of a table as JSON has it: `{column: [values]}`, `[{column: value}]` or lines.

    Raises:
        TargetsError: where it is neither.
        LimitError: where it has more rows than are allowed.
    """
    if isinstance(given, list) and given and all(isinstance(line, str) for line in given):
        return _of_lines(given, most_rows)
    if isinstance(given, list):
        return _turned(given, most_rows)
    if not isinstance(given, dict):
        raise TargetsError(
            "targets: expected columns {name: [values]} or rows [{name: value}], found "
            f"{type(given).__name__}"
        )
    _check_columns(len(given))
    _check_names(given)
    lengths = set()
    for name, values in given.items():
        if not isinstance(values, list):
            raise TargetsError(
                f"targets: column {name[:LONGEST_NAME]!r}: expected a list, found "
                f"{type(values).__name__}"
            )
        _check_rows(len(values), most_rows)
        _check_scalars(name, values)
        lengths.add(len(values))
    if len(lengths) > 1:
        raise TargetsError(f"targets: columns differ in length: {sorted(lengths)}"[:LONGEST_NAME])
    return given


def _of_lines(lines: list[str], most_rows: int) -> dict[str, list[Any]]:
    """Give the columns of lines, as the portal's form takes them."""
    _check_rows(len(lines), most_rows)
    read = parse_lines(lines)
    if read.faults:
        number, fault = read.faults[0]
        raise TargetsError(f"targets: line {number}: {fault}")
    return {name: list(column) for name, column in read.columns.items()}


def _turned(rows: list[Any], most_rows: int) -> dict[str, list[Any]]:
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
        raise LimitError(f"the table has {rows:,} rows; at most {most_rows:,} are taken at once")


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if len(name) > LONGEST_NAME:
            raise TargetsError(
                f"the table: expected names of columns of up to {LONGEST_NAME} characters, found "
                f"{len(name):,}: {name[:40]!r}..."
            )


def _check_columns(columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise TargetsError(f"the table has more than {MOST_COLUMNS} columns")


CHECKS = {
    "ascii.csv": _check_text,
    "ascii.ecsv": _check_text,
    "votable": check_votable,
    "parquet": _check_parquet,
    "text": _check_text,
}
"""What looks at a table before its reader does."""
