"""Experiments with tiny settings, on files and servers of this machine."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import psutil
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import NotFoundError, SettingsError, SourceError
from swathe.core.sample_survey import make_sample
from swathe.experiments.buffer_experiment import buffer
from swathe.experiments.clients import client_process, remote_hosts, single_client
from swathe.experiments.clients.frames_in_store import child, frames_in_store, frames_in_stores
from swathe.experiments.clients.ramp_schedule import (
    FAILED,
    OK,
    UNSENT,
    Schedule,
    SteadyClock,
    as_records,
    each_client,
    lags,
    over_time,
    peak,
    run_client,
)
from swathe.experiments.clients.region_client import read_bytes
from swathe.experiments.clients.remote_hosts import (
    PINGS,
    Clients,
    LineConnection,
    RemoteHost,
    as_array,
    between,
    correct_records,
    read_address,
)
from swathe.experiments.load_experiment import _study as load_study
from swathe.experiments.load_experiment import host_over_time, line_over_time, load, ran_out
from swathe.experiments.ramp_experiment import Host, _limits, _one, portal_paths, ramp
from swathe.experiments.region_experiment import region
from swathe.experiments.results.compare import compare, least_samples
from swathe.experiments.results.environment_record import circumstances
from swathe.experiments.results.report import keep
from swathe.experiments.results.result import Study, read_result, samples_table
from swathe.experiments.settings import (
    BufferSettings,
    LoadSettings,
    RampSettings,
    RegionSettings,
    SingleSettings,
)
from swathe.experiments.single_experiment import single
from swathe.trace.clocks import ClockEstimate
from swathe.trace.host_monitor import Point
from tests.support.browser import visiting
from tests.support.clocks import wrong_by
from tests.support.portals import add_survey, served
from tests.support.scripted_servers import Handler, serving
from tests.support.servers import free_port, nginx

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FRAMES = 3


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    make_sample(folder, FRAMES, 1, FRAMES)
    return folder


def test_single_times_every_stage_of_every_case(survey: Path, tmp_path: Path) -> None:
    settings = SingleSettings(
        stores=(str(survey),), frames=FRAMES, images=2, repeats=1, crops=(2,),
        methods=("GZ", "GUNZIP", "fz"), budget_s=60,
    )  # fmt: skip
    study = single(settings, tmp_path)
    table = study.table
    left_out = {note.split(":")[0] for note in study.notes}
    # By fsspec only what is on servers is read.
    clients = set(settings.clients) - left_out - {"astropy-fsspec"}
    assert len(table) == 3 * len(clients) * 5
    total = table[table["stage"] == "total"]
    # Of two crops of an image both count.
    assert set(total["count"]) == {4}
    for row in total:
        alike = (table["store"] == row["store"]) & (table["method"] == row["method"])
        alike &= (table["crops"] == row["crops"]) & (table["client"] == row["client"])
        parts = table[alike & (table["stage"] != "total")]
        assert parts["mean"].sum() == pytest.approx(row["mean"])
        assert 0 < row["min"] <= row["q1"] <= row["median"] <= row["q3"] <= row["max"]
    copied = table[(table["stage"] == "copy") & (table["median"] > 0.1)]
    assert set(copied["method"]) == {"GUNZIP"}
    assert set(study.figures) == {"overview", "speed-ups", "boxes", "stages"}


def test_single_leaves_out_what_a_store_has_not(survey: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    for path in survey.glob("*.fit"):
        os.link(path, part / path.name)
    settings = SingleSettings(
        stores=(str(part),), frames=FRAMES, images=1, repeats=1, crops=(1,),
        methods=("FIT", "GZ", "GUNZIP"), clients=("swathe",),
    )  # fmt: skip
    study = single(settings, tmp_path)
    assert set(study.table["method"]) == {"FIT"}
    for method in ("GZ", "GUNZIP"):
        assert any(f"{method} x1" in note and "left out" in note for note in study.notes)


def test_clients_that_know_no_stores_read_the_files_of_one(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as catalog:
        catalog.add_store("frames", str(survey))
    settings = SingleSettings(
        stores=("frames:",), frames=FRAMES, images=1, repeats=1, crops=(1,),
        methods=("FIT", "GUNZIP"), clients=("swathe", "astropy"), budget_s=60,
    )  # fmt: skip
    study = single(settings, tmp_path)
    assert study.notes == [] and set(study.table["store"]) == {"frames"}
    assert len(study.table) == 2 * 2 * 5
    # Of plain files nothing is to be copied.
    copied = study.table[(study.table["stage"] == "copy") & (study.table["median"] > 0.1)]
    assert set(copied["method"]) == {"GUNZIP"}
    assert study.sentences[0].startswith("frames, 1 crop an image")


def test_peers_cut_from_a_server_copied_or_by_fsspec(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    monkeypatch.setenv("SWATHE_DATABASE", url)
    (tmp_path / "nginx").mkdir()
    with nginx(tmp_path / "nginx") as server:
        for path in survey.iterdir():
            shutil.copy(path, server.folder)
        with Catalog.open(url) as catalog:
            catalog.add_store("far", server.url)
        settings = SingleSettings(
            stores=("far:",), frames=FRAMES, images=1, repeats=1, crops=(2,),
            methods=("FIT", "GZ", "fz"), clients=("fitsio", "astropy", "astropy-fsspec"),
            budget_s=60,
        )  # fmt: skip
        study = single(settings, tmp_path)
        box = (40, 60, 20, 10)
        client = single_client.CUTTERS["astropy-fsspec"]()
        for name in ("far:frame-000001.fit", "far:frame-000001.fit.fz"):
            image = client.read(name)
            found, _ = client.crop(image, box)
            np.testing.assert_array_equal(found, swathe.cut(name, box=box).data)
            client.close(image)
    assert study.notes == []
    total = study.table[study.table["stage"] == "total"]
    every = {(method, client) for method in settings.methods for client in settings.clients}
    cases = {(row["method"], row["client"]) for row in total}
    assert every - cases == {("GZ", "astropy-fsspec")}
    copied = study.table[study.table["stage"] == "copy"]
    in_place = copied["client"] == "astropy-fsspec"
    assert (copied["median"][~in_place] > copied["median"][in_place].max()).all()


def test_a_client_that_can_do_nothing_here_is_an_error(survey: Path, tmp_path: Path) -> None:
    settings = SingleSettings(stores=(str(survey),), frames=FRAMES, clients=("astropy-fsspec",))
    with pytest.raises(SettingsError, match="none of them can run any case"):
        single(settings, tmp_path)


def test_a_peer_that_crashes_is_left_out(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = {"astropy": 0, "swathe": 0}

    def run(module: str, order: dict[str, Any], *_: Any) -> Any:
        turns[order["client"]] += 1
        if order["client"] == crashing and turns[crashing] == 2:
            raise SourceError("ended with -11")
        return [{"rows": [[0, 0.1, 0.1, 0.1, 0.1]]} for _ in order["cases"]]

    monkeypatch.setattr("swathe.experiments.single_experiment.child", run)
    settings = SingleSettings(
        stores=(str(survey),), frames=FRAMES, images=1, repeats=3, crops=(1,),
        methods=("FIT", "GZ"), clients=("swathe", "astropy"),
    )  # fmt: skip
    crashing = "astropy"
    study = single(settings, tmp_path)
    assert set(study.table["client"]) == {"swathe"}
    assert study.notes == ["astropy: left out: ended with -11"]
    assert turns["astropy"] == 2
    crashing, turns["swathe"] = "swathe", 0
    with pytest.raises(SourceError, match="-11"):
        single(settings, tmp_path)


def test_a_process_that_answers_no_json_is_an_error() -> None:
    with pytest.raises(SourceError, match="the answer is not JSON"):
        child("this", {}, dict(os.environ), 60)


def test_only_images_that_are_known_are_timed_as_indexed(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(module: str, order: dict[str, Any], *_: Any) -> Any:
        images = order["cases"][0]["images"]
        asked.append(len(images))
        # The first run has time for one image of three.
        count = 1 if len(asked) == 1 else len(images)
        return [{"rows": [[number, 0.1, 0.1, 0.1, 0.1] for number in range(count)]}]

    monkeypatch.setattr("swathe.experiments.single_experiment.child", run)
    settings = SingleSettings(
        stores=(str(survey),), frames=FRAMES, images=3, repeats=1, crops=(1,), methods=("GZ",),
        clients=("swathe-indexed",),
    )  # fmt: skip
    single(settings, tmp_path)
    assert asked == [3, 1]


def test_an_image_that_is_learned_is_cut_from_to_the_end(survey: Path, tmp_path: Path) -> None:
    boxes = [(10 * at, 0, 10, 10) for at in range(4)]
    images = [(f"{survey}/frame-{number:06}.fit.gz", boxes) for number in (1, 2)]
    order = {"client": "swathe", "out": str(tmp_path), "scratch": str(tmp_path)}
    case = {"method": "GZ", "images": images, "copy": False, "budget_s": 0.0}
    assert len(single_client.work(order, case)) == 1
    assert len(single_client.work(order, {**case, "whole": True})) == 4


def test_a_store_without_frames_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"frame-000001\.fit"):
        single(SingleSettings(stores=(str(tmp_path),)))


def test_region_counts_what_was_read(survey: Path, tmp_path: Path) -> None:
    settings = RegionSettings(
        stores=(str(survey),), frames=FRAMES, regions=3, repeats=1, sizes=(100, 5000)
    )
    table = region(settings, tmp_path).table
    small, whole = (table[(table["region"] == size) & (table["way"] == "one")][0]
                    for size in (100, 5000))  # fmt: skip
    for row in (small, whole):
        assert row["least"] <= row["seen"]
        assert row["regions"] > 0 and 0 < row["cpu"] <= 100
    # A row of the image is 4 kB, of which 200 bytes are needed; a whole image is just that.
    assert 0.3 < small["of_image"] < 30
    assert whole["of_image"] == pytest.approx(100, rel=0.1)
    assert whole["least"] == pytest.approx(whole["whole_image"], rel=0.02)


def test_lists_are_cut_to_what_fits_the_budget(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []

    def run(module: str, order: dict[str, Any], *_: Any) -> dict[str, Any]:
        # A quarter of a second each.
        regions = len(order["regions"])
        done = regions
        if order["way"] == "one":
            done = min(regions, max(1, math.ceil(order["budget_s"] / 0.25)))
        else:
            lengths.append(regions)
        took = 0.25 * done
        return {"done": done, "pixels": 100, "moved": 5, "read": 5, "wall_s": took, "cpu_s": 0.1}

    monkeypatch.setattr("swathe.experiments.region_experiment.child", run)
    settings = RegionSettings(
        stores=(str(survey),), frames=FRAMES, regions=60, repeats=2, sizes=(10,), ways=("many",),
        budget_s=5.0,
    )  # fmt: skip
    region(settings, tmp_path)
    assert lengths == [20, 20]
    region(replace(settings, regions=2), tmp_path)
    assert lengths[2:] == [2, 2]


def test_what_the_kernel_does_not_tell_is_not_shown_as_nothing(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> str:
        raise OSError

    with monkeypatch.context() as without:
        without.setattr(Path, "read_text", refuse)
        assert read_bytes() is None

    def run(*_: Any) -> dict[str, Any]:
        return {"done": 1, "pixels": 9, "moved": 0, "read": None, "wall_s": 0.1, "cpu_s": 0.1}

    monkeypatch.setattr("swathe.experiments.region_experiment.child", run)
    settings = RegionSettings(
        stores=(str(survey),), frames=FRAMES, regions=1, repeats=1, sizes=(100,), ways=("one",)
    )
    study = region(settings, tmp_path)
    (row,) = study.table
    assert "an unknown part of the image" in study.sentences[0]
    assert math.isnan(row["of_image"]) and math.isnan(row["seen"])


# Ramps


class FakeClock:
    """A clock that goes when somebody waits or works."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def wait(self, until: float) -> None:
        self.time = max(self.time, until)


