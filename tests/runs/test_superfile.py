"""Superfiles: written and read, by us and by zip programs; hostile ones are refused."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    OptionError,
    OutputError,
    OutputExistsError,
    SourceError,
    SwatheError,
)
from swathe.costs.cost_model import Costs
from swathe.runs import pack_files, recover_superfile, unpack_files
from swathe.runs.superfiles import packing, superfile_reader, zip_index
from swathe.runs.superfiles.array_content import array_of
from swathe.runs.superfiles.superfile_reader import Superfile
from swathe.stores import object_ranges
from tests.support.catalogs import new_catalog
from tests.support.servers import nginx, s3s_fs

RNG = np.random.default_rng(20261127)
CONTENTS = {
    f"images/{number:03}.png": RNG.bytes(int(size))
    for number, size in enumerate(RNG.integers(0, 3000, 40))
}


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store `disk` in a catalogue of its own."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    folder = tmp_path / "disk"
    folder.mkdir()
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(folder), "local")
    return folder


@pytest.fixture
def packed(disk: Path) -> Path:
    """A superfile with `CONTENTS`."""
    with swathe.superfile("disk:a.zip", "w") as writer:
        for name, content in CONTENTS.items():
            writer.add(name, content)
    return disk / "a.zip"


@pytest.mark.parametrize("reads_all", [None, True, False])
def test_what_was_added_is_read(packed: Path, reads_all: bool | None) -> None:
    images = swathe.superfile("disk:a.zip", reads_all=reads_all)
    assert list(images) == list(CONTENTS)
    assert images["images/007.png"] == CONTENTS["images/007.png"]
    assert dict(images) == images.read_all() == CONTENTS
    some = ["images/031.png", "images/002.png"]
    assert images.read(some) == {name: CONTENTS[name] for name in some}
    assert images.entries["images/007.png"].media_type == "image/png"
    assert dict(swathe.superfile(packed)) == CONTENTS


def test_zip_programs_read_it(packed: Path) -> None:
    with zipfile.ZipFile(packed) as theirs:
        assert theirs.testzip() is None
        assert {name: theirs.read(name) for name in theirs.namelist()} == CONTENTS
    theirs = fsspec.filesystem("zip", fo=f"swathe://disk/{packed.name}")
    assert theirs.cat_file("images/007.png") == CONTENTS["images/007.png"]


def test_arrays_are_those_of_numpy(disk: Path) -> None:
    arrays = {
        "c.npy": RNG.random((3, 4)),
        "f.npy": np.asfortranarray(RNG.random((3, 4, 5)).astype(">f4")),
        "none.npy": np.empty((0, 3)),
        "one.npy": np.array(7),
    }
    with swathe.superfile("disk:a.zip", "w") as writer:
        for name, array in arrays.items():
            writer.add(name, array)
    ours, theirs = swathe.superfile("disk:a.zip"), np.load(disk / "a.zip")
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours.array(name), array, strict=True)
        np.testing.assert_array_equal(theirs[name.removesuffix(".npy")], array, strict=True)
        assert ours.entries[name].media_type == "application/x-npy"


def test_zip_files_of_others_are_read(disk: Path) -> None:
    with zipfile.ZipFile(disk / "a.zip", "w") as theirs:
        theirs.comment = b"PK\x05\x06" * 10
        theirs.mkdir("folder")
        theirs.writestr("folder/\N{GREEK SMALL LETTER ALPHA}.txt", b"abc")
        with theirs.open("long", "w", force_zip64=True) as entry:
            entry.write(bytes(100))
    ours = swathe.superfile("disk:a.zip")
    assert dict(ours) == {"folder/\N{GREEK SMALL LETTER ALPHA}.txt": b"abc", "long": bytes(100)}
    assert ours.entries["long"].media_type == "application/octet-stream"


def test_records_of_64_bits_are_read(disk: Path) -> None:
    one = of_one()
    length, start = len(one) - zip_index.END.size - 38, 38
    long = zip_index.END64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, length, start)
    locator = zip_index.LOCATOR.pack(b"PK\x06\x07", 0, start + length, 1)
    (disk / "a.zip").write_bytes(one[: start + length] + long + locator + no_numbers())
    assert dict(swathe.superfile("disk:a.zip")) == {"a": b"content"}
    with zipfile.ZipFile(disk / "a.zip") as theirs:
        assert theirs.read("a") == b"content"


def test_an_object_has_its_name_when_it_is_whole(disk: Path) -> None:
    writer = swathe.superfile("disk:a.zip", "w")
    writer.add("a", b"1")
    assert not (disk / "a.zip").exists()
    writer.close()
    writer.close()
    assert os.listdir(disk) == ["a.zip"]
    with pytest.raises(OptionError, match="was closed"):
        writer.add("b", b"1")
    with pytest.raises(OutputExistsError):
        swathe.superfile("disk:a.zip", "w")
    with pytest.raises(KeyError), swathe.superfile("disk:a.zip", "w", overwrite=True) as writer:
        writer.add("b", b"2")
        raise KeyError
    assert os.listdir(disk) == ["a.zip"]
    assert dict(swathe.superfile("disk:a.zip")) == {"a": b"1"}
    with swathe.superfile("disk:a.zip", "w", overwrite=True) as writer:
        writer.add("b", b"2")
    assert dict(swathe.superfile("disk:a.zip")) == {"b": b"2"}


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a\\b", "a\0", "a\n", "x" * 1001]
)
def test_names_that_lead_elsewhere_are_refused(name: str, disk: Path) -> None:
    with swathe.superfile("disk:a.zip", "w") as writer:
        with pytest.raises(OptionError, match="expected a name"):
            writer.add(name, b"")
        writer.add("a", b"")
        with pytest.raises(OptionError, match="twice"):
            writer.add("a", b"")
        with pytest.raises(OptionError, match="media type"):
            writer.add("b", b"", media_type="none")
        with pytest.raises(OptionError, match="plain types"):
            writer.add("c", np.array([None]))
        writer.add("d/e/f", b"")
        for both in ("a/b", "d", "d/e", "d/e/f/g"):
            with pytest.raises(OptionError, match="an entry or a folder of a name, found both"):
                writer.add(both, b"")
        for content in ("text", 5, cast("Any", np.zeros((4, 4), "u1"))[:, :2].data):
            with pytest.raises(OptionError, match="entry t: expected bytes that follow each other"):
                writer.add("t", cast("Any", content))
        writer.add("d/t", np.zeros((4, 4), "u1").data)
    assert list(swathe.superfile("disk:a.zip")) == ["a", "d/e/f", "d/t"]


def test_places_that_cannot_be_written_are_refused(disk: Path) -> None:
    (disk / "folder").mkdir()
    for name in ("disk:", "disk:folder", "disk:folder/", "https://example.org/a.zip"):
        with pytest.raises(OutputError):
            swathe.superfile(name, "w")
    with pytest.raises(OptionError, match="mode"):
        swathe.superfile("disk:a.zip", "x")  # type: ignore[call-overload]


def test_names_that_are_not_there_are_told(packed: Path) -> None:
    assert "none" not in swathe.superfile(packed)
    with pytest.raises(NotFoundError, match=r"a\.zip: expected the name of an entry, found 'none'"):
        swathe.superfile(packed)["none"]
    assert swathe.superfile(packed).get("images/001.png") == CONTENTS["images/001.png"]


def costs(latency_s: float, bytes_per_s: float) -> Costs:
    """Costs of a store of this latency and bandwidth."""
    curve = tuple((size, latency_s + size / bytes_per_s) for size in (4096, 1 << 20))
    return Costs(latency_s, latency_s, curve, bytes_per_s, 1e9, 8)


@pytest.mark.parametrize(
    ("latency_s", "most", "reads_all"), [(0.05, 1 << 28, True), (0.05, 1000, False)]
)
def test_the_first_read_brings_all_if_that_is_cheaper(
    latency_s: float, most: int, reads_all: bool, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superfile_reader, "_costs_of", lambda _: costs(latency_s, 2e7))
    monkeypatch.setattr(superfile_reader, "MOST_AT_ONCE", most)
    images = swathe.superfile(packed)
    assert images.reads_all is reads_all
    first = images["images/001.png"]
    packed.unlink()
    if reads_all:
        assert dict(images) == CONTENTS
    assert first == CONTENTS["images/001.png"]


def of_one(name: bytes = b"a", content: bytes = b"content", **changes: int) -> bytes:
    """A zip file of one entry, with some numbers changed."""
    size = len(content)
    values = {
        "flags": 0, "method": 0, "crc": zlib.crc32(content), "packed": size, "size": size,
        "start": 0, "entries": 1, "disk": 0, "add": 0, "length": 0,
    } | changes  # fmt: skip
    local = zip_index.LOCAL.pack(
        b"PK\x03\x04", 20, values["flags"], values["method"], 0, 0, values["crc"],
        size, size, len(name), 0,
    ) + name + content  # fmt: skip
    entry = zip_index.ENTRY.pack(
        b"PK\x01\x02", 20, 20, values["flags"], values["method"], 0, 0, values["crc"],
        values["packed"], values["size"], len(name), 0, 0, 0, 0, 0, values["start"],
    ) + name  # fmt: skip
    end = zip_index.END.pack(
        b"PK\x05\x06", values["disk"], 0, values["entries"], values["entries"],
        len(entry) + values["length"], len(local) + values["add"], 0,
    )  # fmt: skip
    return local + entry + end


def two_overlapping() -> bytes:
    """A zip file of two entries with the same bytes."""
    one = of_one()
    local, entry = one[:38], one[38:85]
    second = entry[:46] + b"b"
    return local + entry + second + zip_index.END.pack(b"PK\x05\x06", 0, 0, 2, 2, 94, 38, 0)


def no_numbers() -> bytes:
    """The last record of a zip file whose numbers stand in the one of 64 bits."""
    return zip_index.END.pack(b"PK\x05\x06", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)


def of_many(entries: int, start: int = 0) -> bytes:
    """The end of a zip file that says that it has so many entries, from a byte of it on."""
    length = entries * 46
    record = zip_index.END64.pack(
        b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, length, (1 << 62) - length
    )
    locator = zip_index.LOCATOR.pack(b"PK\x06\x07", 0, start, 1)
    return record + locator + no_numbers()


def of_deflated() -> bytes:
    """A zip file with a bomb."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("a", bytes(1_000_000))
    return file.getvalue()


