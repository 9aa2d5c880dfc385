"""Results in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from swathe import _swathe
from swathe.core.errors import OutputError
from swathe.stores.results import Folder


def test_what_cannot_be_removed_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    for job in ("one", "other"):
        (tmp_path / job).mkdir()
        (tmp_path / job / "a.fits").touch()
        folder.begin_removal(job)

    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(_swathe, "remove_folder", refuse)
        with pytest.raises(OutputError, match=r"\.gone-one: cannot remove it: .*denied"):
            folder.remove("one", lambda: False)
    assert folder.remove("other", lambda: False)
    assert [path.name for path in tmp_path.iterdir()] == [".gone-one"]
    assert folder.remove("one", lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_comes_back_while_it_is_removed_is_removed_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for name in ("a.fits", "b.fits"):  # the second by a worker that did not see the deletion
        (tmp_path / "job").mkdir()
        (tmp_path / "job" / name).touch()
        folder.begin_removal("job")
        assert not (tmp_path / "job").exists()
    assert len(list(tmp_path.rglob("*.fits"))) == 2
    assert folder.remove("job", lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_removing_stops_when_asked_and_follows_no_link(tmp_path: Path) -> None:
    image = tmp_path / "image.fits"
    image.touch()
    folder = Folder(tmp_path / "results")
    (tmp_path / "results" / "job").mkdir()
    (tmp_path / "results" / "job" / "link").symlink_to(tmp_path)
    assert not folder.remove("job", lambda: True)
    assert len(list((tmp_path / "results").iterdir())) == 1
    assert folder.remove("job", lambda: False)
    assert list((tmp_path / "results").iterdir()) == []
    assert image.exists()


def test_only_what_was_put_away_is_removed(tmp_path: Path) -> None:
    """Whoever keeps results in a folder of images has other folders there."""
    names = (".gone-observing", ".gone-2026", ".gone-0123456789ABCDEF", ".gone-0123456789abcdef0")
    kept = [tmp_path / name / "a.fits" for name in (*names, "images")]
    for path in kept:
        path.parent.mkdir()
        path.touch()
    (tmp_path / "job").mkdir()
    folder = Folder(tmp_path)
    folder.begin_removal("job")
    assert len(list(tmp_path.iterdir())) == len(kept) + 1
    assert folder.remove("job", lambda: False)
    assert sorted(tmp_path.rglob("a.fits")) == sorted(kept)
    assert len(list(tmp_path.iterdir())) == len(kept)