@pytest.mark.parametrize(("clients", "rate"), [(1, 10.0), (7, 3.3), (100, 1.0)])
def test_the_load_offered_is_the_load_asked_for(clients: int, rate: float) -> None:
    schedule = Schedule(0.0, 0.1, 40.0, rate)
    due = np.sort(np.concatenate([schedule.due(client) for client in range(clients)]))
    wanted = sum(rate * (40.0 - schedule.joins(client)) for client in range(clients))
    assert len(due) == pytest.approx(wanted, rel=0.02)
    # Also in each part of the time when all are there.
    for start in (15.0, 28.0):
        inside = ((due >= start) & (due < start + 10)).sum()
        assert inside == pytest.approx(10 * clients * rate, rel=0.02)


def test_how_late_clients_were_by_themselves() -> None:
    rows = [
        # client, host, due, sent, done: waited for the answer before, then half a second more.
        (0, 0, 10.0, 10.25, 12.0, 5, OK),
        (0, 0, 11.0, 12.5, 13.0, 5, FAILED),
        (1, 0, 10.0, 10.0, 10.5, 5, OK),
        (0, 0, 12.0, 15.0, 15.0, 0, UNSENT),
        (1, 0, 14.0, 14.125, 15.0, 5, OK),
    ]
    asked, lag = lags(as_records(rows), Schedule(8.0, 1.0, 15.0, 1.0))
    found = dict(zip(asked["sent"].tolist(), lag.tolist(), strict=True))
    assert found == {10.25: 0.25, 12.5: 0.5, 10.0: 0.0, 14.125: 0.125}
    # Closed: as soon as it joined, or had an answer.
    asked, lag = lags(as_records(rows[:3]), Schedule(8.0, 1.0, 15.0))
    found = dict(zip(asked["sent"].tolist(), lag.tolist(), strict=True))
    assert found == {10.25: 2.25, 12.5: 0.5, 10.0: 1.0}
    assert [len(each) for each in lags(as_records([]), Schedule(8.0, 1.0, 15.0))] == [0, 0]


