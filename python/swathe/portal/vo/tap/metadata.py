"""What the service says of itself: capabilities (TAPRegExt), tables (VOSI), examples (DALI)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from starlette.responses import Response

from swathe.portal.vo.discovery.vosi import TAP, XML, XSI, page
from swathe.portal.vo.discovery.votable import MEDIA_TYPE, plain
from swathe.portal.vo.tap.query_jobs import DEFAULT_S, LONGEST_S
from swathe.portal.vo.tap.query_request import CSV, DEFAULT_ROWS, MOST_ROWS
from swathe.portal.vo.tap.tables import (
    ALL_TABLES,
    DATATYPES,
    FOREIGN_KEYS,
    SCHEMA_TEXTS,
    TapColumn,
    TapTable,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.vo.service import Service

EXTENSION = "ivo://ivoa.net/std/TAPRegExt"
DATA_MODEL = "ivo://ivoa.net/std/ObsCore#core-1.1"
FEATURES = {
    "adqlgeo": (
        *("AREA", "BOX", "CENTROID", "CIRCLE", "CONTAINS", "COORD1", "COORD2", "COORDSYS"),
        *("DISTANCE", "INTERSECTS", "POINT", "POLYGON"),
    ),
    "adql-string": ("LOWER", "UPPER", "ILIKE"),
    "adql-sets": ("UNION", "EXCEPT", "INTERSECT"),
    "adql-common-table": ("WITH",),
    "adql-type": ("CAST",),
    "adql-offset": ("OFFSET",),
}
"""Optional parts of ADQL, by the last word of their type."""
NAMESPACES = f"""xmlns:vosi="http://www.ivoa.net/xml/VOSICapabilities/v1.0"
    xmlns:tr="http://www.ivoa.net/xml/TAPRegExt/v1.0"
    xmlns:vs="http://www.ivoa.net/xml/VODataService/v1.1" {XSI}"""
OTHER_STANDARDS = (
    ("ivo://ivoa.net/std/VOSI#capabilities", "capabilities"),
    ("ivo://ivoa.net/std/VOSI#availability", "availability"),
    ("ivo://ivoa.net/std/VOSI#tables-1.1", "tables"),
    ("ivo://ivoa.net/std/DALI#examples", "examples"),
)


async def capabilities(service: Service, request: Request) -> Response:
    """Return the capabilities of TAP."""
    parts = [f'<?xml version="1.0" encoding="UTF-8"?>\n<vosi:capabilities {NAMESPACES}>\n']
    parts.append(capability(service, request))
    for standard, path in OTHER_STANDARDS:
        parts.append(
            f"<capability standardID={quoteattr(standard)}>\n"
            '<interface xsi:type="vs:ParamHTTP" role="std">\n'
            f'<accessURL use="full">{escape(service.url(request, f"tap/{path}"))}</accessURL>\n'
            "</interface>\n</capability>\n"
        )
    parts.append("</vosi:capabilities>\n")
    return Response("".join(parts), 200, media_type=XML)


def capability(service: Service, request: Request) -> str:
    """Return the capability of TAP as XML, whose prefixes are those of `NAMESPACES`."""
    body_bytes = round(service.portal.config.limits.body_mb * 1e6)
    features = "".join(
        f'<languageFeatures type="{EXTENSION}#features-{kind}">\n'
        + "".join(f"<feature><form>{name}</form></feature>\n" for name in names)
        + "</languageFeatures>\n"
        for kind, names in FEATURES.items()
    )
    return (
        f'<capability standardID="{TAP}" xsi:type="tr:TableAccess">\n'
        '<interface xsi:type="vs:ParamHTTP" role="std" version="1.1">\n'
        f'<accessURL use="base">{escape(service.url(request, "tap"))}</accessURL>\n'
        "</interface>\n"
        f'<dataModel ivo-id="{DATA_MODEL}">ObsCore-1.1</dataModel>\n'
        "<language>\n<name>ADQL</name>\n"
        '<version ivo-id="ivo://ivoa.net/std/ADQL#v2.0">2.0</version>\n'
        '<version ivo-id="ivo://ivoa.net/std/ADQL#v2.1">2.1</version>\n'
        f"<description>The core of ADQL 2.1</description>\n{features}</language>\n"
        f"<outputFormat><mime>{MEDIA_TYPE}</mime><alias>votable</alias></outputFormat>\n"
        f"<outputFormat><mime>{CSV}</mime><alias>csv</alias></outputFormat>\n"
        f'<uploadMethod ivo-id="{EXTENSION}#upload-inline"/>\n'
        f'<uploadMethod ivo-id="{EXTENSION}#upload-http"/>\n'
        f"<executionDuration><default>{DEFAULT_S}</default><hard>{LONGEST_S}</hard>"
        "</executionDuration>\n"
        f'<outputLimit><default unit="row">{DEFAULT_ROWS}</default>'
        f'<hard unit="row">{MOST_ROWS}</hard></outputLimit>\n'
        f'<uploadLimit><hard unit="byte">{body_bytes}</hard></uploadLimit>\n'
        "</capability>\n"
    )


async def tables(_service: Service, _request: Request) -> Response:
    """Return the tables and their columns."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<vosi:tableset xmlns:vosi="http://www.ivoa.net/xml/VOSITables/v1.0"\n'
        f'    xmlns:vs="http://www.ivoa.net/xml/VODataService/v1.1" {XSI}>\n'
    ]
    for name, about in SCHEMA_TEXTS.items():
        parts.append(f"<schema>\n<name>{name}</name>\n<description>{plain(about)}</description>\n")
        parts += [_table(table) for table in ALL_TABLES if table.schema == name]
        parts.append("</schema>\n")
    parts.append("</vosi:tableset>\n")
    return Response("".join(parts), 200, media_type=XML)


