"""Attacks by links in stores, and with the credentials of others."""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import AccessError, ChangedError, StoreSettingsError, SwatheError
from swathe.stores.listing import ListedObject, UnlistedObject, list_objects
from tests.support.attacked_portal import AttackTarget, attacked
from tests.support.portals import finished, submitted
from tests.support.scripted_servers import Handler, serving

INSIDE, OUTSIDE = 7, 99
"""What each pixel of the images inside and outside of the store is."""
BOX = (0, 0, 5, 5)


def image(value: int) -> bytes:
    """Return a small image of one value."""
    written = io.BytesIO()
    fits.PrimaryHDU(np.full((40, 50), value, np.int16)).writeto(written)
    return written.getvalue()


def swap(path: Path, target: Path) -> None:
    """Put a link in the place of a file, in one step."""
    new = path.with_name(f"{path.name}.new")
    new.symlink_to(target)
    new.replace(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of the store `survey`, beside folders with an image each."""
    for name, value in (("survey", INSIDE), ("more", INSIDE), ("outside", OUTSIDE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.fits").write_bytes(image(value))
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    add_store("survey", tmp_path / "survey")
    return tmp_path / "survey"


def add_store(name: str, root: Path | str, **options: str) -> None:
    with Catalog.open() as catalog:
        catalog.add_store(name, str(root), options=options)


# ---- Links (M3)


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTarget]:
    with attacked(tmp_path_factory.mktemp("store")) as running:
        yield running


def test_a_link_that_comes_after_the_job_leads_nowhere(portal: AttackTarget) -> None:
    survey, secret = portal.served.folder / "survey", portal.served.folder / "outside/real.fits"
    secret.write_bytes(image(OUTSIDE))
    race = survey / "race.fits"
    race.write_bytes(image(INSIDE))
    targets = {"file": ["survey:race.fits"], "x0": [0], "y0": [0], "height": [5], "width": [5]}
    with portal.client("ann") as client:
        client.base_url = client.base_url.join("/api")
        job = submitted(client, targets, start=False)["id"]
        swap(race, secret)
        assert client.post(f"/jobs/{job}/start").status_code == 200
        ended = finished(client, job)
        rows = client.get(f"/jobs/{job}/rows").json()["rows"]
    assert [row["status"] for row in rows] == ["error"], (ended, rows)
    assert "leads out of the store survey" in rows[0]["reason"]
    assert str(portal.served.folder) not in rows[0]["reason"]


def test_links_lead_only_to_folders_that_the_store_names(store: Path) -> None:
    more, outside = store.parent / "more", store.parent / "outside"
    for name, target in {
        "near.fits": Path("a.fits"),
        "absolute.fits": store / "a.fits",
        "more.fits": more / "a.fits",
        "out.fits": outside / "a.fits",
    }.items():
        (store / name).symlink_to(target)
    (store / "folder").symlink_to(outside)
    add_store("wide", store, roots=f"{more}:{more}/")
    for name in ("survey:near.fits", "survey:absolute.fits", "wide:more.fits"):
        assert (swathe.cut(name, box=BOX).data == INSIDE).all(), name
    refused = ("survey:more.fits", "survey:out.fits", "wide:out.fits", "survey:folder/a.fits")
    for name in (*refused, "survey:../outside/a.fits"):
        with pytest.raises(AccessError, match=r"leads out of the store \w+: further folders"):
            swathe.cut(name, box=BOX)
    # A path that the user types leads where it leads.
    assert (swathe.cut(store / "out.fits", box=BOX).data == OUTSIDE).all()


def test_who_swaps_a_file_and_a_link_gains_no_pixels(store: Path) -> None:
    done = threading.Event()
    race, outside = store / "race.fits", store.parent / "outside/a.fits"
    shutil.copy(store / "a.fits", race)

    def attack() -> None:
        while not done.is_set():
            swap(race, outside)
            new = store / "race.again"
            os.link(store / "a.fits", new)
            new.replace(race)

    attacker = threading.Thread(target=attack)
    attacker.start()
    values, refusals = set(), 0
    try:
        for _ in range(300):
            try:
                values |= set(np.unique(swathe.cut("survey:race.fits", box=BOX).data).tolist())
            except (AccessError, ChangedError):
                refusals += 1
    finally:
        done.set()
        attacker.join()
    assert values == {INSIDE}, refusals


def test_links_that_lead_out_are_not_listed(store: Path) -> None:
    (store / "out.fits").symlink_to(store.parent / "outside/a.fits")
    (store / "near.fits").symlink_to("a.fits")
    (store / "folder").symlink_to(store.parent / "outside")
    with Catalog.open() as catalog:
        survey = catalog.store("survey")
    found = list(list_objects(survey, "", None))
    assert {each.path for each in found if isinstance(each, ListedObject)} == {
        "a.fits",
        "near.fits",
    }
    reasons = {each.path: each.reason for each in found if isinstance(each, UnlistedObject)}
    assert reasons == dict.fromkeys(("out.fits", "folder"), "a link that leads out of its store")
    with pytest.raises(AccessError, match="leads out of its store"):
        list(list_objects(survey, "folder", None))


@pytest.mark.parametrize("roots", ["", "relative", "/nowhere/at/all", "/tmp:", "/tmp\n"])
def test_roots_are_folders_that_exist(store: Path, roots: str) -> None:
    with pytest.raises(StoreSettingsError, match="the option roots"):
        add_store("wide", store, roots=roots)


def test_roots_are_of_folders_alone(store: Path) -> None:
    with pytest.raises(StoreSettingsError, match="that are local folders"):
        add_store("far", "https://archive.example/data", roots=str(store))


# ---- Where stores lie (L2)


@pytest.mark.parametrize("path", ["", ".", "./", "/", "./.", "sub", "sub/", "none.fits", "\u00a0"])
def test_no_spelling_tells_where_a_store_lies(portal: AttackTarget, path: str) -> None:
    (portal.served.folder / "survey/sub").mkdir(exist_ok=True)
    file = f"survey:{path}"
    targets: dict[str, Any] = {"file": [file], "x0": [0], "y0": [0], "height": [5], "width": [5]}
    with portal.client("ann") as client:
        answer = client.post("/api/jobs", json={"targets": targets})
        said = answer.text
        if answer.is_success:
            client.base_url = client.base_url.join("/api")
            finished(client, answer.json()["id"])
            said += client.get(f"/jobs/{answer.json()['id']}/rows").text
    assert str(portal.served.folder) not in said


@pytest.mark.parametrize("name", ["survey:.", "survey:", "survey:./", "survey:none.fits"])
def test_errors_call_stores_by_name(store: Path, name: str) -> None:
    from swathe.stores.registry import with_store_names

    with pytest.raises(SwatheError) as raised:
        swathe.open(name)
    assert str(store) not in with_store_names(str(raised.value))
    assert with_store_names(f"{store}-2/a.fits") == f"{store}-2/a.fits"


# ---- Credentials of others


class Guarded(Handler):
    """Gives an image to those who send the good token."""

    protocol_version = "HTTP/1.1"
    content = image(INSIDE)

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Bearer good":
            self.answer(403)
            return
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = self.content[first : last + 1]
        told = f"bytes {first}-{first + len(part) - 1}/{len(self.content)}"
        self.answer(206, part, {"Content-Range": told, "ETag": '"1"'})


def test_what_one_may_read_is_not_given_to_another(store: Path) -> None:
    with serving(Guarded) as url:
        for name, token in (("ann", "good"), ("bob", "bad")):
            file = store.parent / name
            file.write_text(token)
            add_store(f"of-{name}", url, token_file=str(file))
        for _ in range(2):
            assert (swathe.cut("of-ann:a.fits", box=BOX).data == INSIDE).all()
            with pytest.raises(AccessError, match="403"):
                swathe.cut("of-bob:a.fits", box=BOX)
