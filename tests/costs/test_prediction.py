"""Predictions against what was really asked of servers and files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog, Outcome, this_host
from swathe.core.errors import NoSuchStoreError, TargetsError
from swathe.costs.cost_model import Costs
from tests.support import servers
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import KINDS, command_here, contents, noise

COSTS: dict[str, Any] = {
    "connect_s": 0.0,
    "open_s": 0.0,
    "request": [[0, 0.02], [1_000_000, 0.1]],
    "total_bytes_per_s": 2e7,
    "requests_per_s": 5e3,
    "streams": 8,
}

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    return Catalog.open()


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three frames, each in all kinds."""
    folder = tmp_path_factory.mktemp("survey")
    for number in range(3):
        image = noise(number, (700, 900))
        for kind in KINDS:
            (folder / f"{number}.{kind}").write_bytes(contents(image, kind))
    return folder


def targets(files: list[str], each: int = 4) -> dict[str, list[Any]]:
    rows = [(file, 40 * turn, 90 * turn) for file in files for turn in range(each)]
    file, x0, y0 = (list(column) for column in zip(*rows, strict=True))
    return {"file": file, "x0": x0, "y0": y0, "width": [60] * len(rows), "height": [50] * len(rows)}


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_requests_of_files_are_those_made(
    kind: str, survey: Path, tmp_path: Path
) -> None:
    rows = targets([str(survey / f"{number}.{kind}") for number in range(3)])
    for turn in range(2):  # streams: without seek points, then with them
        predicted = swathe.predict(rows)
        made = swathe.cut_many(rows, tmp_path / str(turn), progress=False).meta
        assert made["predicted_s"] > 0 and made["actual_s"] > 0
        low_s, high_s = predicted.interval_s
        assert 0 < low_s < predicted.median_s < high_s
        if kind == "fit":
            assert predicted.bytes == made["bytes_moved"]
            assert predicted.requests == made["requests"]
        else:
            assert predicted.bytes == pytest.approx(made["bytes_moved"], rel=0.35)


@pytest.mark.parametrize("kind", ["fit", "fit.gz", "fit.bz2"])
def test_large_reads_of_files_are_counted_as_they_are_made(
    kind: str, survey: Path, tmp_path: Path
) -> None:
    rows = targets([str(survey / f"{number}.{kind}") for number in range(3)], each=1)
    rows |= {"width": [600] * 3, "height": [690] * 3}
    for turn in range(2):
        predicted = swathe.predict(rows)
        made = swathe.cut_many(rows, tmp_path / str(turn), progress=False).meta
        if kind == "fit":
            assert made["requests"] >= 9
            assert predicted.requests == made["requests"]
            assert predicted.bytes == made["bytes_moved"]
        else:
            assert made["requests"] >= 6
            assert predicted.requests == pytest.approx(made["requests"], rel=0.35)


@contextmanager
def web(catalog: Catalog, survey: Path, folder: Path, **costs: Any) -> Iterator[servers.FileServer]:
    """Serve the survey as the store `web`, whose costs are known."""
    (folder / "nginx").mkdir()
    with servers.nginx(folder / "nginx") as server:
        for file in survey.iterdir():
            (server.folder / file.name).write_bytes(file.read_bytes())
        catalog.add_store("web", server.url)
        known, now = {**COSTS, **costs}, datetime.now(UTC)
        catalog.put_profile(server.url, this_host(), known, {"model": 0.1}, now)
        yield server


