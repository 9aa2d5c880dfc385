"""Rows of jobs by the thousand: the rows of all jobs are packed anew.

The format is that of `swathe.catalog.jobs.encoding` at the time.
"""

import json
import zlib
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

BLOCK_ROWS = 1000
READ_AT_ONCE = 10_000
STATUSES = ("waiting", "ok", "no-overlap", "missing", "error")
BOX = ("x0", "y0", "width", "height")
SKY = ("ra", "dec", "size_deg")
COLUMNS = ("number", "position", "result", "id", "name", "source", "hdu", *BOX, "planes", *SKY,
           "status", "reason", "bytes", "version", "sha256")  # fmt: skip


def upgrade() -> None:
    """Create the table, pack the rows, and drop the table of single rows."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # An older Swathe that still runs would mark rows that are already packed, and the marks
        # would be lost: it waits, and then fails. SQLite lets nobody write meanwhile.
        op.execute("LOCK TABLE jobs, job_rows, job_chunks IN ACCESS EXCLUSIVE MODE")
    op.create_table(
        "job_blocks",
        sa.Column("job", ID, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("statuses", sa.Integer, nullable=False),
        sa.Column("places", sa.LargeBinary, nullable=False),
        sa.Column("names", sa.LargeBinary, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("became", sa.LargeBinary, nullable=True),
        sa.PrimaryKeyConstraint("job", "number", name="pk_job_blocks"),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name="fk_job_blocks_job", ondelete="CASCADE"
        ),
    )
    for job in list(connection.scalars(sa.text("SELECT number FROM jobs"))):
        _repack(connection, job)
    op.drop_table("job_rows")


ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BLOCKS = sa.table(
    "job_blocks",
    *map(sa.column, ("job", "number", "statuses", "places", "names", "asked", "became")),
)
ROWS = sa.text(
    f"SELECT {', '.join(COLUMNS)} FROM job_rows "
    "WHERE job = :job AND position BETWEEN :first AND :last ORDER BY position"
)
FINDING = sa.text("SELECT number, name FROM job_rows WHERE job = :job ORDER BY position")


def _repack(connection: sa.Connection, job: int) -> None:
    found = connection.execute(FINDING, {"job": job}, execution_options={"yield_per": READ_AT_ONCE})
    finding = np.fromiter(
        ((number, zlib.crc32(name.encode())) for number, name in found),
        [("number", np.int64), ("mark", np.int64)],
    )
    if not len(finding):
        return
    place = np.empty(len(finding), np.int64)
    place[finding["number"]] = np.arange(len(finding))
    marks = finding["mark"]
    count = -(-len(finding) // BLOCK_ROWS)
    order = np.lexsort((marks, marks % count))
    ends = np.searchsorted((marks % count)[order], np.arange(count + 1))
    for number in range(count):
        first = number * BLOCK_ROWS
        at = order[ends[number] : ends[number + 1]]
        asked = {"job": job, "first": first, "last": first + BLOCK_ROWS - 1}
        block = {
            "job": job,
            "number": number,
            "places": _pack({"position": place[first : first + BLOCK_ROWS]}),
            "names": _pack({"mark": marks[at].astype("<u4"), "position": at}),
            **_block(connection.execute(ROWS, asked).all()),
        }
        connection.execute(sa.insert(BLOCKS), block)


def _block(rows: Any) -> dict[str, Any]:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    codes = [STATUSES.index(status) for status in columns["status"]]
    placed = np.array([x0 is not None for x0 in columns["x0"]], bool)
    box = np.array([columns[name] for name in BOX], object).T
    box = np.where(placed[:, None], box, 0).astype(np.int64)
    boxes = {"box": box, "placed": None if placed.all() else placed}
    in_sky = any(ra is not None for ra in columns["ra"])
    sky = np.array([columns[name] for name in SKY], float).T
    result = [-1 if each is None else each for each in columns["result"]]
    pairs = {text: text and [int(each) for each in text.split(":")] for text in columns["planes"]}
    asked = {
        "number": np.array(columns["number"], np.int64),
        "result": np.array(result, np.int64) if max(result) >= 0 else None,
        "id": list(columns["id"]),
        "name": None if columns["name"] == columns["id"] else list(columns["name"]),
        "source": _coded(columns["source"], None),
        "hdu": _coded(columns["hdu"], None),
        **boxes,
        "planes": _coded(columns["planes"], None),
        "sky": sky if in_sky else None,
    }
    if asked["planes"] is not None:
        asked["planes"][0] = [pairs[text] for text in asked["planes"][0]]
    became = None
    if any(codes):
        digests = "".join(text or "0" * 64 for text in columns["sha256"])
        told = np.frombuffer(bytes.fromhex(digests), np.uint8).reshape(len(codes), 32)
        became = _pack(
            {
                "status": np.array(codes, np.uint8),
                "reason": _coded(columns["reason"], ""),
                "bytes": np.array(columns["bytes"], np.int64),
                "version": _coded(columns["version"], ""),
                "sha256": told if told.any() else None,
                **(boxes if in_sky else {}),
            }
        )
    statuses = sum(1 << code for code in set(codes))
    return {"statuses": statuses, "asked": _pack(asked), "became": became}


def _coded(column: Any, usual: Any) -> list[Any] | None:
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in column]
    if list(numbers) == [usual]:
        return None
    return [list(numbers), codes if len(numbers) > 1 else []]


def _pack(columns: dict[str, Any]) -> bytes:
    directory, bodies = [], []
    for name, column in columns.items():
        if column is None:
            continue
        if isinstance(column, np.ndarray):
            if column.dtype.kind == "i":
                column = column.astype(_narrow(column))
            kind, shape, body = column.dtype.str, column.shape, column.tobytes()
        else:
            kind, shape = "json", ()
            body = json.dumps(column, ensure_ascii=False, separators=(",", ":")).encode()
        directory.append([name, kind, shape, len(body)])
        bodies.append(body)
    told = json.dumps(directory, separators=(",", ":")).encode()
    return b"".join([len(told).to_bytes(4, "little"), told, *bodies])


def _narrow(column: Any) -> str:
    for kind in ("<i1", "<i2", "<i4"):
        limits = np.iinfo(kind)
        if not column.size or (limits.min <= column.min() and column.max() <= limits.max):
            return kind
    return "<i8"
