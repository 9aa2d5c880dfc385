"""The tables of TAP and their columns: what `TAP_SCHEMA` and `/vo/tap/tables` tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from swathe.portal.vo.discovery.query import FIELDS as IMAGE_FIELDS
from swathe.portal.vo.discovery.votable import Field

Kind = Literal["int", "long", "double", "text", "region"]
"""Type of a column. A region is text in the form of DALI 1.0: `POLYGON ICRS ...`."""
KINDS: dict[str, Kind] = {"int": "int", "long": "long", "double": "double", "char": "text"}
DATATYPES: dict[Kind, str] = {
    "int": "int",
    "long": "long",
    "double": "double",
    "text": "char",
    "region": "char",
}
RESERVED_NAMES = ("size",)
"""Columns that a standard names by a reserved word."""


@dataclass(frozen=True)
class TapColumn:
    """A column.

    Attributes:
        is_core: Whether a standard defines it.
        is_fast: Whether an index finds its values.
        is_minor: Whether clients that show few columns leave it out.
        datatype: Type in VOTable, if it is smaller than that of `kind`.
    """

    name: str
    kind: Kind
    about: str
    unit: str | None = None
    ucd: str | None = None
    utype: str | None = None
    xtype: str | None = None
    is_core: bool = False
    is_fast: bool = False
    is_minor: bool = False
    datatype: str | None = None

    @property
    def name_in_queries(self) -> str:
        """The name, in double quotes if it is a word of ADQL."""
        return f'"{self.name}"' if self.name in RESERVED_NAMES else self.name

    @property
    def field(self) -> Field:
        """The column in a VOTable."""
        return Field(
            self.name,
            self.datatype or DATATYPES[self.kind],
            None,
            self.unit,
            self.ucd,
            self.utype,
            self.xtype,
            self.about,
        )


@dataclass(frozen=True)
class TapTable:
    """A table."""

    schema: str
    name: str
    about: str
    columns: tuple[TapColumn, ...]
    utype: str | None = None

    @property
    def full_name(self) -> str:
        """Name with that of its schema."""
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that name rows of another, in pairs."""

    number: int
    table: str
    target: str
    columns: tuple[tuple[str, str], ...]


ABOUT_IMAGES = {
    "dataproduct_type": "image or cube",
    "calib_level": "Calibration level, 0 to 4",
    "obs_collection": "Dataset",
    "obs_id": "File, and name of the HDU",
    "obs_publisher_did": "Identifier of the image",
    "access_url": "Links of the image (DataLink): file, cutouts, preview",
    "access_format": "Media type of access_url",
    "access_estsize": "Size of the file",
    "target_name": "Target, from the header",
    "s_ra": "Right ascension of the centre, ICRS",
    "s_dec": "Declination of the centre, ICRS",
    "s_fov": "Diameter of a circle around the image",
    "s_region": "Outline of the image, ICRS",
    "s_resolution": "Spatial resolution",
    "s_xel1": "Pixels along the first axis",
    "s_xel2": "Pixels along the second axis",
    "t_min": "Start of the exposure, MJD",
    "t_max": "End of the exposure, MJD",
    "t_exptime": "Duration of the exposure",
    "t_resolution": "Resolution in time",
    "t_xel": "Elements along the time axis",
    "em_min": "Shortest wavelength",
    "em_max": "Longest wavelength",
    "em_res_power": "Resolving power",
    "em_xel": "Elements along the spectral axis",
    "o_ucd": "UCD of the pixels",
    "pol_states": "States of polarization",
    "pol_xel": "Number of states of polarization",
    "facility_name": "Telescope",
    "instrument_name": "Instrument",
}
FAST = ("s_region", "s_ra", "s_dec", "t_min", "em_min")


def _image_column(field: Field) -> TapColumn:
    return TapColumn(
        field.name,
        "region" if field.name == "s_region" else KINDS[field.kind],
        ABOUT_IMAGES[field.name],
        field.unit,
        field.ucd,
        field.utype,
        field.xtype,
        is_core=True,
        is_fast=field.name in FAST,
    )


OBSCORE = TapTable(
    "ivoa",
    "obscore",
    "Images of all datasets, with the columns of ObsCore 1.1",
    tuple(_image_column(field) for field in IMAGE_FIELDS),
    "ivo://ivoa.net/std/obscore#table-1.1",
)


def _standard(name: str, about: str, kind: Kind = "text") -> TapColumn:
    return TapColumn(name, kind, about, is_core=True)


