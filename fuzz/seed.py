#!/usr/bin/env python3
"""Write the seeds of the fuzz targets: small files of every kind. Always the same bytes.

    .venv/bin/python fuzz/seed.py

Seeds lie in fuzz/corpus/TARGET under names of their own; what the fuzzer found has the names it
gave, and is left alone.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import struct
import warnings
import zlib
from pathlib import Path
from unittest import mock

import h5py
import hdf5plugin
import imagecodecs
import numpy as np
from astropy.io import fits

CORPUS = Path(__file__).parent / "corpus"
CODECS = ["RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1"]
DITHERS = {"none": -1, "dither1": 1, "dither2": 2}  # quantize_method of astropy
BITPIX = {8: "u1", 16: "i2", 32: "i4", 64: "i8", -32: "f4", -64: "f8"}


def pixels(dtype: str, shape: tuple[int, ...] = (9, 8)) -> np.ndarray:
    """A ramp with noise that every codec can hold, and a few zeros."""
    random = np.random.default_rng(1)
    data = np.arange(np.prod(shape)).reshape(shape) + random.integers(0, 5, shape)
    data = data % 200
    data.flat[:3] = 0
    if dtype[0] == "f":
        return (data + random.normal(0, 1, shape) * (data > 0)).astype(dtype)
    return data.astype(dtype)


def written(*hdus: fits.hdu.base._BaseHDU, padded: bool = True) -> bytes:
    """A file of these HDUs; without the padding after the last, which nobody misses."""
    out = io.BytesIO()
    fits.HDUList(list(hdus)).writeto(out, output_verify="silentfix")
    return out.getvalue() if padded else out.getvalue().rstrip(b"\0") + bytes(64)


def compressed(codec: str, data: np.ndarray, **options: object) -> bytes:
    # By default the seed of the dither comes from the clock.
    hdu = fits.CompImageHDU(data, compression_type=codec, **{"dither_seed": 7, **options})
    return written(fits.PrimaryHDU(), hdu, padded=False)


def files() -> dict[str, bytes]:
    """Whole FITS files, by name."""
    found = {}
    for bitpix, dtype in BITPIX.items():
        found[f"plain{bitpix}"] = written(fits.PrimaryHDU(pixels(dtype)), padded=False)
    unsigned = fits.ImageHDU(pixels("u2"), name="SCI")
    blank = fits.ImageHDU(pixels("i2", (3, 4, 5)), name="CUBE")
    blank.header["BLANK"] = -32768
    table = fits.BinTableHDU.from_columns(
        [
            fits.Column("VAR", "PJ()", array=np.array([np.arange(3), np.arange(5)], object)),
            fits.Column("TEXT", "8A", array=["a", "bc"]),
            fits.Column("BITS", "11X", array=np.zeros((2, 11), bool)),
        ]
    )
    found["extensions"] = written(fits.PrimaryHDU(), unsigned, blank, table, padded=False)
    found["empty"] = written(fits.PrimaryHDU())
    groups = fits.Header(
        [("SIMPLE", True), ("BITPIX", 16), ("NAXIS", 3), ("NAXIS1", 0), ("NAXIS2", 2)]
        + [("NAXIS3", 3), ("GROUPS", True), ("PCOUNT", 1), ("GCOUNT", 2)]
    )
    found["groups"] = groups.tostring().encode() + bytes(28)

    cards = fits.PrimaryHDU(pixels("u1"))
    cards.header["LONG"] = ("it's a long 'string' & " * 6, "with a comment")
    cards.header["HIERARCH ESO DET CHIP"] = (1.5e-7, "hierarchical")
    cards.header["OBSERVER"] = "O'Neill"
    cards.header["UNDEF"] = None
    cards.header["BIG"] = 9007199254740993
    cards.header.add_history("of the file")
    for letter in ["", "A"]:
        cards.header[f"CTYPE1{letter}"] = "RA---TAN-SIP"
        cards.header[f"CTYPE2{letter}"] = "DEC--TAN-SIP"
        cards.header[f"CRPIX1{letter}"] = 4.5
        cards.header[f"CRPIX2{letter}"] = -1e20
        cards.header[f"CD1_2{letter}"] = 1e-5
    cards.header["LTV1"] = -3.0
    cards.header["LTM1_1"] = 0.5
    cards.add_checksum(when="at a time")
    found["cards"] = written(cards, padded=False)
    found["distortion"] = distortion()
    found["tab"] = tab()

    for codec in CODECS:
        found[f"fz-{codec}"] = compressed(codec, pixels("i2"), tile_shape=(5, 4))
    for name, method in DITHERS.items():
        found[f"fz-{name}"] = compressed(
            "RICE_1", pixels("f4", (12, 40)), tile_shape=(5, 40), quantize_method=method
        )  # fmt: skip
    found["fz-float"] = compressed("GZIP_2", pixels("f8"), quantize_level=0)
    for name in ["plain16", "extensions", "fz-HCOMPRESS_1", "cards"]:
        found[f"{name}.gz"] = gzip.compress(found[name], mtime=0)
        found[f"{name}.bz2"] = bz2.compress(found[name])
        found[f"{name}.Z"] = lzw(found[name])
    # Large enough that an index is kept.
    noise = np.random.default_rng(2).integers(0, 16, (90, 100)).astype("u1")
    found["noise.gz"] = gzip.compress(written(fits.PrimaryHDU(noise)), mtime=0)
    return found


def distortion() -> bytes:
    """An image whose WCS has lookup images, with the two ways to write their records."""
    image = fits.PrimaryHDU(pixels("i2"))
    extra = []
    for axis, kind in [(1, "CPDIS"), (2, "D2IMDIS")]:
        record, name = {"CPDIS": ("DP", "WCSDVARR"), "D2IMDIS": ("D2IM", "D2IMARR")}[kind]
        image.header[f"{kind}{axis}"] = "LOOKUP"
        image.header[f"{record}{axis}.EXTVER"] = float(axis)
        lookup = fits.ImageHDU(np.zeros((2, 2), "f4"), name=name, ver=axis)
        lookup.header["CRVAL1"] = 3.0
        extra.append(lookup)
    return written(image, *extra, padded=False)


def tab() -> bytes:
    """An image with a -TAB axis."""
    image = fits.PrimaryHDU(pixels("f4"))
    image.header["CTYPE1"] = "WAVE-TAB"
    image.header["PS1_0"] = "COORDS"
    image.header["PS1_1"] = "lambda"
    image.header["PV1_1"] = 1
    column = fits.Column("lambda", "8D", dim="(1,8)", array=np.arange(8.0).reshape(1, 8, 1))
    return written(image, fits.BinTableHDU.from_columns([column], name="COORDS"), padded=False)


def headers(whole: dict[str, bytes]) -> dict[str, bytes]:
    """The beginnings of files whose headers have something to read."""
    kept = ["cards", "extensions", "groups", "distortion", "tab", "fz-none", "fz-float"]
    kept += ["fz-RICE_1", "fz-HCOMPRESS_1"]
    found = {name: whole[name][:8640] for name in kept}
    large = fits.Header(
        [("SIMPLE", True), ("BITPIX", -64), ("NAXIS", 2), ("NAXIS1", 10**12), ("NAXIS2", 10**7)]
    )
    found["large"] = large.tostring().encode()
    return found


def tiles() -> dict[str, bytes]:
    """Tiles of every codec behind the head that `fuzz_targets/tile.rs` reads."""
    found = {}
    dtypes = list(BITPIX)
    encodings = {"COMPRESSED_DATA": 0, "GZIP_COMPRESSED_DATA": 1, "UNCOMPRESSED_DATA": 2}

    def add(name: str, data: np.ndarray, codec: str, **options: object) -> None:
        whole = compressed(codec, data, tile_shape=data.shape, **options) + bytes(2880)
        with fits.open(io.BytesIO(whole), disable_image_compression=True) as hdus:
            table, header = hdus[1].data, hdus[1].header
            column = next(name for name in encodings if name in table.names and len(table[name][0]))
            tile = np.asarray(table[column][0]).astype(table[column][0].dtype.newbyteorder(">"))
            parameters = {
                header[f"ZNAME{n}"]: header[f"ZVAL{n}"]
                for n in range(1, 9)
                if f"ZNAME{n}" in header
            }
            bitpix = header["ZBITPIX"]
            quantised = "ZSCALE" in table.names or "ZSCALE" in header
        block = parameters.get("BLOCKSIZE", parameters.get("SMOOTH", 0))
        height, width = data.shape
        methods = list(DITHERS.values())
        head = struct.pack(
            "<12B", CODECS.index(codec), dtypes.index(bitpix),
            1 + methods.index(options.get("quantize_method", -1)) if quantised else 0,
            block, parameters.get("BYTEPIX", 0), encodings[column], 16, 100,
            width % 256, width // 256, height, 1,
        )  # fmt: skip
        found[name] = head + tile.tobytes()

    for codec in CODECS:
        for bitpix in [8, 16, 32]:
            add(f"{codec}{bitpix}", pixels(BITPIX[bitpix], (8, 9)), codec)
    for codec in ["RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1"]:
        for name, method in DITHERS.items():
            add(f"{codec}-{name}", pixels("f4", (12, 40)), codec, quantize_method=method)
    add("double", pixels("f8", (12, 40)), "RICE_1")
    add("lossless", pixels("f8"), "GZIP_2", quantize_level=0)
    add("smooth", pixels("i2", (16, 13)), "HCOMPRESS_1", hcomp_scale=4, hcomp_smooth=1)
    add("blank", np.zeros((64, 300), "i4"), "HCOMPRESS_1")
    add("mask", (pixels("i4", (30, 30)) > 100).astype("i4"), "PLIO_1")
    found["stored"] = struct.pack("<12B", 5, 1, 0, 0, 0, 2, 16, 100, 4, 0, 3, 1) + bytes(range(24))
    return found


def chunks() -> dict[str, bytes]:
    """Chunks of HDF5 and others behind the head and the JSON that `fuzz_targets/chunk.rs` reads."""
    seeds = {}
    data = pixels("i2", (20, 20)).tobytes()

    def add(name: str, stored: bytes, *filters: dict[str, object], skips: int = 0) -> None:
        text = json.dumps(filters, separators=(",", ":")).encode()
        seeds[name] = struct.pack("<HBH", len(text), skips, len(data)) + text + stored

    predictor = {"size": 2, "samples": 1, "width": 20, "big_endian": False}
    add("predictors", data, {"name": "horizontal", **predictor}, {"name": "floating", **predictor})
    add("deflate", zlib.compress(data), {"name": "shuffle", "size": 2}, {"name": "deflate"})
    add("gzip", gzip.compress(data, mtime=0), {"name": "gzip"})
    add("bzip2", bz2.compress(data), {"name": "bzip2"})
    add("crc32c", data + struct.pack("<I", crc32c(data)), {"name": "crc32c"})
    raw = zlib.compress(b"head" + data + b"end", wbits=-15)
    add("rawdeflate", raw, {"name": "rawdeflate", "from": 4, "size": len(data) + 7})
    bits = {"size": 2, "bits": 12, "signed": True, "big_endian": False}
    add("bits", data, {"name": "bits", **bits})
    for name in ("lzw", "packbits", "zstd"):
        add(name, getattr(imagecodecs, f"{name}_encode")(data), {"name": name})
    block = imagecodecs.lz4_encode(data, header=True)
    add("lz4-zarr", block, {"name": "lz4", "framing": "zarr"})
    add("lz4-asdf", struct.pack(">I", len(block)) + block, {"name": "lz4", "framing": "asdf"})
    bits = {"name": "bitshuffle", "size": 2, "block": 64}
    options = {
        "fletcher32": ({"fletcher32": True}, {"name": "fletcher32"}),
        "lzf": ({"compression": "lzf"}, {"name": "lzf"}),
        "lz4": (hdf5plugin.LZ4(nbytes=256), {"name": "lz4", "framing": "hdf5"}),
        "bitshuffle": (hdf5plugin.Bitshuffle(64, "none"), {**bits, "codec": "none"}),
        "bitshuffle-lz4": (hdf5plugin.Bitshuffle(64, "lz4"), {**bits, "codec": "lz4"}),
        "bitshuffle-zstd": (hdf5plugin.Bitshuffle(64, "zstd"), {**bits, "codec": "zstd"}),
    }
    for codec in ("blosclz", "lz4", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            blosc = hdf5plugin.Blosc(codec, 5, shuffle)
            options[f"blosc-{codec}-{shuffle}"] = (blosc, {"name": "blosc"})
    for coding, mask in (("nn", 169), ("ec", 141)):
        szip = {"name": "szip", "options": mask, "block": 8, "bits": 16, "scanline": 20}
        keywords = {"compression": "szip", "compression_opts": (coding, 8)}
        options[f"szip-{coding}"] = (keywords, szip)
    values = [2, 0, 400, 0, 2, 1, 0, 1, 0] + [0] * 11
    options["scaleoffset"] = ({"scaleoffset": 0}, {"name": "scaleoffset", "values": values})
    for name, (keywords, of) in options.items():
        with h5py.File(io.BytesIO(), "w") as file:
            array = np.frombuffer(data, "<i2").reshape(20, 20)
            dataset = file.create_dataset("a", data=array, chunks=(20, 20), **keywords)
            file.flush()
            skips, stored = dataset.id.read_direct_chunk((0, 0))
        add(name, stored, of, skips=skips)
    nbit = {"name": "nbit", "values": [8, 0, 400, 1, 2, 0, 9, 3]}
    add("nbit", bytes(range(225)) * 2, nbit)
    members = [3, 8, 2, 0, 1, 4, 1, 17, 5, 4, 2, 4, 1, 2, 0, 7, 1]
    add("nbit-compound", bytes(range(250)), {"name": "nbit", "values": [20, 0, 100, *members]})
    return seeds


def crc32c(data: bytes) -> int:
    """Return the checksum of Castagnoli, reflected as zlib has its own."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def indexes() -> dict[str, bytes]:
    """Chunk indexes with one array for each kind of storage."""
    chunked = {"kind": "chunks", "chunk_shape": [4, 5], "is_padded": True, "first": 0, "count": 3}
    storages = {
        "contiguous": {"kind": "contiguous", "offset": 99},
        "chunks": {**chunked, "filters": [{"name": "shuffle", "size": 2}, {"name": "deflate"}]},
        "tiles": {**chunked, "is_padded": False, "filters": []},
        "regular": {"kind": "regular", "offset": 8, "chunk_shape": [4, 5], "strides": [90, 40]},
        "records": {"kind": "regular", "offset": 8, "chunk_shape": [1, 8], "strides": [30, 0]},
        "inline": {"kind": "inline"},
        "library": {"kind": "library", "why": "szip"},
        "refused": {"kind": "refused", "why": "a link"},
    }

    def index(*names: str) -> bytes:
        rows = 3 if {"chunks", "tiles"} & {*names} else 0
        arrays = [
            {
                "name": f"/{name}", "dtype": "<i2", "element_bytes": 2, "shape": [9, 8],
                "dims": ["y", "x"], "fill": "AQI=", "storage": storages[name],
            }
            for name in names
        ]  # fmt: skip
        head = json.dumps({"format": "hdf5", "arrays": arrays, "chunks": rows}).encode()
        columns = [(0, 2, 5), (100, 140, 200), (40, 20, 30)] if rows else []
        words = b"".join(struct.pack("<3Q", *column) for column in columns)
        start = b"SWIX\x01\0\0\0" + struct.pack("<Q", len(head))
        return start + head + words + struct.pack(f"<{rows}I", *[0, 1, 0][:rows])

    return {name: index(name) for name in storages} | {"all": index(*storages)}


