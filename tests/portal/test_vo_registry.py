"""Records of the archive and its datasets for registries, judged by the schemas of IVOA."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import httpx
import numpy as np
import pytest
from mocpy import MOC

from swathe.catalog import Catalog
from swathe.core.errors import SettingsError
from swathe.portal.config import config_of
from swathe.portal.vo.discovery import registry
from tests.portal.test_vo_async import JAR
from tests.support.portals import RunningPortal, add_survey, database_in, served

SETTINGS = """
[vo]
authority = "archive.example"
title = "Sky & <Plates>"
short_name = "plates"
publisher = "Observatory of Ex\\u00e4mple"
contact = "Archive desk"
contact_email = "archive@archive.example"
description = "Plates of the whole sky, < 18 mag & scanned."
subjects = ["sky-surveys", "photographic-astronomy"]
creators = ["Ada Lovelace", "Observatory"]
reference_url = "https://archive.example/about"
rights = "CC BY 4.0"
"""
XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
# The schema of registries is not in STILTS. It says this of the root of a record.
RI = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    xmlns:vr="http://www.ivoa.net/xml/VOResource/v1.0" elementFormDefault="unqualified"
    targetNamespace="http://www.ivoa.net/xml/RegistryInterface/v1.0">
  <xs:import namespace="http://www.ivoa.net/xml/VOResource/v1.0" schemaLocation="{voresource}"/>
  <xs:element name="Resource" type="vr:Resource"/>
</xs:schema>
"""
IMPORT = re.compile(r'(schemaLocation=")http[^"]*/((?:stc-v1.30|xlink).xsd)')
FOLDER = "uk/ac/starlink/ttools/taplint"
SCHEMAS = {
    "http://www.ivoa.net/xml/VOResource/v1.0": "VOResource-v1.1.xsd",
    "http://www.ivoa.net/xml/VODataService/v1.1": "VODataService-v1.2.xsd",
}


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("registry")
    add_survey(folder, frames=2, targets=3)
    with Catalog.open(database_in(folder)) as catalog:
        catalog.add_dataset("nothing", "survey", "none", None)
    with closing(sqlite3.connect(folder / "portal.sqlite")) as database:
        database.execute("UPDATE granules SET em_min = 5e-7, em_max = 6e-7")
        database.commit()
    with served(folder, SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def collection(portal: RunningPortal) -> ElementTree.Element:
    return record(portal, "/survey")


def record(portal: RunningPortal, path: str = "") -> ElementTree.Element:
    answer = httpx.get(f"{portal.url}/vo/registry{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/xml; charset=utf-8")
    return ElementTree.fromstring(answer.content)


def text(element: ElementTree.Element, path: str) -> str:
    found = element.findtext(path)
    assert found is not None, path
    return found


def test_the_record_of_the_services(portal: RunningPortal) -> None:
    root = record(portal)
    assert root.get(f"{XSI}type") == "vs:CatalogService"
    assert text(root, "identifier") == "ivo://archive.example/portal/images"
    assert text(root, "title") == "Sky & <Plates>"
    assert text(root, "curation/publisher") == "Observatory of Ex\u00e4mple"
    assert text(root, "curation/contact/email") == "archive@archive.example"
    assert [each.text for each in root.iter("subject")] == ["sky-surveys", "photographic-astronomy"]
    assert text(root, "content/referenceURL") == "https://archive.example/about"
    listed = ElementTree.fromstring(httpx.get(f"{portal.url}/vo/capabilities").content)

    def services(element: ElementTree.Element) -> list[tuple[str | None, str]]:
        return [
            (each.get("standardID"), text(each, "interface/accessURL"))
            for each in element.iter("capability")
            if each.get("standardID")
        ]

    assert services(root) == services(listed)
    assert len(services(root)) >= 7


def test_the_record_of_a_dataset(portal: RunningPortal, collection: ElementTree.Element) -> None:
    assert collection.get(f"{XSI}type") == "vs:DataCollection"
    # The identifiers of its images begin with it.
    assert text(collection, "identifier") == "ivo://archive.example/survey"
    related = collection.find("content/relationship/relatedResource")
    assert related is not None
    assert related.get("ivo-id") == text(record(portal), "identifier")
    footprint = collection.find("coverage/footprint")
    assert footprint is not None and footprint.text is not None
    assert footprint.get("ivo-id") == "ivo://ivoa.net/std/moc"
    exact = httpx.get(footprint.text, params={"order": 6, "format": "ascii"}).text
    assert MOC.from_string(text(collection, "coverage/spatial")) == MOC.from_string(exact)
    start, end = map(float, text(collection, "coverage/temporal").split())
    assert 0 < start <= end
    low, high = map(float, text(collection, "coverage/spectral").split())
    # Photons of 600 and 500 nm.
    assert [low, high] == pytest.approx([3.31e-19, 3.97e-19], rel=0.01)


def test_a_dataset_without_images_has_no_coverage(portal: RunningPortal) -> None:
    coverage = record(portal, "/nothing").find("coverage")
    assert coverage is not None and not list(coverage)


@pytest.mark.parametrize("path", ["", "/survey", "/nothing"])
def test_records_are_valid(portal: RunningPortal, path: str, tmp_path: Path) -> None:
    if not JAR.exists():
        pytest.skip("the schemas are in stilts, which is not installed")
    with zipfile.ZipFile(JAR) as jar:
        for name in (*SCHEMAS.values(), "stc-v1.30.xsd", "xlink.xsd"):
            schema = jar.read(f"{FOLDER}/{name}").decode()
            # What they import, too, is read from here.
            (tmp_path / name).write_text(IMPORT.sub(rf"\1{tmp_path}/\2", schema))
    (tmp_path / "ri.xsd").write_text(RI.format(voresource=tmp_path / "VOResource-v1.1.xsd"))
    places = {uri: str(tmp_path / name) for uri, name in SCHEMAS.items()}
    places["http://www.ivoa.net/xml/RegistryInterface/v1.0"] = str(tmp_path / "ri.xsd")
    file = tmp_path / "record.xml"
    content = httpx.get(f"{portal.url}/vo/registry{path}").content

    def judged(document: bytes) -> str:
        file.write_bytes(document)
        words = [f"schemaloc={uri}={place}" for uri, place in places.items()]
        ended = subprocess.run(
            ["stilts", "xsdvalidate", "verbose=true", f"doc={file}", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return ended.stdout + ended.stderr

    told = judged(content)
    assert "ERROR" not in told and "Error" not in told and "Validation OK" in told, told
    # The judge looks at all of it.
    assert "ERROR" in judged(
        content.replace(b"<subject>", b"<subjects>").replace(b"</subject>", b"</subjects>")
    )


def test_other_datasets_have_no_record(portal: RunningPortal) -> None:
    answer = httpx.get(f"{portal.url}/vo/registry/none")
    assert (answer.status_code, answer.text) == (
        404,
        "UsageError: registry: expected the name of a dataset, found 'none'\n",
    )


def test_a_record_needs_settings(tmp_path: Path) -> None:
    with served(tmp_path, '[vo]\npublisher = "me"\n') as portal:
        answer = httpx.get(f"{portal.url}/vo/registry")
    assert answer.status_code == 404
    missing = "vo.authority, vo.contact, vo.description, vo.subjects"
    assert f"expected {missing} in the settings" in answer.text


def test_long_coverage_has_larger_cells() -> None:
    coverage = ElementTree.Element("coverage")
    # Every second cell: no two are joined.
    starts = np.arange(0, 12 * 4**6, 2, dtype=np.uint64) << np.uint64(46)
    moc = MOC.from_depth29_ranges(6, np.stack([starts, starts + np.uint64(1 << 46)], axis=1))
    registry._add_coverage(coverage, moc)
    words = text(coverage, "spatial")
    assert len(words) <= registry.LONGEST_MOC
    assert moc.difference(MOC.from_string(words)).empty()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("short_name", "more than sixteen letters", "at most 16"),
        ("publisher", "two\nlines", "printable text"),
        ("description", "x" * 4001, "printable text"),
        ("reference_url", "ftp://a", "http"),
        ("subjects", ["a\x00"], "printable text"),
    ],
)
def test_settings_are_checked(key: str, value: object, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        config_of({"vo": {key: value}})
