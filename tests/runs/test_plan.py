"""Plans of runs: AUTO by purpose, limits of time and room; reasons; the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.catalog.records.staging import StageOutcome
from swathe.cli.app import app
from swathe.core.errors import LimitError, NoSuchStoreError, OptionError
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.planning.store_rate import StoreRate
from tests.runs.test_prediction import NO_COSTS

ROOMS: dict[str, int | None] = {}


def costs(bytes_per_s: float) -> Costs:
    """Return costs of a store by its rate alone."""
    points = ((1000, 1000 / bytes_per_s), (10_000, 10_000 / bytes_per_s))
    return Costs(0.0, 0.0, points, 1e12, NO_LIMIT, 1)


RATES = {
    "disk": StoreRate(costs(1e3), 0.1, costs(2e3), host=NO_COSTS),
    "lab": StoreRate(costs(5e2), 0.1, costs(5e2), host=NO_COSTS),
    "vault": StoreRate(costs(2e3), 0.1, costs(1e2), host=NO_COSTS),
}
"""The vault is written fastest, and read slowest."""


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three folders as stores whose room and costs are given; the folder above them."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        for name, tier in (("disk", "local"), ("lab", "lan"), ("vault", "local")):
            catalog.add_store(name, str(tmp_path / name), tier)
    ROOMS.update(disk=100_000, lab=100_000, vault=None)
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room",
        lambda store: StoreRoom(store.name, store.tier, ROOMS[store.name]),
    )
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._rate", lambda _catalog, store, _host: RATES[store.name]
    )
    yield tmp_path


def run_of(**arrays: dict[str, Any]) -> dict[str, Any]:
    """Return a run with 10 dumps of 1000 bytes of each array."""
    every = {
        name: {"shape": [1000], "dtype": "u1", "location": "auto", **array}
        for name, array in arrays.items()
    }
    return {"name": "app", "iterations": 9, "arrays": every}


def stores_of(plan: Any) -> dict[str, tuple[str, ...]]:
    return {name: array.location for name, array in plan.settings.arrays.items()}


def test_the_purpose_decides() -> None:
    plan = swathe.runs.plan(
        run_of(
            plain={},
            pictures={"purpose": "visualise"},
            kept={"purpose": "archive"},
            restart={"purpose": "checkpoint", "mode": "overwrite"},
            often={"purpose": "archive", "reads": 50},
            never={"purpose": "visualise", "reads": 0},
            off={"location": "disable"},
        )
    )
    assert stores_of(plan) == {
        "plain": ("vault",), "pictures": ("disk",), "kept": ("disk",), "restart": ("vault",),
        "often": ("disk",), "never": ("vault",), "off": ("disable",),
    }  # fmt: skip
    # archive: disk 10 + 0.1 * 5, vault 5 + 0.1 * 100. In the vault 4 of the 5 s of writing take no
    # time of their own: the metadata of `restart` are written there meanwhile.
    assert "kept" in plan.reasons and plan.is_exact
    assert plan.reasons["kept"] == (
        "disk (writing 10 s + 1 x reading 5 s x weight 0.1 = 10.5 s): the least cost of 3 stores; "
        "next best vault (writing 5 s + 1 x reading 1 min 40 s x weight 0.1 - 4 s beside the other "
        "arrays = 11 s)"
    )


def test_what_is_read_counts_with_the_time_of_staging(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"a": {"location": ["auto", "vault", "lab"], "reads": 0.01}}
    assert stores_of(swathe.runs.plan(run_of(**arrays)))["a"] == ("vault",)
    # 10 objects of 1000 bytes came in 3000 s: each reading takes as long.
    tape = replace(RATES["vault"], stage_outcomes=(StageOutcome(10, 10_000, 1, 100.0, 3000.0),))
    monkeypatch.setitem(RATES, "vault", tape)
    assert stores_of(swathe.runs.plan(run_of(**arrays)))["a"] == ("lab",)
    arrays["a"] |= {"read_within_s": 1000, "location": ["auto", "vault"]}
    with pytest.raises(LimitError, match=r"read_within_s: .* least possible is .* on vault"):
        swathe.runs.plan(run_of(**arrays))


def test_dumps_that_come_by_a_near_store_cost_the_longer_of_writing_and_copying() -> None:
    """The near store takes 1 s a dump, the vault 0.5 s for a copy, and the lab 2 s."""
    near = {"via": "disk", "location": ["auto", "vault", "lab"], "reads": 0.1}
    plan = swathe.runs.plan(run_of(a=near))
    assert stores_of(plan)["a"] == ("vault",)
    assert plan.reasons["a"].startswith("vault (writing 10.5 s + 0.1 x reading 1 min 40 s")
    assert plan.prediction.seconds == pytest.approx(10.5)
    # Copies that are left for later cost nothing: what is read fast is better.
    assert stores_of(swathe.runs.plan(run_of(a={**near, "drain": "later"})))["a"] == ("lab",)
    # Nothing is copied to where it is.
    plan = swathe.runs.plan(run_of(a={"via": "disk", "location": ["auto", "vault", "disk"]}))
    assert stores_of(plan)["a"] == ("disk",) and plan.prediction.seconds == pytest.approx(10)
    with pytest.raises(NoSuchStoreError, match=r"arrays.a.via: expected a store .* found 'tmp'"):
        swathe.runs.plan(run_of(a={"via": "tmp"}))


def test_only_allowed_stores_are_chosen_from() -> None:
    plan = swathe.runs.plan(
        run_of(
            a={"location": ["auto", "disk", "lab"]},
            b={"location": ["AUTO", "remotedisk"]},
            c={"location": "vault"},
        )
    )
    assert stores_of(plan) == {"a": ("disk",), "b": ("lab",), "c": ("vault",)}
    assert plan.reasons["c"] == "vault, as its location says: vault"
    with pytest.raises(NoSuchStoreError, match=r"arrays.a.location: .*'nowhere'"):
        swathe.runs.plan(run_of(a={"location": ["auto", "nowhere"]}))


def test_a_store_that_was_not_measured_counts_with_its_upper_bound(
    stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may refuse to be written to."""
    monkeypatch.setitem(RATES, "vault", replace(RATES["vault"], spread=None))
    plan = swathe.runs.plan(
        run_of(a={"location": ["auto", "disk", "vault"]}, b={"location": ["auto", "vault"]})
    )
    assert stores_of(plan) == {"a": ("disk",), "b": ("vault",)}
    assert plan.reasons["a"].endswith(
        "next best vault (writing 5 s + 45 s as writing was not measured = 50 s)"
    )
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path).name != "disk")
    (stores / "disk").mkdir()
    assert stores_of(swathe.runs.plan(run_of(a={}))) == {"a": ("lab",)}