def test_what_was_not_sent_or_is_of_the_machine_is_said() -> None:
    def host(busy: float, failure: str = "") -> Host:
        return Host(offset_s=0.0, spread_s=0.0, cpu_percent=busy, failure=failure)

    records = as_records([(0, 0, 10.0, 10.25, 11.0, 5, OK)])
    row = {"offered": 100.0, "sent": 97.0, "lag": 250.0, "model": "open"}
    said = list(_limits(row, records, np.array([0.25]), {"a": host(95.0), "b": host(20.0)}))
    assert said[0].startswith("100 requests/s were due, 97 were sent in time")
    assert "processors of a" in said[1] and "95 %" in said[1]
    assert said[2].startswith("25 % of all response times") and "250 ms" in said[2]
    row |= {"sent": 99.0}
    assert list(_limits(row, records, np.array([0.05]), {"a": host(89.0)})) == []
    # How late those were that failed is no part of any response.
    failed = as_records([(0, 0, 10.0, 19.0, 20.0, 0, FAILED)])
    lag_s = np.array([0.05, 9.0])
    assert list(_limits(row, np.concatenate([records, failed]), lag_s, {})) == []
    assert list(_limits(row, failed, lag_s[1:], {})) == []
    closed = as_records([(0, 0, 10.0, 10.0, 11.0, 5, OK)])
    (late,) = _limits(row | {"model": "closed"}, closed, np.array([0.25]), {})
    assert late.startswith("clients themselves were late by 25 % of all response times")


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_a_hundred_clients_send_what_was_due(
    kind: Literal["thread", "process"], survey: Path, tmp_path: Path
) -> None:
    settings = RampSettings(
        stores=(str(survey),), frames=FRAMES, clients=100, join_s=0.005, stay_s=1.6, window_s=0.4,
        model="open", rate=2.0, kind=kind,
    )  # fmt: skip
    study = ramp(settings, tmp_path)
    (row,) = study.table
    # Each was sent, sooner or later; none twice.
    assert row["answers"] == round(row["offered"] * (99 * 0.005 + 1.6))
    assert row["failed"] == row["unsent"] == 0
    wanted = sum(2.0 * (2.095 - 0.005 * client) for client in range(100)) / 2.095
    assert row["offered"] == pytest.approx(wanted, rel=0.02)
    each = study.more[next(iter(study.more)).replace("Over time", "Each client")]
    assert (each["answers"] >= 2).all() and len(each) == 100
    assert 0 < row["cpu"] <= 100 and row["lag"] >= 0


def test_an_open_client_counts_from_when_it_should_have_asked() -> None:
    clock = FakeClock()

    def ask(count: int) -> int:
        # A tenth of a second each; the third stalls for two seconds.
        clock.time += 2.0 if count == 2 else 0.1
        return 5

    records = as_records(run_client(0, Schedule(1000.0, 0.0, 1004.0, 5.0), ask, clock))
    response = records["done"] - records["due"]
    assert len(records) == 20
    assert response[:2] == pytest.approx([0.1, 0.1])
    assert response[2] == pytest.approx(2.0)
    # Those that were due meanwhile waited, each 0.1 s less than the one before.
    assert response[3:10] == pytest.approx(2.0 - 0.1 * np.arange(1, 8))
    # What a closed client would have told: all but one took 0.1 s.
    assert np.sort(records["done"] - records["sent"])[:-1] == pytest.approx([0.1] * 19)


def test_what_cannot_be_sent_any_more_is_told() -> None:
    clock = FakeClock()

    def ask(count: int) -> int:
        clock.time += 3.0
        return 1

    schedule = Schedule(1000.0, 0.0, 1004.0, 5.0)
    records = as_records(run_client(0, schedule, ask, clock))
    assert len(records) == 20
    assert (records["status"] == OK).sum() == 3
    assert (records["status"] == UNSENT).sum() == 17
    at = over_time(records, schedule, 1, 1.0)
    assert at["offered"].tolist() == [5, 5, 5, 5]


@pytest.mark.parametrize("rate", [0.0, 5.0])
def test_a_stall_at_the_end_is_seen(rate: float) -> None:
    clock = FakeClock()

    def ask(count: int) -> int:
        # From a second before the end on nothing is answered for a minute.
        clock.time += 0.1 if clock.time < 1003.0 else 60.0
        return 1

    schedule = Schedule(1000.0, 0.0, 1004.5, rate)
    records = as_records(run_client(0, schedule, ask, clock))
    at = over_time(records, schedule, 1, 1.0)
    assert at["median"][:3] == pytest.approx([100] * 3)
    assert at["median"][3] > 50e3 and at["p95"][3] > 59e3
    # The last window has what is left of the time: half a second.
    unsent = 7 if rate else 0
    assert at["late"].tolist() == pytest.approx([0, 0, 0, 1 / 1.5])
    assert at["unsent"].tolist() == pytest.approx([0, 0, 0, unsent / 1.5])


def test_failures_are_counted_when_they_were_due() -> None:
    schedule = Schedule(0.0, 0.0, 3.0, 1.0)
    records = as_records([(0, 0, 2.5, 2.5, 60.0, 0, FAILED), (0, 0, 0.5, 0.5, 0.6, 1, OK)])
    at = over_time(records, schedule, 1, 1.0)
    assert at["failed"].tolist() == [0, 0, 1]
    assert np.isnan(at["median"][2])


def test_a_closed_client_asks_when_answered_and_failures_are_counted() -> None:
    clock = FakeClock()

    def ask(count: int) -> int:
        clock.time += 0.25
        if count % 4 == 3:
            raise OSError("no")
        return 10

    schedule = Schedule(1000.0, 0.5, 1004.0)
    records = as_records(run_client(1, schedule, ask, clock))
    assert records["sent"][0] == 1000.5
    assert len(records) == 14
    assert (records["status"] == FAILED).sum() == 3
    (client,) = each_client(records, schedule, 2)[1:]
    assert client["answers"] == 11
    assert client["rate"] == pytest.approx(11 / 3.5)