SCHEMAS = TapTable(
    "tap_schema",
    "schemas",
    "Schemas of this service",
    (
        _standard("schema_name", "Name of the schema"),
        _standard("utype", "Utype of the schema"),
        _standard("description", "Description of the schema"),
        _standard("schema_index", "Place in the order of schemas", "int"),
    ),
)
TABLES = TapTable(
    "tap_schema",
    "tables",
    "Tables of this service",
    (
        _standard("schema_name", "Name of the schema"),
        _standard("table_name", "Name of the table, as in queries"),
        _standard("table_type", "table or view"),
        _standard("utype", "Utype of the table"),
        _standard("description", "Description of the table"),
        _standard("table_index", "Place in the order of tables", "int"),
    ),
)
COLUMNS = TapTable(
    "tap_schema",
    "columns",
    "Columns of the tables of this service",
    (
        _standard("table_name", "Name of the table"),
        _standard("column_name", "Name of the column"),
        _standard("datatype", "Type, as in VOTable"),
        _standard("arraysize", "Size of an array, as in VOTable"),
        _standard("xtype", "Extended type, as in DALI"),
        TapColumn("size", "int", "Length of an array; deprecated", is_core=True),
        _standard("description", "Description of the column"),
        _standard("utype", "Utype of the column"),
        _standard("unit", "Unit of the values"),
        _standard("ucd", "UCD of the values"),
        _standard("indexed", "1 if an index finds values", "int"),
        _standard("principal", "1 if the column is one of the main ones", "int"),
        _standard("std", "1 if a standard defines the column", "int"),
        _standard("column_index", "Place in the order of columns", "int"),
    ),
)
KEYS = TapTable(
    "tap_schema",
    "keys",
    "Foreign keys between the tables",
    (
        _standard("key_id", "Identifier of the key"),
        _standard("from_table", "Table with the key"),
        _standard("target_table", "Table that the key names rows of"),
        _standard("utype", "Utype of the key"),
        _standard("description", "Description of the key"),
    ),
)
KEY_COLUMNS = TapTable(
    "tap_schema",
    "key_columns",
    "Columns of the foreign keys",
    (
        _standard("key_id", "Identifier of the key"),
        _standard("from_column", "Column of the table with the key"),
        _standard("target_column", "Column that it names"),
    ),
)
JOBS = TapTable(
    "jobs",
    "job",
    "Your jobs of cutting images; nobody sees those of others",
    (
        TapColumn("job_id", "text", "Identifier", ucd="meta.id;meta.main"),
        TapColumn("name", "text", "Name that you gave", ucd="meta.title"),
        TapColumn("operation", "text", "Operation: cut, stack, ..."),
        TapColumn(
            "phase", "text", "Phase, as in UWS; STAGING waits for tape", ucd="meta.code.status"
        ),
        TapColumn("created", "text", "Time of submission, UTC", xtype="timestamp"),
        TapColumn("begin_time", "text", "Time of the first work, UTC", xtype="timestamp"),
        TapColumn("end_time", "text", "Time of the end, UTC", xtype="timestamp"),
        TapColumn("expiry", "text", "Time of deletion, UTC", xtype="timestamp"),
        TapColumn("row_count", "long", "Number of rows", ucd="meta.number"),
        TapColumn("ok_count", "long", "Rows with a result", ucd="meta.number"),
        TapColumn("waiting_count", "long", "Rows that wait", ucd="meta.number"),
        TapColumn("no_overlap_count", "long", "Rows outside their image", ucd="meta.number"),
        TapColumn("missing_count", "long", "Rows without their file", ucd="meta.number"),
        TapColumn("error_count", "long", "Rows that failed", ucd="meta.number"),
        TapColumn("result_size", "long", "Size of the results", "byte", "phys.size;meta.file"),
        TapColumn("failure", "text", "Why the job failed"),
    ),
)
ROWS = TapTable(
    "jobs",
    "row",
    "Rows of your jobs, with the status of each result",
    (
        TapColumn("job_id", "text", "Job of the row", ucd="meta.id"),
        TapColumn("row_number", "long", "Number of the row, from 0", ucd="meta.number"),
        TapColumn("row_id", "text", "Identifier in your list", ucd="meta.id"),
        TapColumn("name", "text", "Name of the result", ucd="meta.file"),
        TapColumn("file", "text", "File that is cut", ucd="meta.file"),
        TapColumn("status", "text", "Status", ucd="meta.code.status"),
        TapColumn("reason", "text", "Why there is no result"),
        TapColumn("result_size", "long", "Size of the result", "byte", "phys.size;meta.file"),
    ),
)
ALL_TABLES = (OBSCORE, SCHEMAS, TABLES, COLUMNS, KEYS, KEY_COLUMNS, JOBS, ROWS)
SCHEMA_TEXTS = {
    "ivoa": "Tables that the IVOA defines",
    "tap_schema": "Description of the tables of this service",
    "jobs": "Your own jobs",
}
UPLOAD_SCHEMA = "tap_upload"
FOREIGN_KEYS = (
    ForeignKey(1, "tap_schema.tables", "tap_schema.schemas", (("schema_name", "schema_name"),)),
    ForeignKey(2, "tap_schema.columns", "tap_schema.tables", (("table_name", "table_name"),)),
    ForeignKey(3, "tap_schema.keys", "tap_schema.tables", (("from_table", "table_name"),)),
    ForeignKey(4, "tap_schema.keys", "tap_schema.tables", (("target_table", "table_name"),)),
    ForeignKey(5, "tap_schema.key_columns", "tap_schema.keys", (("key_id", "key_id"),)),
    ForeignKey(6, "jobs.row", "jobs.job", (("job_id", "job_id"),)),
)


def schema_rows() -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of the tables of `tap_schema`, by the name of the table."""
    schemas = list(SCHEMA_TEXTS)
    columns = [
        (table, place, column) for table in ALL_TABLES for place, column in enumerate(table.columns)
    ]
    return {
        "schemas": [
            (name, None, about, place) for place, (name, about) in enumerate(SCHEMA_TEXTS.items())
        ],
        "tables": [
            (table.schema, table.full_name, "table", table.utype, table.about, place)
            for place, table in enumerate(
                sorted(ALL_TABLES, key=lambda each: schemas.index(each.schema))
            )
        ],
        "columns": [
            (
                table.full_name,
                column.name_in_queries,
                DATATYPES[column.kind],
                "*" if DATATYPES[column.kind] == "char" else None,
                column.xtype,
                None,
                column.about,
                column.utype,
                column.unit,
                column.ucd,
                int(column.is_fast),
                int(not column.is_minor),
                int(column.is_core),
                place,
            )
            for table, place, column in columns
        ],
        "keys": [(str(key.number), key.table, key.target, None, None) for key in FOREIGN_KEYS],
        "key_columns": [(str(key.number), *pair) for key in FOREIGN_KEYS for pair in key.columns],
    }