def _table(table: TapTable) -> str:
    keys = [key for key in FOREIGN_KEYS if key.table == table.full_name]
    return (
        f'<table type="base_table">\n<name>{table.full_name}</name>\n'
        f"{_element('description', table.about)}{_element('utype', table.utype)}"
        + "".join(map(_column, table.columns))
        + "".join(
            f"<foreignKey>\n<targetTable>{key.target}</targetTable>\n"
            + "".join(
                f"<fkColumn><fromColumn>{one}</fromColumn>"
                f"<targetColumn>{other}</targetColumn></fkColumn>\n"
                for one, other in key.columns
            )
            + "</foreignKey>\n"
            for key in keys
        )
        + "</table>\n"
    )


def _column(column: TapColumn) -> str:
    kind = DATATYPES[column.kind]
    more = ' arraysize="*"' if kind == "char" else ""
    more += f' extendedType="{column.xtype}"' if column.xtype else ""
    flags = "<flag>indexed</flag>\n" if column.is_fast else ""
    return (
        f'<column std="{"true" if column.is_core else "false"}">\n\n'
        f"<name>{column.name_in_queries}</name>\n"
        f"{_element('description', column.about)}{_element('unit', column.unit)}"
        f"{_element('ucd', column.ucd)}{_element('utype', column.utype)}"
        f'<dataType xsi:type="vs:VOTableType"{more}>{kind}</dataType>\n{flags}</column>\n'
    )


def _element(name: str, text: str | None) -> str:
    return f"<{name}>{plain(text)}</{name}>\n" if text else ""


EXAMPLES = (
    (
        "Images that show a position",
        "SELECT obs_publisher_did, access_url FROM ivoa.obscore\n"
        "WHERE 1 = CONTAINS(POINT('ICRS', 10.0, -1.0), s_region)",
    ),
    (
        "Images with their centre in a circle, by time",
        "SELECT TOP 100 obs_id, s_ra, s_dec, t_min FROM ivoa.obscore\n"
        "WHERE 1 = CONTAINS(POINT('ICRS', s_ra, s_dec), CIRCLE('ICRS', 10.0, -1.0, 0.5))\n"
        "ORDER BY t_min",
    ),
    (
        "Number of images of each dataset",
        "SELECT obs_collection, COUNT(*) AS images FROM ivoa.obscore\nGROUP BY obs_collection",
    ),
)


async def examples(service: Service, _request: Request) -> Response:
    """Return example queries."""
    parts = [
        f'<div typeof="example" id="q{number}" resource="#q{number}">\n'
        f'<h2 property="name">{plain(title)}</h2>\n'
        f'<pre property="query">{plain(query)}</pre>\n</div>\n'
        for number, (title, query) in enumerate(EXAMPLES)
    ]
    return page(service, "Examples of queries", "".join(parts))
