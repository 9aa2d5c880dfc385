"""The wheel that `make wheel` makes, in a clean environment without the sources."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe

ROOT = Path(__file__).parents[1]
WHEELS = sorted((ROOT / "build/wheels").glob("swathe-*.whl"))
if not WHEELS:
    pytest.skip("there is no wheel in build/wheels: run `make wheel`", allow_module_level=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel, and what it needs, as locked."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv/bin"
    lock = ROOT / "requirements/portal.lock"
    called(programs / "pip", "install", "--require-hashes", "-r", str(lock))
    called(programs / "pip", "install", "--no-deps", "--no-index", str(WHEELS[-1]))
    return programs


def called(program: Path, *words: str) -> str:
    """Run a program of that environment away from the sources, and return what it prints."""
    home = next(each for each in program.parents if (each / "venv").is_dir())
    variables = {name: os.environ[name] for name in os.environ if name.startswith("PIP_")}
    variables |= {"PATH": os.defpath, "HOME": str(home)}
    done = subprocess.run(
        [program, *words], cwd=home, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_serves_every_python_and_linux_of_ten_years() -> None:
    (wheel,) = WHEELS
    name, version, python, abi, platforms = wheel.stem.split("-")
    assert (name, version, python, abi) == ("swathe", swathe.__version__, "cp311", "abi3")
    assert f"manylinux_2_17_{os.uname().machine}" in platforms.split(".")


def test_it_needs_what_it_says(installed: Path) -> None:
    assert "No broken requirements" in called(installed / "pip", "check")


def test_it_is_imported_from_there(installed: Path) -> None:
    code = "import swathe; print(swathe.__version__, swathe.__file__)"
    version, _, path = called(installed / "python", "-c", code).strip().partition(" ")
    assert version == swathe.__version__
    assert Path(path).is_relative_to(installed.parent)


def test_it_cuts_a_real_file(installed: Path, data: Path, tmp_path: Path) -> None:
    frame = data / "compressed/m13_rice.fits"
    shown = json.loads(called(installed / "swathe", "info", "--json", str(frame)))
    assert shown["hdus"][1]["shape"] == [300, 300]
    output = tmp_path / "cut.fits"
    box = ("--box", "10", "20", "40", "30")
    called(installed / "swathe", "cut", str(frame), *box, "-o", str(output))
    whole, cut = fits.getdata(frame), fits.getdata(output)
    assert np.array_equal(cut, whole[20:50, 10:50])


def test_it_has_the_program_that_confines_others(installed: Path) -> None:
    code = "from swathe.sandbox.launch import PROGRAM; print(PROGRAM)"
    program = Path(called(installed / "python", "-c", code).strip())
    assert program.is_relative_to(installed.parent)
    assert called(program, "--version") == f"swathe-sandbox {swathe.__version__}\n"
