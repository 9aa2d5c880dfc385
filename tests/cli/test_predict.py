"""`swathe predict`: the cost of the cut that will be made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import swathe
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
