"""Archives of results: single files, or all of them as one archive made while it is read."""

from __future__ import annotations

import math
import stat
import tarfile
import tempfile
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from swathe import _swathe
from swathe.core.errors import FormatError, SourceError
from swathe.costs.format_costs import SOURCE
from swathe.files.hdu import BLOCK, whole_blocks
from swathe.files.manifest import MANIFEST
from swathe.files.manifest_columns import Manifest
from swathe.files.manifest_head import head_of
from swathe.jobs.types import ASKED_FORMAT, Result
from swathe.operations.array_results import is_of_array
from swathe.operations.registry import ResultOptions
from swathe.stores.results import INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from swathe.catalog.records.jobs import JobRecord
    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import RowTable
    from swathe.jobs.types import ArchiveKind, Options
    from swathe.stores.results import ResultStore

IN_FOLDER = 1000
"""Rows whose results share a folder."""
PART = 1 << 20
"""Bytes per read and write."""
SPOOL_BYTES = 8 << 20
"""Bytes of a manifest that are in memory while its length is found; a longer one is in a file."""
CARD = 80
TAR_BLOCK = 512
MODE = 0o644
OTHER_CARDS = {
    b"PCOUNT",
    b"GCOUNT",
    b"EXTEND",
    b"BLOCKED",
    b"EXTNAME",
    b"EXTVER",
    b"EXTLEVEL",
    b"CHECKSUM",
}


def file_name(row: RowRecord, options: Options) -> str:
    """Return the file name of a row's result; empty if it has none or is an input of another."""
    if row.status != "ok" or row.result is not None:
        return ""
    return f"{row.name}{options.results.suffix}"


def place_of(row: RowRecord, options: Options) -> str:
    """Return the path of a row's result, relative to the results of the job."""
    return f"{row.number // IN_FOLDER:04}/{row.name}{options.results.suffix}"


def places_of(rows: RowTable, options: Options) -> list[str]:
    """Return the paths of the results of many rows."""
    suffix = options.results.suffix
    return [
        f"{number // IN_FOLDER:04}/{name}{suffix}"
        for number, name in zip(rows.number.tolist(), rows.name, strict=True)
    ]


def input_of(folder: Path, number: int) -> Path:
    """Return the path of the pixels of an input row until its combined result is made."""
    return folder / INPUTS / f"{number // IN_FOLDER:04}" / f"{number}.npy"


def result_of(place: ResultStore, job: str, row: RowRecord, options: Options) -> Result:
    """Return the result file of a finished row.

    Raises:
        NoSuchResultError: If the file no longer exists.
    """
    result = place.find(job, place_of(row, options))
    suffix, media_type = options.results.suffix, options.results.file_format.media_type
    if options.format == SOURCE:
        formats = options.results.kind.formats
        types = {each.suffix: each.media_type for each in formats}
        media_type = types.get(f".{row.name.rpartition('.')[2]}", media_type)
    array = row.hdu if row.hdu is not None and is_of_array(row) else ""
    return Result(
        file=result.file,
        name=f"{row.name}{suffix}",
        size=result.size,
        etag=f'"{row.sha256[:32]}"',
        media_type=media_type,
        sha256=row.sha256,
        open=result.open,
        array=options.results.kind.shown_array(options.own) or array,
    )


