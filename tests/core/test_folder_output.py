"""A folder that is one output replaces a Zarr of its name, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swathe.core.errors import OutputError
from swathe.core.folder_output import refuse_in_zarr, refuse_overlap, write_folder

MEMBERS = [("zarr.json", b"{}"), ("lst/zarr.json", b"{}"), ("lst/c/0/0", b"1"), ("x/c", b"1")]


def state(folder: Path) -> list[Any]:
    return sorted(
        (str(each.relative_to(folder)), each.read_bytes() if each.is_file() else b"")
        for each in folder.rglob("*")
    )


def test_a_zarr_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "a.zarr"
    write_folder(output, [*MEMBERS, ("old/.zarray", b"{}"), ("old/0.1", b"1"), ("c.0.1", b"")])
    write_folder(output, MEMBERS, overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["a.zarr"]
    assert not (output / "old").exists()


@pytest.mark.parametrize("name", ["thesis.txt", "lst/c/0/data.h5", "link", "folder"])
def test_a_zarr_with_other_files_stays(tmp_path: Path, name: str) -> None:
    output, beside = tmp_path / "a.zarr", tmp_path / "beside"
    write_folder(output, MEMBERS)
    beside.mkdir()
    if name in ("link", "folder"):
        target = beside if name == "folder" else output / "zarr.json"
        (output / "7").symlink_to(target, target_is_directory=name == "folder")
    else:
        (output / name).parent.mkdir(exist_ok=True, parents=True)
        (output / name).write_bytes(b"my own")
    before = state(tmp_path)
    with pytest.raises(OutputError, match="only files of a Zarr"):
        write_folder(output, MEMBERS, overwrite=True)
    assert state(tmp_path) == before


def test_a_link_to_a_zarr_stays(tmp_path: Path) -> None:
    write_folder(tmp_path / "a.zarr", MEMBERS)
    (tmp_path / "b.zarr").symlink_to("a.zarr")
    before = state(tmp_path)
    with pytest.raises(OutputError, match="a link"):
        write_folder(tmp_path / "b.zarr", MEMBERS, overwrite=True)
    assert state(tmp_path) == before


def test_outputs_and_sources_are_apart(tmp_path: Path) -> None:
    write_folder(tmp_path / "a.zarr", MEMBERS)
    (tmp_path / "b").symlink_to("a.zarr")
    for output in ("a.zarr/x.nc", "b/lst/x.zarr"):
        with pytest.raises(OutputError, match="inside the source"):
            refuse_overlap(tmp_path / output, tmp_path / "a.zarr")
    for source in ("a.zarr/lst", "b/lst/c/0/0"):
        with pytest.raises(OutputError, match="is inside it"):
            refuse_overlap(tmp_path / "a.zarr", tmp_path / source)
    refuse_overlap(tmp_path / "c.zarr", tmp_path / "a.zarr")
    refuse_overlap(tmp_path / "c.zarr", "https://example.org/a.zarr")


@pytest.mark.parametrize("marker", ["zarr.json", ".zgroup", ".zarray"])
def test_results_stay_out_of_a_zarr(tmp_path: Path, marker: str) -> None:
    (tmp_path / "a.zarr/c").mkdir(parents=True)
    (tmp_path / "a.zarr" / marker).touch()
    refuse_in_zarr(tmp_path / "b.nc")
    refuse_in_zarr(tmp_path / "a.zarr")
    for output in ("a.zarr/x.nc", "a.zarr/c/new/x.nc"):
        with pytest.raises(OutputError, match=r"it is inside the Zarr .*a\.zarr$"):
            refuse_in_zarr(tmp_path / output)