def streams() -> dict[str, bytes]:
    """Streams behind the two bytes that `fuzz_targets/stream.rs` reads."""
    text = b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(300))
    noise = np.random.default_rng(3).integers(0, 256, 700).astype("u1").tobytes()
    skewed = np.random.default_rng(4).geometric(0.3, 3000).astype("u1").tobytes()
    found = {}
    for name, data in {
        "text": text,
        "noise": noise,
        "skewed": skewed,
        "zeros": bytes(90000),
    }.items():
        for level in [1, 9]:
            found[f"{name}{level}.gz"] = gzip.compress(data, level, mtime=0)
        found[f"{name}.bz2"] = bz2.compress(data, 1)
        found[f"{name}.Z"] = lzw(data)
    fixed = zlib.compressobj(9, zlib.DEFLATED, 31, 8, zlib.Z_FIXED)
    found["fixed.gz"] = fixed.compress(text) + fixed.flush()
    parts = zlib.compressobj(6, zlib.DEFLATED, 31)
    found["parts.gz"] = b"".join(
        parts.compress(text[at : at + 900]) + parts.flush(zlib.Z_FULL_FLUSH)
        for at in range(0, 4500, 900)
    ) + parts.flush()  # fmt: skip
    small = gzip.compress(text[:500], mtime=0)
    named = b"\x1f\x8b\x08\x1e\0\0\0\0\0\x03" + b"\x04\0abcd" + b"name\0" + b"comment\0"
    named += struct.pack("<H", zlib.crc32(named) & 0xFFFF) + small[10:]
    found["members.gz"] = small + gzip.compress(b"", mtime=0) + named + bytes(20)
    found["streams.bz2"] = bz2.compress(text) + bz2.compress(b"") + bz2.compress(noise)
    found["empty.bz2"] = bz2.compress(b"")
    # Long enough for seek points, which lie as close as their windows are small.
    found["long.gz"] = gzip.compress(b"0123456789abcdef" * 100_000, 1, mtime=0)
    found["blocks.bz2"] = bz2.compress(skewed * 75, 1)
    found["text9.Z"] = lzw(text, 9)
    found["text12.Z"] = lzw(text, 12)
    kinds = {"gz": 0, "bz2": 1, "Z": 2}
    return {
        name: bytes([kinds[name.rsplit(".")[-1]], len(name) * 5]) + data
        for name, data in found.items()
    }


