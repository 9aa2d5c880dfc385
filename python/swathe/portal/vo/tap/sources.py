"""The tables of TAP as SQL: expressions over the tables of the catalogue, and rows in JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSON as POSTGRES_JSON
from sqlalchemy.sql.elements import Grouping

from swathe.catalog.tables import DatasetRow, GranuleRow, JobTable, ReplicaRow
from swathe.portal.vo.discovery.descriptors import DATALINK_TYPE
from swathe.portal.vo.discovery.query import DAY_S
from swathe.portal.vo.tap.tables import JOBS, OBSCORE, ROWS, Kind, TapTable, schema_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROW = "_row"
"""Hidden column: the number of a granule, or of a row of an upload."""
GRANULE_WCS = "_has_place"
"""Hidden column: whether a granule has a place in the sky."""
TYPES: dict[Kind, Any] = {
    "int": sa.BigInteger(),
    "long": sa.BigInteger(),
    "double": sa.Double(),
    "text": sa.Text(),
    "region": sa.Text(),
}


@dataclass(frozen=True)
class Upload:
    """A table that the user sent, with its rows."""

    table: TapTable
    rows: list[tuple[Any, ...]]


@dataclass
class Sources:
    """The tables that one query may use.

    Attributes:
        on_sqlite: Whether the database is SQLite, else PostgreSQL.
        authority: Authority of the identifiers of images.
        links_url: URL of DataLink.
        owner: Name of the user; None if the user may see the jobs of all.
        job_rows: Function that returns the rows of `jobs.row`: of one job, or of all.
        uploads: Tables that the user sent.
    """

    on_sqlite: bool
    authority: str
    links_url: str
    owner: str | None
    job_rows: Callable[[str | None], list[tuple[Any, ...]]]
    uploads: Sequence[Upload] = ()
    _ctes: dict[tuple[str, str | None], Any] = field(default_factory=dict)
    _lists: dict[str, Any] = field(default_factory=dict)

    def clause(self, table: TapTable, name: str, job_id: str | None = None) -> Any:
        """Return a table as an SQL expression of its own, to select from.

        The columns of an upload are `c0`, `c1`, ... `job_id` is the only job whose rows are needed.
        """
        if table is OBSCORE:
            return self._images().subquery(name)
        if table is JOBS:
            return self._jobs().subquery(name)
        key = table.full_name, job_id
        if key not in self._ctes:
            self._ctes[key] = self._json_table(table, self._rows_of(table, job_id))
        return self._ctes[key].alias(name)

    def is_upload(self, table: TapTable) -> bool:
        """Return whether a table is one that the user sent."""
        return any(each.table is table for each in self.uploads)

    def rows_of_upload(self, full_name: str) -> list[tuple[Any, ...]]:
        """Return the rows of an upload."""
        return next(each.rows for each in self.uploads if each.table.full_name == full_name)

    def _rows_of(self, table: TapTable, job_id: str | None) -> Iterable[tuple[Any, ...]]:
        if table is ROWS:
            return self.job_rows(job_id)
        for upload in self.uploads:
            if upload.table is table:
                return upload.rows
        return schema_rows()[table.name]

    def _json_table(self, table: TapTable, rows: Iterable[tuple[Any, ...]]) -> Any:
        content = json.dumps([(*row, number) for number, row in enumerate(rows)], allow_nan=False)
        is_upload = self.is_upload(table)
        names: list[tuple[str, Kind]] = [
            (f"c{place}" if is_upload else each.name, each.kind)
            for place, each in enumerate(table.columns)
        ]
        names.append((ROW, "long"))
        values = self.json_values(content, names)
        return values.cte(f"rows_{len(self._ctes)}")

    def json_values(self, content: str, names: Sequence[tuple[str, Kind]]) -> Any:
        """Return a SELECT of the rows in a JSON text, an array of arrays."""
        parameter = sa.bindparam(None, content, sa.Text(), unique=True)
        if self.on_sqlite:
            rows = sa.func.json_each(parameter).table_valued("value")
            cells = [sa.func.json_extract(rows.c.value, f"$[{at}]") for at in range(len(names))]
        else:
            rows = sa.func.json_array_elements(sa.cast(parameter, POSTGRES_JSON())).table_valued(
                "value"
            )
            cells = [sa.func.json_array_element_text(rows.c.value, at) for at in range(len(names))]
        columns = [
            self.as_kind(cell, kind).label(name)
            for cell, (name, kind) in zip(cells, names, strict=True)
        ]
        return sa.select(*columns).select_from(rows)

    def as_kind(self, sql: Any, kind: Kind) -> Any:
        """Return an expression with its type; on PostgreSQL texts compare byte by byte."""
        value = sa.cast(sql, TYPES[kind])
        if kind in ("text", "region") and not self.on_sqlite:
            return sa.collate(value, "C")
        return value

    def identifiers(self, numbers: Iterable[int]) -> Any:
        """Return a subquery of integers, for `IN`."""
        content = json.dumps(sorted(numbers), separators=(",", ":"))
        # The same object for the same numbers: PostgreSQL compares what is selected and grouped by.
        if content not in self._lists:
            self._lists[content] = self._list_of(content)
        return self._lists[content]

    def _list_of(self, content: str) -> Any:
        parameter = sa.bindparam(None, content, sa.Text(), unique=True)
        if self.on_sqlite:
            rows = sa.func.json_each(parameter).table_valued("value")
            return sa.select(rows.c.value)
        rows = sa.func.json_array_elements_text(sa.cast(parameter, POSTGRES_JSON())).table_valued(
            "value"
        )
        return sa.select(sa.cast(rows.c.value, sa.BigInteger()))

    def _images(self) -> Any:
        """Return the images as ObsCore has them, as SIA2 does."""
        granule, dataset = GranuleRow.__table__.c, DatasetRow.__table__.c
        replica = ReplicaRow.__table__.c
        did = f"ivo://{self.authority}/"
        path = sa.func.swathe_quote(granule.path) if self.on_sqlite else _quote(granule.path)
        identifier = (
            sa.literal(did) + dataset.name + "?" + path + "," + sa.cast(granule.hdu, sa.Text)
        )
        in_query = identifier
        for character in "%:/?,":
            in_query = sa.func.replace(in_query, character, quote(character, safe=""))
        values = {
            "dataproduct_type": sa.case((self._has_planes(granule.shape), "cube"), else_="image"),
            "calib_level": dataset.calib_level,
            "obs_collection": dataset.name,
            "obs_id": granule.path + sa.func.coalesce(sa.literal(", ") + granule.name, ""),
            "obs_publisher_did": identifier,
            "access_url": sa.literal(f"{self.links_url}?ID=") + in_query,
            "access_format": sa.literal(DATALINK_TYPE),
            "access_estsize": Grouping(granule.size + 999).op("/")(1000),
            "target_name": granule.target,
            **{name: granule[name] for name in ("s_ra", "s_dec", "s_fov")},
            "s_region": granule.outline,
            "s_xel1": self._length(granule.shape, 1),
            "s_xel2": self._length(granule.shape, 2),
            **{name: granule[name] for name in ("t_min", "t_max", "em_min", "em_max")},
            "t_exptime": (granule.t_max - granule.t_min) * float(DAY_S),
            "pol_states": _states(granule.pol),
            "pol_xel": sa.func.json_array_length(granule.pol),
            "facility_name": granule.facility,
            "instrument_name": granule.instrument,
        }
        columns = [
            self.as_kind(values.get(each.name, sa.null()), each.kind).label(each.name)
            for each in OBSCORE.columns
        ]
        has_copy = sa.exists().where(
            replica.dataset_id == granule.dataset_id,
            replica.object_path == granule.path,
            replica.state == "ok",
        )
        return (
            sa.select(*columns, granule.id.label(ROW), granule.s_ra.label(GRANULE_WCS))
            .join_from(GranuleRow.__table__, DatasetRow.__table__, dataset.id == granule.dataset_id)
            .where(granule["array"].is_(None), has_copy)
        )

    def _length(self, shape: Any, place: int) -> Any:
        """Return a length of an image, by its place from the last."""
        if self.on_sqlite:
            return sa.func.json_extract(shape, f"$[#-{place}]")
        return sa.func.json_array_element_text(shape, -place)

    def _has_planes(self, shape: Any) -> Any:
        """Return whether an image has more than one plane: a product of integers, above one."""
        place: Any
        length: Any
        if self.on_sqlite:
            each = sa.func.json_each(shape).table_valued("key", "value")
            place, length = each.c.key, each.c.value
        else:
            elements = sa.func.json_array_elements_text(shape)
            each = elements.table_valued("value", with_ordinality="key").render_derived()
            place, length = each.c.key - 1, sa.cast(each.c.value, sa.BigInteger())
        counts = (
            sa.select(sa.func.min(length) > 0, sa.func.max(length) > 1)
            .select_from(each)
            .where(place < sa.func.json_array_length(shape) - 2)
        )
        lengths = counts.with_only_columns(
            sa.case(((sa.func.min(length) > 0) & (sa.func.max(length) > 1), 1), else_=0)
        )
        return lengths.scalar_subquery() == 1

    def _jobs(self) -> Any:
        job = JobTable.__table__.c
        moment = self._moment
        operation = job.options["operation"].as_string()
        values = {
            "job_id": job.id,
            "name": job.name,
            "operation": sa.func.coalesce(operation, "cut"),
            "phase": job.phase,
            "created": moment(job.created_at),
            "begin_time": moment(job.started_at),
            "end_time": moment(job.ended_at),
            "expiry": moment(job.expires_at),
            "row_count": job.rows,
            "ok_count": job.ok,
            "waiting_count": job.waiting,
            "no_overlap_count": job.no_overlap,
            "missing_count": job.missing,
            "error_count": job.error,
            "result_size": job.bytes,
            "failure": job.failure,
        }
        columns = [
            self.as_kind(values[each.name], each.kind).label(each.name) for each in JOBS.columns
        ]
        query = sa.select(*columns, job.number.label(ROW))
        return query if self.owner is None else query.where(job.owner == self.owner)

    def _moment(self, column: Any) -> Any:
        """Return a time as text in the form of DALI, to milliseconds."""
        if self.on_sqlite:
            text = sa.func.strftime("%Y-%m-%dT%H:%M:%f", sa.type_coerce(column, sa.Text()))
        else:
            form = 'YYYY-MM-DD"T"HH24:MI:SS.MS'
            text = sa.func.to_char(sa.func.timezone("UTC", column), form)
        return text + "Z"


def _states(column: Any) -> Any:
    """Return states of polarization between slashes, of their JSON."""
    text: Any = sa.cast(sa.type_coerce(column, sa.Text()), sa.Text())
    for old, new in (('", "', "/"), ('["', "/"), ('"]', "/")):
        text = sa.func.replace(text, old, new)
    return text


def _quote(path: Any) -> Any:
    """Return a path percent-encoded by PostgreSQL, as `urllib.parse.quote` does."""
    each = (
        sa.func.regexp_split_to_table(path, "")
        .table_valued("value", with_ordinality="place")
        .render_derived()
    )
    plain = "^[A-Za-z0-9_.~/-]*$"
    bytes_as_hex = sa.func.encode(sa.func.convert_to(each.c.value, "UTF8"), "hex")
    code = sa.func.upper(sa.func.regexp_replace(bytes_as_hex, "(..)", r"%\1", "g"))
    character = sa.case((each.c.value.regexp_match(plain), each.c.value), else_=code)
    characters = sa.select(sa.func.array_agg(character, type_=sa.ARRAY(sa.Text()))).select_from(
        each
    )
    whole = sa.func.array_to_string(characters.scalar_subquery(), "")
    return sa.case((path.regexp_match(plain), path), else_=whole)
