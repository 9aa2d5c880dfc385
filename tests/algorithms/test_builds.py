"""Algorithms that are compiled: how they are run, built once, and what compilers may not do."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.algorithms import compiler
from swathe.algorithms.compiler import Confinement, Sources, build, check_program
from swathe.algorithms.definition import Build, Language
from swathe.algorithms.group_run import BoxSettings, GroupRun
from swathe.catalog import Catalog
from swathe.core.errors import AlgorithmError
from swathe.sandbox.report import Log, Report
from tests.support.algorithms import LIBRARY_FILES, PACKAGE, tar_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "algorithms"
COPY = """\
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    FILE *table = fopen(getenv("SWATHE_OUTPUT_TABLE"), "w");
    fprintf(table, "%s\\n", getenv("SWATHE_PARAMETER_FACTOR"));
    return fclose(table);
}
"""


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """Three images of two days."""
    random = np.random.default_rng(27)
    paths = []
    for number, day in enumerate((1, 2, 2), 1):
        paths.append(tmp_path / f"{number}.fits")
        header = fits.Header({"DATE-OBS": f"2005-05-0{day}T0{number}:00:00", "EXPTIME": 10.0})
        pixels = random.integers(-3000, 3000, (57, 43)).astype(np.int16)
        fits.PrimaryHDU(pixels, header).writeto(paths[-1])
    return paths


def package(folder: Path, source: str, text: str = PACKAGE) -> Path:
    """Write a package of C as a folder."""
    home = folder / "package"
    home.mkdir(exist_ok=True)
    (home / "algorithm.toml").write_text(text)
    (home / "main.c").write_text(source)
    return home


def attempt(
    source: str, images: list[Path], settings: BoxSettings, text: str = PACKAGE
) -> GroupRun:
    home = package(images[0].parent, source, text)
    (run,) = swathe.try_algorithm(home, images[:1], settings=settings)
    return run


def test_the_examples_equal_that_of_python(
    images: list[Path], tmp_path: Path, settings: BoxSettings
) -> None:
    means = {}
    for name in ("coarse.py", "coarse_c", "coarse_fortran"):
        if name.endswith("fortran") and not Path(compiler.COMPILERS["fortran"]).is_file():
            pytest.skip("gfortran is not installed; the example in C equals that of Python")
        runs = swathe.try_algorithm(
            EXAMPLES / name,
            images,
            parameters={"factor": 7},
            output=tmp_path / name.replace(".", "_"),
            settings=settings,
        )
        groups = [(run.group, run.problem) for run in runs]
        assert groups == [("2005-05-01", ""), ("2005-05-02", "")]
        means[name] = [fits.getdata(run.outputs["mean"]) for run in runs]
        assert means[name][1].shape == (8, 6)
        np.testing.assert_allclose(means[name], means["coarse.py"], rtol=1e-6)


def test_a_program_is_compiled_once(
    images: list[Path], settings: BoxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attempt(COPY + f"/* {settings.mode} */", images, settings).problem == ""
    monkeypatch.setattr(compiler, "_compile", lambda *_: pytest.fail("it was compiled again"))
    assert attempt(COPY + f"/* {settings.mode} */", images, settings).problem == ""


def test_what_the_compiler_says_is_shown_and_remembered(
    images: list[Path], settings: BoxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"int main(void) {{ return nothing; }} /* {settings.mode} */"
    with pytest.raises(
        AlgorithmError, match=r"^sums-c@1: the compiler refuses it\nmain\.c:"
    ) as one:
        attempt(source, images, settings)
    assert "undeclared" in str(one.value)
    monkeypatch.setattr(compiler, "_compile", lambda *_: pytest.fail("it was compiled again"))
    with pytest.raises(AlgorithmError) as two:
        attempt(source, images, settings)
    assert str(two.value) == str(one.value)
    monkeypatch.setattr(compiler, "ERRORS_S", -1.0)
    monkeypatch.setattr(compiler, "_compile", lambda *_: "they are tried again")
    with pytest.raises(AlgorithmError, match="they are tried again"):
        attempt(source, images, settings)


@pytest.mark.parametrize(
    ("said", "is_refused"),
    [
        (
            "gcc: fatal error: cannot execute 'cc1': vfork: Resource temporarily unavailable\n",
            False,
        ),
        ("cc1: out of memory allocating 65536 bytes after a total of 135168 bytes\n", False),
        ("", False),
        ("main.c:1:5: error: expected declaration\n", True),
        ("main.c:(.text+0x5): undefined reference to `f'\n", True),
        ("/usr/bin/ld: cannot find -lf\ncollect2: error: ld returned 1 exit status\n", True),
    ],
)
def test_a_machine_that_is_short_is_not_remembered(
    said: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = Sources("sums-c@1", Build("c", ("main.c",)), {"main.c": b"("}, ("program",), {})
    log = Log(said, len(said), is_whole=True)
    report = Report(
        status="RE",
        limit="",
        message="exit code 1",
        exit_code=1,
        signal=None,
        mode="bwrap",
        uid=1,
        cpu_s=0.0,
        wall_s=0.0,
        max_rss_bytes=0,
        stdout=Log("", 0, is_whole=True),
        stderr=log,
        outputs={},
        problems={},
    )
    monkeypatch.setenv("SWATHE_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr("swathe.sandbox.run", lambda *_: report)
    with pytest.raises(AlgorithmError, match=said.partition("(")[0].strip() or "exit code 1"):
        build(sources, Confinement())
    monkeypatch.setattr("swathe.sandbox.run", lambda *_: pytest.fail("it was tried again"))
    with pytest.raises(AlgorithmError if is_refused else pytest.fail.Exception):
        build(sources, Confinement())


def test_a_program_that_fails_says_why(images: list[Path], settings: BoxSettings) -> None:
    source = '#include <stdio.h>\nint main(void) { fputs("no such band\\n", stderr); return 3; }'
    run = attempt(source, images, settings)
    assert "exit code 3" in run.problem
    assert run.log == "no such band\n"


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        '__asm__(".include \\"/etc/passwd\\"");',
        '__asm__(".incbin \\"/etc/passwd\\"");',
    ],
)
def test_files_of_the_machine_are_not_shown(
    line: str, images: list[Path], settings: BoxSettings
) -> None:
    with pytest.raises(AlgorithmError, match="the compiler refuses it") as error:
        attempt(f"{line}\nint main(void) {{ return 0; }}", images, settings)
    assert "root:" not in str(error.value)
    assert "/bin/" not in str(error.value)


BOMBS = {
    "endless file": ("main.c", '__asm__(".incbin \\"/dev/zero\\"");\nint main(void) {}'),
    "endless include": ("main.c", '#include "/dev/zero"\nint main(void) {}'),
    "huge array": ("main.c", "char a[1L << 40] = {1};\nint main(void) { return a[1]; }"),
    "repetition": ("main.c", '__asm__(".fill 2000000000, 1, 1");\nint main(void) {}'),
    "macros": (
        "main.c",
        "#define A0 x x x x x x x x\n"
        + "".join(f"#define A{n + 1} {f'A{n} ' * 8}\n" for n in range(12))
        + "A12\n",
    ),
    "templates": (
        "main.cpp",
        "template<int n, int m> struct T { T<n - 1, 2 * m> a; T<n - 1, 2 * m + 1> b; };\n"
        "template<int m> struct T<0, m> { char a; };\nint main() { return sizeof(T<30, 1>); }",
    ),
    "errors": ("main.c", "".join(f"x{n} y;\n" for n in range(2000))),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_bounded(kind: str, settings: BoxSettings) -> None:
    name, source = BOMBS[kind]
    language: Language = "c++" if name.endswith("cpp") else "c"
    limits = replace(
        compiler.LIMITS,
        cpu_s=1.0,
        wall_s=20.0,
        memory_bytes=200_000_000,
        output_bytes=20_000_000,
        temporary_bytes=20_000_000,
    )
    sources = Sources("bomb", Build(language, (name,)), {name: source.encode()}, ("program",), {})
    with pytest.raises(AlgorithmError, match="bomb: the compiler") as error:
        build(sources, Confinement(settings.mode, settings.users, limits))
    assert len(str(error.value)) < 2 * compiler.LIMITS.log_bytes + 1000


def test_libswathe_is_found_where_the_operator_installed_it(
    images: list[Path], tmp_path: Path, settings: BoxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = COPY.replace("main(void) {", "main(void) {\n    if (sw_seven() != 7) return 1;")
    text = PACKAGE.replace("version", 'libraries = ["swathe"]\nversion', 1)
    home = package(tmp_path, f'#include "swathe.h"\n{source}', text)
    installed = tmp_path / "installed"
    monkeypatch.setenv("SWATHE_C_PREFIX", str(installed))
    with pytest.raises(AlgorithmError, match=r"expected libswathe in .*/installed, found none"):
        swathe.try_algorithm(home, images[:1], settings=settings)
    for name in ("include", "lib"):
        (installed / name).mkdir(parents=True)
    # A small library in its place: it takes minutes to build.
    (installed / "include" / "swathe.h").write_text("int sw_seven(void);\n")
    (tmp_path / "seven.c").write_text("int sw_seven(void) { return 7; }\n")
    command = [compiler.COMPILERS["c"], "-shared", "-fPIC", str(tmp_path / "seven.c")]
    subprocess.run([*command, "-o", str(installed / "lib" / "libswathe.so")], check=True)
    (run,) = swathe.try_algorithm(home, images[:1], settings=settings)
    assert run.problem == "", run.log


def test_a_script_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\ncat /etc/passwd\n")
    with pytest.raises(AlgorithmError, match=r"expected a program of this machine, found b'#!/b'"):
        check_program(tmp_path / "program", "x")
    check_program(Path(shutil.which("true") or ""), "x")


def test_modules_and_wheels_of_a_package_are_imported(
    images: list[Path], tmp_path: Path, settings: BoxSettings
) -> None:
    home = tmp_path / "python"
    (home / "parts").mkdir(parents=True)
    (home / "parts" / "__init__.py").write_text("ONE = 1\n")
    wheel = tmp_path / "wheel" / "far_away.py"
    wheel.parent.mkdir()
    wheel.write_text("TWO = 2\n")
    shutil.make_archive(str(home / "far_away-1.0-py3-none-any"), "zip", wheel.parent)
    archive = home / "far_away-1.0-py3-none-any.zip"
    archive.rename(archive.with_suffix(".whl"))
    (home / "algorithm.toml").write_text(
        'dependencies = ["far.away"]\n' + PACKAGE.partition("[tool.swathe.algorithm.build]")[0]
    )
    (home / "algorithm.py").write_text(
        "import far_away, parts\n"
        "def run(images, table, factor): table.write_text(str(parts.ONE + far_away.TWO))\n"
    )
    (run,) = swathe.try_algorithm(home, images[:1], output=tmp_path / "results", settings=settings)
    assert run.problem == "", run.log
    assert run.outputs["table"].read_text() == "3"


MODULE = {
    "library.toml": b"""\