def test_a_zip_file_made_by_hand_is_read(disk: Path) -> None:
    (disk / "a.zip").write_bytes(of_one())
    assert dict(swathe.superfile("disk:a.zip")) == {"a": b"content"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: b"", "no end of its directory"),
        (lambda: b"PK" * 100_000, "no end of its directory"),
        (lambda: of_one()[:-1], "no end of its directory"),
        (lambda: b"prefix" + of_one(), "to end at byte"),
        (lambda: of_one(add=5), "to end at byte"),
        (lambda: of_one(disk=1), "one part"),
        (lambda: of_one(entries=2), "expected 2 entries"),
        (lambda: of_one(entries=0), "bytes of directory"),
        (lambda: of_one(name=b"../a"), r"entry 0: expected a name .*'\.\./a'"),
        (lambda: of_one(name=b"/a"), "entry 0: expected a name"),
        (lambda: of_one(name=b"a\0"), "entry 0: expected a name"),
        (lambda: of_one(name=b"\xff", flags=1 << 11), "entry 0: .*utf-8"),
        (lambda: of_one(flags=1), "entry a: expected a stored entry, found an encrypted"),
        (of_deflated, "entry a: expected a stored entry, found compression 8"),
        (lambda: of_one(size=8), "entry a: expected 8 bytes stored, found 7"),
        (lambda: of_one(size=8, packed=8), "entry a: expected it to end before byte 38"),
        (lambda: of_one(size=1 << 31, packed=1 << 31), "entry a: expected it to end before"),
        (lambda: of_one(size=0xFFFFFFFF, packed=0xFFFFFFFF), "in 64 bits"),
        (lambda: of_one(start=1), "entry a: expected it to end before"),
        (two_overlapping, "entry a: expected it to end before byte 0"),
        (lambda: of_many(1 << 32), "to end at byte"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused(make: Callable[[], bytes], said: str, disk: Path) -> None:
    (disk / "a.zip").write_bytes(make())
    with pytest.raises(FormatError, match=rf"disk:a\.zip.*{said}"):
        swathe.superfile("disk:a.zip")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (of_one(crc=5), "entry a: expected CRC-32 00000005"),
        (of_one(size=6, packed=6), "entry a: expected CRC-32"),
        (b"XX" + of_one()[2:], "entry a: expected a header at byte 0"),
        (of_one()[:30] + b"b" + of_one()[31:], "entry a: expected this name at byte 0, found 'b'"),
        (of_one()[:26] + b"\xff\xff" + of_one()[28:], "entry a: expected"),
        (of_one()[:28] + b"\xff\xff" + of_one()[30:], "entry a: expected 7 bytes, found 0"),
    ],
)
def test_damaged_entries_are_refused(content: bytes, said: str, disk: Path) -> None:
    (disk / "a.zip").write_bytes(content)
    with pytest.raises(FormatError, match=said):
        swathe.superfile("disk:a.zip").read_all()