def test_room_is_shared_by_what_is_worth_most() -> None:
    ROOMS["disk"] = 10_000
    plan = swathe.runs.plan(
        run_of(few={"purpose": "analyse", "reads": 1}, many={"purpose": "analyse", "reads": 9})
    )
    assert stores_of(plan) == {"few": ("lab",), "many": ("disk",)}
    assert "not disk" in plan.reasons["few"] and "no room beside" in plan.reasons["few"]
    ROOMS["disk"], ROOMS["lab"], ROOMS["vault"] = 4000, 4000, 4000
    plan = swathe.runs.plan(run_of(a={}))
    assert stores_of(plan) == {"a": ("vault", "disk", "lab")}
    assert plan.prediction.bytes_by_store == {"vault": 4000, "disk": 4000, "lab": 2000}
    assert "no store has room for all" in plan.reasons["a"]
    ROOMS["vault"] = 1000
    with pytest.raises(LimitError, match=r"arrays a: expected room for 9.766 KiB, found disk"):
        swathe.runs.plan(run_of(a={}))


def test_limits_are_met_or_the_least_possible_is_named() -> None:
    assert stores_of(swathe.runs.plan(run_of(a={"read_within_s": 60}))) == {"a": ("disk",)}
    assert stores_of(swathe.runs.plan(run_of(a={"within_s": 5.1, "purpose": "analyse"}))) == {
        "a": ("vault",)
    }
    with pytest.raises(LimitError, match=r"arrays.a.read_within_s: .*is 5 s, on disk"):
        swathe.runs.plan(run_of(a={"read_within_s": 1}))
    with pytest.raises(LimitError, match=r"arrays.a.within_s: .*at most 1 s.*is 5 s, on vault"):
        swathe.runs.plan(run_of(a={"within_s": 1}))
    ROOMS["disk"] = 19_000
    limits = {"read_within_s": 6}
    with pytest.raises(LimitError, match=r"with room for all arrays is 20 s, on lab"):
        swathe.runs.plan(run_of(a=limits, b=limits))