[tool.swathe.library]
name = "means"
version = "2"
modules = ["means"]

[tool.swathe.library.build]
language = "fortran"
sources = ["means.f90"]
""",
    "means.f90": b"""\
module means
contains
  integer function half(number)
    integer, intent(in) :: number
    half = number / 2
  end function
end module
""",
}
CALLER = """\
#include <stdio.h>
#include <stdlib.h>
#include "mylib.h"
int main(void) {
    FILE *table = fopen(getenv("SWATHE_OUTPUT_TABLE"), "w");
    fprintf(table, "%d\\n", two());
    return fclose(table);
}
"""
USER = """\
program main
  use means
  implicit none
  integer :: factor
  character(len=100) :: table, list
  namelist /outputs/ table
  namelist /parameters/ factor
  call get_environment_variable("SWATHE_NAMELIST", list)
  open (10, file=list)
  read (10, nml=outputs)
  rewind (10)
  read (10, nml=parameters)
  open (11, file=table)
  write (11, "(i0)") half(factor)
end program
"""
LINKED = {"c": (LIBRARY_FILES, "main.c", CALLER), "fortran": (MODULE, "main.f90", USER)}
"""Library, name of the source, and source."""


@pytest.mark.parametrize("language", ["c", "fortran"])
def test_a_library_is_linked_by_its_name(
    language: str, images: list[Path], tmp_path: Path, settings: BoxSettings, catalog: Catalog
) -> None:
    library, name, source = LINKED[language]
    if not Path(compiler.COMPILERS[language]).is_file():
        pytest.skip(f"{compiler.COMPILERS[language]} is not installed")
    (tmp_path / "library.tar").write_bytes(tar_of(library))
    record = swathe.algorithms.libraries.add(tmp_path / "library.tar", settings.users)
    assert catalog.libraries("operator") == [record]
    text = PACKAGE.replace("version", f'libraries = ["{record.label}"]\nversion', 1)
    text = text.replace('"c"', f'"{language}"').replace("main.c", name)
    home = package(tmp_path, "", text)
    (home / name).write_text(source)
    (run,) = swathe.try_algorithm(
        home,
        images[:1],
        parameters={"factor": 4},
        output=tmp_path / "results",
        settings=settings,
    )
    assert run.problem == "", run.log
    assert run.outputs["table"].read_text() == "2\n"


def test_a_shortage_of_the_machine_is_no_refusal() -> None:
    sources = Sources("sums", Build("c", ("main.c",)), {"main.c": b""}, ("sums",), {})
    for text, refuses in (
        ("main.c:3:1: error: expected ';'", True),
        ("/tmp/a.s: Assembler messages:\n/tmp/a.s:4: Error: file not found: x", True),
        ("main.c:3:1: warning: x\ncc1: Killed signal terminated program cc1", False),
        ("ld: memory exhausted\ncollect2: error: ld returned 1 exit status", False),
        ("error writing to /tmp/cc.s: No space left on device", False),
        ("cc1: internal compiler error", False),
    ):
        assert compiler._is_refusal(text, sources) == refuses, text
