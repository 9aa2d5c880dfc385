"""The library as a thing to install: what it links, its header, its examples."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog, this_host
from tests.capi.test_reading import content
from tests.support import c_library
from tests.support.c_library import CRATE, EXAMPLES, ROOT, Library, compile_program
from tests.support.fits_frames import Runner, contents, noise
from tests.support.traces import named, rows


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_it_stands_on_rust_alone(library: Library) -> None:
    if shutil.which("ldd") is None:
        pytest.skip("ldd is not installed")
    names = re.findall(r"^\s*(\S+)", output_of("ldd", library.path), re.MULTILINE)
    allowed = re.compile(r"linux-vdso|/lib\S*ld-linux|lib(c|m|gcc_s|dl|pthread|rt)\.so")
    assert names
    assert not [name for name in names if not allowed.match(name)]


def test_programs_find_it_by_a_name_with_a_version(library: Library) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    assert re.search(r"SONAME\s+libswathe\.so\.0$", output_of("objdump", "-p", library.path), re.M)


def test_it_shows_only_its_calls(library: Library) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    lines = output_of("nm", "-D", "--defined-only", library.path).splitlines()
    names = {line.split()[-1] for line in lines}
    header = (CRATE / "include" / "swathe.h").read_text()
    assert names == set(re.findall(r"\b(sw_\w+)\(", header))


def test_the_version_is_that_of_the_package(library: Library) -> None:
    assert library.raw.sw_version().decode() == swathe.__version__


def test_the_header_is_for_c_and_for_c_plus_plus(tmp_path: Path) -> None:
    header = CRATE / "include" / "swathe.h"
    for compiler, kind in (("cc", "c"), ("c++", "c++")):
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        source = tmp_path / f"a.{kind}"
        source.write_text(f'#include "{header}"\n')
        command = [compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
        subprocess.run([*command, "-x", kind, str(source)], check=True)


def install(folder: Path) -> None:
    """Do what `make install-c PREFIX=folder` does."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "--no-print-directory", "install-c", f"PREFIX={folder}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_an_installed_library_is_found_by_pkg_config(tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    prefix = tmp_path / "prefix"
    install(prefix)
    environment = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}

    def flags(*words: str) -> list[str]:
        command = ["pkg-config", *words, "swathe"]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.split()

    assert flags("--modversion") == [swathe.__version__]
    (tmp_path / "object").write_text("plain text " * 100)
    source = EXAMPLES / "c" / "read.c"
    shared, static = tmp_path / "shared", tmp_path / "static"
    command = [c_library.compiler(), str(source), *flags("--cflags")]
    rpath = f"-Wl,-rpath,{prefix / 'lib'}"
    subprocess.run([*command, "-o", shared, *flags("--libs"), rpath], check=True)
    library = str(prefix / "lib" / "libswathe.a")
    libraries = [word for word in flags("--libs", "--static") if word != "-lswathe"]
    subprocess.run([*command, "-o", static, library, *libraries], check=True)
    results = {output_of(program, tmp_path / "object") for program in (shared, static)}
    assert len(results) == 1
    assert "libswathe.so.0" in output_of("ldd", shared)
    assert "libswathe" not in output_of("ldd", static)


def test_the_example_that_reads(programs: Path, tmp_path: Path) -> None:
    program = compile_program(EXAMPLES / "c" / "read.c", programs)
    data = contents(noise(1), "fits")
    (tmp_path / "a.fits").write_bytes(data)
    lines = output_of(program, tmp_path / "a.fits").splitlines()
    assert lines[0] == f"{len(data)} bytes, sum {sum(data)}"
    assert lines[1].startswith("begins with SIMPLE  =")
    failed = subprocess.run([program, tmp_path / "b"], capture_output=True, text=True)
    assert (failed.returncode, "not found" in failed.stderr) == (1, True)