@pytest.mark.more
@pytest.mark.parametrize("served_bytes_per_s", [None, 1e7])
def test_both_halves_have_one_model(
    served_bytes_per_s: float | None, catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    with web(
        catalog, survey, tmp_path, requests_per_s=300.0, served_bytes_per_s=served_bytes_per_s
    ):
        rows = targets(["web:0.fit"], each=12)
        plan = swathe.predict(rows).explained[0]["plans"][0]
        kept = catalog.profile(catalog.store("web").key, this_host())
    assert kept is not None
    load = plan["load"]
    assert load["requests"] > 1
    seconds = Costs.from_dict(kept.costs).read_s(
        load["bytes"], load["requests"], plan["streams"], load["largest"]
    )
    assert plan["read_s"] == pytest.approx(float(seconds))


@pytest.mark.more
def test_a_server_on_this_machine_works_once_it_was_asked(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    costs = {"request": [(0, 0.05), (1_000_000, 0.06)], "requests_per_s": 10.0}
    with web(catalog, survey, tmp_path, **costs):
        rows = targets(["web:0.fit", "web:1.fit"])
        swathe.predict(rows)  # headers
        predicted = swathe.predict(rows)
    assert predicted.requests / 10 + 0.05 < predicted.median_s < predicted.requests / 10 + 0.1


@pytest.mark.more
def test_no_pixel_is_read_and_headers_are_read_once(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    # With more streams, how a read is split depends on which threads are at work just then.
    with web(catalog, survey, tmp_path, streams=1) as server:
        rows = targets([f"web:{number}.fit" for number in range(3)])
        first = swathe.predict(rows)
        asked = server.requests()
        assert len(asked) == 3
        assert all(request.range.startswith("bytes=0-") for request in asked)
        assert first.per_store[server.url].headers_read == 3
        again = swathe.predict(rows)
        assert server.requests() == []
        assert again.per_store[server.url].headers_read == 0
        assert again.per_store[server.url].measured
        made = swathe.cut_many(rows, tmp_path / "out", progress=False).meta
        asked = server.requests()
        assert again.requests == len(asked) == made["requests"]
        assert again.bytes == sum(request.bytes for request in asked) == made["bytes_moved"]
    (kept,) = catalog.outcomes()
    assert (kept.targets, kept.root) == (12, server.url)
    assert (kept.predicted_bytes, kept.actual_bytes) == (again.bytes, again.bytes)
    assert kept.predicted_s == pytest.approx(made["predicted_s"], rel=1e-3)


def test_only_what_was_cut_is_compared(catalog: Catalog, survey: Path, tmp_path: Path) -> None:
    rows = targets([str(survey / "0.fit")])
    first = swathe.cut_many(rows, tmp_path / "out", progress=False).meta
    again = swathe.cut_many(rows, tmp_path / "out", progress=False, resume=True).meta
    assert (first["done_before"], again["done_before"], again["ok"]) == (0, 4, 4)
    more = targets([str(survey / f"{number}.fit") for number in range(2)])
    assert swathe.cut_many(more, tmp_path / "out", progress=False, resume=True).meta["ok"] == 8
    assert [each.targets for each in catalog.outcomes()] == [4, 4]


@pytest.mark.parametrize("kind", ["fit", "fit.fz", "fit.gz"])
@pytest.mark.parametrize("streams", [1, 6])
def test_dates_that_are_asked_for_alone_are_counted(
    kind: str, streams: int, catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    (tmp_path / "xrootd").mkdir()
    shutil.copy(survey / f"0.{kind}", tmp_path / "xrootd")
    with servers.xrootd(tmp_path / "xrootd") as door:
        catalog.add_store("door", door.url)
        known, now = {**COSTS, "streams": streams}, datetime.now(UTC)
        catalog.put_profile(door.url, this_host(), known, {"model": 0.1}, now)
        rows = targets([f"door:0.{kind}"])
        # Tables of tiles, seek points: what a first cut learns.
        swathe.cut_many(rows, tmp_path / "first", progress=False)
        predicted = swathe.predict(rows)
        made = swathe.cut_many(rows, tmp_path / "again", progress=False).meta
    assert predicted.requests == made["requests"]
    # How long tiles are stands in the table, which is read.
    assert predicted.bytes == pytest.approx(made["bytes_moved"], rel=0.01)
    plans = [plan["load"] for how in predicted.explained for plan in how["plans"]]
    # One for each round, of four requests at least.
    rounds = sum(-(-load["requests"] // max(streams, 4)) for load in plans)
    assert predicted.requests == sum(load["requests"] for load in plans) + rounds


@pytest.mark.more
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_here_is_not_asked_for(
    kind: str, catalog: Catalog, survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nginx").mkdir()
    with servers.nginx(tmp_path / "nginx") as server:
        for number in range(3):
            file = survey / f"{number}.{kind}"
            (server.folder / file.name).write_bytes(file.read_bytes())
        table = tmp_path / "targets.csv"
        lines = [f"{server.url}/{n}.{kind},{60 * n},90,60,50\n" for n in range(3)]
        table.write_text("file,x0,y0,width,height\n" + "".join(lines))
        monkeypatch.setenv("SWATHE_CACHE_BYTES", "100000000")
        monkeypatch.setenv("SWATHE_CACHE_DIR", str(tmp_path / "blocks"))

        def told(*words: str) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(
                command_here(*words, "--targets", str(table), "--json").stdout
            )
            return found

        assert told("cut", "-o", str(tmp_path / "out"))["requests"] > 0
        server.requests()
        found = told("predict")
        assert server.requests() == []
        assert (found["bytes"], found["requests"]) == (0, 0)
        again = told("cut", "-o", str(tmp_path / "again"))
        assert (again["bytes_moved"], again["requests"]) == (0, 0)


@pytest.mark.more
def test_the_plan_is_told_beside_what_was_not_chosen(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    with web(catalog, survey, tmp_path):
        for kind in ("fit", "fit.fz"):
            (how,) = swathe.predict(targets([f"web:0.{kind}"])).explained
            assert how["at_once"] == 1
            ways = {other["how"]: other for other in how["instead"]}
            assert set(ways) == {"each piece", "whole object"}
            size = (survey / f"0.{kind}").stat().st_size
            assert ways["whole object"]["load"] == {
                "requests": 1,
                "ranges": 1,
                "bytes": size,
                "largest": size,
                "multiplexed": False,
            }
            asked = sum(plan["load"]["requests"] for plan in how["plans"])
            assert ways["each piece"]["load"]["requests"] > asked
            seconds = sum(plan["read_s"] for plan in how["plans"])
            assert all(seconds <= other["read_s"] for other in ways.values())
        gzip = targets(["web:0.fit.gz"])
        (how,) = swathe.predict(gzip).explained
        assert (how["method"], how["instead"]) == ("decompressed once", [])
        swathe.cut_many(gzip, tmp_path / "out", progress=False)
        (how,) = swathe.predict(gzip).explained
        (whole,) = how["instead"]
        assert (how["method"], whole["how"]) == ("from seek points", "decompressed once")
        assert whole["load"]["bytes"] == (survey / "0.fit.gz").stat().st_size
        assert whole["read_s"] >= how["plans"][0]["read_s"]
        table = tmp_path / "targets.csv"
        table.write_text("file,x0,y0,width,height\nweb:0.fit,5,6,70,80\nweb:1.fit,5,6,70,80\n")
        shown = command_here("predict", "--targets", str(table), "--explain").stdout
        assert "with 1/2 of the store" in shown
        assert "why: reading takes" in shown and "the whole object: 1 request, " in shown


def test_replicas_are_compared_and_mixed(catalog: Catalog, survey: Path) -> None:
    for name in ("one", "two"):
        catalog.add_store(f"here-{name}", str(survey))
    rows = targets([f"{number}.fit" for number in range(3)])
    found = swathe.predict(rows, stores=["here-one", "here-two"])
    assert set(found.per_store) == {"here-one", "here-two"}
    assert sum(found.shares.values()) == pytest.approx(1)
    alone = min(cost.median_s for cost in found.per_store.values())
    assert found.median_s - found.overhead_s <= alone * 1.0001
    with pytest.raises(NoSuchStoreError, match="other"):
        swathe.predict(rows, stores=["other"])
    with pytest.raises(TargetsError, match="is not a path in the store"):
        swathe.predict(targets(["/absolute/1.fit"]), stores=["here-one"])


def test_plain_paths_below_the_folder_of_a_store_are_compared_with_its_mirrors(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    shutil.copytree(survey, tmp_path / "copy")
    catalog.add_store("here-one", str(survey))
    catalog.add_store("here-two", str(tmp_path / "copy"))
    rows = targets([str(survey / f"{number}.fit") for number in range(3)])
    predicted = swathe.predict(rows, stores=["here-one", "here-two"])
    assert {name: cost.objects for name, cost in predicted.per_store.items()} == {
        "here-one": 3,
        "here-two": 3,
    }
    assert not predicted.faults


def test_targets_that_cannot_be_cut_cost_nothing_of_any_replica(
    catalog: Catalog, survey: Path
) -> None:
    for name in ("one", "two"):
        catalog.add_store(f"here-{name}", str(survey))
    rows = targets(["0.fit"], each=1) | {"width": [0]}
    found = swathe.predict(rows, stores=["here-one", "here-two"])
    assert (found.bytes, found.requests, found.per_store) == (0, 0, {})


def test_replicas_that_lack_what_others_have_serve_nothing(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    for name, files in {"half": ["0.fit"], "none": []}.items():
        (tmp_path / name).mkdir()
        for file in files:
            shutil.copy(survey / file, tmp_path / name)
        catalog.add_store(name, str(tmp_path / name))
    catalog.add_store("whole", str(survey))
    rows = targets([f"{number}.fit" for number in range(3)])
    sky = {"file": ["0.fit"], "ra": [10.0], "dec": [2.0], "size_deg": [0.01]}
    alone = swathe.predict(rows, stores=["whole"])
    for others in (["half"], ["none"], ["none", "half"]):
        found = swathe.predict(rows, stores=[*others, "whole"])
        assert found.shares == {"whole": 1.0} | dict.fromkeys(others, 0.0)
        assert (found.bytes, found.requests) == (alone.bytes, alone.requests)
        assert found.median_s == pytest.approx(alone.median_s)
        assert any("1.fit" in fault for fault in found.faults)
    # Places in the sky need headers before anything is known of the object.
    (fault,) = swathe.predict(sky, stores=["none"]).faults
    assert fault.startswith("target 0: ") and "0.fit" in fault
    table = tmp_path / "targets.csv"
    table.write_text("file,x0,y0,width,height\n0.fit,5,6,70,80\n1.fit,5,6,70,80\n")
    told = command_here(
        "predict", "--targets", str(table), "--store", "half", "--store", "whole"
    ).stderr
    assert "half is not used: files that another store has cannot be read from it" in told
    assert "will have no result" not in told


def test_targets_of_the_sky_in_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    none, table = tmp_path / "none.fit", tmp_path / "targets.csv"
    table.write_text(f"id,file,ra,dec,size_deg\na,{none},1,2,0.1\nb,{none},1,2,0.1\n")
    (fault,) = swathe.predict(table).faults
    assert fault.startswith("target a: ") and "none.fit" in fault
    assert fault.endswith("(and 1 more target)")
    assert fault in command_here("predict", "--targets", str(table)).stderr


def test_more_workers_take_less_time_but_share_the_store(survey: Path) -> None:
    rows = targets([str(survey / f"{number}.fit.bz2") for number in range(3)] * 5)
    one, four = (swathe.predict(rows, threads=1, machines=count) for count in (1, 3))
    assert one.median_s / 3.5 < four.median_s < one.median_s / 1.5
    assert one.bytes == four.bytes


def test_what_cannot_be_read_costs_its_opening_and_is_told(survey: Path, tmp_path: Path) -> None:
    none, table = tmp_path / "none.fit", tmp_path / "targets.csv"
    rows = targets([str(none), str(survey / "0.fit")])
    found = swathe.predict(rows)
    assert found.bytes == swathe.predict(targets([str(survey / "0.fit")])).bytes
    assert sum(cost.unreadable for cost in found.per_store.values()) == 1
    (fault,) = found.faults
    assert fault.startswith(f"{none}: ")
    table.write_text(f"file,x0,y0,width,height\n{none},5,6,70,80\n{none},9,6,70,80\n")
    told = command_here("predict", "--targets", str(table)).stderr
    assert "1 object cannot be read" in told and str(none) in told
    assert json.loads(command_here("predict", "--targets", str(table), "--json").stdout)[
        "faults"
    ] == [fault]


def test_a_batch_that_cut_nothing_says_nothing_of_predictions(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    swathe.cut_many(targets([str(tmp_path / "none.fit")]), tmp_path / "none", progress=False)
    assert catalog.outcomes() == []
    swathe.cut_many(targets([str(survey / "0.fit")]), tmp_path / "out", progress=False)
    assert len(catalog.outcomes()) == 1


def test_dropped_results_are_predicted_without_their_files(
    catalog: Catalog, survey: Path, tmp_path: Path
) -> None:
    catalog.put_compute(this_host(), {"cut_s": 1.0, "null_cut_s": 0.25}, NOON)
    given = targets([str(survey / "0.fit")])
    written = swathe.cut_many(given, tmp_path / "out", progress=False, threads=1)
    dropped = swathe.cut_many(given, "null:", progress=False, threads=1)
    # Besides there is what the store takes, as it was measured on this machine, however busy.
    assert written.meta["predicted_s"] == pytest.approx(4, abs=0.5)
    assert dropped.meta["predicted_s"] == pytest.approx(1, abs=0.5)
    into_files, into_null = sorted(catalog.outcomes(), key=lambda outcome: outcome.at)
    assert (into_files.summary, into_null.summary) == (
        "cut_many into folder, as fits",
        "cut_many into null, as fits",
    )
    assert into_null.predicted_s == pytest.approx(dropped.meta["predicted_s"], abs=1e-3)


@pytest.mark.more
def test_command(catalog: Catalog, survey: Path, tmp_path: Path) -> None:
    table = tmp_path / "targets.csv"
    table.write_text(
        "file,x0,y0,width,height\n"
        + "".join(f"{survey}/{n}.{kind},5,6,70,80\n" for n in range(3) for kind in KINDS)
    )
    found = json.loads(command_here("predict", "--targets", str(table), "--json").stdout)
    told = {"median_s", "interval_s", "bytes", "requests", "per_store", "shares", "compute_s"}
    assert set(found) == told | {"faults", "notes", "overhead_s", "staging", "write_s"}
    shown = command_here("predict", "--targets", str(table), "--explain").stdout
    assert "0.fit.gz" in shown and "requests" in shown and "decompressed once" in shown
    assert command_here("predict", "--history").stdout == "no predictions yet\n"
    cut = command_here("cut", "--targets", str(table), "-o", str(tmp_path / "out"))
    assert "predicted" in cut.stdout
    history = json.loads(command_here("predict", "--history", "--json").stdout)
    assert history["outcomes"][0]["targets"] == 12
    assert history["outcomes"][0]["summary"].startswith("cut_many into ")
    assert history["outcomes"][0]["summary"].endswith(", as fits")
    assert history["outcomes"][0]["summary"] in command_here("predict", "--history").stdout
    assert command_here("predict").returncode == 2


def test_times_that_are_noise_are_not_judged(catalog: Catalog) -> None:
    for actual_s in (0.05, 2.0):
        catalog.add_outcome(
            Outcome(
                *(datetime.now(UTC), "here", "a cut", 1, "", 1.0, 0.5, 1.5, actual_s),
                *(1, 1, 1, 1),
            )
        )
    history = json.loads(command_here("predict", "--history", "--json").stdout)
    assert history["median_error"] == 0.5
    assert (history["all"]["compared"], history["all"]["coverage"]) == (1, 0.0)
    assert [each["root"] for each in history["stores"]] == [""]
    shown = command_here("predict", "--history").stdout
    assert "Median error of 1: 50%; the 80 % interval held 0%" in shown
    assert "Without an error figure: 1 that took less than 0.1 s." in shown


def test_pixels_are_those_of_the_image(survey: Path) -> None:
    # The fixture is what the other tests take it for.
    cut = swathe.cut(survey / "1.fit.fz", box=(0, 0, 9, 9))
    np.testing.assert_array_equal(cut.data, noise(1, (700, 900))[:9, :9])


@pytest.mark.skipif(not Path(servers.NGINX).exists(), reason="needs nginx")
def test_objects_read_later_are_planned_with_the_connections_that_the_first_ones_open(
    tmp_path: Path, catalog: Catalog
) -> None:
    """It takes longer to open a connection than to read on one that is there."""
    with servers.nginx(tmp_path) as server:
        files = [f"{number}.fits" for number in range(6)]
        for number, file in enumerate(files):
            (server.folder / file).write_bytes(contents(noise(number, (700, 900)), "fit"))
        costs = {
            **COSTS,
            "connect_s": 20.0,
            "streams": 3,
            "request": [[0, 0.02], [1_000_000, 10.0]],
        }
        catalog.put_profile(server.url, this_host(), costs, {}, NOON, [])
        whole = {"file": [f"{server.url}/{file}" for file in files], "x0": [0] * 6, "y0": [0] * 6}
        table = tmp_path / "targets.json"
        table.write_text(json.dumps({**whole, "width": [900] * 6, "height": [700] * 6}))
        command = (
            "import json, swathe, sys; rows = json.load(open(sys.argv[1]));"
            "print(json.dumps(swathe.predict(rows, threads=3).explained))"
        )
        # The first process reads the headers; the second has no connection open.
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", command, str(table)],
                capture_output=True,
                text=True,
                check=True,
            )
    explained = json.loads(done.stdout)
    streams = [how["plans"][0]["streams"] for how in explained]
    assert explained[0]["at_once"] == 3
    assert streams[:3] == [1, 1, 1]
    assert streams[3:] == [2, 2, 2]
