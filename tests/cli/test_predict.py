"""`swathe predict`: the cost of the cut that will be made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import swathe
from swathe.costs.prediction import Prediction, StoreCost
from swathe.costs.recorded_outcome import CallOutcome
from tests.support.fits_frames import Runner, contents, noise


def test_the_cut_that_will_be_made_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    (tmp_path / "cube.fits").write_bytes(contents(noise(3, (8, 200, 400)), "fit"))
    table = tmp_path / "t.csv"
    table.write_text("file,x0,y0,width,height\ncube.fits,-5,10,300,150\ncube.fits,9,9,9,9\n")
    whole = run.json("predict", "--targets", table)
    planes = run.json("predict", "--targets", table, "--planes", "2:4")
    assert (whole["faults"], planes["faults"]) == ([], [])
    assert planes["bytes"] == swathe.predict(table, planes=(2, 4)).bytes
    assert planes["bytes"] < whole["bytes"] / 2
    strict = run.json("predict", "--targets", table, "--mode", "strict")
    assert strict["bytes"] == swathe.predict(table, mode="strict").bytes
    assert strict["bytes"] < whole["bytes"] / 10, "the first target is not read"
    shown, _ = run.told("predict", "--targets", table, "--machines", "2")
    total, parts, heading, titles, row, *_ = shown.splitlines()
    assert re.fullmatch(r"total: .* in 80 of 100 cases\), .* in \d+ requests", total)
    assert re.fullmatch(r"  of this .* for reading and cutting, .* for list, .* manifest", parts)
    assert heading == "reading and cutting, by store:"
    assert titles.split("  ")[0] == "store" and row.startswith("file://")
    assert "--planes" in run("predict", "--targets", table, "--planes", "2-4", code=2)


def test_shares_and_notes_have_columns_only_if_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.fits").write_bytes(contents(noise(3), "fit"))
        run("store", "add", name, tmp_path / name)
    table = tmp_path / "t.csv"
    table.write_text("file,x0,y0,width,height\na.fits,5,10,30,15\n")
    shown, _ = run.told("predict", "--targets", table, "--store", "one", "--store", "two")
    lines = shown.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("store "))
    assert lines[at - 1].startswith("reading and cutting, if one store alone were used; share is")
    assert lines[at].split()[-1] == "share"
    shares = [line.split()[-1] for line in lines[at + 1 : at + 3]]
    assert sum(int(share.removesuffix("%")) for share in shares) == 100


def test_what_no_store_has_is_told_without_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("file,ra,dec,size_arcsec\nnone.fits,10,1,30\n")
    shown, told = Runner(monkeypatch, capsys).told("predict", "--targets", table)
    assert "store" not in shown
    assert "target 0: " in told


def test_a_piece_that_is_done_leaves_the_store_of_a_call() -> None:
    interval_s = (0.5, 2.0)
    cost = StoreCost(1.0, interval_s, 10, 1, 1, 1, 0, 0, True, 0.1, 0.1, is_local=True)
    done = Prediction(0.0, (0.0, 0.0), 0, 0, {})
    read = Prediction(1.0, interval_s, 10, 1, {"file:///": cost})
    call = CallOutcome()
    for prediction in (done, read, done):
        call.expect(prediction, 0.0)
    assert call.root == "file:///"