def test_entries_beside_a_damaged_one_are_read(disk: Path) -> None:
    with swathe.superfile("disk:a.zip", "w") as writer:
        for name in "abc":
            writer.add(name, name.upper().encode() * 100)
    content = (disk / "a.zip").read_bytes()
    (disk / "a.zip").write_bytes(content.replace(b"B" * 100, b"x" * 100))
    images = swathe.superfile("disk:a.zip", reads_all=True)
    assert images.read("ca") == {"c": b"C" * 100, "a": b"A" * 100}
    for _ in range(2):
        with pytest.raises(FormatError, match=r"a\.zip, entry b: expected CRC-32"):
            images["b"]
    with pytest.raises(FormatError, match="entry b"):
        images.read_all()


def test_directories_of_any_length_are_not_read() -> None:
    tail = of_many(1 << 32, 1 << 62)
    with pytest.raises(LimitError, match=r"at most 1000000 entries.*found 4294967296"):
        # The object is as long as the record says.
        zip_index.find_directory(bytes(1 << 17) + tail, (1 << 62) + len(tail), "far")


@pytest.mark.parametrize("shape", [b"(1099511627776,)", b"(-1,)", b"(3,)"])
def test_arrays_that_say_more_than_they_have_are_refused(shape: bytes, disk: Path) -> None:
    file = io.BytesIO()
    np.save(file, np.zeros(4))
    header = file.getvalue()[10:-32].replace(b"(4,)", shape).rstrip() + b"\n"
    content = file.getvalue()[:8] + struct.pack("<H", len(header)) + header + bytes(32)
    with swathe.superfile("disk:a.zip", "w") as writer:
        writer.add("a.npy", content)
        writer.add("b.npy", b"none")
    images = swathe.superfile("disk:a.zip")
    with pytest.raises(FormatError, match=r"a\.zip, entry a\.npy: expected"):
        images.array("a.npy")
    with pytest.raises(FormatError, match=r"a\.zip, entry b\.npy: expected an array"):
        images.array("b.npy")


