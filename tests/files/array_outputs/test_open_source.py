"""Cuts of files that need a password are written without opening them again."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import SwatheError
from tests.conftest import DATA
from tests.support.servers import PASSWORD, USER, FileServer, nginx

asdf = pytest.importorskip("asdf")
pydicom = pytest.importorskip("pydicom")
cut: Any = swathe.cut
opened: Any = swathe.open
GWCS = DATA / "formats" / "nircamwcs.asdf"
VALUES = np.arange(20 * 30, dtype="f4").reshape(20, 30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    with nginx(tmp_path_factory.mktemp("nginx")) as files:
        write(files.folder / "a.asdf")
        from pydicom.data import get_testdata_file

        scan = Path(str(get_testdata_file("CT_small.dcm", download=False)))
        (files.folder / "a.dcm").write_bytes(scan.read_bytes())
        yield files


def write(path: Path, **more: Any) -> None:
    asdf.AsdfFile({"data": VALUES, "meta": {"filter": "F106"}, **more}).write_to(path)


def url_of(server: FileServer, name: str) -> str:
    return f"http://{USER}:{PASSWORD}@{server.host}/password/{name}"


@pytest.mark.parametrize("name", ["a.dcm", "a.asdf"])
def test_a_cut_is_written_by_the_open_file(server: FileServer, tmp_path: Path, name: str) -> None:
    cutout = cut(url_of(server, name), box=(3, 4, 6, 5))
    assert PASSWORD not in f"{cutout.url}{cutout!r}"
    for number, each in enumerate((cutout, copy.copy(cutout), copy.deepcopy(cutout))):
        each.write(tmp_path / f"{number}{name}")
        again = cut(tmp_path / f"{number}{name}", box=(0, 0, 6, 5))
        np.testing.assert_array_equal(again.data, cutout.data)


def test_a_pickle_has_no_password(server: FileServer, tmp_path: Path) -> None:
    content = pickle.dumps(cut(url_of(server, "a.dcm"), box=(3, 4, 6, 5)))
    assert PASSWORD.encode() not in content
    with pytest.raises(SwatheError, match="401"):
        pickle.loads(content).write(tmp_path / "a.dcm")


@pytest.mark.skipif(not GWCS.is_file(), reason=f"no data in {DATA}")
def test_a_gwcs_is_read_by_the_open_file(server: FileServer, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with asdf.open(GWCS, memmap=False, lazy_load=False) as file:
            write(server.folder / "sky.asdf", wcs=file["wcs"])
    cutout = cut(url_of(server, "sky.asdf"), array="/data", box=(3, 4, 6, 5))
    cutout.write(tmp_path / "cut.asdf")
    assert opened(tmp_path / "cut.asdf").attrs["gwcs"].tolist() == ["/wcs"]
