"""Damaged and odd files: a typed error or the right pixels, soon, in little memory.

Files are probed in another process whose memory is limited, by this file run as a program.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from tests.conftest import DATA, fits_bytes, padded, raw_cards, real_files
from tests.support.fits_frames import noise

ADDRESS_BYTES = 2 << 30
RESIDENT_BYTES = 500 << 20
LARGEST_WHOLE = 10**7
SECONDS_EACH = 3.0
FINE = ("FormatError", "RegionError", "read", ">", "<", "|")
"""Beginnings of what may be told of a damaged file; the last three are of digests."""


def digest(data: Any) -> str:
    return f"{data.dtype.str}{data.shape}{hashlib.sha256(data.tobytes()).hexdigest()[:16]}"


def probe_file(path: Path) -> dict[str, str]:
    """Whole images of a file and a corner of each, as digests; errors as text."""
    found: dict[str, str] = {}

    def told(key: str, work: Callable[[], str]) -> None:
        try:
            found[key] = work()
        except swathe.errors.SwatheError as error:
            kind = type(error).__name__
            found[key] = f"{kind}: {error}" if str(error) and path.name in str(error) else (
                f"UNNAMED {kind}: {error}"
            )  # fmt: skip

    def images() -> str:
        for image in swathe.open(path).images:
            key = f"{image.index}"
            if math.prod(image.shape) <= LARGEST_WHOLE:
                told(f"{key} whole", lambda image=image: digest(image.section[...]))  # type: ignore[misc]
            if len(image.shape) >= 2:
                told(f"{key} corner", lambda image=image: corner(image))  # type: ignore[misc]
        return "read"

    told("file", images)
    return found


def corner(image: swathe.Image) -> str:
    cut = image.cut((0, 0, 7, 5))
    assert len(cut.to_bytes()) % 2880 == 0
    assert cut.header["NAXIS1"] == cut.shape[-1]
    return digest(cut.data)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    for name in names:
        start = time.process_time()  # That of others does not count.
        result = probe_file(Path(name))
        seconds = time.process_time() - start
        row = {"name": name, "found": result, "seconds": seconds}
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
    # Not ru_maxrss, which counts the process this one was forked from.
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    sys.stdout.write(json.dumps({"peak": peak}) + "\n")


def probe(paths: list[Path], seconds_each: float = SECONDS_EACH) -> dict[str, dict[str, str]]:
    """What another process finds in files, having kept to its limits."""
    done = subprocess.run(
        [sys.executable, __file__],
        input="\n".join(map(str, paths)),
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (rows[-1:], done.stderr[-3000:])
    assert "panicked" not in done.stderr
    *files, last = rows
    assert len(files) == len(paths)
    assert last["peak"] < RESIDENT_BYTES
    slow = {row["name"]: row["seconds"] for row in files if row["seconds"] > seconds_each}
    assert not slow
    for row in files:
        for told in row["found"].values():
            # Every error names the file, and none is a fault of Swathe itself.
            assert not told.startswith(("SwatheError", "UNNAMED")), (row["name"], told)
    return {Path(row["name"]).name: row["found"] for row in files}


# ---- Real oddities


@pytest.mark.more
def test_odd_files_give_errors_or_astropys_pixels(data: Path) -> None:
    paths = [DATA / name for name in real_files("odd", "swath")]
    found = probe(paths)
    for path in paths:
        told = found[path.name]
        if told["file"] != "read":
            assert told["file"].startswith("FormatError")
        for key, value in told.items():
            if key.endswith("whole") and ":" not in value:
                with warnings.catch_warnings(), fits.open(path, memmap=False) as hdus:
                    warnings.simplefilter("ignore")
                    expected = hdus[int(key.split()[0])].data
                if 0 in hdus[int(key.split()[0])].shape:
                    continue
                assert value == digest(expected), (path.name, key)


def test_what_is_no_fits_file_is_called_so(data: Path) -> None:
    for name in ("not_actually_fits.fits", "git_lfs_pointer_871034p_1_MI.fits", "test_ana.fz"):
        with pytest.raises(swathe.errors.FormatError, match="not FITS"):
            swathe.open(DATA / "odd" / name).image()


# ---- Files cut off and changed

IMAGE = (np.random.default_rng(11).normal(500, 20, (60, 80)) + np.arange(80)).astype(">i2")


def whole_file() -> bytes:
    cards = [("CTYPE1", "RA---TAN"), ("CTYPE2", "DEC--TAN"), ("CRPIX1", 3.5), ("OBJECT", "x")]
    return fits_bytes(IMAGE, cards)


def compressed_file(codec: str, kind: str = "i2") -> bytes:
    content = BytesIO()
    hdu = fits.CompImageHDU(
        IMAGE.astype(kind), compression_type=codec, tile_shape=(20, 40), name="SCI"
    )
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(content)
    return content.getvalue()


KINDS: dict[str, Callable[[], bytes]] = {
    "plain.fits": whole_file,
    "gzip.fits.gz": lambda: gzip.compress(whole_file()),
    "members.fits.gz": lambda: b"".join(
        gzip.compress(whole_file()[at : at + 4000]) for at in range(0, len(whole_file()), 4000)
    ),
    "bzip2.fits.bz2": lambda: bz2.compress(whole_file(), 1),
    "rice.fits.fz": lambda: compressed_file("RICE_1"),
    "gzip1.fits.fz": lambda: compressed_file("GZIP_1"),
    "gzip2.fits.fz": lambda: compressed_file("GZIP_2", "f4"),
    "plio.fits.fz": lambda: compressed_file("PLIO_1"),
    "hcompress.fits.fz": lambda: compressed_file("HCOMPRESS_1"),
    "quantised.fits.fz": lambda: compressed_file("RICE_1", "f4"),
}
ENDS = 60
FLIPS = 70


@pytest.mark.more
def test_files_cut_off_anywhere(tmp_path: Path) -> None:
    paths = []
    for kind, make in KINDS.items():
        content = make()
        places = [0, 1, 79, 80, 2879, 2880, 2881, len(content) - 1, len(content)]
        for end in {*places, *range(0, len(content), max(1, len(content) // ENDS))}:
            paths.append(tmp_path / f"{end}-{kind}")
            paths[-1].write_bytes(content[:end])
    found = probe(paths)
    true = {kind: found[f"{len(make())}-{kind}"] for kind, make in KINDS.items()}
    assert all(":" not in told for tellings in true.values() for told in tellings.values())
    for name, tellings in found.items():
        for key, told in tellings.items():
            right = true[name.split("-", 1)[1]][key] if key != "file" else "read"
            assert told == right or told.startswith("FormatError"), (name, key, told)


@pytest.mark.more
def test_files_with_flipped_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    paths = []
    for kind, make in KINDS.items():
        content = make()
        # Headers are large and dull: half of the changes are where there is something.
        busy = [at for at, byte in enumerate(content) if byte not in (0, 32)]
        for number in range(FLIPS):
            broken = bytearray(content)
            for _ in range(1 if number % 3 else 5):
                at = int(rng.choice(busy)) if number % 2 else int(rng.integers(len(content)))
                broken[at] ^= 1 << int(rng.integers(8))
            paths.append(tmp_path / f"{number}-{kind}")
            paths[-1].write_bytes(broken)
    for name, tellings in probe(paths).items():
        for key, told in tellings.items():
            assert told.startswith(FINE), (name, key, told)


# ---- Headers that say what cannot be


def with_cards(**cards: str) -> bytes:
    """The plain file, some values replaced as text, new cards before END."""
    content = whole_file()
    lines = {line[:8].strip(): line for line in raw_cards(content)}
    for keyword, value in cards.items():
        lines[keyword] = f"{keyword:8}= {value:>20}".ljust(80)
    header = "".join(line for line in lines.values() if line[10:30].strip() != "DELETED")
    header += "END".ljust(80)
    return header.ljust(-(-len(header) // 2880) * 2880).encode() + content[2880:]


def table_with(**cards: Any) -> bytes:
    """A RICE_1 file with other cards in its table header."""
    content = BytesIO(compressed_file("RICE_1"))
    with fits.open(content, disable_image_compression=True) as hdus:
        table = hdus[1]
        header, data = table.header.copy(), content.getvalue()[table.fileinfo()["datLoc"] :]
        first = content.getvalue()[: table.fileinfo()["hdrLoc"]]
    for keyword, value in cards.items():
        if value is None:
            del header[keyword]
        else:
            header[keyword] = value
    text: str = header.tostring()
    return first + text.encode() + data


IMPOSSIBLE: dict[str, Callable[[], bytes]] = {
    "NAXIS1 = 10^12": lambda: with_cards(NAXIS1="1000000000000"),
    "NAXIS2 = 10^12": lambda: with_cards(NAXIS2="1000000000000"),
    "both 10^12": lambda: with_cards(NAXIS1="1000000000000", NAXIS2="1000000000000"),
    "2^63": lambda: with_cards(NAXIS1="9223372036854775807"),
    "2^64": lambda: with_cards(NAXIS2="18446744073709551616"),
    "negative": lambda: with_cards(NAXIS1="-80"),
    "all negative": lambda: with_cards(NAXIS1="-80", NAXIS2="-60"),
    "zero": lambda: with_cards(NAXIS1="0"),
    "no number": lambda: with_cards(NAXIS1="'eighty'"),
    "a float": lambda: with_cards(NAXIS1="80.5"),
    "NAXIS1 missing": lambda: with_cards(NAXIS1="DELETED"),
    "NAXIS = 999": lambda: with_cards(NAXIS="999"),
    "NAXIS = 1000": lambda: with_cards(NAXIS="1000"),
    "NAXIS = 10^9": lambda: with_cards(NAXIS="1000000000"),
    "NAXIS = -1": lambda: with_cards(NAXIS="-1"),
    "NAXIS missing": lambda: with_cards(NAXIS="DELETED"),
    "BITPIX = 7": lambda: with_cards(BITPIX="7"),
    "BITPIX = 2^40": lambda: with_cards(BITPIX="1099511627776"),
    "BITPIX missing": lambda: with_cards(BITPIX="DELETED"),
    "PCOUNT = 10^15": lambda: with_cards(PCOUNT="1000000000000000", EXTEND="T"),
    "PCOUNT < 0": lambda: with_cards(PCOUNT="-5"),
    "GCOUNT = 10^15": lambda: with_cards(GCOUNT="1000000000000000", GROUPS="T", NAXIS1="0"),
    "BSCALE no number": lambda: with_cards(BSCALE="'x'"),
    "BZERO infinite": lambda: with_cards(BZERO="1E400"),
    "CRPIX1 no number": lambda: with_cards(CRPIX1="'middle'"),
    "BLANK huge": lambda: with_cards(BLANK="1000000000000000000000"),
    "no END": lambda: with_cards().replace(b"END     ", b"        ", 1),
    "only spaces": lambda: b" " * 28800,
    "spaces after SIMPLE": lambda: with_cards()[:80].ljust(2880 * 300),
    "zeros": lambda: bytes(28800),
    "empty": lambda: b"",
    "ZNAXIS1 = 10^12": lambda: table_with(ZNAXIS1=10**12),
    "ZNAXIS both": lambda: table_with(ZNAXIS1=10**9, ZNAXIS2=10**9),
    "ZNAXIS1 < 0": lambda: table_with(ZNAXIS1=-80),
    "ZNAXIS = 400": lambda: table_with(ZNAXIS=400),
    "ZTILE1 = 10^12": lambda: table_with(ZTILE1=10**12),
    "ZTILE = 10^5": lambda: table_with(ZTILE1=10**5, ZTILE2=10**5, ZNAXIS1=10**5, ZNAXIS2=10**5),
    "ZTILE1 = 0": lambda: table_with(ZTILE1=0),
    "ZTILE1 = 1": lambda: table_with(ZTILE1=1),
    "ZBITPIX = 12": lambda: table_with(ZBITPIX=12),
    "ZBITPIX missing": lambda: table_with(ZBITPIX=None),
    "ZCMPTYPE unknown": lambda: table_with(ZCMPTYPE="MAGIC_9"),
    "ZCMPTYPE missing": lambda: table_with(ZCMPTYPE=None),
    "codec of another": lambda: table_with(ZCMPTYPE="HCOMPRESS_1"),
    "codec GZIP": lambda: table_with(ZCMPTYPE="GZIP_1"),
    "codec PLIO": lambda: table_with(ZCMPTYPE="PLIO_1"),
    "ZVAL1 = 0": lambda: table_with(ZVAL1=0),
    "ZVAL1 = 2^31": lambda: table_with(ZVAL1=2**31),
    "ZVAL2 = 3": lambda: table_with(ZVAL2=3),
    "THEAP far": lambda: table_with(THEAP=10**12),
    "THEAP < 0": lambda: table_with(THEAP=-1),
    "table NAXIS1": lambda: table_with(NAXIS1=10**12),
    "table NAXIS2": lambda: table_with(NAXIS2=10**12),
    "table NAXIS2 = 1": lambda: table_with(NAXIS2=1),
    "table PCOUNT": lambda: table_with(PCOUNT=10**15),
    "table PCOUNT = 0": lambda: table_with(PCOUNT=0),
    "TFIELDS = 0": lambda: table_with(TFIELDS=0),
    "TFIELDS = 10^9": lambda: table_with(TFIELDS=10**9),
    "TFORM1 of pixels": lambda: table_with(TFORM1="1E"),
    "TFORM1 nonsense": lambda: table_with(TFORM1="99999999999999999999PZ(1)"),
    "TFORM1 64 bit": lambda: table_with(TFORM1="1QB(10)"),
}


@pytest.mark.more
def test_impossible_headers(tmp_path: Path) -> None:
    paths = []
    for number, make in enumerate(IMPOSSIBLE.values()):
        paths.append(tmp_path / f"{number}.fits")
        paths[-1].write_bytes(make())
        # Large once inflated: zeros pack well.
        paths.append(tmp_path / f"{number}.fits.gz")
        paths[-1].write_bytes(gzip.compress(make(), 1))
    for name, told in probe(paths).items():
        label = list(IMPOSSIBLE)[int(name.split(".")[0])]
        for key, value in told.items():
            assert value.startswith(FINE), (label, key, value)


@pytest.mark.parametrize(
    "label", ["negative", "2^64", "NAXIS = 1000", "BITPIX = 7", "NAXIS1 missing", "no END", "empty",
              "ZNAXIS1 < 0", "ZTILE1 = 0", "ZCMPTYPE unknown", "TFORM1 nonsense", "zeros"]
)  # fmt: skip
def test_what_cannot_be_is_a_format_error(label: str, tmp_path: Path) -> None:
    path = tmp_path / "impossible.fits"
    path.write_bytes(IMPOSSIBLE[label]())
    with pytest.raises(swathe.errors.FormatError, match="impossible"):
        swathe.cut(path, box=(0, 0, 5, 5))


def test_huge_image_that_is_cut_off_gives_the_rows_it_has(tmp_path: Path) -> None:
    path = tmp_path / "huge.fits"
    path.write_bytes(IMPOSSIBLE["NAXIS2 = 10^12"]())
    np.testing.assert_array_equal(swathe.cut(path, box=(3, 4, 5, 6)).data, IMAGE[4:10, 3:8])
    with pytest.raises(swathe.errors.FormatError, match="ends at byte"):
        swathe.cut(path, box=(3, 10**9, 5, 6))
    with pytest.raises(swathe.errors.RegionError):
        swathe.cut(path, box=(0, 0, 80, 10**12))


def test_bytes_behind_the_last_hdu_are_told(tmp_path: Path) -> None:
    path = tmp_path / "more.fits"
    path.write_bytes(whole_file() + b"nonsense" * 500)
    file = swathe.open(path)
    assert len(file) == 1
    assert file.notes
    np.testing.assert_array_equal(file[0].section[...], IMAGE)


def test_an_impossible_size_behind_an_image_is_told(tmp_path: Path) -> None:
    path = tmp_path / "more.fits"
    broken = with_cards(NAXIS1="-80")
    simple, extension = b"SIMPLE  = %20s" % b"T", b"XTENSION= %-20s" % b"'IMAGE   '"
    assert broken.startswith(simple)
    path.write_bytes(whole_file() + broken.replace(simple, extension, 1))
    file = swathe.open(path)
    assert len(file) == 1
    [note] = file.notes
    assert "ignored what follows HDU 0" in note
    assert "NAXIS1" in note
    np.testing.assert_array_equal(file[0].section[...], IMAGE)


def test_an_hdu_that_may_be_behind_damage_is_no_error_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "more.fits"
    path.write_bytes(whole_file() + b"nonsense" * 500)
    told = "cannot look for HDU 1: ignored what follows HDU 0"
    with pytest.raises(swathe.errors.FormatError, match=told):
        swathe.cut(path, box=(0, 0, 2, 2), hdu=1)
    rows = {"file": [path] * 2, "hdu": [0, 1], "x0": [0] * 2, "y0": [0] * 2}
    rows |= {"width": [2] * 2, "height": [2] * 2}
    found = swathe.cut_many(rows, tmp_path / "out", progress=False)
    assert list(found["status"]) == ["ok", "error"]
    assert told in found["reason"][1]


def test_what_was_ignored_is_told_of_a_kept_layout_too(tmp_path: Path) -> None:
    path = tmp_path / "more.fits.gz"
    image = fits_bytes(noise(7, (300, 400)).astype(">i2"))
    path.write_bytes(gzip.compress(image + b"nonsense" * 500))
    file = swathe.open(path)
    assert len(file) == 1
    assert file[0].section[0:2, 0:2].shape == (2, 2)
    [note] = file.notes
    assert "ignored what follows HDU 0" in note
    # This process has the file open.
    script = "import swathe, sys; print(*swathe.open(sys.argv[1]).notes)"
    again = subprocess.run(
        [sys.executable, "-c", script, path],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert again.stdout.strip() == note


@pytest.mark.parametrize("suffix", [".fits", ".fits.gz"])
def test_what_was_ignored_is_told_to_all_who_open_the_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"more{suffix}"
    content = fits_bytes(noise(7, (300, 400)).astype(">i2")) + b"nonsense" * 500
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    first = swathe.open(path)
    assert len(first) == 1
    [note] = first.notes
    assert "ignored what follows HDU 0" in note
    first.notes.clear()
    swathe.cut(path, box=(0, 0, 2, 2))
    assert swathe.open(path).notes == swathe.open(path).notes == first.notes == [note]
    # Another file is told of by itself.
    path.write_bytes(fits_bytes(noise(7, (300, 400)).astype(">i2")))
    other = swathe.open(path)
    assert len(other) == 1
    assert other.notes == []


def test_padding_of_the_last_block_may_lack(tmp_path: Path) -> None:
    path = tmp_path / "short.fits"
    content = whole_file()
    path.write_bytes(content[: 2880 + IMAGE.nbytes])
    assert padded(path.read_bytes()) == content
    np.testing.assert_array_equal(swathe.open(path)[0].section[...], IMAGE)


@pytest.fixture(scope="module")
def three_images(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, list[Any]]:
    """A folder, and a gzip file of three images that is long enough for seek points."""
    pixels = [noise(seed, (1000, 1000)) for seed in range(3)]
    images = [fits.PrimaryHDU(pixels[0]), *(fits.ImageHDU(each) for each in pixels[1:])]
    file = BytesIO()
    fits.HDUList(images).writeto(file)
    packed = gzip.compress(file.getvalue(), compresslevel=1)
    return tmp_path_factory.mktemp("three"), packed, pixels


ORDERS = [[0], [1], [2], [2, 0], [2, 1, 0], [0, 2, 1]]


@pytest.mark.parametrize("rows", [0, 480, 980])
@pytest.mark.parametrize("order", ORDERS)
def test_a_wrong_checksum_is_told_wherever_the_first_cut_is(
    order: list[int], rows: int, three_images: tuple[Path, bytes, list[Any]]
) -> None:
    folder, packed, pixels = three_images
    name = f"{''.join(map(str, order))}-{rows}"
    damaged = bytearray(packed)
    damaged[-8] ^= 1  # of the checksum, so that all pixels are right
    for content, is_right in ((packed, True), (bytes(damaged), False)):
        path = folder / f"{name}-{is_right}.fit.gz"
        path.write_bytes(content)
        file = [str(path)] * len(order)
        box = {"x0": 5, "y0": rows, "width": 9, "height": 20}
        table = {"file": file, "hdu": order, **{key: [box[key]] * len(order) for key in box}}
        manifest = swathe.cut_many(table, folder / f"{name}-{is_right}", progress=False)
        if not is_right:
            assert list(manifest["status"]) == ["error"] * len(order)
            assert all("checksum" in reason for reason in manifest["reason"])
            with pytest.raises(swathe.errors.FormatError, match="checksum"):
                swathe.cut(path, box=(5, rows, 9, 20), hdu=order[-1])
            continue
        assert list(manifest["status"]) == ["ok"] * len(order)
        for made, hdu in zip(manifest["path"], order, strict=True):
            cut = fits.getdata(folder / f"{name}-{is_right}" / made)
            np.testing.assert_array_equal(cut, pixels[hdu][rows : rows + 20, 5:14])


@pytest.mark.more
@pytest.mark.parametrize(("pack", "rows"), [(gzip.compress, 600_000), (bz2.compress, 100_000)])
def test_bombs_are_read_in_little_memory(
    pack: Callable[[bytes], bytes], rows: int, tmp_path: Path
) -> None:
    """A large image of zeros, and a small one behind it, in a file of a few hundred kilobytes."""
    header = fits_bytes(np.zeros((1, 1000), "u1"))[:2880].replace(
        b"NAXIS2  =                    1", f"NAXIS2  = {rows:>20}".encode()
    )
    padding = bytes(-rows * 1000 % 2880)
    path = tmp_path / "bomb"
    thousand_rows = pack(bytes(1_000_000))
    with path.open("wb") as file:
        file.write(pack(header))
        for _ in range(rows // 1000):
            file.write(thousand_rows)
        file.write(pack(padding + fits_bytes(IMAGE, name="SCI")))
    assert path.stat().st_size < 1_000_000
    found = probe([path], seconds_each=20)[path.name]
    assert found["file"] == "read"
    assert found["0 corner"] == digest(np.zeros((5, 7), "u1"))
    assert found["1 whole"] == digest(IMAGE)


if __name__ == "__main__":
    main(sys.stdin.read().splitlines())
