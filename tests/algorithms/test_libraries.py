"""Libraries of users, and environments of the operator: added, named by algorithms, removed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import swathe
from swathe.algorithms.libraries import libraries_of
from swathe.algorithms.library import parse_library
from swathe.catalog import Catalog
from swathe.core.errors import AlgorithmError, LimitError, NoSuchAlgorithmError, NotFoundError
from tests.support.algorithms import LIBRARY, LIBRARY_FILES, LST, PACKAGE, tar_of
from tests.support.fits_frames import Runner

NEEDED = PACKAGE.replace("version", 'libraries = ["mylib@1.0"]\nversion')


def with_text(old: str, new: str) -> bytes:
    return tar_of({**LIBRARY_FILES, "library.toml": LIBRARY.replace(old, new).encode()})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"int one(void);", "expected a tar, found b'int one('"),
        (tar_of({"one.c": b""}), "expected library.toml in it, found none"),
        (with_text('"mylib"', '"swathe"'), "expected a name that is not Swathe's own"),
        (with_text('"1.0"', '"1/0"'), "version: expected a version"),
        (with_text("two.c", "three.c"), "files: expected headers and sources of the package"),
        (with_text("include/mylib.h", "/etc/passwd"), "headers: expected paths of files"),
        (with_text('"-O2"', '"-fplugin=x"'), "build.flags: expected flags as -O2"),
        (with_text("headers", 'modules = ["../x"]\nheaders'), "modules: expected the name"),
        (with_text("[tool.swathe.library.build]", "[x]"), "build: expected sources to compile"),
    ],
)
def test_a_library_that_is_none_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(AlgorithmError, match=r"^mylib\.tar: ") as error:
        parse_library(content, "mylib.tar")
    assert said in str(error.value)


def test_a_library_is_its_owners_and_never_changes(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(content: bytes, owner: str = "ann") -> bool:
        library = parse_library(content, "mylib.tar")
        return catalog.add_library("mylib", "1.0", content, owner, library.language, "")[1]

    one, two = tar_of(LIBRARY_FILES), with_text("-O2", "-O3")
    assert (add(one), add(one), add(two, "bob")) == (True, False, True)
    with pytest.raises(AlgorithmError, match="give it a new version"):
        add(two)
    assert [each.label for each in catalog.libraries("ann")] == ["mylib@1.0"]
    assert catalog.library("mylib", "bob")[1] == two
    with pytest.raises(NoSuchAlgorithmError, match="there is no library"):
        catalog.library("mylib", "eve")
    catalog.remove_library("mylib", "ann")
    assert catalog.libraries("ann") == []
    # Algorithms that name it still have it.
    assert catalog.library("mylib@1.0", "ann", all_versions=True)[1] == one
    monkeypatch.setattr("swathe.catalog.libraries.MOST_BYTES", 2 * len(one))
    catalog.add_library("mylib", "2.0", one, "ann", "c", "")
    with pytest.raises(LimitError, match="ann: expected at most 200 versions of libraries"):
        catalog.add_library("mylib", "3.0", one, "ann", "c", "")


def test_an_algorithm_has_the_libraries_of_its_owner(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "algorithm.toml").write_text(NEEDED)
    (tmp_path / "main.c").write_text("")
    with pytest.raises(AlgorithmError, match=r"libraries: there is no library 'mylib@1\.0'"):
        swathe.check_algorithm(tmp_path)
    content = tar_of(LIBRARY_FILES)
    catalog.add_library("mylib", "1.0", content, "ann", "c", "")
    (tmp_path / "algorithm.toml").write_text(PACKAGE)
    algorithm = swathe.check_algorithm(tmp_path)
    assert libraries_of(algorithm, catalog, "ann") == {}
    needed = replace(algorithm, libraries=("mylib@1.0",))
    assert libraries_of(needed, catalog, "ann")["mylib@1.0"].headers == ("include/mylib.h",)
    for other, said in (
        (replace(needed, language="python", build=None), "expected one for python, found mylib"),
        (needed, "there is no library"),
    ):
        with pytest.raises(AlgorithmError, match=said):
            libraries_of(other, catalog, "ann" if other is not needed else "bob")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An interpreter with one package, and its lock file."""
    home = tmp_path / "ocean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    info = packages / "far_away-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Far.Away\nVersion: 1.5\n")
    (tmp_path / "lock").write_text("# a lock\nfar.away==1.5 \\\n    --hash=sha256:00\n")
    return home


def test_an_environment_is_that_of_its_lock_file(
    environment: Path, run: Runner, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    add = ("environment", "add", "ocean", "--lock", lock, "--python", environment)
    assert run(*add).startswith("ocean: Python 3.")
    assert "remove it first" in run(*add, code=2)
    shown = json.loads(run("environment", "show", "ocean", "--json"))
    assert (shown["packages"], shown["python"]) == (
        {"far-away": "1.5"},
        str(environment / "bin" / "python"),
    )
    assert "ocean" in run("environment", "list")
    source = tmp_path / "lst.py"
    text = LST.replace('version = "1.2"', 'version = "1.2"\n# environment = "ocean"')
    source.write_text(text)
    said = run("algorithm", "check", source, code=2)
    assert "dependencies: expected packages of the environment, found 'numpy'" in said
    source.write_text(text.replace('"numpy", "netCDF4"', '"far_away"'))
    assert run("algorithm", "check", source).startswith("lst-quarter-degree@1.2")
    shutil.rmtree(environment)
    assert "bin/python, found none" in run("algorithm", "check", source, code=2)
    run("environment", "remove", "ocean")
    assert "there is no environment 'ocean'" in run("algorithm", "check", source, code=2)
    assert "there is no environment" in run("environment", "show", "ocean", code=2)


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ("far.away==1.6", "expected far-away 1.6, as .*, found 1.5"),
        ("numpy==2.0", "expected numpy 2.0, as .*, found none"),
        ("far.away>=1.5", "line 1: expected a line as numpy==2.1.0, found"),
        ("-e .", "line 1: expected a line as"),
        ("far.away @ https://example.org/x.whl", "line 1: expected a line as"),
    ],
)
def test_what_differs_from_the_lock_file_is_refused(
    lock: str, said: str, environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "lock").write_text(lock)
    with pytest.raises(AlgorithmError, match=said):
        swathe.algorithms.environments.add("ocean", tmp_path / "lock", environment)


def test_an_interpreter_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    add = swathe.algorithms.environments.add
    with pytest.raises(NotFoundError, match="expected an interpreter of Python, found none"):
        add("ocean", tmp_path / "lock", tmp_path)
    with pytest.raises(AlgorithmError, match="found another program"):
        add("ocean", tmp_path / "lock", "/usr/bin/true")
    with pytest.raises(AlgorithmError, match="name: expected a name of lower-case letters"):
        add("../x", tmp_path / "lock", "/usr/bin/true")