def test_a_deadline_counts_all_that_is_written_and_computed() -> None:
    fixed, read = {"location": "disk"}, {"purpose": "visualise"}
    assert stores_of(swathe.runs.plan(run_of(a=read, b=fixed), within_s=20.1)) == {
        "a": ("disk",), "b": ("disk",),
    }  # fmt: skip
    plan = swathe.runs.plan(run_of(a=read, b=fixed), within_s=19)
    assert stores_of(plan)["a"] == ("vault",) and plan.prediction.seconds == pytest.approx(15)
    with pytest.raises(LimitError, match=r"the run: .*within 14 s, .* the least .* is 15 s"):
        swathe.runs.plan(run_of(a=read, b=fixed), within_s=14)
    with pytest.raises(LimitError, match="found 10 s for arrays whose stores are given"):
        swathe.runs.plan(run_of(b=fixed), within_s=9)
    with pytest.raises(LimitError, match="computing alone takes 20 s"):
        swathe.runs.plan({**run_of(a={}), "compute_s": 2.0}, within_s=19)
    assert swathe.runs.plan({**run_of(a={}), "compute_s": 2.0}).prediction.wall_s == 20


def test_a_run_chooses_as_the_plan_does(tmp_path: Path) -> None:
    ROOMS["disk"] = 10_000
    file = tmp_path / "run.toml"
    file.write_text(
        'name = "app"\niterations = 9\n'
        '[arrays.few]\nshape = [1000]\ndtype = "u1"\nlocation = "auto"\npurpose = "analyse"\n'
        '[arrays.many]\nshape = [1000]\ndtype = "u1"\nlocation = "auto"\npurpose = "analyse"\n'
        "reads = 9\n"
    )
    with swathe.run("app", iterations=9, purpose_file=file) as run:
        few = run.array("few", (1000,), "u1")
        many = run.array("many", (1000,), "u1")
        few.write(0, np.ones(1000, "u1"))
        many.write(0, np.ones(1000, "u1"))
    later = swathe.open_run("app")
    assert [later[name].dumps[0].store for name in ("few", "many")] == ["lab", "disk"]
    ROOMS["disk"] = 10_000
    with swathe.run("app", iterations=9) as run:  # array by array, the first takes the disk
        for name in ("few", "many"):
            array = run.array(
                name, (1000,), "u1", location="auto", purpose="analyse", reads=1, within_s=21
            )
            array.write(0, np.ones(1000, "u1"))
    later = swathe.open_run("app")
    assert [later[name].dumps[0].store for name in ("few", "many")] == ["disk", "lab"]


def test_the_planned_file_gives_the_same_stores(tmp_path: Path) -> None:
    ROOMS["disk"] = ROOMS["lab"] = ROOMS["vault"] = 19_000
    run = run_of(a={"purpose": "analyse", "reads": 2}, b={"every": 3}, **{"c.d": {"dims": ["x"]}})
    plan = swathe.runs.plan({**run, "compute_s": 0.5, "ranks": 4})
    file = tmp_path / "planned.toml"
    file.write_text(plan.toml())
    again = swathe.runs.plan(file)
    assert again.settings == plan.settings
    assert again.prediction.seconds == pytest.approx(plan.prediction.seconds)
    assert Placement("vault", 0, 10).store in plan.prediction.bytes_by_store


def test_errors_of_a_file_name_it(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    for location, error in (("nowhere", NoSuchStoreError), ("remotetape", OptionError)):
        file.write_text(
            f'name = "app"\niterations = 1\n[arrays.a]\nshape = [2]\nlocation = "{location}"\n'
        )
        if location == "remotetape":
            with Catalog.open() as catalog:
                catalog.remove_store("vault")
        with pytest.raises(error, match=rf"run.toml: arrays.a.location: .*{location}"):
            swathe.runs.predict(file)


def test_the_command_plans(tmp_path: Path) -> None:
    file, planned = tmp_path / "run.toml", tmp_path / "planned.toml"
    file.write_text(
        'name = "app"\niterations = 9\ncompute_s = 1\n'
        '[arrays.a]\nshape = [1000]\ndtype = "u1"\nlocation = "auto"\npurpose = "visualise"\n'
    )
    runner = CliRunner()
    words = ["run", "plan", str(file), "--within", "2h", "--explain"]
    result = runner.invoke(app, [*words, "-o", str(planned)])
    assert result.exit_code == 0, result.output
    assert "a: disk (writing 10 s + 1 x reading 5 s x weight 3 = 25 s)" in result.output
    assert "with 10 s of computing: 10 s" in result.output
    assert 'location = ["disk"]' in planned.read_text()
    facts = json.loads(runner.invoke(app, [*words, "--json"]).stdout)
    assert facts["is_exact"] and facts["bytes_by_store"] == {"disk": 10_000}
    assert set(facts["reasons"]) == {"a"} and round(facts["wall_s"]) == 10
    late = runner.invoke(app, ["run", "plan", str(file), "--within", "3s"])
    assert isinstance(late.exception, LimitError)
