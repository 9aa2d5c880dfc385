"""What writing results takes is learned output by output, and predictions follow it."""

from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog, Outcome, OutcomeLog, this_host
from swathe.cli import app
from swathe.costs.past_outcomes import past_outcomes
from swathe.costs.write_costs import WriteCosts, output_key
from swathe.files.manifest import read_manifest
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import contents, noise, sky_header

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DISK = WriteCosts(20e-6, 0.5e-9)


def outcome(output: str, targets: int, size: int, write_s: float) -> Outcome:
    """Return the outcome of a call that wrote `targets` results of `size` bytes each."""
    return Outcome(
        *(NOON, this_host(), "a cut", targets, "file:///", 1.0, 0.5, 2.0, 1.0, 1, 1, 1, 1),
        model_s=1.0,
        engine_s=1.0,
        output=output,
        write_s=write_s,
        written_bytes=targets * size,
    )


def test_an_output_without_outcomes_is_as_the_temporary_folder() -> None:
    other = outcome("folder on /nfs", 100, 1000, 1.0)
    assert DISK.learn([other], "folder on /home") is DISK


def test_an_output_of_another_kind_is_slow_on_a_slow_file_system() -> None:
    folders = [outcome("folder on /nfs", 1000, 2880, 4.0 + at / 10) for at in range(3)]
    costs = DISK.learn([*folders, outcome("folder on /", 1000, 2880, 0.03)], "zip on /nfs")
    assert 1000 * costs.result_s + 2_880_000 * costs.byte_s == pytest.approx(4.1, rel=0.1)
    fast = DISK.learn([*folders, outcome("zip on /nfs", 1000, 2880, 0.4)], "zip on /nfs")
    assert 1000 * fast.result_s + 2_880_000 * fast.byte_s == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_both_costs_are_learned_from_lists_of_several_sizes(seed: int) -> None:
    """The result of a network disk takes 3 ms, its bytes 8 ns each."""
    draw = random.Random(seed)
    calls = []
    for _ in range(20):
        targets, size = round(math.exp(draw.uniform(0, 8))), round(math.exp(draw.uniform(8, 17)))
        write_s = (targets * 3e-3 + targets * size * 8e-9) * math.exp(draw.gauss(0, 0.1))
        calls.append(outcome("zip on /nfs", targets, size, write_s))
    costs = DISK.learn(calls, "zip on /nfs")
    assert costs.result_s == pytest.approx(3e-3, rel=0.25)
    assert costs.byte_s == pytest.approx(8e-9, rel=0.25)
    assert costs.outcomes == 20


def test_one_call_says_most_of_what_is_known() -> None:
    costs = DISK.learn([outcome("folder on /nfs", 1000, 2880, 4.0)], "folder on /nfs")
    assert 1000 * costs.result_s + 2_880_000 * costs.byte_s == pytest.approx(4.0, rel=0.05)


def test_a_slow_moment_does_not_count_as_much_as_the_others() -> None:
    calls = [outcome("tar on /", 500, 10_000, 0.05 + 0.001 * at) for at in range(9)]
    calls.insert(7, outcome("tar on /", 500, 10_000, 20.0))
    costs = DISK.learn(calls, "tar on /")
    assert 500 * costs.result_s + 5_000_000 * costs.byte_s == pytest.approx(0.055, rel=0.3)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_the_next_calls(seed: int) -> None:
    draw = random.Random(seed)
    held = calls = 0
    for _ in range(60):
        result_s, scatter = math.exp(draw.uniform(-11, -4)), draw.uniform(0.05, 0.5)
        past: list[Outcome] = []
        for number in range(25):
            targets = draw.randint(1, 1000)
            write_s = targets * result_s * math.exp(draw.gauss(0, scatter))
            if number >= 15:
                costs = DISK.learn(past, "folder on /")
                expected_s = targets * costs.result_s + targets * 2880 * costs.byte_s
                ratio = math.log(write_s / expected_s)
                held += -costs.faster <= ratio <= costs.slower
                calls += 1
            past.append(outcome("folder on /", targets, 2880, write_s))
    assert 0.7 <= held / calls <= 0.92


def test_an_interval_widens_by_the_part_that_is_writing() -> None:
    low_s, high_s = DISK.widen(10.0, (9.0, 12.0), 0.0)
    assert (low_s, high_s) == pytest.approx((9.0, 12.0))
    low_s, high_s = DISK.widen(10.0, (9.0, 12.0), 5.0)
    assert 0 < low_s < 9.0
    assert high_s > 12.0


def test_the_key_of_an_output_is_its_kind_and_its_mount_point(tmp_path: Path) -> None:
    mount = output_key(tmp_path, "folder").removeprefix("folder on ")
    assert Path(mount).is_mount()
    assert output_key(tmp_path / "no" / "such" / "o.zip", "zip") == f"zip on {mount}"
    link = tmp_path / "link"
    link.symlink_to("/proc/self")
    assert output_key(link, "folder") == "folder on /proc"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    path = tmp_path / "image.fits"
    header = sky_header(10.0, -1.0, 1e-4)
    header["CRPIX1"] = header["CRPIX2"] = 150.0
    path.write_bytes(contents(noise(1, (300, 300)), "fit", header))
    return path