def manifest(job: JobRecord, pages: Iterable[RowTable]) -> Iterator[bytes]:
    """Yield the manifest as ECSV, page by page."""
    options = job.options
    meta: dict[str, Any] = {
        "job": job.id,
        "name": job.name,
        "swathe": _swathe.__version__,
        **{name: options[name] for name in ("operation", "mode")},
        "format": options.get(ASKED_FORMAT, options["format"]),
        "phase": job.phase,
        "predicted_s": None if job.predicted is None else round(job.predicted["median_s"], 6),
        "actual_s": round(job.work_s, 6),
        "bytes_moved": job.bytes_moved,
        "requests": job.requests,
        "notes": list(job.notes),
        **{str(status): count for status, count in job.counts.items()},
    }
    yield head_of(meta)
    suffix = ResultOptions.read(options["operation"], options["format"]).suffix
    for rows in pages:
        names = [
            f"{name}{suffix}" if is_alone else ""
            for name, is_alone in zip(rows.name, (rows.result < 0).tolist(), strict=True)
        ]
        part = Manifest(rows.id, rows.source, {}, names)
        part.status, part.reason, part.bytes = rows.status, rows.reason, rows.bytes
        part.source_version, part.sha256 = rows.version, rows.sha256
        yield from part.rows()


def archive(
    kind: ArchiveKind,
    pages: Iterable[Sequence[RowRecord]],
    place: ResultStore,
    job: str,
    options: Options,
    manifest: Callable[[], Iterator[bytes]],
) -> Iterator[bytes]:
    """Return the results of rows as one archive; in zip and tar the manifest is the last member."""
    files = _files(pages, place, job, options)
    if kind == "fits":
        return _gather(_fits(files, options))
    if kind == "zip":
        return _zip(files, options, manifest)
    return _gather(_tar(files, options, manifest))


