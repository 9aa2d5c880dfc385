"""`/vo/registry`: the records of the archive and of its datasets for registries.

They are VOResource 1.1 with VODataService 1.2: a vs:CatalogService with the capabilities of the
services, and a vs:DataCollection for each dataset. A registry takes them from here, or a person
uploads them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree

from mocpy import MOC
from starlette.responses import Response

from swathe.core.errors import DatasetError
from swathe.portal.vo.discovery.vosi import STANDARDS, VERSIONS, XML
from swathe.portal.vo.errors import usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request

    from swathe.catalog import Dataset, DatasetSummary
    from swathe.portal.observatory_settings import ObservatorySettings
    from swathe.portal.vo.service import Service

RI = "http://www.ivoa.net/xml/RegistryInterface/v1.0"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
NAMESPACES = {
    "ri": RI,
    "vr": "http://www.ivoa.net/xml/VOResource/v1.0",
    "vs": "http://www.ivoa.net/xml/VODataService/v1.1",
    "xsi": XSI,
}
SERVICES = "portal/images"
"""Path of the identifier of the services. No dataset has it: their names have no slash."""
MOC_ORDER = 6
"""HEALPix order of coverage in a record: VODataService asks for one degree."""
LONGEST_MOC = 30_000
"""Characters of the coverage in a record; one that is longer has larger cells."""
PLANCK_TIMES_LIGHT = 1.986445857e-25
"""Joule metres: energy of a photon times its wavelength."""
MOC_STANDARD = "ivo://ivoa.net/std/moc"


async def record(service: Service, request: Request) -> Response:
    """Return the record of the archive's services."""
    content = await service.workers.run(lambda: _services(service, request))
    return Response(content, 200, media_type=XML)


async def dataset_record(service: Service, request: Request) -> Response:
    """Return the record of a dataset."""
    name = request.path_params["dataset"]
    content = await service.workers.run(lambda: _collection(service, request, name))
    return Response(content, 200, media_type=XML)


def _services(service: Service, request: Request) -> bytes:
    settings = _settings(service)
    datasets = _own_datasets(request)
    root = _resource(
        service,
        request,
        kind="vs:CatalogService",
        title=settings.title,
        path=SERVICES,
        description=settings.description,
        times=[each.added_at for each, _ in datasets],
        updates=[each.synced_at or each.added_at for each, _ in datasets],
    )
    if settings.rights:
        _add(root, "rights", settings.rights)
    for standard, path in STANDARDS:
        capability = _add(root, "capability", standardID=standard)
        version = {"version": VERSIONS[standard]} if standard in VERSIONS else {}
        interface = _add(capability, "interface", role="std", **version)
        interface.set(f"{{{XSI}}}type", "vs:ParamHTTP")
        use = "full" if path in ("capabilities", "availability", "examples") else "base"
        _add(interface, "accessURL", service.url(request, path), use=use)
    page = _add(_add(root, "capability"), "interface")
    page.set(f"{{{XSI}}}type", "vr:WebBrowser")
    _add(page, "accessURL", f"{service.portal.url(request)}/", use="full")
    coverage = _add(root, "coverage")
    _add_coverage(coverage, _moc(service, [each.name for each, _ in datasets]))
    _add_spans(coverage, [summary for _, summary in datasets])
    return _document(root)


def _collection(service: Service, request: Request, name: str) -> bytes:
    settings = _settings(service)
    of_name = [each for each in _own_datasets(request) if each[0].name == name]
    if not of_name:
        raise usage(f"registry: expected the name of a dataset, found {name[:100]!r}", 404)
    ((dataset, summary),) = of_name
    images = f"{dataset.granules:,} images and arrays in {dataset.objects:,} files"
    root = _resource(
        service,
        request,
        kind="vs:DataCollection",
        title=f"{settings.title}: {name}",
        path=name,
        description=f"{images}. {settings.description}",
        times=[dataset.added_at],
        updates=[dataset.synced_at or dataset.added_at],
        served_by=settings.title,
    )
    if settings.rights:
        _add(root, "rights", settings.rights)
    coverage = _add(root, "coverage")
    _add_coverage(coverage, _moc(service, [name]))
    _add_spans(coverage, [summary])
    if summary.images_on_sky:
        url = f"{service.portal.url(request)}/api/datasets/{quote(name)}/moc"
        _add(coverage, "footprint", url, **{"ivo-id": MOC_STANDARD})
    _add(root, "accessURL", f"{service.portal.url(request)}/datasets/{quote(name)}", use="full")
    return _document(root)


