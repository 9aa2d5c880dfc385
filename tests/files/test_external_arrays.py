"""Arrays that lie in other files of the folder: read if the user allows it, and only there."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import asdf
import h5py
import numpy as np
import pytest

import swathe
from swathe.cli import app
from swathe.core.errors import ChangedError, FormatError, OptionError
from swathe.core.landlock import landlock_version

pytestmark = pytest.mark.skipif(
    not landlock_version(), reason="the system cannot confine a process to a folder"
)
VALUES = np.arange(48, dtype="<i4").reshape(6, 8)


def opened(path: Path, **options: bool) -> Any:
    return swathe.open(path, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with HDF5 files that name each other, and what lies outside of it."""
    outside = tmp_path_factory.mktemp("external")
    folder = outside / "in"
    (folder / "parts").mkdir(parents=True)
    with h5py.File(folder / "parts" / "other.h5", "w") as other:
        other["values"] = VALUES
        other["values"].attrs["units"] = "K"
        other["group/deep"] = VALUES[::-1]
        other.create_dataset("raw", (4,), "u1", external=[("raw.bin", 0, 4)])
    (folder / "parts" / "raw.bin").write_bytes(b"PART")
    with h5py.File(outside / "secret.h5", "w") as secret:
        secret["values"] = VALUES
    (outside / "secret.bin").write_bytes(b"secret")
    os.symlink("../secret.h5", folder / "way_out.h5")
    os.symlink("parts/other.h5", folder / "way_in.h5")
    os.mkfifo(folder / "pipe.h5")
    os.link(outside / "secret.h5", folder / "second_name.h5")
    (folder / "raw.bin").write_bytes(VALUES.tobytes())
    layout = h5py.VirtualLayout((2, 6, 8), "<i4")
    layout[0] = h5py.VirtualSource("parts/other.h5", "values", (6, 8))
    layout[1] = h5py.VirtualSource("way_in.h5", "group/deep", (6, 8))
    out = h5py.VirtualLayout((6, 8), "<i4")
    out[:] = h5py.VirtualSource("../secret.h5", "values", (6, 8))
    with h5py.File(folder / "main.h5", "w") as main:
        main["here"] = VALUES
        main.create_dataset("raw", (6, 8), "<i4", external=[("raw.bin", 0, 192)])
        main["link"] = h5py.ExternalLink("parts/other.h5", "/values")
        main["all"] = h5py.ExternalLink(str(folder / "parts" / "other.h5"), "/")
        main.create_virtual_dataset("virtual", layout)
        main.create_virtual_dataset("virtual_out", out)
        main.create_dataset("raw_out", (6,), "u1", external=[("../secret.bin", 0, 6)])
        main.create_dataset("absolute", (6,), "u1", external=[("/etc/passwd", 0, 6)])
        for name in ("../secret.h5", "way_out.h5", "pipe.h5", "nowhere.h5", "second_name.h5"):
            main[f"out/{name.replace('/', '_')}"] = h5py.ExternalLink(name, "/values")
    return folder


def test_arrays_in_other_files_equal_those_of_h5py(folder: Path) -> None:
    refused = opened(folder / "main.h5")
    file = opened(folder / "main.h5", allow_external=True)
    for name, path in {"raw": "/raw", "link": "/link", "virtual": "/virtual"}.items():
        with h5py.File(folder / "main.h5") as main, pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)  # where HDF5 looks for external storage
            expected = main[name][()]
        assert refused[path].is_refused
        np.testing.assert_array_equal(file[path].data, expected)
        np.testing.assert_array_equal(file[path][..., 2:4, 1:5], expected[..., 2:4, 1:5])
        assert "another file" in file[path].problem
    ways = {"/raw": "'raw.bin'", "/link": "/values in another file, 'parts/other.h5'"}
    for path, where in (ways | {"/virtual": "'parts/other.h5'"}).items():
        assert f"{where}; in a local file, --allow-external" in refused[path].problem
    assert file["/link"].attrs["units"] == "K"
    np.testing.assert_array_equal(file["/all/group/deep"].data, VALUES[::-1])
    assert file["/all/raw"].data.tobytes() == b"PART"
    assert "/all" not in file
    np.testing.assert_array_equal(file["/here"].data, VALUES)
    assert file["/here"].is_native


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/raw_out", "found one outside"),
        ("/absolute", "found one outside"),
        ("/virtual_out", "found one outside"),
        ("/out/.._secret.h5", "found one outside"),
        ("/out/way_out.h5", "found one outside"),
        ("/out/pipe.h5", "found no regular file"),
        ("/out/nowhere.h5", "found none"),
        ("/out/second_name.h5", "found one with 2 (hard links)"),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(folder: Path, path: str, reason: str) -> None:
    array = opened(folder / "main.h5", allow_external=True)[path]
    assert array.is_refused
    assert reason in array.problem
    with pytest.raises(FormatError, match="expected an array that can be read"):
        _ = array.data
    with pytest.raises(FormatError, match="expected an array that can be read"):
        _ = array[:]  # also of a link, whose number of axes is unknown


