"""The parts of a write, measured apart: what equation 1 of the multi-storage paper adds up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from swathe.catalog import Catalog, this_host
from swathe.core.errors import OutputError, SourceError
from swathe.core.format import MIB
from swathe.costs.cost_model import Costs
from swathe.costs.probing.probe_writes import WriteProbe
from swathe.costs.probing.resolve_target import ProbeTarget, find_place
from swathe.costs.probing.save import WRITE_STAGES, keep_probe
from swathe.costs.probing.staged_writes import WebDavWriter, write_file_by_parts
from swathe.costs.probing.store_probe import measure_store
from swathe.costs.probing.write_stages import SIZES, StageTimes, WriteStages, measure_stages
from swathe.costs.store_times import reading_times, store_times, writing_times
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import Runner
from tests.support.scripted_servers import Handler, serving
from tests.support.servers import NGINX, nginx, proxy

LIMITS = (10.0, 1 << 30)


class SimulatedWrites:
    """Writes that take known times by a clock of their own."""

    def __init__(self) -> None:
        self.clock_s = 0.0
        self.bytes = 0

    def write(self, names: Sequence[str], content: bytes) -> Sequence[StageTimes]:
        send_s = len(content) / 2e7
        stages = {"connect": 0.05, "open": 0.02, "write": send_s, "answer": 0.06, "move": 0.03}
        self.clock_s += sum(stages.values())
        self.bytes += len(content) * len(names)
        return [stages] * len(names)

    def clock(self) -> float:
        return self.clock_s

    def measure(self, max_time_s: float, max_bytes: int) -> WriteStages:
        return measure_stages(self.write, "p-", max_time_s, max_bytes, clock=self.clock)


def test_the_terms_of_the_equation_are_found() -> None:
    stages = SimulatedWrites().measure(1000.0, 1 << 30)
    assert (stages.connect_s, stages.open_s) == (0.05, 0.02)
    assert stages.close_s == pytest.approx(0.09)
    assert {size for size, _ in stages.rates} == set(SIZES[1:])
    for (_, streams), rate in stages.rates.items():
        assert rate == pytest.approx(2e7 * streams)
    (times,) = [writing_times("s", stages)]
    assert times.rates == pytest.approx(dict.fromkeys(SIZES[1:], 2e7))
    assert WriteStages.from_dict(json.loads(json.dumps(stages.as_dict()))) == stages


def test_limits_are_kept() -> None:
    simulated = SimulatedWrites()
    stages = simulated.measure(1000.0, 20 * MIB)
    assert simulated.bytes == stages.bytes_moved <= 20 * MIB
    # Those without content are needed; all else would take too long.
    hasty = SimulatedWrites().measure(0.0, 1 << 30)
    assert [(each.size, each.streams, each.rounds) for each in hasty.sizes] == [
        (0, 1, 1),
        (0, 8, 1),
    ]
    assert hasty.rates == {}
    assert (hasty.objects, hasty.bytes_moved) == (9, 0)


def test_files_are_written_in_their_parts(tmp_path: Path) -> None:
    place = ProbeTarget("file:///", "folder", (), writable=f"{tmp_path}/")
    with WriteProbe(place) as writing:
        stages = writing.stages(*LIMITS)
        names = {path.name for path in tmp_path.iterdir()}
    assert stages.folder_s is None
    assert not list(tmp_path.iterdir())
    assert len(names) == len(SIZES) * 9
    assert not [name for name in names if name.endswith(".part")]
    assert {tuple(each.stages) for each in stages.sizes} == {
        ("open", "write", "fsync", "close", "rename", "folder")
    }
    assert stages.connect_s == 0
    assert min(stages.open_s, stages.close_s) > 0
    with pytest.raises(OutputError, match="none/a: cannot be written: No such file"):
        write_file_by_parts(tmp_path / "none" / "a", b"")


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
@pytest.mark.more
def test_webdav_is_written_in_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "c.sqlite"))
    with nginx(tmp_path) as server, proxy(server.url, rtt_ms=20) as link:
        (server.folder / "a.fits").write_bytes(bytes(MIB))
        options = {"probe_object": "a.fits"}
        with Catalog.open() as catalog:
            catalog.add_store("web", f"dav://{link.host}/dav", options=options)
            place = find_place("web")
            with WriteProbe(place) as writing:
                stages = writing.stages(*LIMITS)
            found = measure_store(place, quick=True, write=True)
            keep_probe(catalog, found)
            reads, writes = store_times(catalog)
        assert [path.name for path in server.folder.iterdir()] == ["a.fits"]
    assert {tuple(each.stages) for each in stages.sizes} == {("connect", "write", "answer", "move")}
    # Three folders, each a round trip.
    assert stages.folder_s is not None and stages.folder_s >= 0.06
    # One round trip for PUT and one for MOVE.
    assert stages.close_s >= 0.04
    assert (reads.store, reads.direction, writes.direction) == ("web", "read", "write")
    assert reads.seek_s >= 0.02 and writes.close_s >= 0.04


def test_an_older_probe_without_parts_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "c.sqlite"))
    (folder := tmp_path / "files").mkdir()
    (folder / "a.fits").write_bytes(np.random.default_rng(1).bytes(MIB))
    found = measure_store(find_place(str(folder)), quick=True, max_time_s=0.5, write=True)
    assert found.stages is not None
    assert found.as_dict()["stages"]["sizes"][0]["size"] == 0
    with Catalog.open() as catalog:
        keep_probe(catalog, replace(found, stages=None))
        assert [each.direction for each in store_times(catalog)] == ["read"]
        keep_probe(catalog, found)
        keep_probe(catalog, replace(found, stages=None))
        reads, writes = store_times(catalog)
        probes = catalog.probes("file:///", this_host())
    assert [WRITE_STAGES in each.parameters for each in probes] == [False, True, False]
    assert (reads.store, writes.store) == ("local files", "local files")
    assert writes.close_s == pytest.approx(found.stages.close_s)


def test_times_of_reading_are_those_of_the_costs() -> None:
    costs = Costs(0.05, 0.01, ((4096, 0.06), (4096 + 2_000_000, 0.16)), 2e7, 1e9, 8)
    times = reading_times("s", costs)
    assert (times.connect_s, times.open_s, times.seek_s, times.close_s) == (0.05, 0.01, 0.06, 0)
    assert times.rates[16 * MIB] == pytest.approx(2e7, rel=0.01)


@pytest.mark.parametrize("refusal", ["PUT", "MOVE"])
def test_webdav_that_is_refused_leaves_nothing(refusal: str) -> None:
    requests: list[str] = []

    class Refusing(Handler):
        def do_PUT(self) -> None:
            self.taken()
            requests.append(f"{self.command} {self.path}")
            self.answer(405 if self.command == refusal else 201)

        do_MOVE = do_DELETE = do_OPTIONS = do_PUT

    with (
        serving(Refusing) as url,
        pytest.raises(OutputError, match=f"/a: expected an answer 2xx to {refusal}, found 405"),
    ):
        WebDavWriter("token").write(f"{url}/a", b"content")
    assert requests[:3] == ["OPTIONS /a", "OPTIONS /a", "PUT /a.part"]
    assert requests[-1] == "DELETE /a.part"
    with pytest.raises(SourceError, match="/a: no answer"):
        WebDavWriter().write(f"{url}/a", b"")


def test_the_table_is_printed(run: Runner, tmp_path: Path) -> None:
    (folder := tmp_path / "files").mkdir()
    (folder / "a.fits").write_bytes(np.random.default_rng(1).bytes(MIB))
    words = ("probe", str(folder), "--quick", "--max-time", "0.5s", "--write", "--table")
    text = run(*words)
    titles, reads, writes = text.splitlines()[-3:]
    assert titles.split()[:5] == ["store", "connection", "open", "seek", "64"]
    assert reads.startswith("local files  read") and writes.startswith("local files  write")
    assert "  0 B: open" in text and ", fsync" in text
    table = json.loads(run(*words, "--json"))["table"]
    assert [each["direction"] for each in table] == ["read", "write"]
    assert table[1]["close_s"] > 0