def test_the_peak_is_where_more_clients_no_longer_help() -> None:
    clients = np.arange(1, 21.0)
    at = {
        "clients": clients,
        "throughput": np.minimum(10 * clients, 100.0),
        "median": np.where(clients < 10, 100.0, 10 * clients),
    }
    found = peak(at)
    assert found.rate == pytest.approx(100)
    assert 9 <= found.clients <= 11
    assert found.all_ms == 200


@pytest.mark.parametrize("rates", [[7.0], [6.0, 8.0], [7.0, 6.0, 8.0]])
def test_the_peak_of_few_windows_is_their_mean(rates: list[float]) -> None:
    windows = len(rates)
    at = {
        "clients": np.ones(windows),
        "throughput": np.array(rates),
        "median": np.full(windows, 5.0),
    }
    found = peak(at)
    assert found.rate == pytest.approx(7)
    assert (found.clients, found.response_ms) == (1, 5.0)


@pytest.mark.parametrize("last", [13.0, 10.1])
def test_the_peak_is_no_less_than_what_all_clients_get(last: float) -> None:
    clients, throughput = np.array([2.0, 4, 4]), np.array([9.0, last, last])
    found = peak({"clients": clients, "throughput": throughput, "median": np.array([1.0, 2, 3])})
    assert found.rate == found.all_rate == last
    assert (found.clients, found.response_ms) == (4, 2.0)


def test_a_ramp_of_less_than_three_windows_raises(survey: Path) -> None:
    settings = RampSettings(stores=(str(survey),), clients=1, stay_s=0.5, window_s=1.0)
    with pytest.raises(SettingsError, match=r"ramp\.stay_s: expected at least 3 windows of 1 s"):
        ramp(settings)


class Stalling(Handler):
    """Answers at once, but for half a second in which it does nothing."""

    protocol_version = "HTTP/1.1"
    quiet_from = math.inf
    busy = threading.Lock()

    def do_GET(self) -> None:
        with self.busy:
            now = time.monotonic()
            if Stalling.quiet_from < now < Stalling.quiet_from + 0.5:
                time.sleep(Stalling.quiet_from + 0.5 - now)
        self.answer(200, b"cut")


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_a_real_server_that_stalls_is_seen_by_all_clients(kind: str, tmp_path: Path) -> None:
    with serving(Stalling) as url:
        work = {"kind": "portal", "url": url, "what": ["/a", "/b"]}
        order = {"join_s": 0.0, "length_s": 2.0, "rate": 20.0, "work": work}
        order |= {"clients": [0, 1, 2], "kind": kind, "records": str(tmp_path / "records.npy")}
        with Clients(order) as tester:
            Stalling.quiet_from = time.monotonic() + 1.2
            tester.go(time.time() + 0.2)
            records = as_array(tester.records().records)
    # Three clients, 20 a second, two seconds.
    assert len(records) == pytest.approx(120, rel=0.02)
    assert (records["status"] == OK).all()
    response = records["done"] - records["due"]
    # Half a second at 20/s: each client has about ten that waited, of which half over 0.25 s.
    for client in range(3):
        mine = response[records["client"] == client]
        assert (mine > 0.2).sum() >= 4
        assert mine.max() > 0.4


def test_ramp_cuts_from_a_store(survey: Path, tmp_path: Path) -> None:
    settings = RampSettings(
        stores=(str(survey),), frames=FRAMES, clients=3, join_s=0.2, stay_s=1.2, window_s=0.2,
        model="open", rate=10.0,
    )  # fmt: skip
    study = ramp(settings, tmp_path)
    (row,) = study.table
    assert row["failed"] == row["unsent"] == 0
    wanted = sum(10.0 * (1.6 - 0.2 * client) for client in range(3)) / 1.6
    assert row["offered"] == pytest.approx(wanted, rel=0.05)
    assert row["many"] == pytest.approx(100_000 / row["peak"])
    assert "extrapolated" in study.sentences[0]


def test_why_requests_fail_is_said(survey: Path, tmp_path: Path) -> None:
    shutil.copy(survey / "frame-000001.fit", tmp_path)
    (tmp_path / "frame-000002.fit").write_text("nothing of the kind")
    settings = RampSettings(
        stores=(str(tmp_path),), frames=2, clients=2, join_s=0.0, stay_s=0.4, window_s=0.1,
        model="open", rate=20.0,
    )  # fmt: skip
    study = ramp(settings, tmp_path)
    assert study.table["failed"][0] > 0 and study.table["answers"][0] > 0
    (said,) = (note for note in study.notes if "one of the failures" in note)
    assert "frame-000002.fit" in said


def test_ramp_asks_a_portal(tmp_path: Path) -> None:
    add_survey(tmp_path, 1)
    settings = RampSettings(
        portal="", clients=2, join_s=0.1, stay_s=0.8, window_s=0.2, kind="thread"
    )
    with served(tmp_path, '[vo]\nauthority = "bench.swathe"\n') as portal:
        asked = replace(settings, portal=portal.url)
        study = ramp(asked, tmp_path)
        (row,) = study.table
        assert row["answers"] > 3 and row["failed"] == 0
        with pytest.raises(NotFoundError, match="expected images of at least"):
            portal_paths(replace(asked, size=5000))


class Answering(Handler):
    """Answers every request alike."""

    content = b""

    def do_GET(self) -> None:
        self.answer(200, self.content)


@pytest.fixture
def answering() -> Iterator[str]:
    with serving(Answering) as url:
        yield url.removeprefix("http://")


def votable(**columns: Any) -> bytes:
    from astropy.table import Table

    made = io.BytesIO()
    Table(columns).write(made, format="votable")
    return made.getvalue()


@pytest.mark.parametrize("content", [b"<!doctype html><p>Welcome", b"", votable(other=[1])])
def test_a_portal_that_answers_no_images_is_an_error(answering: str, content: bytes) -> None:
    Answering.content = content
    with pytest.raises(SourceError, match="expected a table of images"):
        portal_paths(RampSettings(portal=f"http://{answering}"))


def test_images_whose_shape_is_not_told_are_not_asked_for(answering: str) -> None:
    sides = np.ma.array([500, 500, 50, 500], mask=[True, False, False, False])
    heights = np.ma.array([500, 500, 500, 500], mask=[False, False, False, True])
    dids = ["ivo://a", "ivo://b", "ivo://c", "ivo://d"]
    Answering.content = votable(obs_publisher_did=dids, s_xel1=sides, s_xel2=heights)
    paths = portal_paths(RampSettings(portal=f"http://{answering}"))
    assert {path.partition("&")[0] for path in paths} == {"/vo/sync?ID=ivo%3A%2F%2Fb"}


