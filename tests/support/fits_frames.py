"""Small FITS files of every kind, made in the tests, and ways to read results independently."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

KINDS = ("fit", "fit.gz", "fit.bz2", "fit.fz")
SWATHE = Path(sys.executable).parent / "swathe"
"""The installed command."""


def noise(seed: int, shape: tuple[int, ...] = (300, 400)) -> NDArray[np.uint16]:
    """Pixels of an image like a sky: a little noise, far from zero."""
    rng = np.random.default_rng(seed)
    return rng.normal(1100, 6, shape).round().astype(np.uint16)


def sky_header(ra_deg: float = 10.0, dec_deg: float = -1.0, pixel_deg: float = 1e-4) -> fits.Header:
    """Cards of a TAN projection around pixel (200, 150), counted from 1."""
    return fits.Header(
        {
            "CTYPE1": "RA---TAN",
            "CTYPE2": "DEC--TAN",
            "CRVAL1": ra_deg,
            "CRVAL2": dec_deg,
            "CRPIX1": 200.0,
            "CRPIX2": 150.0,
            "CDELT1": -pixel_deg,
            "CDELT2": pixel_deg,
            "CUNIT1": "deg",
            "CUNIT2": "deg",
            "RADESYS": "ICRS",
        }
    )


def fits_bytes(*hdus: Any) -> bytes:
    """A FITS file in memory."""
    file = BytesIO()
    fits.HDUList(list(hdus)).writeto(file)
    return file.getvalue()


def contents(data: NDArray[Any], kind: str, header: fits.Header | None = None) -> bytes:
    """A file of a kind that holds an image."""
    if kind == "fit.fz":
        tiles = (*[1] * (data.ndim - 1), data.shape[-1])
        image = fits.CompImageHDU(data, header, compression_type="RICE_1", tile_shape=tiles)
        return fits_bytes(fits.PrimaryHDU(), image)
    plain = fits_bytes(fits.PrimaryHDU(data, header))
    match kind:
        case "fit.gz":
            return gzip.compress(plain, 1, mtime=0)
        case "fit.bz2":
            return bz2.compress(plain)
        case _:
            return plain


def frame(ra_deg: float, dec_deg: float = -1.0, **cards: Any) -> bytes:
    """A file of an image there, with these cards besides; `_` for `-`."""
    header = sky_header(ra_deg, dec_deg)
    header.update({name.replace("_", "-"): value for name, value in cards.items()})
    return contents(noise(1), "fit", header)


def write_kinds(
    folder: Path, stem: str, data: NDArray[Any], header: fits.Header | None = None
) -> list[Path]:
    """Write an image in all four kinds."""
    paths = [folder / f"{stem}.{kind}" for kind in KINDS]
    for path, kind in zip(paths, KINDS, strict=True):
        path.write_bytes(contents(data, kind, header))
    return paths


def results(output: Path) -> dict[str, bytes]:
    """What a batch wrote, by name, read without Swathe. Of one FITS file: each extension.

    But for the manifest, with which every archive ends.
    """
    if output.is_dir():
        files = (path for path in output.iterdir() if path.name != "manifest.ecsv")
        return {path.name: path.read_bytes() for path in files}
    if output.suffix == ".zip":
        with zipfile.ZipFile(output) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            assert len(names) == len(set(names))
            assert names[-1] == "manifest.ecsv"
            return {name: archive.read(name) for name in names[:-1]}
    if output.suffix == ".tar":
        with tarfile.open(output) as archive:
            names = archive.getnames()
            assert len(names) == len(set(names))
            assert names[-1] == "manifest.ecsv"
            return {name: _member(archive, name) for name in names[:-1]}
    content = output.read_bytes()
    cutouts = {}
    with fits.open(output, memmap=False) as hdus:
        assert hdus[-1].name == "MANIFEST"
        for hdu in hdus[1:-1]:
            assert hdu.name not in cutouts
            end = hdu._data_offset + hdu._data_size
            end += -end % 2880
            cutouts[hdu.header["EXTNAME"]] = content[hdu._header_offset : end]
    return cutouts


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def image_of(result: bytes) -> NDArray[Any]:
    """Pixels of a result, through astropy."""
    if result.startswith(b"XTENSION"):
        result = fits_bytes(fits.PrimaryHDU()) + result
    with fits.open(BytesIO(result), memmap=False) as hdus:
        return np.array(hdus[-1].data)


def swathe_command(
    *arguments: object, env: dict[str, str] | None = None, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [str(SWATHE), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env={**os.environ, **(env or {})},
    )


def command_here(*arguments: object, env: dict[str, str] | None = None) -> CompletedProcess[str]:
    """Run the command line in this process, as each new one takes half a second."""
    from swathe.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    with (
        # `--trace` sets a variable for children.
        patch.dict(os.environ, env or {}),
        patch.object(sys, "argv", ["swathe", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as exit_info,
    ):
        main()
    code = exit_info.value.code
    assert code is None or isinstance(code, int)
    return CompletedProcess(sys.argv, code or 0, out.getvalue(), err.getvalue())


@dataclass
class ProgramRun:
    """What a command printed, and its exit code."""

    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What one that succeeded printed with `--json`."""
        assert (self.code, self.err) == (0, "")
        assert len(self.out.splitlines()) == 1
        return json.loads(self.out)


class Runner:
    """Runs commands in this process, as each new one takes half a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Take what pytest gives a test."""
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: object, code: int = 0) -> str:
        """Run a command that ends with this code; give what it printed."""
        out, err = self.told(*words, code=code)
        return out if out else err

    def told(self, *words: object, code: int = 0) -> tuple[str, str]:
        """Run a command that ends with this code; give what it printed, and what it said beside."""
        ran = self.ran(*words)
        assert ran.code == code, ran.err or ran.out
        return ran.out, ran.err

    def ran(self, *words: object) -> ProgramRun:
        """Run a command, however it ends."""
        from swathe.cli.app import main

        self.monkeypatch.setattr(sys, "argv", ["swathe", *map(str, words)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        return ProgramRun(exit_info.value.code, *self.capsys.readouterr())

    def json(self, *words: object, code: int = 0) -> Any:
        """Run a command with `--json`."""
        return json.loads(self(*words, "--json", code=code))
