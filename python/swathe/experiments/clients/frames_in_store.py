"""Stores with frames, and the regions cut from them."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import RegionError
from swathe.files.file import open as open_file
from swathe.stores.registry import (
    StoreSnapshot,
    known_stores,
    native_stores,
    storages,
    use_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from swathe.experiments.settings import CommonSettings

ENDINGS = {"FIT": "", "GUNZIP": ".gz", "GZ": ".gz", "bz2": ".bz2"}
"""File name endings after that of a plain frame; tile-compressed frames have theirs instead."""
TILED_SUFFIX = ".fz"
SAMPLE = "sample"
"""Name shown for a survey made for the run."""

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class FramesInStore:
    """A store with frames.

    Attributes:
        path: as the user named it: a folder, a URL, or `NAME:` of a store with a prefix.
        label: the same without secrets.
        folder: folder of its files, if it is on this machine.
        pattern: pattern of frame names, without their ending.
        suffix: ending of plain frames.
        shape: shape of the images, `(height, width)`.
        pixel_bytes: stored bytes per pixel.
        image_bytes: bytes of a plain frame.
    """

    path: str
    label: str
    folder: Path | None
    pattern: str
    suffix: str
    shape: tuple[int, int]
    pixel_bytes: int
    image_bytes: int

    def frame(self, number: int, method: str = "FIT") -> str:
        """Return the object of a frame, numbered from 1."""
        return _object(self.path, self._name(number, method))

    def file(self, number: int, method: str) -> str:
        """Return the local path of a frame, for clients that know no stores; else its object."""
        if self.folder is None:
            return self.frame(number, method)
        return str(self.folder / self._name(number, method))

    def _name(self, number: int, method: str) -> str:
        return self.pattern.format(number) + self.ending(method)

    def ending(self, method: str) -> str:
        """Return the file name ending of a method."""
        if method == "fz":
            return self.suffix + TILED_SUFFIX
        return self.suffix + ENDINGS[method]

    def boxes(self, count: int, side: int, rng: np.random.Generator) -> list[Box]:
        """Return random squares wholly within the images, as `(x0, y0, width, height)`.

        A side larger than the image is reduced to its height or width.
        """
        height, width = min(side, self.shape[0]), min(side, self.shape[1])
        x0 = rng.integers(self.shape[1] - width + 1, size=count)
        y0 = rng.integers(self.shape[0] - height + 1, size=count)
        return [(int(x), int(y), width, height) for x, y in zip(x0, y0, strict=True)]


def frames_in_store(name_or_url: str, settings: CommonSettings) -> FramesInStore:
    """Inspect the first frame of a store.

    Raises:
        NotFoundError, AccessError, SourceError, FormatError: If it cannot be read.
        RegionError: If it has no image.
    """
    stores = native_stores()
    if ":" not in name_or_url and stores.locate(f"{name_or_url}:")[1] != f"{name_or_url}:":
        name_or_url = f"{name_or_url}:"
    path = stores.local_path(name_or_url)
    name = _object(name_or_url, settings.name.format(1) + settings.suffix)
    file = open_file(name)
    shape = file.image().shape
    if len(shape) < 2:
        raise RegionError(
            f"{_swathe.redact_url(name)}: its first image has {len(shape)} axes, not 2"
        )
    bitpix = next(hdu.bitpix for hdu in file.hdus if list(hdu.shape) == list(shape))
    return FramesInStore(
        name_or_url,
        _swathe.redact_url(name_or_url).rstrip(":"),
        path,
        settings.name,
        settings.suffix,
        (shape[-2], shape[-1]),
        abs(bitpix or 16) // 8,
        file.size,
    )


def _object(folder: str, name: str) -> str:
    if folder.endswith((":", "/")):
        return folder + name
    return f"{folder}/{name}"


@contextmanager
def frames_in_stores(
    settings: CommonSettings, scratch: Path | None = None
) -> Iterator[list[FramesInStore]]:
    """Yield the stores of an experiment; if none is named, a sample survey made here."""
    if settings.stores:
        yield [frames_in_store(name, settings) for name in settings.stores]
        return
    from swathe.core.sample_survey import make_sample

    with tempfile.TemporaryDirectory(prefix="swathe-bench-", dir=scratch) as folder:
        make_sample(Path(folder) / "local", settings.frames, 1, settings.frames)
        # Not its folder, which differs in each run: runs are compared by these names.
        yield [replace(frames_in_store(f"{folder}/local", settings), label=SAMPLE)]


def fetch(url: str, path: Path) -> int:
    """Copy an object unchanged into a file; return its size in bytes.

    Raises:
        SourceError: If it cannot be read.
    """
    source = native_stores().open(url)
    block = 8 << 20
    with path.open("wb") as file:
        for start in range(0, source.size, block):
            file.write(source.read(start, min(start + block, source.size)))
    return source.size


def warm_up_image(folder: Path) -> str:
    """Write a small image for one cut before the measurement; return its path."""
    import numpy as np
    from astropy.io import fits

    path = folder / "warm-up.fit"
    header = fits.Header()
    for axis, kind in enumerate(("RA---TAN", "DEC--TAN"), 1):
        header[f"CTYPE{axis}"] = kind
        header[f"CRPIX{axis}"] = 1.0
        header[f"CDELT{axis}"] = 1e-4
    fits.PrimaryHDU(np.zeros((32, 32), np.int16), header).writeto(path)
    return str(path)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process with an empty index and no block cache."""
    return {
        **os.environ,
        "SWATHE_INDEX_DIR": str(folder),
        "SWATHE_CACHE_BYTES": "0",
        "SWATHE_MEMORY_BYTES": "0",
        **more,
    }


def with_storages(order: dict[str, Any]) -> dict[str, Any]:
    """Add this host's stores to an order, so that clients need not load the catalogue.

    An order with the stores of another host keeps them.
    """
    if "storages" in order or known_stores() is None:
        return order
    return {**order, "storages": asdict(storages())}


def take_over(order: dict[str, Any]) -> None:
    """Use the stores of an order."""
    if "storages" in order:
        use_snapshot(StoreSnapshot(**order["storages"]))


def child(module: str, order: dict[str, Any], variables: dict[str, str], timeout_s: float) -> Any:
    """Run a module in a process of its own, with an order and an answer in JSON.

    Raises:
        SourceError: If it fails; the text has the end of its output.
    """
    import json
    import subprocess
    import sys

    from swathe.core.errors import SourceError

    command = [sys.executable, "-m", module]
    try:
        process = subprocess.run(
            command,
            input=json.dumps(with_storages(order)),
            capture_output=True,
            text=True,
            env=variables,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"{module}: expected an answer within {timeout_s:.0f} s, found none"
        ) from None
    if process.returncode:
        last_line = process.stderr.strip().splitlines()[-1:] or [f"ended with {process.returncode}"]
        raise SourceError(f"{module}: {last_line[0]}")
    try:
        return json.loads(process.stdout)
    except ValueError:
        raise SourceError(f"{module}: the answer is not JSON: {process.stdout[:80]!r}") from None