def test_the_password_of_a_portal_is_told_nowhere(answering: str, tmp_path: Path) -> None:
    Answering.content = votable(obs_publisher_did=["ivo://a"], s_xel1=[500], s_xel2=[500])
    url = f"http://user:sesame@{answering}"
    settings = RampSettings(
        portal=url, clients=1, join_s=0.0, stay_s=0.3, window_s=0.1, kind="thread", size=100
    )
    study = ramp(settings, tmp_path)
    assert study.table["answers"][0] > 0
    for path in keep(study, tmp_path / "out").iterdir():
        assert b"sesame" not in path.read_bytes(), path.name
    Answering.content = b""
    for wrong in (url, f"{url}:x", "http://user:sesame@127.0.0.1:1", "http://user:ses/ame@x"):
        with pytest.raises(SourceError) as caught:
            portal_paths(RampSettings(portal=wrong))
        assert "ses" not in str(caught.value)
    with pytest.raises(SettingsError) as refused:
        ramp(RampSettings(portal=url, stores=("a",)))
    assert "sesame" not in str(refused.value)


def client_one_fails(number: int) -> list[Any]:
    if number == 1:
        raise OSError("too many open files")
    return [number]


def client_one_dies(number: int) -> list[Any]:
    if number == 1:
        os._exit(3)
    return [number]


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_a_client_that_fails_says_why(kind: str) -> None:
    with pytest.raises(SourceError, match=rf"client 2: its {kind} .*OSError: too many open files"):
        client_process.run_clients(kind, [0, 1, 2], client_one_fails)
    assert client_process.run_clients(kind, [0, 2], client_one_fails) == [0, 2]


def test_a_client_whose_process_dies_is_noticed() -> None:
    with pytest.raises(SourceError, match=r"a client: its process ended early: BrokenProcessPool"):
        client_process.run_clients("process", [0, 1], client_one_dies)


def test_clients_end_with_who_wanted_them(survey: Path) -> None:
    work = {"kind": "cut", "what": [(str(survey / "frame-000001.fit"), (0, 0, 9, 9))]}
    order = {"join_s": 0.0, "length_s": 600.0, "rate": 1.0, "work": work, "kind": "process"}
    with Clients({**order, "clients": [0, 1, 2]}) as tester:
        tester.go(time.time())
        process = psutil.Process(tester.process.pid)
        while len(clients := process.children()) < 3:
            time.sleep(0.01)
        folder = tester.path
    gone, there = psutil.wait_procs(clients, timeout=30)
    for client in there:
        client.kill()
    assert len(gone) == 3 and not there
    assert not folder.exists()


def test_clients_that_cannot_work_are_an_error() -> None:
    work = {"kind": "cut", "what": [("/absent.fit", (0, 0, 1, 1))]}
    order = {"join_s": 0.0, "length_s": 0.2, "rate": 0.0, "work": work, "kind": "process"}
    with pytest.raises(SourceError, match="'clients'"), Clients(order) as tester:
        tester.go(time.time())
        tester.records()
    with pytest.raises(SourceError, match="expected records, found none"):
        as_array(b"no records")


# Clocks


def test_clocks_that_drift_widen_the_spread() -> None:
    found = between(ClockEstimate(1.0, 0.01), ClockEstimate(1.4, 0.02))
    assert found.offset_s == pytest.approx(1.2)
    assert found.spread_s == pytest.approx(0.22)


def test_records_are_put_to_our_clock() -> None:
    records = as_records([(0, 0, 10.0, 11.0, 12.0, 5, OK)])
    found = correct_records(records, 2.0)
    assert [found[0][name] for name in ("due", "sent", "done")] == [8, 9, 10]
    assert records[0]["due"] == 10


def test_a_run_may_last_longer_than_joining(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_hosts, "JOIN_S", 1.0)
    records = io.BytesIO()
    np.save(records, as_records([(0, 0, 1.0, 1.0, 2.0, 5, OK)]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()

    def host() -> None:
        line = LineConnection(theirs)
        for _ in range(2 * PINGS + 2):
            match line.hear()["ask"]:
                case "clock":
                    line.say(clock=time.time())
                case "prepare":
                    line.say(ready=True)
                case "go":
                    time.sleep(1.5)
                    line.say(records=base64.b64encode(records.getvalue()).decode())

    with ours, theirs:
        ours.settimeout(remote_hosts.JOIN_S)
        thread = threading.Thread(target=host)
        thread.start()
        joined = RemoteHost(LineConnection(ours), "node", SteadyClock())
        joined.prepare({"length_s": 1.5})
        joined.ready()
        joined.go(0.0)
        found, _ = joined.records()
        thread.join()
    assert len(found) == 1


def test_each_host_that_joins_has_a_name_of_its_own() -> None:
    joined = list[RemoteHost]()
    for name in ("node", "node-3", "node", "node", "other"):
        joined.append(cast(RemoteHost, SimpleNamespace(host=remote_hosts._free(name, joined))))
    assert [each.host for each in joined] == ["node", "node-3", "node-4", "node-5", "other"]


def test_who_says_nothing_keeps_no_host_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_hosts, "GREETING_S", 1.0)
    monkeypatch.setenv(remote_hosts.VARIABLE, "sésame")
    address = f"127.0.0.1:{free_port()}"
    said: list[str] = []
    come: list[socket.socket] = []

    def joins(token: str) -> None:
        line = LineConnection(socket.create_connection(read_address(address)))
        come.append(line.connection)
        line.say(token=token, host="node")
        with suppress(SourceError):
            while line.hear()["ask"] == "clock":
                line.say(clock=time.time())

    def join_both() -> None:
        joins("sesame")
        joins("sésame")

    thread = threading.Thread(target=join_both)

    def tell(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            come.append(socket.create_connection(read_address(address)))
            thread.start()

    with remote_hosts.gather_hosts(address, 1, tell) as joined:
        assert [each.host for each in joined] == ["node"]
        joined[0].end()
    thread.join()
    for connection in come:
        connection.close()
    faults = ["the other host: timed out", "a host without the token"]
    assert said[1:] == [f"turned away: {fault}" for fault in faults]


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "host:x", "host:70000"])
def test_addresses_without_sense_raise(text: str) -> None:
    with pytest.raises(SettingsError, match="HOST:PORT"):
        read_address(text)


SHIFTED = """import os, time
real = time.time
time.time = lambda: real() + float(os.environ["SHIFT_S"])
"""


