"""Items and collections of STAC 1.1 from objects and datasets of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.catalog.datasets.object_ids import id_of
from swathe.core.times import utc_of
from swathe.datasets.planar import box_of, geojson_of, rings_of
from swathe.portal.vo.identifiers import did_of
from swathe.portal.whole_file import is_served, media_type_of

if TYPE_CHECKING:
    from swathe.catalog import Dataset, DatasetSummary
    from swathe.catalog.datasets.objects import DatasetObject
    from swathe.catalog.records.datasets import Granule
    from swathe.portal.stac.search_request import Fields

STAC_VERSION = "1.1.0"
GEOJSON = "application/geo+json"
DATALINK = "application/x-votable+xml;content=datalink"
WHOLE_EARTH = [-180.0, -90.0, 180.0, 90.0]
UNKNOWN_SPAN = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
"""Span of an item whose time is not known: STAC wants one."""
ALWAYS = frozenset({"type", "stac_version", "id", "collection", "links", "geometry", "bbox"})
TIMES = ("datetime", "start_datetime", "end_datetime")
"""Members and properties that an item is returned with, whatever `fields` says."""
OCTETS = "application/octet-stream"
PROCESSES = "http://www.opengis.net/def/rel/ogc/1.0/processes"


def link(rel: str, href: str, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    """Return a link."""
    return {"rel": rel, "href": href, "type": kind, **more}


class Documents:
    """Makes documents whose links begin with the portal's address."""

    def __init__(self, url: str, authority: str) -> None:
        """Set the address of the portal and the authority of its identifiers."""
        self._portal, self._authority = url, authority
        self.url = f"{url}/stac"
        self.root = f"{self.url}/"
        self.processes = link(PROCESSES, f"{url}/ogc/processes", title="Processes")

    def collection_url(self, name: str) -> str:
        """Return the address of a collection."""
        return f"{self.url}/collections/{quote(name)}"

    def item_url(self, of: DatasetObject) -> str:
        """Return the address of an item."""
        return f"{self.collection_url(of.dataset)}/items/{id_of(of.path)}"

    def collection(self, dataset: Dataset, summary: DatasetSummary) -> dict[str, Any]:
        """Return the collection of a dataset."""
        url = self.collection_url(dataset.name)
        return {
            "type": "Collection",
            "stac_version": STAC_VERSION,
            "id": dataset.name,
            "title": dataset.name,
            "description": (
                f"{dataset.objects} files with {dataset.granules} images and arrays of the "
                f"dataset {dataset.name}."
            ),
            "license": "other",
            "extent": {
                "spatial": {"bbox": [WHOLE_EARTH]},
                "temporal": {"interval": [[moment(summary.t_min), moment(summary.t_max)]]},
            },
            "links": [
                link("self", url),
                link("root", self.root),
                link("parent", self.root),
                link("items", f"{url}/items", GEOJSON),
                link(
                    "http://www.opengis.net/def/rel/ogc/1.0/queryables",
                    f"{url}/queryables",
                    "application/schema+json",
                ),
                link("alternate", f"{self._portal}/datasets/{quote(dataset.name)}", "text/html"),
            ],
        }

    def item(self, of: DatasetObject) -> dict[str, Any]:
        """Return the item of an object."""
        url, collection = self.item_url(of), self.collection_url(of.dataset)
        rings = rings_of(_outlines(of.granules))
        geometry = geojson_of(rings)
        item: dict[str, Any] = {
            "type": "Feature",
            "stac_version": STAC_VERSION,
            "id": id_of(of.path),
            "collection": of.dataset,
            "geometry": geometry,
            "properties": _properties(of),
            "links": [
                link("self", url, GEOJSON),
                link("root", self.root),
                link("parent", collection),
                link("collection", collection),
                self.processes,
                *self._services(of),
            ],
            "assets": {},
        }
        if is_served(of.file):
            item["assets"]["data"] = {
                "href": f"{url}/data",
                "type": media_type_of(of.path, OCTETS),
                "title": of.path,
                "roles": ["data"],
            }
        if geometry is not None:
            item["bbox"] = box_of(rings)
        return item

    def _services(self, of: DatasetObject) -> Iterable[dict[str, Any]]:
        """Yield links to the cutout service, one for each image of FITS."""
        for granule in of.granules:
            if granule.array is None:
                did = quote(did_of(self._authority, of.dataset, granule), safe="")
                title = f"Cutouts of image {granule.name or granule.hdu}"
                yield link("service", f"{self._portal}/vo/links?ID={did}", DATALINK, title=title)


def _outlines(granules: Iterable[Granule]) -> list[list[float]]:
    """Return the different outlines of arrays: those of one swath have the same."""
    outlines = {
        tuple(outline)
        for granule in granules
        if granule.place is not None
        for outline in granule.place.outlines
    }
    return [list(outline) for outline in sorted(outlines)]


def _properties(of: DatasetObject) -> dict[str, Any]:
    starts = [each.t_min for each in of.granules if each.t_min is not None]
    ends = [each.t_max for each in of.granules if each.t_max is not None]
    start, end = (moment(min(starts, default=None)), moment(max(ends, default=None)))
    times = {"datetime": start, "start_datetime": start, "end_datetime": end}
    if start is None or end is None:
        times |= zip(("start_datetime", "end_datetime"), UNKNOWN_SPAN, strict=True)
    platforms = sorted({each.facility for each in of.granules if each.facility})
    return {
        **times,
        **({"platform": platforms[0]} if platforms else {}),
        "instruments": sorted({each.instrument for each in of.granules if each.instrument}),
        "swathe:file": of.file,
        "swathe:bytes": of.granules[0].size,
        "swathe:arrays": [_array(each) for each in of.granules],
    }


def _array(granule: Granule) -> dict[str, Any]:
    values: dict[str, Any] = {
        "array": granule.array,
        "hdu": granule.hdu if granule.array is None else None,
        "name": granule.name,
        "shape": list(granule.shape),
        "band": granule.band,
        "target": granule.target,
    }
    if granule.footprint is not None:
        values |= {"s_ra": granule.footprint.s_ra, "s_dec": granule.footprint.s_dec}
    return {name: value for name, value in values.items() if value is not None}


def moment(mjd: float | None) -> str | None:
    """Return a modified Julian date as text of RFC 3339; None if it has no year from 1 to 9999."""
    if mjd is None:
        return None
    try:
        at = utc_of(mjd)
    except (OverflowError, ValueError):
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_fields(item: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Return the members of an item that are asked for; what makes it an item stays."""
    if not fields.include and not fields.exclude:
        return item
    include, exclude = set(fields.include) - set(fields.exclude), set(fields.exclude)
    if not include:
        return _without(item, exclude - ALWAYS - {f"properties.{name}" for name in TIMES}, "")
    members = {name: value for name, value in item.items() if name in ALWAYS | include}
    properties = item["properties"]
    members["properties"] = (
        _without(properties, exclude, "properties.")
        if "properties" in include
        else {
            name: value
            for name, value in properties.items()
            if name in TIMES or f"properties.{name}" in include
        }
    )
    for name in include:
        first, _, rest = name.partition(".")
        if first == "assets" and rest in item["assets"]:
            members.setdefault("assets", {})[rest] = item["assets"][rest]
    return members


def _without(values: Mapping[str, Any], exclude: set[str], prefix: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in values.items():
        if f"{prefix}{name}" in exclude:
            continue
        is_group = not prefix and name in ("properties", "assets")
        members[name] = _without(value, exclude, f"{name}.") if is_group else value
    return members
