"""Makes images.fits.gz and sums.txt: a small image in every codec, pixel type and quantisation.

Run with astropy and fitsio installed. Every image is read back with both, which must agree to
the bit; sums.txt holds the CRC-32 of those pixels as an uncompressed image stores them.
"""

import gzip
import itertools
import pathlib
import zlib

import fitsio
import numpy as np
from astropy.io import fits

HERE = pathlib.Path(__file__).parent


def sky(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Noise with a slope and a few stars."""
    rng = np.random.default_rng(seed)
    image = rng.normal(100, 9, shape) + np.arange(shape[-1])
    for _ in range(4):
        image[tuple(rng.integers(0, n) for n in shape)] += rng.exponential(5000)
    return image


def images():
    """Name, pixels and CompImageHDU arguments of every image."""
    shape = (13, 37)
    for bitpix, codec in itertools.product(
        ("u1", "i2", "i4"), ("RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1")
    ):
        pixels = np.clip(sky(1, shape), 0, 255 if bitpix == "u1" else 30000).astype(bitpix)
        if codec == "RICE_1" and bitpix == "i4":
            pixels[3] *= 70000
            pixels[4, 5:9] = (-(2**31), 2**31 - 1, 0, -1)
        yield f"{codec} {bitpix}", pixels, {"compression_type": codec, "tile_shape": (13, 37)}
        if codec != "HCOMPRESS_1":
            yield (
                f"{codec} {bitpix} tiled",
                pixels,
                {"compression_type": codec, "tile_shape": (5, 20)},
            )
    for scale, smooth, bitpix in itertools.product((0, 3, 20), (0, 1), ("i2", "i4")):
        yield (
            f"HCOMPRESS_1 {bitpix} {scale} {smooth}",
            sky(2, (30, 41)).astype(bitpix),
            {
                "compression_type": "HCOMPRESS_1",
                "tile_shape": (15, 41),
                "hcomp_scale": scale,
                "hcomp_smooth": smooth,
            },
        )
    for dtype, codec, dither in itertools.product(
        ("f4", "f8"), ("RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1"), (-1, 1, 2)
    ):
        pixels = sky(3, (12, 211)).astype(dtype)
        pixels[2:4, 10:30] = np.nan
        pixels[7, 40:90] = 0
        yield (
            f"{codec} {dtype} dither {dither}",
            pixels,
            {
                "compression_type": codec,
                "tile_shape": (12, 211),
                "quantize_level": 8,
                "quantize_method": dither,
                "dither_seed": 9999,
            },
        )
    # A tile of few values is not quantised, but goes to GZIP_COMPRESSED_DATA.
    flat = np.repeat([1.5, np.pi, np.nan], 40).reshape(3, 40).astype("f4")
    yield "RICE_1 f4 not quantised", flat, {"compression_type": "RICE_1", "quantize_level": 4}
    yield (
        "GZIP_2 f8 lossless",
        flat.astype("f8"),
        {"compression_type": "GZIP_2", "quantize_level": 0},
    )
    yield (
        "RICE_1 cube",
        sky(4, (3, 5, 19)).astype("i2"),
        {"compression_type": "RICE_1", "tile_shape": (2, 5, 8)},
    )


def stored(pixels: np.ndarray) -> bytes:
    """Bytes of an uncompressed image."""
    if pixels.dtype.kind == "f":
        pixels = np.where(np.isnan(pixels), np.nan, pixels)
    return pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()


def main() -> None:
    hdus, names = [fits.PrimaryHDU()], []
    for name, pixels, arguments in images():
        hdus.append(fits.CompImageHDU(pixels, **arguments))
        names.append(name)
    path = HERE / "images.fits"
    fits.HDUList(hdus).writeto(path, overwrite=True)
    lines = []
    with fits.open(path) as ours, fitsio.FITS(path) as theirs:
        for number, name in enumerate(names, start=1):
            pixels = stored(ours[number].data)
            assert pixels == stored(theirs[number].read()), name
            lines.append(f"{zlib.crc32(pixels):08x} {name}\n")
    path.with_suffix(".fits.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    (HERE / "sums.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