def test_hosts_that_join_do_the_work_whatever_their_clocks(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SHIFTED)
    # The store is what it is here, whatever else a host that joins may call so.
    ours, theirs = (f"sqlite:///{tmp_path}/{name}.sqlite" for name in ("ours", "theirs"))
    for url, folder in ((ours, survey), (theirs, tmp_path)):
        with Catalog.open(url) as catalog:
            catalog.add_store("frames", str(folder))
    monkeypatch.setenv("SWATHE_DATABASE", ours)
    shifts = (3600.0, -7.25)
    address = f"127.0.0.1:{free_port()}"
    joined: list[subprocess.Popen[bytes]] = []
    python = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "SWATHE_BENCH_TOKEN": "", "PYTHONPATH": python}
    variables["SWATHE_DATABASE"] = theirs

    def come(text: str) -> None:
        if text.startswith("waiting"):
            # First somebody who only knocks.
            with socket.create_connection(tuple(address.split(":"))) as other:  # type: ignore[arg-type]
                other.sendall(b"GET / HTTP/1.1\r\n\r\n")
            for shift_s in shifts:
                command = [sys.executable, "-m", "swathe.cli", "bench", "join", address, "--json"]
                shifted = {**variables, "SHIFT_S": str(shift_s)}
                joined.append(
                    subprocess.Popen(
                        command, env=shifted, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                    )
                )

    settings = RampSettings(
        stores=("frames",), frames=FRAMES, clients=4, join_s=0.1, stay_s=1.0, window_s=0.2,
        model="open", rate=5.0, listen=address, hosts=2,
    )  # fmt: skip
    try:
        study = ramp(settings, tmp_path, come)
        told = [json.loads(each.communicate(timeout=120)[0]) for each in joined]
        assert [each.returncode for each in joined] == [0, 0]
        assert all(each["ramp"] == address and each["runs"] for each in told)
    finally:
        for each in joined:
            each.kill()
    (row,) = study.table
    assert row["answers"] == pytest.approx(4 * 5 * 1.15, rel=0.1)
    assert row["failed"] == 0
    clients = study.more[next(iter(study.more)).replace("Over time", "Each client")]
    clocks = study.circumstances["clocks"]
    assert set(clients["host"]) == set(clocks)
    assert {name: str(clients[name].unit) for name in ("rate", "median")} == {
        "rate": "1 / s",
        "median": "ms",
    }
    # Both are this host; which came first is not known.
    assert len(clocks) == 2
    for shift_s, clock in zip(
        sorted(shifts), sorted(clocks.values(), key=lambda each: each["offset_s"]), strict=True
    ):
        assert abs(clock["offset_s"] - shift_s) <= clock["spread_s"] + 0.01 < 1
    # At our times: all that was due or answered in time is in a window.
    over = next(table for name, table in study.more.items() if name.startswith("Over time"))
    widths = np.full(len(over), 0.2)
    widths[-1] = 1.3 - 0.2 * (len(over) - 1)
    assert (over["offered"] * widths).sum() == pytest.approx(row["offered"] * 1.3)
    answered = (over["throughput"] * widths).sum()
    assert answered == pytest.approx(row["answers"] - row["late"])


class Pausing(Handler):
    """Answers at once, but for one request, before which all wait for a second."""

    protocol_version = "HTTP/1.1"
    busy = threading.Lock()
    count = 0
    began = math.inf

    def do_GET(self) -> None:
        with self.busy:
            Pausing.count += 1
            if Pausing.count == 30:
                Pausing.began = time.time()
                time.sleep(1.0)
        self.answer(200, b"cut")


def test_load_and_responses_of_hosts_whose_clocks_differ_are_of_one_time() -> None:
    ahead = wrong_by(3.2)
    if ahead is None:
        pytest.skip("libfaketime, which makes a clock wrong, is not installed: see .ci/run")
    Pausing.count = 0
    address = f"127.0.0.1:{free_port()}"
    lent: list[subprocess.Popen[bytes]] = []

    def come(_text: str) -> None:
        command = [sys.executable, "-m", "swathe.cli", "bench", "join", address]
        for more in ({}, ahead):
            variables = {**os.environ, remote_hosts.VARIABLE: "", **more}
            lent.append(subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL))

    settings = RampSettings(clients=4, join_s=0.1, stay_s=2.5, model="open", rate=20.0, hosts=2)
    try:
        with serving(Pausing) as url, remote_hosts.gather_hosts(address, 2, come) as joined:
            work = {"kind": "portal", "url": url, "what": ["/a", "/b"]}
            schedule, records, hosts = _one(settings, work, joined, {})
            for each in joined:
                each.end()
        assert [agent.wait(timeout=120) for agent in lent] == [0, 0]
    finally:
        for agent in lent:
            agent.kill()
    clocks = sorted(hosts.values(), key=lambda each: each["offset_s"])
    for clock, wrong_s in zip(clocks, (0.0, 3.2), strict=True):
        assert abs(clock["offset_s"] - wrong_s) <= clock["spread_s"] + 0.01 < 0.3
    doubt_s = max(clock["spread_s"] for clock in clocks) + 0.01
    # What was due at each host is what was ordered, at our time.
    assert set(records["host"]) == {0, 1} and (records["status"] == OK).all()
    for client in range(settings.clients):
        due = records["due"][records["client"] == client]
        np.testing.assert_allclose(due, schedule.due(client), rtol=0, atol=doubt_s)
    at = over_time(records, schedule, settings.clients, 0.25)
    wanted = np.concatenate([schedule.due(client) for client in range(settings.clients)])
    edges = np.append(np.arange(len(at["time"])) * 0.25 + schedule.start, schedule.end)
    near = np.abs(wanted - edges[:, None]) <= doubt_s
    missed = at["offered"] * np.diff(edges) - np.histogram(wanted, edges)[0]
    assert (np.abs(missed) <= near[:-1].sum(axis=1) + near[1:].sum(axis=1) + 1e-6).all()
    # And nobody on either had an answer while the server gave none.
    paused = [Pausing.began + 0.5, Pausing.began + 1.0 - doubt_s]
    for host in (0, 1):
        mine = records[records["host"] == host]
        answered, due = ((mine[name] > paused[0]) & (mine[name] < paused[1])
                         for name in ("done", "due"))  # fmt: skip
        assert due.any() and not answered.any()
        assert (mine["done"] - mine["due"]).max() > 0.8


# Load


def test_the_response_of_load_is_of_all_that_was_begun() -> None:
    start = 1000.0
    rows = [(0, 0, start, start, start + 1.0, 5, OK)]
    rows += [(at, 0, start, start, start + 9.0, 5, OK) for at in (1, 2)]
    level = {"workers": 3, "start": start, "end": start + 5, "records": as_records(rows)}
    host = host_over_time([]) | {"line": np.zeros(0)}
    study = load_study(LoadSettings(), {}, {("store", "heavy"): ([level], host)})
    (row,) = study.table
    assert row["read"] == pytest.approx(5 / 5 / 1e6)
    assert row["response"] == pytest.approx(9000)
    assert (row["rate"], row["late"]) == (pytest.approx(0.2), 2)
    # Each part has what was done in it, the whole of the short one and 5/9 of the others.
    done = sum(sample[2] for sample in study.samples) * 0.5
    assert done == pytest.approx(1 + 2 * 5 / 9)