def _settings(service: Service) -> ObservatorySettings:
    """Return the settings of the record.

    Raises:
        VoError: If some are missing that VOResource demands.
    """
    settings = service.portal.config.vo
    if missing := settings.missing_keys:
        raise usage(
            f"registry: expected {', '.join(missing)} in the settings of the portal, found none; "
            "a record needs them",
            404,
        )
    return settings


def _own_datasets(request: Request) -> list[tuple[Dataset, DatasetSummary]]:
    """Return the datasets of the operator; those that users fill are not published."""
    holdings = request.app.state.holdings.all()
    return [(each.dataset, each.summary) for each in holdings if each.dataset.owner is None]


def _resource(
    service: Service,
    request: Request,
    *,
    kind: str,
    title: str,
    path: str,
    description: str,
    times: Sequence[datetime],
    updates: Sequence[datetime],
    served_by: str | None = None,
) -> ElementTree.Element:
    """Return the root of a record with what all resources have, in the order of VOResource."""
    settings = service.portal.config.vo
    now = datetime.now(UTC)
    root = ElementTree.Element(
        f"{{{RI}}}Resource",
        {
            f"{{{XSI}}}type": kind,
            "created": _time_text(min(times, default=now)),
            "updated": _time_text(max(updates, default=now)),
            "status": "active",
            "version": "1.1",
        },
    )
    # Attributes name these types, which ElementTree cannot know.
    root.set("xmlns:vr", NAMESPACES["vr"])
    root.set("xmlns:vs", NAMESPACES["vs"])
    _add(root, "title", title)
    if settings.short_name:
        _add(root, "shortName", settings.short_name)
    _add(root, "identifier", f"ivo://{settings.authority}/{path}")
    curation = _add(root, "curation")
    _add(curation, "publisher", settings.publisher)
    for name in settings.creators:
        _add(_add(curation, "creator"), "name", name)
    contact = _add(curation, "contact")
    _add(contact, "name", settings.contact)
    if settings.contact_email:
        _add(contact, "email", settings.contact_email)
    content = _add(root, "content")
    for subject in settings.subjects:
        _add(content, "subject", subject)
    _add(content, "description", description)
    _add(content, "referenceURL", settings.reference_url or f"{service.portal.url(request)}/")
    _add(content, "type", "Archive" if served_by is None else "Survey")
    _add(content, "contentLevel", "Research")
    if served_by is not None:
        relationship = _add(content, "relationship")
        _add(relationship, "relationshipType", "IsServedBy")
        services = {"ivo-id": f"ivo://{settings.authority}/{SERVICES}"}
        _add(relationship, "relatedResource", served_by, **services)
    return root


def _moc(service: Service, names: Iterable[str]) -> MOC:
    """Return the sky that datasets cover, empty if none is on the sky."""
    mocs = service.portal.mocs
    moc = MOC.new_empty(MOC_ORDER)
    for name in names:
        try:
            text = mocs.content(mocs.key(name, MOC_ORDER, "ascii")).decode()
        except DatasetError:
            continue  # it has arrays of the Earth only
        moc = moc.union(MOC.from_string(text))
    return moc


def _add_coverage(coverage: ElementTree.Element, moc: MOC) -> None:
    """Add the sky to a coverage, in cells so large that the text is short."""
    if moc.empty():
        return
    text = " ".join(moc.to_string().split())
    while len(text) > LONGEST_MOC and moc.max_order > 0:
        moc = moc.degrade_to_order(moc.max_order - 1)
        text = " ".join(moc.to_string().split())
    _add(coverage, "spatial", text)


def _add_spans(coverage: ElementTree.Element, summaries: Sequence[DatasetSummary]) -> None:
    """Add times (MJD) and energies (J) to a coverage."""
    starts = [each.t_min for each in summaries if each.t_min is not None]
    ends = [each.t_max for each in summaries if each.t_max is not None]
    if starts and ends:
        _add(coverage, "temporal", f"{min(starts):.5f} {max(ends):.5f}")
    shortest = [each.em_min for each in summaries if each.em_min]
    longest = [each.em_max for each in summaries if each.em_max]
    if shortest and longest:
        energies = [PLANCK_TIMES_LIGHT / each for each in (max(longest), min(shortest))]
        if all(math.isfinite(each) for each in energies):
            _add(coverage, "spectral", " ".join(f"{each:.4g}" for each in energies))


def _add(
    parent: ElementTree.Element, name: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    """Add an element, which VOResource has in no namespace."""
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = text or None
    return element


def _document(root: ElementTree.Element) -> bytes:
    for prefix, namespace in NAMESPACES.items():
        if prefix in ("ri", "xsi"):
            ElementTree.register_namespace(prefix, namespace)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return content + b"\n"


def _time_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