def _gather(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield small parts together: a part of an answer costs as much as reading several results."""
    content = bytearray()
    for part in parts:
        content += part
        if len(content) >= PART:
            yield bytes(content)
            content.clear()
    if content:
        yield bytes(content)


def _files(
    pages: Iterable[Sequence[RowRecord]], place: ResultStore, job: str, options: Options
) -> Iterator[tuple[RowRecord, BinaryIO]]:
    """Yield each row that has a result, with its open file; read it before asking for the next."""
    for page in pages:
        rows = [row for row in page if file_name(row, options)]
        files = place.open_many(job, [place_of(row, options) for row in rows])
        yield from zip(rows, files, strict=True)


def _parts(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(PART):
        yield part


def _rest(row: RowRecord, file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a result, whose length must not have changed: other members follow it.

    Raises:
        SourceError: If the length changed.
    """
    at = file.tell()
    # One byte more than expected, so that a small result is read at once, and a longer one seen.
    while at <= row.bytes and (part := file.read(min(PART, row.bytes + 1 - at))):
        at += len(part)
        if at <= row.bytes:
            yield part
    if at != row.bytes:
        length = "more" if at > row.bytes else f"{at}"
        raise SourceError(f"{row.name}: expected a result of {row.bytes} bytes, found {length}")


def _zip(
    files: Iterable[tuple[RowRecord, BinaryIO]],
    options: Options,
    last: Callable[[], Iterator[bytes]],
) -> Iterator[bytes]:
    from stream_zip import NO_COMPRESSION_64, stream_zip

    now = datetime.now(UTC)
    permissions = stat.S_IFREG | MODE

    def members() -> Iterator[tuple[Any, ...]]:
        for row, file in files:
            checksum = 0
            for part in _parts(file):
                checksum = zlib.crc32(part, checksum)
            file.seek(0)
            form = NO_COMPRESSION_64(row.bytes, checksum)
            yield file_name(row, options), now, permissions, form, _parts(file)
        with in_file(last()) as content:
            size, checksum = content.tell(), 0
            content.seek(0)
            for part in _parts(content):
                checksum = zlib.crc32(part, checksum)
            content.seek(0)
            yield MANIFEST, now, permissions, NO_COMPRESSION_64(size, checksum), _parts(content)

    yield from stream_zip(members(), chunk_size=PART)


def in_file(parts: Iterable[bytes]) -> BinaryIO:
    """Return an unnamed file of these parts, at its end: a long manifest does not fit in memory."""
    file: Any = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 - the caller closes it
    try:
        for part in parts:  # not `writelines`, which takes all before it looks at their size
            file.write(part)
    except BaseException:
        file.close()
        raise
    return cast("BinaryIO", file)


def _tar(
    files: Iterable[tuple[RowRecord, BinaryIO]],
    options: Options,
    last: Callable[[], Iterator[bytes]],
) -> Iterator[bytes]:
    now = int(datetime.now(UTC).timestamp())

    def head(name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, MODE, now
        return info.tobuf(tarfile.PAX_FORMAT)

    for row, file in files:
        yield head(file_name(row, options), row.bytes)
        yield from _rest(row, file)
        yield bytes(-row.bytes % TAR_BLOCK)
    with in_file(last()) as content:
        size = content.tell()
        content.seek(0)
        yield head(MANIFEST, size)
        yield from _parts(content)
        yield bytes(-size % TAR_BLOCK)
    yield bytes(2 * TAR_BLOCK)


def _fits(files: Iterable[tuple[RowRecord, BinaryIO]], options: Options) -> Iterator[bytes]:
    """Yield one FITS file, each result an extension with its name as EXTNAME."""
    from astropy.io import fits

    header = fits.PrimaryHDU().header
    header["EXTEND"] = True
    yield header.tostring().encode("ascii")
    for row, file in files:
        yield _extension_header(file, row, options)
        yield from _rest(row, file)


def _extension_header(file: BinaryIO, row: RowRecord, options: Options) -> bytes:
    """Read the header of a FITS image and return it as an extension header.

    The other cards are unchanged, except CHECKSUM, which belongs to the old header.

    Raises:
        FormatError: If the image needs lookup tables, which could be mistaken for those of another
            image.
    """
    cards = _cards(file, row.name)
    if not int(_value(cards, b"NAXIS")):
        # A compressed image: its pixels are already in an extension.
        cards = _cards(file, row.name)
    axes = int(_value(cards, b"NAXIS"))
    lengths = [int(_value(cards, b"NAXIS%d" % (axis + 1))) for axis in range(axes)]
    data = abs(int(_value(cards, b"BITPIX"))) // 8 * math.prod(lengths) if axes else 0
    after = row.bytes - file.tell() - whole_blocks(data)
    if after > 0 and options.results.kind.hdus == 1:
        raise FormatError(
            f"{row.name}: one FITS file cannot hold images whose WCS needs lookup tables, as "
            "their EXTVER would clash; take zip or tar"
        )
    mandatory = 3 + axes
    new = [
        _card("XTENSION= 'IMAGE   '           / Image extension"),
        *cards[1:mandatory],
        _card(f"PCOUNT  = {0:>20}"),
        _card(f"GCOUNT  = {1:>20}"),
        _card(f"EXTNAME = '{row.name:<8}'"),
        *(card for card in cards[mandatory:] if card[:8].rstrip() not in OTHER_CARDS),
        _card("END"),
    ]
    text = b"".join(new)
    return text + b" " * (-len(text) % BLOCK)


def _cards(file: BinaryIO, name: str) -> list[bytes]:
    """Read the cards of the next header, up to END.

    Raises:
        FormatError: If the header has no END.
    """
    cards: list[bytes] = []
    while not any(card.rstrip() == b"END" for card in cards[-BLOCK // CARD :]):
        block = file.read(BLOCK)
        if len(block) < BLOCK:
            raise FormatError(f"{name}: its header has no END")
        cards += [block[at : at + CARD] for at in range(0, BLOCK, CARD)]
    del cards[next(at for at, card in enumerate(cards) if card.rstrip() == b"END") :]
    return cards


def _card(text: str) -> bytes:
    return text.encode("ascii").ljust(CARD)


def _value(cards: Sequence[bytes], keyword: bytes) -> bytes:
    """Return the value of a mandatory card, unchanged."""
    for card in cards:
        if card[:8].rstrip() == keyword:
            return card[10:].partition(b"/")[0].strip()
    raise FormatError(f"a result has no card {keyword.decode()}")
