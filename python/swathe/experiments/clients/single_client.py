"""One client that crops, in a process of its own: seconds of each stage.

It reads an order as JSON from standard input and prints the seconds of every crop. Stages:

- *copy*: copying the image here, if the client reads only local files; with GUNZIP also
  decompressing it;
- *read*: opening the image and reading its header; includes decompression if the client
  decompresses whole files;
- *crop*: reading the pixels and making the header of the crop;
- *write*: writing a FITS file.

Work that serves all crops of an image is divided equally among them. GZ and bz2 open the compressed
image again for each crop; all others open an image once.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any, Protocol

from swathe.core.errors import NotFoundError
from swathe.experiments.clients.frames_in_store import fetch, take_over
from swathe.stores.registry import known_stores

STAGES = ("copy", "read", "crop", "write")
ANEW = ("GZ", "bz2")
"""Methods that decompress the archived image for each crop."""
BLOCK = 1 << 20

Box = tuple[int, int, int, int]


class Cutter(Protocol):
    """A client: how it reads an image, makes a crop, and writes it."""

    def read(self, path: str) -> Any:
        """Open an image."""

    def crop(self, image: Any, box: Box) -> Any:
        """Make a crop."""

    def write(self, crop: Any, path: Path) -> None:
        """Write the crop."""

    def close(self, image: Any) -> None:
        """Close the image."""


class Swathe:
    """Swathe itself, one cut at a time."""

    def read(self, path: str) -> Any:
        """Open an image, without information from earlier reads."""
        from swathe.files.file import open_from_cache

        return open_from_cache(path).image()

    def crop(self, image: Any, box: Box) -> Any:
        """Read the pixels and make the header."""
        return image.cut(box)

    def write(self, crop: Any, path: Path) -> None:
        """Write the crop."""
        crop.write(path)

    def close(self, image: Any) -> None:
        """Do nothing: there is nothing to close."""


class Fitsio:
    """The Python package fitsio: a section, with CRPIX corrected."""

    def read(self, path: str) -> Any:
        """Open the file."""
        import fitsio

        file = fitsio.FITS(path)
        return file, file[-1]

    def crop(self, image: Any, box: Box) -> Any:
        """Read the header and a section."""
        x0, y0, width, height = box
        hdu, header = image[1], image[1].read_header()
        pixels = hdu[y0 : y0 + height, x0 : x0 + width]
        header["CRPIX1"] -= x0
        header["CRPIX2"] -= y0
        return pixels, header

    def write(self, crop: Any, path: Path) -> None:
        """Write the crop."""
        import fitsio

        fitsio.write(str(path), crop[0], header=crop[1])

    def close(self, image: Any) -> None:
        """Close the file."""
        image[0].close()


class Astropy:
    """Astropy as an expert uses it: `Cutout2D` with its WCS, of `hdu.section` if that is fast.

    In gzip and bzip2 files each row of a section would be sought from the start: there the whole
    image is read.
    """

    def read(self, path: str) -> Any:
        """Open the file and read the header."""
        from astropy.io import fits

        file = fits.open(path)
        is_stream = path.endswith((".gz", ".bz2"))
        return file, file[-1].data if is_stream else file[-1].section, file[-1].header

    def crop(self, image: Any, box: Box) -> Any:
        """Make a `Cutout2D` and its header."""
        from astropy.nddata import Cutout2D
        from astropy.wcs import WCS

        x0, y0, width, height = box
        _, pixels, header = image
        centre = (x0 + (width - 1) / 2, y0 + (height - 1) / 2)
        cutout = Cutout2D(pixels, centre, (height, width), wcs=WCS(header))
        cards = header.copy()
        cards.update(cutout.wcs.to_header())
        return cutout.data, cards

    def write(self, crop: Any, path: Path) -> None:
        """Write the crop."""
        import numpy as np
        from astropy.io import fits

        fits.PrimaryHDU(np.asarray(crop[0]), crop[1]).writeto(path)

    def close(self, image: Any) -> None:
        """Close the file."""
        image[0].close()


class AstropyFsspec(Astropy):
    """The same, read on the server, as astropy's documentation recommends for small cutouts."""

    def read(self, path: str) -> Any:
        """Open the object; blocks of 1 MB are requested from it."""
        from astropy.io import fits

        stores = known_stores()
        url = stores.locate(path)[1] if stores else path
        options = {"block_size": 1_000_000, "cache_type": "bytes"}
        file = fits.open(url, use_fsspec=True, fsspec_kwargs=options)
        return file, file[-1].section, file[-1].header


CUTTERS: dict[str, type[Cutter]] = {
    "swathe": Swathe,
    "fitsio": Fitsio,
    "astropy": Astropy,
    "astropy-fsspec": AstropyFsspec,
}