def lzw(data: bytes, most_bits: int = 16) -> bytes:
    """Compress as `compress` does, in block mode, never clearing the table."""
    known = {bytes([byte]): byte for byte in range(256)}
    bits, group, codes = 9, [], []

    def flush() -> None:
        # Codes of one width fill groups of eight, of as many bytes as a code has bits.
        number = sum(code << (bits * at) for at, code in enumerate(group))
        size = bits if codes_left else -(-len(group) * bits // 8)
        codes.append(number.to_bytes(size, "little"))
        group.clear()

    codes_left = True
    next_code, prefix = 257, b""
    for byte in data:
        longer = prefix + bytes([byte])
        if longer in known:
            prefix = longer
            continue
        group.append(known[prefix])
        if len(group) == 8:
            flush()
        if next_code < 1 << most_bits:
            known[longer] = next_code
            next_code += 1
            if next_code > 1 << bits and bits < most_bits:
                if group:
                    flush()
                bits += 1
        prefix = bytes([byte])
    codes_left = False
    group.append(known[prefix])
    flush()
    return bytes([0x1F, 0x9D, 0x80 | most_bits]) + b"".join(codes)


def answers() -> dict[str, bytes]:
    """Answers to a request for the ranges of `fuzz_targets/multipart.rs`, by the kind of server."""

    def part(first: int, last: int, kind: str = "Content-Range") -> bytes:
        head = f"\r\n--XX\r\nContent-Type: a/b\r\n{kind}: bytes {first}-{last}/1000\r\n\r\n"
        return head.encode() + b"-" * (last - first + 1)

    start = b"\x07multipart/byteranges; boundary=XX\n"
    every = [(10, 29), (40, 40), (41, 59), (900, 999)]
    end = b"\r\n--XX--\r\n"
    return {
        "apart": start + b"".join(part(*of) for of in every) + end,
        "xrootd": start + b"".join(part(*of, "Content-range") for of in every) + end,
        "reordered": start + b"".join(part(*of) for of in reversed(every)) + end,
        "merged": start + part(10, 999) + end,
        "left-out": start + part(40, 40) + end,
        "without-end": start + b"".join(part(*of) for of in every),
        "single": b"\x40bytes 10-59/1000\n" + bytes(50),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    with mock.patch("time.time", return_value=0):  # which gzip puts into tiles
        whole = files()
        corpus = {"cut": whole, "header": headers(whole), "tile": tiles(), "stream": streams()}
        corpus |= {"multipart": answers(), "chunk": chunks(), "index": indexes()}
    for target, seeds in corpus.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (folder / name).write_bytes(data)
        print(f"{target}: {len(seeds)} seeds, {sum(map(len, seeds.values()))} bytes")


if __name__ == "__main__":
    main()
