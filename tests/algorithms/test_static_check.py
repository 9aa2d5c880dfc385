"""The check of an algorithm: its function and its packages, without importing it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import swathe
from swathe.algorithms.definition import Algorithm
from swathe.algorithms.header import read_source
from swathe.algorithms.static_check import SIGNATURE, checked_definition
from swathe.core.confined import ConfinedProcess
from swathe.core.errors import AlgorithmError, LimitError, NotFoundError
from tests.support.algorithms import LST
from tests.support.fits_frames import Runner

Check = Callable[[Path], Algorithm]
RUN = "def run(granules, climatology, grid, log, min_quality): ..."


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "lst.py"


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """Check a file as `check_algorithm` does, in one process for all."""
    with closing(ConfinedProcess(places=1, imports=(SIGNATURE,))) as process:
        yield lambda path: checked_definition(read_source(path), process)


@pytest.mark.parametrize(
    "function",
    [
        RUN,
        "def run(log, *, granules, grid, climatology, min_quality=2): ...",
        "def run(granules, **others): ...",
        "def run(granules, climatology, grid, log, min_quality, verbose=False): ...",
        f"raise SystemExit('imported')\n{RUN}",
    ],
)
def test_a_function_with_the_arguments_passes(function: str, source: Path, check: Check) -> None:
    source.write_text(LST.replace(RUN, function))
    assert check(source).label == "lst-quarter-degree@1.2"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("", "expected a function 'def run(...)', found none"),
        ("async def run(granules): ...", "found another in line 14"),
        ("def run(granules, climatology, grid, log): ...", "found none for min_quality"),
        (RUN.replace("log,", "log, x,"), "found x too, which is no input, output or parameter"),
        ("def run(*granules): ...", "line 14: expected arguments of run by their names"),
        ("def run(granules:", "line 14: '(' was never closed"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(
    function: str, said: str, source: Path, check: Check
) -> None:
    source.write_text(LST.replace(RUN, function))
    with pytest.raises(AlgorithmError) as error:
        check(source)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{source}: ")


def test_packages_and_python_must_be_there(source: Path, check: Check) -> None:
    source.write_text(LST.replace("numpy", "numpi").replace(">=3.11", ">=3.11,<3.11.1"))
    with pytest.raises(AlgorithmError) as error:
        check(source)
    python, package = error.value.faults
    assert python.startswith("requires-python: expected >=3.11,<3.11.1, found 3.")
    assert package == (
        "dependencies: expected packages of the environment, found 'numpi'; is it numpy?"
    )


@pytest.mark.parametrize("text", ["(" * 100_000, "-" * 200_000 + "1", "x" + ".a" * 200_000, "\0"])
def test_sources_that_break_parsers_are_refused(text: str, source: Path, check: Check) -> None:
    source.write_text(f"{LST}\n{text}\n")
    with pytest.raises((AlgorithmError, LimitError, swathe.errors.FormatError), match=r"lst\.py"):
        check(source)


def test_the_command_shows_the_definition(run: Runner, source: Path) -> None:
    source.write_text(LST)
    shown = run("algorithm", "check", str(source))
    assert "1 to 288 of MOD11_L2, group: day; LST, QC; 1 before, 0 after" in shown
    assert "a whole number from 0 to 3; default 1" in shown
    values = json.loads(run("algorithm", "check", str(source), "--json"))
    assert values["resources"]["memory"] == 10**9


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        swathe.check_algorithm(tmp_path / "lst.py")