def work(order: dict[str, Any], case: dict[str, Any]) -> list[list[float]]:
    """Crop as ordered; return image number and seconds of each stage, one row per crop.

    Args:
        order: `client`, `out`, `scratch`, and for cfitsio its `program`.
        case: `method`, `images` (object and boxes of each), `copy` (whether images must be copied
            here), `budget_s`, `whole` (whether to finish all crops of an image after the time
            limit).
    """
    method, client = case["method"], order["client"]
    out, scratch = Path(order["out"]), Path(order["scratch"])
    rows: list[list[float]] = []
    limit = time.perf_counter() + case["budget_s"]
    until = math.inf if case.get("whole") else limit
    for number, (name, boxes) in enumerate(case["images"]):
        if rows and time.perf_counter() > limit:
            break
        start_s = time.perf_counter()
        path, mine = bring_image(name, method, case["copy"], scratch)
        copy_s = time.perf_counter() - start_s
        if client == "cfitsio":
            left_s = max(limit - time.perf_counter(), 0.0)
            times = by_program(order["program"], path, boxes, out, method in ANEW, left_s)
        else:
            times = by_package(CUTTERS[client](), path, boxes, out, method in ANEW, until)
        rows += [[number, copy_s / len(boxes), *stages] for stages in times]
        if mine:
            Path(path).unlink()
        for file in out.iterdir():
            file.unlink()
    return rows


def bring_image(name: str, method: str, copy: bool, scratch: Path) -> tuple[str, bool]:
    """Make an image available to the client; return its path, and whether it is a copy."""
    path = name
    if copy:
        path = str(scratch / name.replace(":", "/").rpartition("/")[2])
        fetch(name, Path(path))
    if method == "GUNZIP":
        archive, path = path, str(scratch / "plain.fit")
        gunzip(Path(archive), Path(path))
        if copy:
            Path(archive).unlink()
    return path, path != name


def gunzip(archive: Path, plain: Path) -> None:
    """Decompress a file.

    Raises:
        NotFoundError: If there is no such file.
    """
    if not archive.exists():
        raise NotFoundError(f"{archive}: not found")
    unpacker = zlib.decompressobj(31)
    with archive.open("rb") as file, plain.open("wb") as target:
        while block := file.read(BLOCK):
            target.write(unpacker.decompress(block))
        target.write(unpacker.flush())


def by_package(
    cutter: Cutter, path: str, boxes: list[Box], out: Path, anew: bool, limit: float
) -> list[list[float]]:
    """Crop an image with a Python package; return the seconds to read, crop and write each.

    After the time limit, crops that have begun are finished.
    """
    clock = time.perf_counter
    times = []
    start_s = clock()
    image = cutter.read(path)
    read_s = clock() - start_s
    for number, box in enumerate(boxes):
        if number and clock() > limit:
            break
        if anew and number:
            start_s = clock()
            cutter.close(image)
            image = cutter.read(path)
            read_s = clock() - start_s
        start_s = clock()
        crop = cutter.crop(image, box)
        crop_end = clock()
        cutter.write(crop, out / f"{number}.fits")
        times.append([read_s, crop_end - start_s, clock() - crop_end])
    cutter.close(image)
    return times if anew else share_times(times, len(boxes))


def share_times(times: list[list[float]], count: int) -> list[list[float]]:
    """Divide the reading time among `count` crops, whether all were made or not."""
    return [[read_s / count, crop_s, write_s] for read_s, crop_s, write_s in times]


def by_program(
    program: str, path: str, boxes: list[Box], out: Path, anew: bool, left_s: float
) -> list[list[float]]:
    """Crop an image with the C program; the rest as for `by_package`."""
    lines = "".join(f"{x} {y} {width} {height} {path}\n" for x, y, width, height in boxes)
    *times, _ = cut_with_cfitsio(program, lines, out, anew, left_s)
    return times if anew else share_times(times, len(boxes))


def cut_with_cfitsio(
    program: str, lines: str, out: Path, anew: bool, left_s: float
) -> list[list[float]]:
    """Run the C program, as `cfitsio.c` describes it; return the numbers of each line."""
    command = [program, "anew" if anew else "once", str(out), f"{left_s:.6f}"]
    process = subprocess.run(command, input=lines, capture_output=True, text=True)
    if process.returncode:
        raise OSError(" ".join(process.stderr.split()) or f"{program} failed")
    return [[float(word) for word in line.split()] for line in process.stdout.splitlines()]


def main() -> None:
    """Execute the order, case by case; print the rows of each, or the error."""
    import warnings

    warnings.simplefilter("ignore")  # astropy's warnings about headers
    order = json.load(sys.stdin)
    take_over(order)
    for name in ("out", "scratch"):
        shutil.rmtree(order[name], ignore_errors=True)
        Path(order[name]).mkdir(parents=True)
    if order["client"] != "cfitsio":
        # One untimed crop of another image, so that everything is imported.
        images = [(order["warm_up"], [(0, 0, 16, 16)])]
        work(order, {"method": "FIT", "images": images, "copy": False, "budget_s": 0})
    json.dump([attempt(order, case) for case in order["cases"]], sys.stdout)


def attempt(order: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Run a case; return its rows, or the error."""
    try:
        return {"rows": work(order, case)}
    except Exception as error:  # a client may raise anything
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