def npy(header: bytes, content: bytes, version: int) -> bytes:
    """An array of NumPy with a header as it is given."""
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + content


@pytest.mark.parametrize(
    "header",
    [
        b"(" * 9000,
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 9), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, %d), }" % (1 << 80),
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }" % (b"1," * 100),
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }" % (b"0," * 100),
        b"{'descr': '|V0', 'fortran_order': False, 'shape': (4611686018427387904, 9), }",
        b"{'descr': '(2,)u1', 'fortran_order': False, 'shape': (0, 1), }",
        b"{'descr': '(99999,99999)u1', 'fortran_order': False, 'shape': (9,), }",
        b"{'descr': [('a', [('b', 'O')])], 'fortran_order': False, 'shape': (0,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % (b"9" * 5000),
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }" % (b"9" * 4000),
        b"{'descr': %s'u1'%s, 'fortran_order': False, 'shape': ()}" % (b"[" * 500, b"]" * 500),
        b"{'descr': '<f8', 'fortran_order': False, 'shape': 0L, }",
        b'"""\n',
        b"\0",
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_headers_of_arrays_that_are_wrong_are_told(header: bytes, version: int) -> None:
    content = npy(header, bytes(0 if b"(0" in header else 1), version)
    with pytest.raises(FormatError, match=r"^a\.zip, entry a: expected .{1,300}$"):
        array_of(content, "a.zip, entry a")


WHOLE = of_one(content=bytes(100))


@given(at=st.integers(0, len(WHOLE) - 1), value=st.integers(0, 255))
def test_any_changed_byte_is_an_error_of_ours_or_nothing(
    at: int, value: int, new_path: Callable[[str], Path]
) -> None:
    path = new_path(".zip")
    path.write_bytes(WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :])
    try:
        contents = swathe.superfile(path).read_all()
    except SwatheError:
        return
    assert list(contents.values()) in ([bytes(100)], [])