def test_the_process_may_read_its_folder_alone(folder: Path) -> None:
    """What the checks of names miss, the system refuses."""
    from swathe.core.confined import ConfinedProcess, ProcessLimits

    process = ConfinedProcess(imports=("tests.support.confined_calls",))
    bounds = ProcessLimits(folder=str(folder))
    call = "tests.support.confined_calls:first_byte"
    try:
        path = str(folder / "parts" / "raw.bin")
        assert process.run("it", call, {"path": path}, bounds) == b"P"
        for outside in ("/etc/passwd", f"{folder}/../secret.bin", f"{folder}/way_out.h5"):
            with pytest.raises(Exception, match="PermissionError"):
                process.run("it", call, {"path": outside}, bounds)
        with pytest.raises(Exception, match="PermissionError"):
            write = "tests.support.confined_calls:write"
            process.run("it", write, {"path": str(folder / "new"), "length": 1}, bounds)
    finally:
        process.close()
    assert not (folder / "new").exists()


def test_a_cut_of_it_and_a_pickle(folder: Path, tmp_path: Path) -> None:
    main = folder / "main.h5"
    cut = swathe.cut(main, array="/link", box=(1, 2, 4, 3), allow_external=True)
    np.testing.assert_array_equal(cut.data, VALUES[2:5, 1:5])
    cut.write(tmp_path / "cut.h5")
    file = pickle.loads(pickle.dumps(opened(main, allow_external=True)))
    np.testing.assert_array_equal(file["/link"].data, VALUES)
    with pytest.raises(FormatError, match="in another file"):
        swathe.cut(main, array="/link", box=(1, 2, 4, 3))


def test_the_commands_have_it(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["swathe", *arguments])
        with pytest.raises(SystemExit, match="0"):
            app.main()
        return capsys.readouterr().out

    main, output = str(folder / "main.h5"), tmp_path / "cut.npy"
    options = ["--array", "/raw", "--box", "0 0 8 1", "-o", str(output)]
    run("cut", main, *options, "--allow-external")
    np.testing.assert_array_equal(np.load(output), VALUES[:1])
    assert "/all/group/deep" in run("info", main, "--allow-external")
    assert "/all/group/deep" not in run("info", main)


def test_an_asdf_block_in_another_file(tmp_path: Path) -> None:
    path = tmp_path / "in" / "main.asdf"
    path.parent.mkdir()
    tree = {"a": VALUES, "b": VALUES[:, ::2].astype(">f8"), "small": [1, 2]}
    asdf.AsdfFile(tree).write_to(path, all_array_storage="external")
    assert len(list(path.parent.iterdir())) == 3
    refused = opened(path)["/a"]
    assert refused.is_refused
    assert "'main0000.asdf'; in a local file, --allow-external" in refused.problem
    file = opened(path, allow_external=True)
    with asdf.open(path) as expected:
        for name in ("a", "b"):
            np.testing.assert_array_equal(file[name].data, expected[name])
    np.testing.assert_array_equal(file["a"][1:3, 4:7], VALUES[1:3, 4:7])


@pytest.mark.parametrize(
    "source", ["../secret.asdf", "http://host/a.asdf", "link.asdf", "none.asdf"]
)
def test_an_asdf_source_elsewhere_is_refused(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    asdf.AsdfFile({"a": VALUES}).write_to(tmp_path / "secret.asdf")
    os.symlink("../secret.asdf", folder / "link.asdf")
    (folder / "main.asdf").write_text(
        "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n"
        "--- !core/asdf-1.1.0\na: !core/ndarray-1.0.0\n"
        f"  {{source: '{source}', datatype: int32, byteorder: little, shape: [6, 8]}}\n...\n"
    )
    array = opened(folder / "main.asdf", allow_external=True)["a"]
    assert array.is_refused
    assert "expected" in array.problem


def test_only_local_files(tmp_path: Path, folder: Path) -> None:
    from astropy.io import fits

    fits.PrimaryHDU(VALUES).writeto(tmp_path / "a.fits")
    with pytest.raises(OptionError, match="expected a file of arrays, found FITS"):
        opened(tmp_path / "a.fits", allow_external=True)
    import gzip

    (tmp_path / "a.h5.gz").write_bytes(gzip.compress((folder / "main.h5").read_bytes()))
    with pytest.raises(OptionError, match="not compressed as a whole, found gzip"):
        opened(tmp_path / "a.h5.gz", allow_external=True)


def test_a_file_that_changed_is_an_error(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("raw", (number + 4,), "u1", external=[("raw.bin", 0, 8)])
    (tmp_path / "raw.bin").write_bytes(b"12345678")
    file = opened(tmp_path / "0.h5", allow_external=True)
    assert file["raw"].data.tobytes() == b"1234"
    os.replace(tmp_path / "1.h5", tmp_path / "0.h5")
    with pytest.raises((ChangedError, FormatError)):
        _ = file["raw"].data