def boxes(image: Path, count: int) -> dict[str, list[Any]]:
    numbers = {"x0": 1, "y0": 2, "width": 50, "height": 40}
    columns: dict[str, list[Any]] = {name: [value] * count for name, value in numbers.items()}
    return {"file": [str(image)] * count, **columns}


def test_calls_record_what_writing_took(image: Path, tmp_path: Path) -> None:
    swathe.cut_many(boxes(image, 20), tmp_path / "o.zip", progress=False)
    swathe.cut_many(boxes(image, 20), "null:", progress=False)
    swathe.cut_many(boxes(image, 20), tmp_path / "npy", format="npy", progress=False)
    with Catalog.open() as catalog:
        made, dropped, archive = catalog.outcomes()
    assert archive.output == output_key(tmp_path / "o.zip", "zip")
    assert archive.write_s > 0
    manifest = read_manifest(tmp_path / "o.manifest.ecsv")
    assert manifest is not None
    assert archive.written_bytes == manifest["bytes"].sum()
    assert dropped.output == ""
    assert (made.output, made.root, made.write_s) == ("cut as npy", "", 0.0)
    assert made.model_s > 0


def test_a_resumed_run_counts_what_it_wrote(image: Path, tmp_path: Path) -> None:
    targets = boxes(image, 20)
    swathe.cut_many({name: column[:15] for name, column in targets.items()}, tmp_path / "o")
    swathe.cut_many(targets, tmp_path / "o", resume=True, progress=False)
    with Catalog.open() as catalog:
        second, first = catalog.outcomes()
    assert (first.targets, second.targets) == (15, 5)
    assert first.written_bytes == 3 * second.written_bytes


@pytest.mark.parametrize(
    ("made", "options"),
    [
        ("cut as npy", {"format": "npy"}),
        ("rgb as rgb", {"format": "rgb", "bands": ("i", "r", "g")}),
    ],
)
def test_making_results_is_predicted_from_earlier_calls(
    image: Path, tmp_path: Path, made: str, options: dict[str, Any]
) -> None:
    """Calls that took fifty times as long as the model says; the next prediction does, too."""
    targets = boxes(image, 6)
    if "bands" in options:
        targets = {"file": targets["file"], "ra": [10.0] * 6, "dec": [-1.0] * 6}
        targets |= {
            "size_deg": [4e-3] * 6,
            "group": ["a", "a", "a", "b", "b", "b"],
            "band": ["r", "g", "i"] * 2,
        }
    predicted = swathe.cut_many(targets, tmp_path / "1", progress=False, **options).meta
    with Catalog.open() as catalog:
        (before,) = catalog.outcomes()
        for _ in range(10):
            catalog.add_outcome(replace(before, engine_s=50 * before.model_s))
    after = swathe.cut_many(targets, tmp_path / "2", progress=False, **options).meta
    assert before.output == made
    assert after["predicted_s"] - predicted["predicted_s"] > 20 * before.model_s


def test_a_prediction_knows_the_output(image: Path, tmp_path: Path) -> None:
    slow = outcome(output_key(tmp_path / "o", "folder"), 1000, 5760, 20.0)
    with Catalog.open() as catalog:
        for _ in range(3):
            catalog.add_outcome(replace(slow, root="s3://elsewhere"))
    targets = boxes(image, 200)
    plain = swathe.predict(targets)
    slower = swathe.predict(targets, output=tmp_path / "o")
    archive = swathe.predict(targets, output=tmp_path / "o.zip")
    dropped = swathe.predict(targets, output="null:")
    assert slower.write_s == pytest.approx(200 * 0.02, rel=0.1)
    assert slower.median_s > plain.median_s + 0.5
    assert archive.write_s == pytest.approx(slower.write_s, rel=0.1)
    assert plain.write_s < 0.2
    assert dropped.write_s == 0
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("output", "code", "text"),
    [("null:", "0", '"write_s": 0'), ("o.7z", "6", "o.7z: expected a folder")],
)
def test_the_output_is_an_option_of_the_command(
    image: Path,
    output: str,
    code: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = image.with_name("list.csv")
    targets.write_text(f"file,x0,y0,width,height\n{image},1,2,50,40\n")
    command = ["swathe", "predict", "--targets", str(targets), "-o", output, "--json"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match=code):
        app.main()
    told = capsys.readouterr()
    assert text in told.out + told.err


def test_the_log_beside_a_catalogue_keeps_them(image: Path) -> None:
    log = OutcomeLog.of(f"sqlite:///{image.parent}/catalog.sqlite")
    assert log is not None
    Catalog.open().close()
    log.append(outcome("tar on /data", 10, 100, 0.5))
    (read,) = past_outcomes().outcomes
    assert (read.output, read.write_s, read.written_bytes) == ("tar on /data", 0.5, 1000)


def test_costs_for_an_output_go_beside_those_of_the_host() -> None:
    added = json.loads(DISK.added_to('{"cut_s": 1e-4}'))
    assert added == {"cut_s": 1e-4, "output": {"result_s": 20e-6, "byte_s": 0.5e-9}}
    assert np.isfinite(json.loads(DISK.added_to(None))["output"]["byte_s"])
