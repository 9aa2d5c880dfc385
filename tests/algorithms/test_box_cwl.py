"""What a run of CWL leaves: files of outputs, and zips of several."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from swathe.algorithms.box_cwl import write_zip


@pytest.mark.parametrize("kind", ["Directory", "File"])
def test_the_same_files_are_the_same_zip_at_any_time(kind: str, tmp_path: Path) -> None:
    zips = []
    for number, time in enumerate((0, 1_000_000_000)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        paths = [folder / "a.csv", folder / "b.csv"]
        for path in paths:
            path.write_text(path.name)
            path.chmod(0o600 + 0o111 * number)
            os.utime(path, (time, time))
        values = [{"class": kind, "path": str(each)} for each in paths]
        write_zip(
            values if kind == "File" else [{"class": kind, "path": str(folder)}],
            tmp_path / f"{number}.zip",
        )
        zips.append((tmp_path / f"{number}.zip").read_bytes())
    assert zips[0] == zips[1]
    with zipfile.ZipFile(tmp_path / "1.zip") as archive:
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read("b.csv") == b"b.csv"
        assert archive.infolist()[0].compress_type == zipfile.ZIP_DEFLATED


def test_a_folder_without_files_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_zip([{"class": "Directory", "path": str(tmp_path / "empty")}], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
