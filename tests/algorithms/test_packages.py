"""Packages: what a tar may have, and how one that is hostile is refused."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import swathe
from swathe.algorithms.header import parse_source, read_source
from swathe.algorithms.tar_files import MOST_TAR_BYTES, tar_files
from swathe.core.errors import AlgorithmError
from tests.support.algorithms import LST, PACKAGE, tar_of

SUM = slice(148, 156)


def tar_with(name: str, kind: bytes, **values: object) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type = kind
        for key, value in values.items():
            setattr(member, key, value)
        tar.addfile(member)
    return content.getvalue()


def with_size(content: bytes, field: bytes) -> bytes:
    """Return a tar whose first member has this size, with the right sum."""
    header = bytearray(content[:512])
    header[124:136] = field
    header[SUM] = b" " * 8
    header[SUM] = b"%06o\0 " % sum(header)
    return bytes(header) + content[512:]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("top", ["", "./", "mine/", "./mine/"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_each_form_of_tar_is_read(form: int, top: str, pack: Callable[[bytes], bytes]) -> None:
    files = {"a.c": b"x" * 600, f"{'y' * 90}/{'z' * 80}.h": b"", "m/n/o.py": b"1"}
    content = tar_of({top + name: data for name, data in files.items()}, form)
    assert tar_files(pack(content), "x.tar") == files


ONE = tar_of({"a.c": b"x" * 600})
HOSTILE = {
    "symbolic link": (tar_with("a.c", b"2", linkname="/etc/passwd"), "found a symbolic link"),
    "hard link": (tar_with("a.c", b"1", linkname="b.c"), "found a link"),
    "device": (tar_with("a.c", b"3", devmajor=1, devminor=5), "found a device"),
    "pipe": (tar_with("a.c", b"6"), "found a pipe"),
    "sparse file": (tar_with("a.c", b"S"), "found a sparse file"),
    "sparse pax": (tar_with("a.c", b"0", pax_headers={"GNU.sparse.size": "9"}), "a header with"),
    "path upwards": (tar_of({"../a.c": b""}), "which begin with a letter"),
    "full path": (tar_of({"/etc/a.c": b""}), "which begin with a letter"),
    "option": (tar_of({"-fplugin=x.c": b""}), "which begin with a letter"),
    "control character": (tar_of({"a\nb.c": b""}), "names of letters"),
    "no ASCII": (tar_of({"größe.c": b""}), "names of letters"),
    "no UTF-8": (ONE.replace(b"a.c", b"\xff.c", 1), "other bytes at 0"),
    "twice": (tar_of({"a.c": b""})[:512] + tar_of({"a.c": b""}), "found a.c twice"),
    "case": (tar_of({"a.c": b"", "A.c": b""}), "more than case, found a.c, A.c"),
    "file and folder": (tar_of({"a": b"", "a/b.c": b""}), "found both"),
    "depth": (tar_of({"/".join("abcdefghijklm"): b""}), "at most 10 folders"),
    "number": (tar_of({f"{number}.c": b"" for number in range(1001)}), "at most 1000 files"),
    "cut": (ONE[:700], "found the start of one"),
    "size": (with_size(ONE, b"77777777777\0"), "found the start of one"),
    "huge size": (with_size(ONE, b"\x80" + b"\xff" * 11), "expected an octal number"),
    "sum": (ONE.replace(b"a.c", b"b.c", 1), "other bytes at 0"),
    "bomb": (gzip.compress(bytes(MOST_TAR_BYTES + 1), 9), "after decompression, found more"),
    "cut gzip": (gzip.compress(ONE)[:-9], "found the start of one"),
    "damaged gzip": (gzip.compress(ONE)[:20] + b"x" * 90, "found a damaged one"),
    "two streams": (gzip.compress(ONE) * 2, "found more behind it"),
    "large": (bytes(10_000_001), "at most 9.537 MiB"),
    "headers": (tar_with("a", b"0", pax_headers={"comment": "x" * 1_000_001}), "of headers"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_tar_is_refused(kind: str) -> None:
    content, said = HOSTILE[kind]
    with pytest.raises(AlgorithmError, match=r"^x\.tar: ") as error:
        tar_files(content, "x.tar")
    assert said in str(error.value)


def test_many_records_of_one_header_take_linear_time() -> None:
    records = b"12 mtime=99\n" * 80_000
    header = tar_with("x", b"x")[:512]
    size = b"%011o\0" % len(records)
    content = with_size(header + records + bytes(-len(records) % 512), size) + ONE
    assert list(tar_files(content, "x.tar")) == ["a.c"]


def test_a_package_describes_itself_once() -> None:
    package = {"algorithm.toml": PACKAGE.encode(), "main.c": b""}
    source = parse_source(tar_of(package), "a.tar")
    assert source.header["tool"]["swathe"]["algorithm"]["name"] == "sums-c"
    with pytest.raises(AlgorithmError, match=r"in algorithm\.toml or in algorithm\.py, found both"):
        parse_source(tar_of({**package, "algorithm.py": LST.encode()}), "a.tar")
    with pytest.raises(AlgorithmError, match=r"algorithm\.toml or algorithm\.py in it, found none"):
        parse_source(tar_of({"main.c": b""}), "a.tar")


def test_a_folder_is_packed_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("algorithm.py", ".git/config", "__pycache__/a.pyc", "parts/one.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(LST)
    source = read_source(tmp_path)
    assert sorted(source.files) == ["algorithm.py", "parts/one.py"]
    (tmp_path / "parts" / "two.py").symlink_to("/etc/passwd")
    with pytest.raises(AlgorithmError, match=r"two\.py: expected a file, found a link"):
        read_source(tmp_path)


def check(folder: Path, text: str, files: dict[str, bytes]) -> str:
    """Check a package; return what is wrong with it."""
    for name, content in {"algorithm.toml": text.encode(), **files}.items():
        (folder / name).write_bytes(content)
    try:
        swathe.check_algorithm(folder)
    except AlgorithmError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "flag",
    [
        *("-fplugin=x.so", "-B/tmp", "-wrapper x", "@file", "-specs=x", "-I/etc", "-I../x", "-xc"),
        *("-o../x", "-Wl,-rpath,/x", "-Wp,-x", "-Wa,-x", "-L/tmp", "-include", "-imacros/etc/x"),
        *("-l:../x.a", "-DX=\n", "--sysroot=/x", "-save-temps", "-fdump-tree-all", "-march=native"),
    ],
)
def test_flags_that_reach_elsewhere_are_refused(flag: str, tmp_path: Path) -> None:
    said = check(tmp_path, PACKAGE.replace('"-O2"', repr(flag)), {"main.c": b""})
    assert "flags" in said


@pytest.mark.parametrize(
    ("text", "files", "said"),
    [
        (PACKAGE, {"main.c": b""}, ""),
        (PACKAGE, {}, "build.sources: expected files of the package, found 'main.c'"),
        (PACKAGE.replace("main.c", "../main.c"), {}, "build.sources: expected paths of files"),
        (PACKAGE.replace("main.c", "main.s"), {}, "build.sources: expected names that end in"),
        (PACKAGE.replace('"c"', '"rust"'), {}, "build.language: expected one of c, c++, fortran"),
        (PACKAGE.replace("[tool.swathe.algorithm.build]\n", "[x]\n"), {}, "expected one of"),
        (PACKAGE.replace("version", 'libraries = ["x"]\nversion'), {}, "libraries as mylib@1.0"),
        (
            PACKAGE,
            {"main.c": b"", "x-1-cp311-cp311-linux_x86_64.whl": b"PK"},
            "a pure-Python wheel",
        ),
        (
            PACKAGE.replace("version", 'environment = "x"\nversion'),
            {},
            "environment: expected none",
        ),
        (PACKAGE, {"main.c": b"", "x-1-py3-none-any.whl": b"#!/bin/sh"}, "expected a wheel, found"),
    ],
)
def test_what_a_package_lacks_is_said(
    text: str, files: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    found = check(tmp_path, text, files)
    assert said in found
    assert bool(said) == bool(found)
