"""Read Parquet files of targets, whole or in pieces."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from swathe.core.errors import TargetsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astropy.table import Table


def count_parquet(path: Path) -> int:
    """Return the number of rows of a Parquet file.

    Raises:
        TargetsError: If the file cannot be read.
    """
    return int(_open(path).metadata.num_rows)


def read_parquet_pieces(path: Path, rows: int) -> Iterator[Table]:
    """Yield a Parquet file as tables of at most `rows` rows."""
    import pyarrow as pa

    file = _open(path)
    for batch in file.iter_batches(rows):
        yield _of_arrow(pa.Table.from_batches([batch]))


def read_parquet(path: Path) -> Table:
    """Read a Parquet file; astropy's reader fails at empty cells and warns about foreign tables.

    Units and UCDs are those that astropy wrote, or those of the VOTable that describes the file.
    """
    from pyarrow import parquet

    return _of_arrow(parquet.ParquetFile(path).read())


def _open(path: Path) -> Any:
    try:
        from pyarrow import parquet

        return parquet.ParquetFile(path)
    except ImportError as error:
        raise TargetsError(f"{path}: {error}; try: pip install swathe[parquet]") from error
    except Exception as error:  # pyarrow has many kinds of errors
        raise TargetsError(f"{path}: cannot be read as parquet: {error}") from error


def _of_arrow(columns: Any) -> Table:
    """Return columns of a Parquet file as a table."""
    from astropy.table import Table

    table = Table({name: _values_of(columns[name]) for name in columns.column_names})
    metadata = columns.schema.metadata or {}
    for name, unit, ucd in (*_of_astropy(metadata), *_of_votable(metadata)):
        if name in table.colnames:
            table[name].unit = unit
            table[name].info.meta = {"ucd": ucd} if ucd else None
    return table


def _values_of(column: Any) -> Any:
    """Return a column of a Parquet file; integers stay integers if some are missing."""
    import numpy as np
    import pyarrow as pa

    if column.null_count and pa.types.is_integer(column.type):
        return np.ma.array(column.fill_null(0).to_numpy(), mask=column.is_null().to_numpy())
    return column.to_numpy()


def _of_astropy(metadata: Mapping[bytes, bytes]) -> Iterator[tuple[str, Any, str | None]]:
    """Yield name and unit of the columns of a Parquet file that astropy wrote."""
    from astropy.table.meta import get_header_from_yaml

    if (text := metadata.get(b"table_meta_yaml")) is not None:
        for column in get_header_from_yaml(text.decode().splitlines())["datatype"]:
            yield column["name"], column.get("unit"), (column.get("meta") or {}).get("ucd")


def _of_votable(metadata: Mapping[bytes, bytes]) -> Iterator[tuple[str, Any, str | None]]:
    """Yield name, unit and UCD of the columns of a Parquet file with a VOTable in its metadata."""
    from astropy.io.votable import parse

    if (content := metadata.get(b"IVOA.VOTable-Parquet.content")) is not None:
        for each in parse(io.BytesIO(content)).iter_tables():
            for field in each.fields:
                yield field.name, field.unit, field.ucd