def test_the_example_that_cuts(programs: Path, tmp_path: Path) -> None:
    program = compile_program(EXAMPLES / "c" / "cut.c", programs)
    (tmp_path / "a.fits").write_bytes(contents(noise(1), "fits"))
    output = tmp_path / "cutout.fits"
    words = ["10", "20", "30", "40", str(output)]
    line = output_of(program, tmp_path / "a.fits", *words)
    expected = fits.getdata(tmp_path / "a.fits")[20:60, 10:40]
    np.testing.assert_array_equal(fits.getdata(output), expected)
    assert line == f"30 x 40 pixels, mean {expected.mean():.6f}\n"


def test_the_example_that_records(programs: Path, tmp_path: Path) -> None:
    program = compile_program(EXAMPLES / "c" / "trace.c", programs)
    data = content(3_000_000)
    (tmp_path / "from").write_bytes(data)
    output_of(program, tmp_path / "run.ulm", tmp_path / "from", tmp_path / "to")
    assert (tmp_path / "to").read_bytes() == data
    (end,) = named(rows(tmp_path / "run.ulm"), "COPY_END")
    assert end["BYTES"] == 3_000_000


def test_the_example_in_fortran(programs: Path, tmp_path: Path) -> None:
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("gfortran is not installed")
    c_library.built_files()
    data = noise(1)
    (tmp_path / "a.fits").write_bytes(contents(data, "fits"))
    compile_program(EXAMPLES / "c" / "read.c", programs)  # makes the link to the library
    program = tmp_path / "read"
    command = [compiler, str(EXAMPLES / "fortran" / "read.f90"), "-o", str(program)]
    command += [f"-J{tmp_path}", str(programs / "libswathe.so.0"), f"-Wl,-rpath,{programs}"]
    subprocess.run(command, check=True)
    lines = output_of(program, tmp_path / "a.fits").splitlines()
    assert lines[0].startswith("SIMPLE  =")
    assert lines[1] == f"bytes 40, mean {data[20:24, 10:15].mean():.3f}"


def export(run: Runner, tmp_path: Path, database: str) -> Path:
    path = tmp_path / "stores.json"
    command = [sys.executable, "-m", "swathe.cli", "store", "export"]
    environment = os.environ | {"SWATHE_DATABASE": database}
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    path.write_text(result.stdout)
    return path


def test_stores_are_known_by_name(run: Runner, programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "object").write_bytes(content(1000))
    run.ran("store", "add", "survey", str(folder))
    path = export(run, tmp_path, os.environ["SWATHE_DATABASE"])
    assert json.loads(path.read_text()) == [
        {"name": "survey", "root": f"file://{folder}", "options": {}}
    ]
    program = compile_program(EXAMPLES / "c" / "read.c", programs)
    command = [str(program), "survey:object"]
    plain = os.environ | {"SWATHE_STORES": ""}
    lost = subprocess.run(command, env=plain, capture_output=True, text=True)
    assert "survey:object: not found" in lost.stderr
    known = plain | {"SWATHE_STORES": str(path)}
    assert subprocess.run(command, env=known, capture_output=True).returncode == 0
    for text in (None, "{", '[{"name": "survey", "root": "/", "unit": 1}]'):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        wrong = subprocess.run(command, env=known, capture_output=True, text=True)
        assert (wrong.returncode, f"SWATHE_STORES: {path}: " in wrong.stderr) == (1, True)


def test_exported_stores_have_measured_costs(run: Runner, tmp_path: Path) -> None:
    from swathe import _swathe

    run.ran("store", "add", "survey", "https://archive.example/dr17")
    costs = json.loads(_swathe.assumed_costs(False)) | {"buffer_bytes": 1 << 20}
    with Catalog.open() as catalog:
        key = catalog.store("survey").key
        catalog.put_profile(key, this_host(), costs, {}, datetime.now(UTC))
    (store,) = json.loads(export(run, tmp_path, os.environ["SWATHE_DATABASE"]).read_text())
    assert store["costs"]["buffer_bytes"] == 1 << 20
