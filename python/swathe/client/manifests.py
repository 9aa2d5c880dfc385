"""Manifests that a portal sends: read as tables, line by line, and compared with the results."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from swathe.client.connection import BLOCK
from swathe.core.errors import OutputError, SourceError
from swathe.core.format import size_text
from swathe.files.manifest import COLUMNS, read_manifest
from swathe.files.manifest_file import LARGEST_TABLE_BYTES, LongManifest, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from astropy.table import Table

    from swathe.client.results import ResultList

ECSV = b"# %ECSV "
"""First bytes of a manifest."""
MOST_HEAD_BYTES = 256 << 10
"""Bytes of a manifest in which its rows begin: the reader takes long for a longer head."""


def manifest_table(content: bytes, url: str) -> Table:
    """Return the manifest that a portal sent.

    Raises:
        SourceError: If it is none.
    """
    from astropy.table import Table

    try:
        # The reader takes another text for the name of a file, or a URL, and opens that.
        if not content.startswith(ECSV) or b"\n" not in content:
            raise ValueError("it does not begin as ECSV does")
        if content.find(f"\n{','.join(COLUMNS)}\n".encode(), 0, MOST_HEAD_BYTES) < 0:
            raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
        return Table.read(content.decode(), format="ascii.ecsv", fill_values=[])
    except Exception as error:  # the reader raises many kinds of errors
        raise manifest_fault(url, error) from error


def manifest_of(file: Path, results: ResultList, url: str) -> Table | LongManifest:
    """Return the manifest of a fetched job, which must name no other results.

    Args:
        file: file with what the portal sent.
        results: results of the job.
        url: URL of the portal, for errors.

    Raises:
        SourceError: If it is no manifest, or names another file.
    """
    if file.stat().st_size <= LARGEST_TABLE_BYTES:
        table = manifest_table(file.read_bytes(), url)
        _check_names(_names(table), results, url)
        return table
    try:
        with file.open(encoding="utf-8") as text:
            columns = next((line for line in text if not line.startswith("#")), "")
        if columns.rstrip("\n").split(",") != list(COLUMNS):
            raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
        _check_names(names_in(file), results, url)
        return LongManifest.of(file)
    except (ValueError, csv.Error, OutputError) as error:
        raise manifest_fault(url, error) from error


def manifest_fault(url: str, reason: Exception) -> SourceError:
    """Return the error for a text that is no manifest."""
    return SourceError(f"{url}: expected a manifest, found another text: {reason}")


def lines_of(blocks: Iterator[bytes], url: str) -> Iterator[str]:
    """Yield the lines of a manifest behind its head.

    Raises:
        SourceError: If it does not begin as ECSV does, or has a line of more than BLOCK bytes.
    """
    rest, is_first = b"", True
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > BLOCK:
            raise SourceError(f"{url}: expected lines of up to {size_text(BLOCK)}, found more")
        for line in lines:
            if is_first and not line.startswith(ECSV):
                raise SourceError(f"{url}: expected a manifest, found another text")
            is_first = False
            if not line.startswith(b"#"):
                yield line.decode() + "\n"
    if rest or is_first:
        raise SourceError(f"{url}: expected a manifest to its end, found a part of it")


def names_in(path: Path) -> Iterable[str]:
    """Yield the names of the files that a manifest lists, which may be too long for a table."""
    if path.stat().st_size <= LARGEST_TABLE_BYTES:
        return _names(read_manifest(path))
    at = COLUMNS.index("path")
    return (row[at] for row in read_rows(path) if row[at])


def _names(manifest: Table | None) -> set[str]:
    """Return the names of the files that a manifest lists."""
    if manifest is None or "path" not in manifest.colnames:
        return set()
    return {str(name) for name in manifest["path"] if name}


def _check_names(names: Iterable[str], results: ResultList, url: str) -> None:
    """Check that a manifest names only results.

    The next time, files that the manifest names are known to be results of this job.

    Raises:
        SourceError: If it names another file.
    """
    result_names = set(results.names)
    other = next((name for name in names if name not in result_names), None)
    if other is not None:
        raise SourceError(
            f"{url}: expected the manifest of the results, found that it names {other[:100]!r}, too"
        )
