"""Archives of groups are unpacked into folders, and nothing of them leads elsewhere."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from swathe.client.group_folders import unpack_groups
from swathe.core.errors import OutputError, OutputExistsError, SourceError


def archive(folder: Path, *names: str, content: bytes = b"12345678") -> Path:
    path = folder / "2005-05-01.zip"
    with ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, content)
    return path


def test_each_group_has_a_folder(tmp_path: Path) -> None:
    archive(tmp_path, "grid.nc", "log.csv")
    grid = tmp_path / "2005-05-01" / "grid.nc"
    for _ in range(2):  # again: they are there
        unpack_groups(tmp_path, ["2005-05-01.zip", "a.fits"], overwrite=False)
    assert {path.name for path in grid.parent.iterdir()} == {"grid.nc", "log.csv"}
    assert grid.read_bytes() == b"12345678"
    grid.write_bytes(b"my notes")
    with pytest.raises(OutputExistsError):
        unpack_groups(tmp_path, ["2005-05-01.zip"], overwrite=False)
    assert grid.read_bytes() == b"my notes"
    unpack_groups(tmp_path, ["2005-05-01.zip"], overwrite=True)
    assert grid.read_bytes() == b"12345678"


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ".x", "a\\b", "x" * 300])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    archive(tmp_path, name)
    with pytest.raises(SourceError, match="plain names"):
        unpack_groups(tmp_path, ["2005-05-01.zip"], overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"2005-05-01.zip"}


@pytest.mark.parametrize("name", ["...zip", ".zip", "../2005-05-01.zip", "/x.zip"])
def test_groups_whose_folder_would_be_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    archive(tmp_path, "grid.nc").rename(inner / "...zip")
    with pytest.raises(SourceError, match="names of groups"):
        unpack_groups(inner, [name], overwrite=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", "...zip"]


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, "grid.nc")
    whole = path.read_bytes()
    for old, new, text in (
        (b"12345678", b"12345679", "is damaged"),
        ((8).to_bytes(4, "little"), (1 << 30).to_bytes(4, "little"), "found more"),
    ):
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(SourceError, match=text):
            unpack_groups(tmp_path, [path.name], overwrite=False)
        assert not (tmp_path / "2005-05-01/grid.nc").exists()
    with pytest.warns(UserWarning, match="Duplicate"):
        archive(tmp_path, "a", "a")
    with pytest.raises(SourceError, match="found one twice"):
        unpack_groups(tmp_path, [path.name], overwrite=False)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    archive(tmp_path, "grid.nc")
    (tmp_path / "other").mkdir()
    (tmp_path / "2005-05-01").symlink_to("other")
    with pytest.raises(OutputError, match="found a link"):
        unpack_groups(tmp_path, ["2005-05-01.zip"], overwrite=False)
    assert not list((tmp_path / "other").iterdir())