def test_files_are_packed_and_unpacked(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    files = {"a.txt": b"a", "sub/b.bin": bytes(5)}
    for name, content in files.items():
        (tmp_path / "in" / name).write_bytes(content)
    invoke("pack", "-r", str(tmp_path / "in"), "-o", "disk:p.zip")
    assert dict(swathe.superfile("disk:p.zip")) == files
    assert "1  text/plain                a.txt\n" in invoke("list", "disk:p.zip")
    listed = json.loads(invoke("list", "disk:p.zip", "--json"))["entries"]
    assert [(each["name"], each["size"]) for each in listed] == [("a.txt", 1), ("sub/b.bin", 5)]
    out = tmp_path / "out"
    said = invoke("unpack", "disk:p.zip", str(out), "--entry", "sub/b.bin", "--json")
    assert json.loads(said) == {"entries": 1, "bytes": 5}
    assert [path.name for path in out.rglob("*")] == ["sub", "b.bin"]
    with pytest.raises(OutputExistsError):
        unpack_files("disk:p.zip", out)
    assert not (out / "a.txt").exists()
    invoke("unpack", "disk:p.zip", str(out), "--overwrite")
    assert {name: (out / name).read_bytes() for name in files} == files
    with pytest.raises(NotFoundError, match="none"):
        unpack_files("disk:p.zip", out, names=["none"])


def test_long_entries_are_packed_and_unpacked_in_pieces(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"long": RNG.bytes(2_500), "edge": RNG.bytes(1000), "none": b""}
    for name, content in files.items():
        (disk / name).write_bytes(content)
    monkeypatch.setattr(object_ranges, "PIECE_BYTES", 1000)
    monkeypatch.setattr(packing, "PIECE_BYTES", 1000)
    pack_files([disk / name for name in files], "disk:p.zip")
    with zipfile.ZipFile(disk / "p.zip") as theirs:
        assert {name: theirs.read(name) for name in theirs.namelist()} == files
    pieces = list(swathe.superfile("disk:p.zip").pieces("long"))
    assert [len(each) for each in pieces] == [1000, 1000, 500]
    assert unpack_files("disk:p.zip", tmp_path / "out") == (3, 3500)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in files} == files