def test_the_first_resource_to_run_out_is_named() -> None:
    def sample(second: int, cpu: float, disk: float, swap: float = 0.0) -> list[Point]:
        at = second * 10**9
        return [
            Point(at, "DISK", {"DEVICE": "early", "BUSY_PERCENT": 0.0}),
            Point(at, "CPU", {"IDLE_PERCENT": 100 - cpu, "IOWAIT_PERCENT": 0.0}),
            Point(at, "DISK", {"DEVICE": "a", "BUSY_PERCENT": disk}),
            Point(at, "DISK", {"DEVICE": "b", "BUSY_PERCENT": disk / 2}),
            Point(at, "SWAP", {"IN_BYTES_PER_S": swap, "OUT_BYTES_PER_S": 0.0}),
        ]

    busy = sample(1, 10, 20) + sample(2, 50, 95) + sample(3, 95, 96) + sample(4, 99, 97)
    host = host_over_time(busy) | {"line": np.zeros(4)}
    assert host["disk"].tolist() == [20, 95, 96, 97]
    assert host["cpu"].tolist() == [10, 50, 95, 99]
    assert ran_out(host, 90.0) == ("disk", 2.0)
    assert ran_out(host, 99.5) == ("none", math.inf)
    swapping = sample(1, 10, 0, 5e6) + sample(2, 95, 0, 5e6) + sample(3, 95, 0)
    swapped = host_over_time(swapping) | {"line": np.full(3, math.nan)}
    assert ran_out(swapped, 90.0) == ("swap", 1.0)


def test_the_use_of_a_line_is_bytes_read_over_its_bandwidth() -> None:
    rows = [(0, 0, 0.0, 0.0, 2.0, 200, OK), (1, 0, 1.0, 1.0, 2.0, 300, OK)]
    records, times = as_records(rows), np.array([1.0, 2.0, 3.0, 4.0])
    line = line_over_time(times, records, 500.0)
    assert line.tolist() == pytest.approx([20, 80, 0, 0])
    full = {name: np.zeros(4) for name in ("cpu", "disk", "memory", "swap")}
    busy = {**full, "time": times, "line": np.array([20.0, 95.0, 95.0, 95.0])}
    assert ran_out(busy, 90.0) == ("line", 2.0)
    assert np.isnan(line_over_time(times, records, math.nan)).all()


def test_load_runs_light_and_heavy_mixes(survey: Path, tmp_path: Path) -> None:
    settings = LoadSettings(
        stores=(str(survey),), frames=FRAMES, workers=(1, 2), level_s=0.6, interval_s=0.1,
        large=200, depth=2,
    )  # fmt: skip
    study = load(settings, tmp_path)
    assert list(study.table["mix"]) == ["light", "light", "heavy", "heavy"]
    assert (study.table["rate"] > 0).all() and (study.table["failed"] == 0).all()
    assert (study.table["cpu"] > 0).all()
    assert (study.table["read"] == 0).all()  # of servers
    assert np.isnan(study.table["line"]).all()
    assert len(study.sentences) == 2
    assert len(study.samples) >= 10 * len(study.table)
    keep(study, tmp_path / "out")


def test_buffer_is_the_study_in_this_form(survey: Path) -> None:
    settings = BufferSettings(stores=(str(survey),), repeats=1, budget_s=0.5)
    study = buffer(settings)
    assert set(study.table["store"]) == {str(survey)}
    assert "buffer-1" in study.figures
    with pytest.raises(SettingsError, match=r"buffer\.stores"):
        buffer(BufferSettings())


# What is kept


def a_study(rows: list[tuple[str, int, float, str, str]], **meta: Any) -> Study:
    from astropy.table import Table

    told = {"host": "here", "profiles": {}}
    return Study("region", "<Regions>", {"stores": ["a&b"], **meta}, told,
                 Table({"store": ["a"], "rate": [1.5]}), rows)  # fmt: skip


def test_results_and_settings_are_kept_and_read_back(tmp_path: Path) -> None:
    rows = [("case one", 0, 1.25, "s", "lower"), ("case one", 1, 1.5, "s", "lower")]
    keep(a_study(rows, seed=7), tmp_path / "a")
    results, samples = read_result(tmp_path / "a")
    assert results.meta["settings"] == {"stores": ["a&b"], "seed": 7}
    assert results.meta["circumstances"]["host"] == "here"
    assert [tuple(row) for row in samples] == rows
    page = (tmp_path / "a" / "report.html").read_text()
    assert "&lt;Regions&gt;" in page and "a&amp;b" in page
    assert not re.search(r"(src|href)=", page)


def test_folders_without_results_raise(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"results\.ecsv: cannot be read"):
        read_result(tmp_path)
    (tmp_path / "results.ecsv").write_text("no table")
    with pytest.raises(SettingsError, match=r"results\.ecsv"):
        read_result(tmp_path)


def test_circumstances_name_code_and_machine() -> None:
    told = circumstances([])
    assert told["host"] and told["cpu"] and told["kernel"] and told["swathe"]
    assert told["memory_bytes"] > 1e8 and told["cores"] >= 1


def test_the_widest_table_of_a_report_fits_a_screen(browser: Browser, tmp_path: Path) -> None:
    from astropy.table import Table

    study = a_study([])
    names = ["target", "model", "clients", "answers", "late", "failed", "unsent", "offered", "sent",
             "lag", "cpu", "peak", "peak_clients", "peak_response", "all_response", "all_rate",
             "many"]  # fmt: skip
    row = ["/data/surveys/stripe82", "closed", 100, 109_551, 20, 0, 0, *[11_294.0] * 10]
    units = dict.fromkeys(names[7:], "ms") | {"offered": "1/s", "sent": "1/s", "peak": "1/s"}
    study.table = Table(rows=[row], names=names, units=units)
    page = keep(study, tmp_path) / "report.html"
    with visiting(browser) as opened:
        seen = opened(page.as_uri())
        wide = seen.locator(".wide").first
        assert wide.evaluate("each => each.scrollWidth <= each.clientWidth")
        assert "peak response, ms" in wide.inner_text()


