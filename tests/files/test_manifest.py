"""The manifest: what it says, and that anyone can read it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

import swathe
from swathe import _swathe
from swathe.core.errors import OutputError
from swathe.core.row_table import DictColumn
from swathe.files.manifest import COLUMNS, read_manifest
from swathe.files.manifest_columns import LINE_ENDS, Manifest
from tests.support.fits_frames import noise, results, write_kinds
from tests.support.property_examples import examples


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kinds(tmp_path_factory.mktemp("frame"), "a", noise(1))[0]


def targets(frame: Path, **columns: Any) -> dict[str, Any]:
    """Targets of one column each, the rest sound."""
    count = len(next(iter(columns.values())))
    sound = {"file": [str(frame)] * count} | {name: [9] * count for name in ("x0", "y0")}
    return sound | {"width": [8] * count, "height": [5] * count} | columns


def cut_many(given: Any, output: Path, **options: Any) -> Table:
    return swathe.cut_many(given, output, progress=False, **options)


def texts(column: Any) -> list[str]:
    """A column as plain text; astropy masks what is empty."""
    return ["" if value is np.ma.masked else str(value) for value in column]


def test_columns_types_and_order_of_targets(frame: Path, tmp_path: Path) -> None:
    found = cut_many(targets(frame, id=["c", "a", "b"]), tmp_path)
    assert tuple(found.colnames) == COLUMNS
    assert [found[name].dtype.kind for name in COLUMNS] == list("UUUUiUUU")
    assert list(found["id"]) == ["c", "a", "b"]
    assert list(found["path"]) == ["c.fits", "a.fits", "b.fits"]
    assert set(found["source"]) == {str(frame)}


def test_bytes_and_sha256_are_those_of_the_results(frame: Path, tmp_path: Path) -> None:
    for output in ("folder", "z/out.zip", "t/out.tar", "f/out.fits"):
        found = cut_many(targets(frame, x0=[1, 2, 3]), tmp_path / output)
        written = results(tmp_path / output)
        assert len(written) == 3
        for row in found:
            result = written[row["path"]]
            assert row["bytes"] == len(result)
            assert row["sha256"] == hashlib.sha256(result).hexdigest()


def test_source_version_tells_versions_apart(tmp_path: Path) -> None:
    path = write_kinds(tmp_path, "a", noise(1))[0]
    first = cut_many(targets(path, x0=[1]), tmp_path / "one")
    assert first["source_version"][0] == swathe.open(path).version
    assert str(path.stat().st_size) in first["source_version"][0]
    os.utime(path, (1e9, 1e9))
    second = cut_many(targets(path, x0=[1]), tmp_path / "two")
    assert second["source_version"][0] != first["source_version"][0]


def test_statuses_and_reasons(frame: Path, tmp_path: Path) -> None:
    files = [str(frame), str(frame), str(tmp_path / "none.fits"), str(frame), str(frame)]
    rows = targets(frame, file=files, x0=[1, 5000, 1, 1.5, 1], hdu=[0, 0, 0, 0, 7])
    found = cut_many(rows, tmp_path / "out")
    assert list(found["status"]) == ["ok", "no-overlap", "missing", "error", "error"]
    for row, said in enumerate(["", "overlap", "none.fits: not found", "x0", "no HDU 7"]):
        assert said in found["reason"][row]
        assert bool(said) == bool(found["reason"][row])
    for row in found[1:]:
        assert (row["path"], row["bytes"], row["sha256"]) == ("", 0, "")
    counts = {name: found.meta[name] for name in ("ok", "no-overlap", "missing", "error")}
    assert counts == {"ok": 1, "no-overlap": 1, "missing": 1, "error": 2}


def test_meta_says_what_was_asked_for_and_what_it_cost(frame: Path, tmp_path: Path) -> None:
    found = cut_many(targets(frame, x0=[1]), tmp_path / "out.zip", mode="partial")
    meta = found.meta
    assert (meta["output"], meta["mode"]) == ("out.zip", "partial")
    assert meta["swathe"] == swathe.__version__
    assert meta["bytes_moved"] > 0
    assert meta["notes"] == []
    stages = ("open", "read", "decode", "assemble", "hash", "write", "wall", "actual")
    for stage in stages:
        assert 0 <= meta[f"{stage}_s"] < 60
    assert meta["actual_s"] >= meta["wall_s"]


@pytest.mark.parametrize("output", ["folder", "out.zip"])
def test_file_is_what_was_returned(frame: Path, tmp_path: Path, output: str) -> None:
    given = cut_many(targets(frame, x0=[1, 9000, 3]), tmp_path / output)
    path = tmp_path / {"folder": "folder/manifest.ecsv", "out.zip": "out.manifest.ecsv"}[output]
    for format in (None, "ascii.ecsv"):
        kept = Table.read(path, format=format)
        assert kept.colnames == given.colnames
        assert kept["bytes"].dtype == np.int64
        for name in COLUMNS:
            assert texts(kept[name]) == texts(given[name])
        assert kept.meta == given.meta


def test_ids_of_any_characters_come_back(frame: Path, tmp_path: Path) -> None:
    ids = ["a,b", 'q"q', "n\nl", "üñ✨", "-- # %", "'", "nan", "1e5", "\\", "a\tb", "None", "#9"]
    found = cut_many(targets(frame, id=ids), tmp_path)
    assert list(found["id"]) == ids
    assert set(found["status"]) == {"ok"}
    assert texts(Table.read(tmp_path / "manifest.ecsv")["id"]) == ids
    assert {path.name for path in tmp_path.iterdir()} == {*found["path"], "manifest.ecsv"}


@settings(max_examples=examples(40))
@given(
    ids=st.lists(
        st.sampled_from(["#", "# a", "a\n #b"])
        | st.text(st.characters(exclude_categories=["Cs"])).map(str.strip),
        min_size=1,
    ),
    reason=st.text(st.characters(exclude_categories=["Cs"])).map(str.strip),
)
def test_any_text_can_be_read_again(
    ids: list[str], reason: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ecsv"
    made = Manifest(ids, DictColumn.same("source", len(ids)), {"output": "x"}, ids)
    for row in range(len(ids)):
        made.enter(row, "error", reason)
    made.write(path)
    kept = read_manifest(path)
    assert kept is not None
    # Line ends of other kinds become spaces, and spaces before a line end are lost.
    plain = [LINE_ENDS.sub(" ", text).split() for text in [*ids, reason]]
    assert [text.split() for text in texts(kept["id"])] == plain[:-1]
    assert [text.split() for text in texts(kept["reason"])] == plain[-1:] * len(ids)


def test_new_manifest_says_interrupted() -> None:
    made = Manifest(["a", "b"], DictColumn.of(["f", "g"]), {}, ["a.fits", "b.fits"])
    assert list(made.table()["status"]) == ["error", "error"]
    assert list(made.table()["reason"]) == ["interrupted", "interrupted"]
    assert made.counts() == {"ok": 0, "no-overlap": 0, "missing": 0, "error": 2}


def test_write_replaces_at_once_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "manifest.ecsv"
    for name in ("first", "second"):
        Manifest([name], DictColumn.of(["f"]), {"output": name}, ["f"]).write(path)
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.ecsv"]
    assert "second" in path.read_text()
    with pytest.raises(OutputError, match="none"):
        Manifest(["a"], DictColumn.of(["f"]), {}, ["a"]).write(tmp_path / "none" / "manifest.ecsv")


def test_hundred_thousand_rows_are_written_quickly(tmp_path: Path) -> None:
    count = 100_000
    ids = [str(n) for n in range(count)]
    made = Manifest(ids, DictColumn.same("/a/b.fits", count), {}, ids)
    made.write(tmp_path / "m.ecsv")  # astropy's own writer takes 20 s
    assert (tmp_path / "m.ecsv").read_bytes().count(b"\n") > count


def test_no_manifest_is_none_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.ecsv"
    assert read_manifest(path) is None
    for text in ("", "a,b\n1,2\n", "\0\xff"):
        path.write_text(text)
        with pytest.raises(OutputError, match=r"manifest\.ecsv: is not a manifest of Swathe"):
            read_manifest(path)
    Table({"id": ["a"]}).write(path, format="ascii.ecsv", overwrite=True)
    with pytest.raises(OutputError, match="no column 'status'"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/a/b@c?token=x.fits", "/a/b@c?token=x.fits"),
        ("http://h:1/a%20b.fits?band=r", "http://h:1/a%20b.fits?band=r"),
        ("http://user:p@ss@h/a.fits#f", "http://h/a.fits"),
        ("https://h/a?X-Amz-Signature=1&n=2&Sig=3", "https://h/a?X-Amz-Signature=...&n=2&Sig=..."),
        ("http://[::1/a?token=x", "http://..."),
        ("s3://bucket/a key.fits", "s3://bucket/a key.fits"),
    ],
)
def test_sources_are_shown_without_secrets(source: str, shown: str) -> None:
    assert _swathe.redact_url(source) == shown