def test_a_damaged_entry_in_pieces_gives_no_file(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PIECE_BYTES", 3)
    (disk / "a.zip").write_bytes(of_one(crc=5))
    with pytest.raises(FormatError, match=r"a\.zip, entry a: expected CRC-32 00000005"):
        unpack_files("disk:a.zip", tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []


def test_an_object_that_goes_while_it_is_unpacked_is_an_error_of_the_source(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pieces(images: Superfile, name: str) -> Iterator[bytes]:
        yield images[name]
        raise SourceError("gone")

    monkeypatch.setattr(packing, "PIECE_BYTES", 1)
    monkeypatch.setattr(Superfile, "pieces", pieces)
    with pytest.raises(SourceError, match=r"^gone$"):
        unpack_files(packed, tmp_path / "out")


def test_a_part_of_an_entry_is_none(disk: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"1"
        raise KeyError

    writer = swathe.superfile("disk:a.zip", "w")
    with pytest.raises(KeyError):
        writer.add("a", pieces())
    with pytest.raises(OptionError, match="was closed"):
        writer.add("b", b"")
    assert os.listdir(disk) == []


def test_nothing_is_unpacked_through_links(packed: Path, tmp_path: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    (out := tmp_path / "out").mkdir()
    (out / "images").symlink_to(outside)
    with pytest.raises(OutputError, match="out/images: cannot unpack into it: expected a folder"):
        unpack_files(packed, out, overwrite=True)
    assert os.listdir(outside) == []


def test_packing_that_is_wrong_writes_nothing(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = disk / "a.txt"
    file.write_bytes(b"a")
    with pytest.raises(OptionError, match="found a folder"):
        pack_files([tmp_path / "folder"], "disk:p.zip")
    with pytest.raises(OptionError, match="one of the sources"):
        pack_files([file], "disk:a.txt", overwrite=True)
    with pytest.raises(OptionError, match="twice"):
        pack_files([file, file], "disk:p.zip")
    with pytest.raises(NotFoundError):
        pack_files([tmp_path / "none"], "disk:p.zip")
    assert os.listdir(disk) == ["a.txt"]
    pack_files(["disk:a.txt"], "disk:p.zip")
    assert dict(swathe.superfile("disk:p.zip")) == {"a.txt": b"a"}


def invoke(*words: str) -> str:
    """Run `swathe superfile`; return what it prints."""
    done = CliRunner().invoke(app, ["superfile", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.more
@pytest.mark.parametrize("kind", ["nginx", "s3"])
def test_servers_hold_them(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (served := tmp_path / "served").mkdir()
    with ExitStack() as stack:
        if kind == "nginx":
            root = f"{stack.enter_context(nginx(served)).url}/dav".replace("http", "dav", 1)
        else:
            (served / "lake").mkdir()
            for name, value in stack.enter_context(s3s_fs(served)).environment.items():
                monkeypatch.setenv(name, value)
            root = "s3://lake"
        with Catalog.open() as catalog:
            catalog.add_store("far", root)
        with swathe.superfile("far:images/a.zip", "w") as writer:
            for name, content in CONTENTS.items():
                writer.add(name, content)
        with pytest.raises(OutputExistsError, match=r"far:images/a\.zip"):
            swathe.superfile("far:images/a.zip", "w")
        for reads_all in (None, False):
            images = swathe.superfile("far:images/a.zip", reads_all=reads_all)
            assert images["images/007.png"] == CONTENTS["images/007.png"]
            assert dict(images) == CONTENTS
        theirs = fsspec.filesystem("zip", fo="swathe://far/images/a.zip")
        assert theirs.cat_file("images/007.png") == CONTENTS["images/007.png"]


@pytest.mark.more
def test_few_requests_read_it(tmp_path: Path) -> None:
    (served := tmp_path / "served").mkdir()
    with nginx(served) as server:
        path = server.folder / "a.zip"
        with swathe.superfile(path, "w") as writer:
            for number in range(300):
                writer.add(f"{number}", RNG.bytes(3000))
        server.requests()
        images = swathe.superfile(f"{server.url}/a.zip", reads_all=True)
        opening = server.requests()
        contents = [images[name] for name in images]
        assert len(opening) <= 2
        assert len(server.requests()) < 10
        assert contents == list(swathe.superfile(path).values())


def test_what_a_killed_writer_had_added_is_recovered(disk: Path) -> None:
    program = (
        "import os, swathe\n"
        "writer = swathe.superfile('disk:a.zip', 'w')\n"
        "writer.add('a.png', bytes(100_000))\n"
        "writer.add('b/c.txt', iter([b'x' * 70_000, b'y']))\n"
        "writer.add('last', iter([bytes(9_000), os.kill(os.getpid(), 9)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    (part,) = disk.iterdir()
    assert part.suffix == ".part"
    command = ["superfile", "recover", str(part), "-o", "disk:a.zip"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "recovered" in result.output
    content = swathe.superfile("disk:a.zip")
    expected = {"a.png": bytes(100_000), "b/c.txt": b"x" * 70_000 + b"y"}
    assert dict(content) == {name: expected[name] for name in content}
    assert "a.png" in content
    assert content.entry("a.png").media_type == "image/png"
    assert CliRunner().invoke(app, command).exit_code != 0  # it exists now


def test_a_whole_or_damaged_superfile_is_recovered_up_to_the_damage(tmp_path: Path) -> None:
    with swathe.superfile(whole := tmp_path / "whole.zip", "w") as writer:
        for name, content in CONTENTS.items():
            writer.add(name, content)
    assert recover_superfile(whole, tmp_path / "same.zip").entries == len(CONTENTS)
    assert dict(swathe.superfile(tmp_path / "same.zip")) == CONTENTS
    entry = swathe.superfile(whole).entry("images/020.png")
    damaged = bytearray(whole.read_bytes())
    damaged[entry.end - 1] ^= 1
    (part := tmp_path / "part").write_bytes(damaged)
    assert recover_superfile(part, tmp_path / "some.zip").entries == 20
    (empty := tmp_path / "empty").write_bytes(b"PK" * 100)
    with pytest.raises(FormatError, match="expected entries of a superfile, found none"):
        recover_superfile(empty, tmp_path / "none.zip")
    with pytest.raises(OptionError, match="expected a new name"):
        recover_superfile(part, part, overwrite=True)
    with pytest.raises(NotFoundError, match="no such file"):
        recover_superfile(tmp_path / "no", tmp_path / "none.zip")
    with pytest.raises(SourceError, match="cannot be read"):
        recover_superfile(tmp_path, tmp_path / "none.zip")