def test_legends_hide_nothing_and_numbers_are_plain() -> None:
    from swathe.experiments.results import figures
    from swathe.experiments.single_experiment import SingleCase

    rng = np.random.default_rng(1)
    times = {
        SingleCase("/data/survey", method, 1, client): 1e-3 * scale * rng.lognormal(0, 0.3, (20, 4))
        for method, scale in (("GZ", 2000), ("FIT", 1))
        for client in ("swathe", "cfitsio", "astropy")
    }
    for drawn in (figures.overview(times), figures.stage_shares(times)):
        drawn.draw_without_rendering()
        (legend,) = drawn.legends
        for axes in drawn.axes:
            assert axes.get_legend() is None
            assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    drawn = figures.overview(times)
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    low, high = axes.get_ylim()
    told = [
        label.get_text()
        for at, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
        if low <= at <= high
    ]
    assert told == ["10", "100", "1,000", "10,000"]


def samples_of(medians: dict[str, float], seed: int, better: str = "lower") -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        (name, turn, float(median * rng.lognormal(0, 0.1)), "s", better)
        for name, median in medians.items()
        for turn in range(5)
        for _ in range(20)
    ]


def test_compare_finds_what_became_worse_and_better(tmp_path: Path) -> None:
    cases = {f"case {number}": 1.0 + number for number in range(8)}
    keep(a_study(samples_of(cases, 1)), tmp_path / "a")
    changed = cases | {"case 3": 1.3 * cases["case 3"], "case 5": 0.6 * cases["case 5"]}
    keep(a_study(samples_of(changed, 2), seed=2), tmp_path / "b")
    study = compare(tmp_path / "a", tmp_path / "b")
    found = dict(zip(study.table["case"], study.table["verdict"], strict=True))
    alike = dict.fromkeys(cases, "alike")
    assert found == alike | {"case 3": "worse", "case 5": "better"}
    row = study.table[3]
    assert row["low"] < 1.3 < row["high"]
    assert any("setting seed" in note for note in study.notes)
    keep(study, tmp_path / "c")


def test_compare_finds_nothing_in_noise(tmp_path: Path) -> None:
    cases = {f"case {number}": 1.0 + number for number in range(30)}
    for number in range(3):
        keep_samples(tmp_path / "a", samples_of(cases, 10 + number))
        keep_samples(tmp_path / "b", samples_of(cases, 20 + number))
        assert set(compare(tmp_path / "a", tmp_path / "b").table["verdict"]) == {"alike"}


def few_samples(times: float, count: int, cases: int = 1) -> list[Any]:
    return [
        (f"case {number}", turn, times * (1 + 0.01 * turn + 0.001 * number), "s", "lower")
        for number in range(cases)
        for turn in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "cases", "verdict"),
    [
        (3, 1, "too few samples"),  # 1 of 10 even if all of one run are above all of the other
        (4, 1, "worse"),
        (5, 6, "worse"),
        (5, 7, "too few samples"),
    ],
)
def test_too_few_samples_are_not_called_alike(
    count: int, cases: int, verdict: str, tmp_path: Path
) -> None:
    keep_samples(tmp_path / "a", few_samples(1.0, count, cases))
    keep_samples(tmp_path / "b", few_samples(2.0, count, cases))
    study = compare(tmp_path / "a", tmp_path / "b")
    assert set(study.table["verdict"]) == {verdict}
    assert ("too few samples" in " ".join(study.sentences)) == (verdict == "too few samples")


def test_ties_do_not_make_few_samples_enough(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        rows = [("case", turn, value, "s", "lower") for turn in range(3)]
        keep_samples(tmp_path / name, rows)
    (row,) = compare(tmp_path / "a", tmp_path / "b").table
    assert row["p"] == pytest.approx(0.1) and row["verdict"] == "too few samples"


def test_enough_samples_are_as_few_as_can_tell() -> None:
    assert [least_samples(cases, 0.05) for cases in (1, 6, 20, 50)] == [4, 5, 6, 7]


def keep_samples(folder: Path, rows: list[Any]) -> None:
    folder.mkdir(exist_ok=True)
    study = a_study(rows)
    study.table.meta = study.meta
    study.table.write(folder / "results.ecsv", format="ascii.ecsv", overwrite=True)
    samples_table(rows).write(folder / "samples.ecsv", format="ascii.ecsv", overwrite=True)


def test_more_is_better_of_rates(tmp_path: Path) -> None:
    keep_samples(tmp_path / "a", samples_of({"rate": 10.0}, 1, "higher"))
    keep_samples(tmp_path / "b", samples_of({"rate": 7.0, "new": 1.0}, 2, "higher"))
    study = compare(tmp_path / "a", tmp_path / "b")
    assert list(study.table["verdict"]) == ["worse"]
    assert study.notes[0] == "in one run only: new"


def test_what_was_nothing_before_is_told_without_a_ratio(tmp_path: Path) -> None:
    def rates(*values: float) -> list[Any]:
        return [(name, 0, value * factor, "1/s", "higher")
                for name, value in zip("abc", values, strict=True)
                for factor in (0.9, 1.0, 1.1, 1.2, 1.3, 1.4)]  # fmt: skip

    keep_samples(tmp_path / "a", rates(0.0, 5.0, 0.0))
    keep_samples(tmp_path / "b", rates(4.0, 0.0, 0.0))
    study = compare(tmp_path / "a", tmp_path / "b")
    assert list(study.table["verdict"]) == ["better", "worse", "alike"]
    assert list(study.table["ratio"]) == [np.inf, 0.0, 1.0]
    assert "a: better, from 0 to 4.6 1/s." in study.sentences
    assert "b: worse, from 5.75 to 0 1/s." in study.sentences
    keep(study, tmp_path / "c")


def test_other_experiments_are_not_compared(tmp_path: Path) -> None:
    keep_samples(tmp_path / "a", samples_of({"x": 1.0}, 1))
    keep_samples(tmp_path / "b", samples_of({"y": 1.0}, 1))
    with pytest.raises(SettingsError, match="no case in common"):
        compare(tmp_path / "a", tmp_path / "b")


def test_a_sample_made_for_the_run_has_the_same_name_in_each(tmp_path: Path) -> None:
    for _ in range(2):
        with frames_in_stores(SingleSettings(frames=1), tmp_path) as (place,):
            assert place.label == "sample"
            assert Path(place.frame(1)).exists()


def test_frames_in_a_store_know_their_shape(survey: Path) -> None:
    place = frames_in_store(str(survey), SingleSettings(frames=FRAMES))
    assert place.shape == (1489, 2048) and place.pixel_bytes == 2
    assert place.frame(2, "fz").endswith("/frame-000002.fit.fz")
    rng = np.random.default_rng(1)
    for x0, y0, width, height in place.boxes(50, 1400, rng):
        assert 0 <= x0 <= 2048 - width and 0 <= y0 <= 1489 - height
    assert place.boxes(1, 5000, rng) == [(0, 0, 2048, 1489)]
