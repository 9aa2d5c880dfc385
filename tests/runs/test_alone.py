"""Only one process works on the dumps of a run; whether it is there is told soundly."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

import swathe
from swathe.catalog import Catalog
from swathe.catalog.tables import RunRow, StoreRow
from swathe.core.errors import NoSuchStoreError, OptionError
from swathe.core.host import process_space, this_host


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        for name in ("near", "far"):
            catalog.add_store(name, str(tmp_path / name), "local")
    with swathe.run("app", 1) as run:
        array = run.array("a", (2, 3), location="near")
        for iteration in (0, 1):
            array.write(iteration, np.ones((2, 3), "f4"))


def test_two_do_not_work_on_a_run_at_once() -> None:
    with Catalog.open() as catalog, catalog.hold_run(catalog.run("app"), "move"):
        for work in (
            lambda: swathe.runs.move("app", "far"),
            lambda: swathe.runs.remove("app"),
            lambda: swathe.runs.drain("app"),
        ):
            with pytest.raises(OptionError, match=rf"app@1: process {os.getpid()} of .*\(move\)"):
                work()
    assert swathe.runs.move("app", "far").dumps == 2


def test_force_begins_although_another_has_not_ended() -> None:
    with Catalog.open() as catalog, catalog.hold_run(catalog.run("app"), "move"):
        assert swathe.runs.move("app", "far", force=True).dumps == 2
    assert swathe.runs.remove("app")["objects"] > 0


@pytest.mark.parametrize(
    ("space", "is_there"),
    [(process_space(), False), ("another-boot pid:[1]", False), (None, True), ("", False)],
)
def test_who_has_ended_is_known(space: str | None, is_there: bool) -> None:
    """A process that is gone here; one before the last boot; one in another namespace."""
    boot = process_space().partition(" ")[0]
    holder = {"host": this_host(), "space": f"{boot} pid:[1]" if space is None else space}
    with Catalog.open() as catalog:
        run = catalog.run("app")
        with catalog._writing() as session:
            values = {
                "holder": json.dumps({**holder, "pid": 2**22 + 1, "work": "move"}),
                "state": "running",
                "pid": 2**22 + 1,
                "process_space": holder["space"],
            }
            session.execute(update(RunRow).where(RunRow.id == run.id).values(values))
        assert catalog.run("app").state == ("running" if is_there else "stopped")
        if is_there:
            with pytest.raises(OptionError, match="force"), catalog.hold_run(run, "remove"):
                pass
        else:
            with catalog.hold_run(run, "remove"):
                pass


def test_a_folder_is_entered_once() -> None:
    with Catalog.open() as catalog:
        folder = catalog.run("app").folder
        with pytest.raises(OptionError, match="the catalogue has this run, app@1"):
            catalog.begin_run("app", 1, 1, folder=folder)


def test_a_run_whose_store_is_gone_is_removed_by_force_only(tmp_path: Path) -> None:
    with swathe.run("two", 1) as run:
        for name in ("near", "far"):
            run.array(name, (2, 3), location=name).write(0, np.ones((2, 3), "f4"))
    files = [path for path in (tmp_path / "near").rglob("*") if path.is_file()]
    with Catalog.open() as catalog:
        catalog.remove_store("far")
    with pytest.raises(NoSuchStoreError, match="far"):
        swathe.runs.remove("two")
    assert all(path.exists() for path in files)
    assert swathe.runs.remove("two", force=True)["objects"] > 0
    assert [each.name for each in swathe.runs.list()] == ["app"]


def test_stores_of_unknown_kinds_and_tape_are_not_chosen(tmp_path: Path) -> None:
    with Catalog.open() as catalog:
        catalog.add_store("tape", str(tmp_path / "tape"), "tape")
        catalog.add_store("mine", str(tmp_path / "mine"), "local")
        with catalog._writing() as session:
            values = {"url": "mine://place"}
            session.execute(update(StoreRow).where(StoreRow.name == "mine").values(values))
    with swathe.run("two", 1) as run:
        run.array("a", (2, 3), location="auto").write(0, np.ones((2, 3), "f4"))
    assert swathe.open_run("two")["a"].dumps[0].store in ("near", "far")
