"""Probes of simulated stores, and of real files through a second reader."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog, this_host
from swathe.cli import app
from swathe.core.errors import NotFoundError, OutputError, RegionError
from swathe.core.format import KIB, MIB
from swathe.costs.cost_model import Costs
from swathe.costs.plots import probe_figure, save
from swathe.costs.predict_list import predict
from swathe.costs.probing.probe_result import Probe, read_table
from swathe.costs.probing.probe_schedule import QUICK_SIZES, SIZES, ProbeParameters
from swathe.costs.probing.probe_writes import WriteProbe
from swathe.costs.probing.read_buffer import BufferStudy, study_buffer
from swathe.costs.probing.resolve_target import ProbeTarget, find_place
from swathe.costs.probing.save import keep_probe
from swathe.costs.probing.store_probe import measure_store
from swathe.stores.registry import stores_for
from tests.support.servers import NGINX, nginx, proxy, s3s_fs, xrootd
from tests.support.simulated_stores import SimulatedStore, Timing, place


def simulated(store: SimulatedStore, seed: int = 1, **options: object) -> Probe:
    return measure_store(place(), reader=store, clock=lambda: store.clock_s, seed=seed, **options)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for name, size in (("a.fits", 3 * MIB), ("b.fits", MIB), ("tiny.txt", 10)):
        (tmp_path / name).write_bytes(rng.bytes(size))
    return tmp_path


@pytest.mark.parametrize("latency_s", [1e-4, 0.02, 0.3])
@pytest.mark.parametrize("quick", [False, True])
def test_budgets_are_kept(latency_s: float, quick: bool) -> None:
    store = SimulatedStore(latency_s, noise=0.05)
    found = simulated(store, quick=quick)
    allowed = found.parameters
    assert found.elapsed_s <= 1.1 * allowed.max_time_s
    assert found.bytes_moved == store.bytes_moved <= allowed.max_bytes


def test_objects_that_vanish_after_they_were_listed_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_file = Path.is_file

    def vanish(path: Path) -> bool:
        found = is_file(path)
        if path.name == "c.fits":
            path.unlink()
        return found

    (folder / "c.fits").write_bytes(bytes(2 * MIB))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_file", vanish)
        place = find_place(str(folder))
    assert place.objects == (str(folder / "a.fits"), str(folder / "b.fits"))
    (folder / "a.fits").unlink()
    found = measure_store(place, quick=True, max_time_s=0.2)
    assert found.parameters.objects == (str(folder / "b.fits"),)
    assert f"{folder}/a.fits: vanished, left out" in found.notes
    with pytest.raises(NotFoundError, match=r"a\.fits"):
        measure_store(find_place(str(folder), ["a.fits", "b.fits"]), quick=True)
    (folder / "b.fits").unlink()
    with pytest.raises(NotFoundError, match=r"b\.fits"):
        measure_store(place, quick=True)


@pytest.mark.parametrize("budget_mb", [1, 2, 5, 20])
def test_small_budgets_of_bytes_are_kept(budget_mb: int) -> None:
    store, told = SimulatedStore(), list[str]()
    found = simulated(store, max_bytes=budget_mb * 10**6, tell=told.append)
    assert store.bytes_moved == found.bytes_moved <= budget_mb * 10**6
    assert found.end_reason == "bytes"
    assert found.profile.costs.request[0][1] == pytest.approx(0.02, rel=0.01)
    number, unit = told[0].split()[4:6]
    shown = float(number) * {"KiB": 1024, "MiB": 1 << 20}[unit.strip(",;.")]
    assert 0 < shown <= 1.001 * budget_mb * 10**6  # it has four digits


def test_what_it_will_use_is_told_first() -> None:
    store, told = SimulatedStore(), list[tuple[str, int]]()
    found = simulated(store, tell=lambda text: told.append((text, len(store.calls))))
    [(text, calls)] = told
    assert calls == 0
    assert text.startswith("at most") and "64 streams" in text and "30 s" in text
    assert found.requests <= int(text.split()[2].replace(",", ""))


@pytest.mark.parametrize("quick", [False, True])
def test_no_more_requests_than_told_are_made_of_a_store_that_varies(quick: bool) -> None:
    store, told = SimulatedStore(noise=0.8), list[str]()
    found = simulated(store, quick=quick, max_time_s=1e9, max_bytes=1 << 50, tell=told.append)
    assert found.end_reason == "rounds"
    assert found.requests <= int(told[0].split()[2].replace(",", ""))


def test_the_same_seed_reads_the_same() -> None:
    one, other, third = SimulatedStore(), SimulatedStore(), SimulatedStore()
    simulated(one), simulated(other), simulated(third, seed=2)
    assert one.calls == other.calls != third.calls


def test_no_bytes_are_read_twice_in_a_row() -> None:
    store = SimulatedStore(object_bytes=64 * MIB)
    simulated(store)
    ranges = [part for _, parts, _, _ in store.calls for part in parts if part[1] > 1024]
    assert all(one != other for one, other in pairwise(ranges))
    assert all(offset + length <= 64 * MIB for offset, length in ranges)


def test_ranges_of_one_size_cover_the_object_before_they_repeat() -> None:
    store = SimulatedStore(object_bytes=16 * MIB)
    simulated(store, quick=True)
    starts = [o for _, parts, _, _ in store.calls for o, length in parts if length == 256 * 1024]
    assert len(set(starts[:64])) == min(len(starts), 64)


def test_it_stops_when_it_knows_enough() -> None:
    found = simulated(SimulatedStore(1e-3, 1e9, 1e10, noise=0.001), max_bytes=1 << 40)
    assert found.end_reason == "precise"
    assert found.elapsed_s < found.parameters.max_time_s / 2


def test_an_object_is_opened_once_beside_the_openings_that_are_measured() -> None:
    class Counting(SimulatedStore):
        opened = 0

        def measure_open(self, *args: Any) -> tuple[float, int]:
            self.opened += 1
            return super().measure_open(*args)

    store = Counting()
    simulated(store, quick=True)
    assert store.opened == 4


@pytest.mark.parametrize("latency_s", [0.02, 0.2])
def test_a_quick_probe_reads_by_several_streams_over_slow_ones(latency_s: float) -> None:
    """Each carries what takes a second to open an object."""
    store = SimulatedStore(latency_s, 32_000, 2e6, connect_s=latency_s)
    found = simulated(store, quick=True)
    assert max(sample.streams for sample in found.samples) == 16
    assert found.profile.costs.streams == 16
    assert found.profile.costs.stream_bytes_per_s() == pytest.approx(32_000, rel=0.05)


def test_a_slow_moment_is_no_limit() -> None:
    """What took longer than expected is measured again before the probe goes on."""

    class Stumbling(SimulatedStore):
        def read(self, url: str, requests: Any, streams: int, *, fresh: bool) -> list[Timing]:
            timings = super().read(url, requests, streams, fresh=fresh)
            slower = 5 if (len(requests), streams, requests[0][1]) == (64, 16, 16 * KIB) else 1
            if slower > 1 and not self.stumbled:
                self.stumbled = True
                return [
                    Timing(each.bytes, each.start_s, each.first_byte_s, each.end_s * slower)
                    for each in timings
                ]
            return timings

        stumbled = False

    store = Stumbling(0.1, 2e6, 1e9, connect_s=0.1)
    costs = simulated(store, quick=True).profile.costs
    assert store.stumbled
    assert costs.total_bytes_per_s > 5e6


def test_small_objects_bound_the_sizes() -> None:
    found = simulated(SimulatedStore(object_bytes=5000))
    assert found.parameters.sizes == (1024, 4096)
    assert any("read more than once" in note for note in found.notes)


def test_an_object_of_a_few_bytes_is_enough() -> None:
    assert simulated(SimulatedStore(object_bytes=7)).profile.costs.request[-1][0] >= 7


def test_an_empty_object_is_refused() -> None:
    with pytest.raises(NotFoundError, match="is empty"):
        simulated(SimulatedStore(object_bytes=0))


def test_neither_a_result_nor_an_error_tells_secrets_of_urls() -> None:
    url = "https://me:pa55w0rd-hush@archive.example/f.fits?token=t0ken-hush"
    named = replace(place(), objects=(url,))
    store = SimulatedStore()
    told = str(
        measure_store(named, quick=True, reader=store, clock=lambda: store.clock_s).as_dict()
    )
    assert "archive.example/f.fits" in told and "hush" not in told
    empty = SimulatedStore(object_bytes=0)
    for measure in (measure_store, study_buffer):
        with pytest.raises(NotFoundError, match=r"archive\.example") as raised:
            measure(named, reader=empty, clock=lambda: empty.clock_s)
        assert "hush" not in str(raised.value)


def test_a_result_is_plain_json() -> None:
    found = simulated(SimulatedStore(), quick=True)
    told = json.loads(json.dumps(found.as_dict()))
    assert told["costs"]["streams"] == found.profile.costs.streams
    assert told["parameters"]["seed"] == 1
    assert told["cache"] == "remote"


def test_the_table_has_measured_and_modelled_rates() -> None:
    found = simulated(SimulatedStore(), quick=True)
    table = read_table(found.samples, found.profile.costs)
    measured, modelled = table[256 * 1024][4]
    assert modelled == pytest.approx(measured, rel=0.3)


def test_local_files_are_probed(folder: Path) -> None:
    found = measure_store(find_place(str(folder)), quick=True, max_time_s=1, write=True)
    assert found.root == "file:///"
    assert found.cache in ("warm", "mixed", "cold", "unknown")
    assert {sample.kind for sample in found.samples} == {"open", "read", "write"}
    assert found.writing is not None and found.writing.total_bytes_per_s > 0
    assert sorted(path.name for path in folder.iterdir()) == ["a.fits", "b.fits", "tiny.txt"]


def test_written_objects_show_latency_and_bandwidth() -> None:
    few = ProbeParameters(QUICK_SIZES, (1,), 3, 5.0, 64 * MIB, 5, 0)
    assert few.write_sizes == (KIB, 256 * KIB, MIB, 4 * MIB)
    assert replace(few, sizes=SIZES).write_sizes == (KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)


def test_writing_to_a_bucket_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'c.sqlite'}")
    (served := tmp_path / "s3").mkdir()
    with s3s_fs(served) as s3, proxy(s3.url, rtt_ms=20) as between:
        s3.put("frames", "run1/a.fits", bytes(MIB))
        for name, value in {**s3.environment, "AWS_ENDPOINT_URL": between.url}.items():
            monkeypatch.setenv(name, value)
        with Catalog.open() as catalog:
            catalog.add_store("lake", "s3://frames/run1", options={"probe_object": "a.fits"})
            told = list[str]()
            found = measure_store(find_place("lake"), max_time_s=10, write=True, tell=told.append)
            keep_probe(catalog, found)
            kept = catalog.samples(found.root, this_host(), ["write"])
    assert "half of it for writing" in told[0]
    assert found.writing is not None
    # Two round trips: it is put, and looked at.
    assert 0.04 < found.writing.request[0][1] < 0.5
    assert {sample.streams for sample in kept} == {1, 8}
    assert found.as_dict()["writing"]["request"][0][1] == found.writing.request[0][1]
    left = [path.name for path in served.rglob("*") if path.is_file() and path.name[0] != "."]
    assert left == ["a.fits"]


@pytest.mark.parametrize("kind", ["nginx", "xrootd"])
def test_writing_by_webdav_is_measured(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'c.sqlite'}")
    (folder := tmp_path / "served").mkdir()
    with contextlib.ExitStack() as stack:
        if kind == "nginx":
            if not Path(NGINX).exists():
                pytest.skip("nginx is not installed")
            running = stack.enter_context(nginx(folder))
            folder, url = running.folder, running.url
        else:
            url = stack.enter_context(xrootd(folder, writable=True)).url
        (folder / "a.fits").write_bytes(bytes(MIB))
        between = stack.enter_context(proxy(url, rtt_ms=20))
        options = {"probe_object": "a.fits", "anonymous": "true"}
        with Catalog.open() as catalog:
            if kind == "nginx":
                root = f"dav://{between.host}/dav"
            else:
                root, options["door"] = "root://archive.example", f"dav://{between.host}"
            catalog.add_store("web", root, options=options)
            found = measure_store(find_place("web"), max_time_s=10, write=True)
    assert found.writing is not None
    # Four round trips: it is put, named, looked at and read back.
    assert found.writing.request[0][1] > 0.06
    assert [path.name for path in folder.iterdir()] == ["a.fits"]


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    there = ProbeTarget("file:///", "file", (), writable=f"{tmp_path}/file/")
    with (
        WriteProbe(there) as writing,
        pytest.raises(OutputError, match=r"file/\.swathe-probe-.*cannot"),
    ):
        writing.put(1024)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path(NGINX).exists(), reason="needs nginx")
def test_a_thin_line_far_away_is_found(tmp_path: Path) -> None:
    with nginx(tmp_path) as server:
        (server.folder / "a.fits").write_bytes(np.random.default_rng(1).bytes(32 * MIB))
        url = f"{server.url}/a.fits"
        with proxy(url, rtt_ms=20, shared_bytes_per_s=12_500_000) as between:
            costs = measure_store(find_place(between.url), quick=True).profile.costs
    # Not less than the link takes, and of its order where this machine has much else to do.
    assert 0.015 <= costs.request[0][1] < 0.1
    assert 0.01 <= costs.connect_s < 0.1
    assert 2.5e6 < costs.total_bytes_per_s < 15.6e6
    assert 2.5e6 < costs.stream_bytes_per_s() < 15.6e6


def test_a_probe_is_kept_and_goes_into_every_plan(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    database = tmp_path_factory.mktemp("catalog") / "c.sqlite"
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{database}")
    found = measure_store(find_place(str(folder)), quick=True, max_time_s=1)
    assert stores_for([str(folder)]) is None
    with Catalog.open() as catalog:
        keep_probe(catalog, found)
        [kept] = catalog.probes("file:///", this_host())
        profile = catalog.profile("file:///", this_host())
        samples = catalog.samples("file:///", this_host())
    assert kept.bytes_moved == found.bytes_moved
    assert profile is not None and Costs.from_dict(profile.costs) == found.profile.costs
    assert {sample.source for sample in samples} == {"probe"}
    assert sum(sample.requests for sample in samples if sample.kind == "read") > len(samples)
    stores = stores_for([str(folder)])
    assert stores is not None and stores.locate(str(folder)) == ("file://", str(folder))


def test_local_files_have_the_form_that_is_read_fast(folder: Path) -> None:
    """A line from 0 bytes on, one stream, no other limit: `Costs::single_gap` in Rust."""
    costs = measure_store(find_place(str(folder)), quick=True, max_time_s=1).profile.costs
    (none, latency_s), (size, seconds) = costs.request
    assert none == 0 and costs.streams == 1
    assert costs.requests_per_s * latency_s >= 1
    assert costs.total_bytes_per_s >= size / (seconds - latency_s)
    assert 5e-8 < latency_s < 0.1


def test_only_folders_and_buckets_are_written_to() -> None:
    with pytest.raises(RegionError, match="expected a local folder, a bucket, or a"):
        simulated(SimulatedStore(), quick=True, write=True)


@pytest.mark.skipif(not Path(NGINX).exists(), reason="needs nginx")
def test_a_server_is_probed(tmp_path: Path) -> None:
    with nginx(tmp_path) as server:
        (server.folder / "a.fits").write_bytes(bytes(MIB))
        found = measure_store(find_place(f"{server.url}/a.fits"), quick=True, max_time_s=1)
        asked = server.requests()
    assert found.root == server.url
    assert {"connect", "open", "read"} == {sample.kind for sample in found.samples}
    assert not found.profile.rejections
    assert len(asked) == found.requests
    assert {request.status for request in asked} == {206}


# Plots and commands -----------------------------------------------------------------------------


def test_plots_are_drawn(tmp_path: Path) -> None:
    found = simulated(SimulatedStore(noise=0.05), quick=True)
    drawn = probe_figure(found.samples, found.profile.costs, "a < b")
    save(drawn, tmp_path / "probe.png")
    save(drawn, tmp_path / "probe.html", "told & done")
    assert (tmp_path / "probe.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "probe.html").read_text()
    assert "<svg" in text and "<title>a &lt; b</title>" in text and "told &amp; done" in text
    assert "<script" not in text and 'src="' not in text
    with pytest.raises(OutputError, match=r"\*.png, \*.svg or \*.html"):
        save(drawn, tmp_path / "probe.pdf")
    with pytest.raises(OutputError):
        save(drawn, tmp_path / "none" / "probe.png")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["swathe", *arguments])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert not ended.value.code


def test_command_probe(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = folder / "probe.html"
    options = ("--quick", "--max-time", "1s")
    run(monkeypatch, "probe", str(folder), *options, "--json", "--plot", str(plot))
    output = capsys.readouterr()
    told = json.loads(output.out)
    assert (told["root"], told["label"]) == ("file:///", str(folder))
    assert told["costs"]["request"][0][0] == 0
    assert output.err.startswith("at most") and "then this machine, some 2 s" in output.err
    assert "<svg" in plot.read_text()
    run(monkeypatch, "probe", str(folder), *options, "--object", str(folder / "b.fits"))
    output = capsys.readouterr()
    assert "total_bytes_per_s" in output.out and "; ended a" in output.out
    assert "this machine" not in output.err  # that is known now


def test_command_buffer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{folder}/catalog.sqlite")
    plot = folder / "buffer.png"
    options = ("--max-time", "1s", "--repeats", "2")
    run(monkeypatch, "buffer", str(folder / "a.fits"), *options, "--json", "--plot", str(plot))
    told = json.loads(capsys.readouterr().out)
    assert told["low"] <= told["choice"] <= told["high"]
    assert [row["buffer"] for row in told["rows"]][:2] == [1024, 2048]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert told["stored_bytes"] is None
    run(monkeypatch, "buffer", str(folder / "a.fits"), *options)
    said = capsys.readouterr().out
    assert "chosen" in said and "not stored: the store was not probed" in said


def test_python_finds_the_buffer_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{folder}/catalog.sqlite")
    told: list[str] = []
    plot = folder / "buffer.svg"
    study = swathe.probe_buffer(
        str(folder), object="a.fits", max_time_s=1.0, repeats=2, plot=plot, tell=told.append
    )
    assert study.object.endswith("a.fits")
    assert study.low <= study.choice <= study.high
    assert study.stored_bytes is None  # it was not probed
    assert told[0].startswith("at most")
    assert "<svg" in plot.read_text()


@pytest.mark.parametrize("command", ["probe", "buffer"])
@pytest.mark.parametrize("words", [["a.png"], [".", "--object", "a.png"]])
def test_a_plot_does_not_replace_what_is_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: list[str]
) -> None:
    monkeypatch.chdir(folder)
    before = b"an image " * 1000
    (folder / "a.png").write_bytes(before)
    options = ["--plot", "a.png", "--overwrite", "--max-time", "0.2s"]
    monkeypatch.setattr(sys, "argv", ["swathe", command, *words, *options])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 6
    assert (folder / "a.png").read_bytes() == before


@pytest.mark.parametrize("command", ["probe", "buffer"])
@pytest.mark.parametrize("plot", ["a.pdf", "none/a.png"])
def test_a_plot_that_cannot_be_written_is_refused_before_anything_is_measured(
    command: str,
    plot: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["swathe", command, str(folder / "a.fits"), "--plot", str(folder / plot), "--json"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        app.main()
    output = capsys.readouterr()
    assert ended.value.code == 6
    assert json.loads(output.out)["kind"] == "OutputError"
    assert len(output.err.splitlines()) == 1  # nothing of what it would use


def test_files_are_read_by_the_buffer_that_was_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{folder}/catalog.sqlite")
    image = folder / "image.fits"
    fits.writeto(image, np.zeros((700, 1000), np.float32))
    row = {"file": "here:image.fits", "x0": 0, "y0": 0, "width": 1000, "height": 700}
    whole = {name: [value] for name, value in row.items()}
    run(monkeypatch, "store", "add", "here", str(folder))
    run(monkeypatch, "probe", "here", "--quick", "--max-time", "1s")
    load = predict(whole).explained[0]["plans"][0]["load"]
    assert 200_000 < load["largest"] <= 256 << 10
    capsys.readouterr()
    with monkeypatch.context() as patched:
        patched.setattr(BufferStudy, "choice", property(lambda _: 100_000, lambda *_: None), False)
        run(
            monkeypatch, "buffer", "here:image.fits", "--max-time", "1s", "--repeats", "1", "--json"
        )
    assert json.loads(capsys.readouterr().out)["stored_bytes"] == 100_000
    for _ in range(2):
        load = predict(whole).explained[0]["plans"][0]["load"]
        assert load["requests"] >= 28
        assert load["largest"] <= 100_000
        # A later probe leaves it.
        run(monkeypatch, "probe", "here", "--quick", "--max-time", "1s")
    run(monkeypatch, "store", "show", "here")
    assert "buffer_bytes 100000" in capsys.readouterr().out


def test_the_command_line_starts_without_numpy() -> None:
    code = "import swathe.cli.app, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "matplotlib", "astropy", "rich.table"} & set(done.stdout.split())
