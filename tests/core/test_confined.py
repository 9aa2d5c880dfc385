"""Functions of ours in processes that may take little."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swathe.core.confined import NICE, ConfinedProcess, ProcessLimits
from swathe.core.errors import LimitError, SwatheError, TargetsError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux keeps them")


@pytest.fixture(scope="module")
def confined() -> Iterator[ConfinedProcess]:
    confined = ConfinedProcess()
    yield confined
    confined.close()


def run(
    confined: ConfinedProcess, name: str, bounds: ProcessLimits | None = None, **argument: Any
) -> bytes:
    return confined.run(
        "the table", f"tests.support.confined_calls:{name}", argument, bounds or ProcessLimits()
    )


def test_a_call_has_a_lower_priority(confined: ConfinedProcess) -> None:
    assert int(run(confined, "niceness")) == min(19, os.nice(0) + NICE)


def test_a_call_gives_bytes(confined: ConfinedProcess) -> None:
    assert run(confined, "repeat", text="ab", times=2_000_000) == b"ab" * 2_000_000


@pytest.mark.parametrize(
    ("name", "argument", "bounds", "told"),
    [
        (
            "repeat",
            {"text": "a", "times": 10**12},
            ProcessLimits(),
            "needs more than 512 MB to read",
        ),
        (
            "repeat",
            {"text": "a", "times": 3 << 20},
            ProcessLimits(answer_mb=1),
            "more than 1 MB of valu",
        ),
        ("spin", {}, ProcessLimits(cpu_s=1), "at most 1 s of CPU time, found that it needs more"),
        ("spin", {}, ProcessLimits(wall_s=0.5), "needs more than 0.5 s to read"),
        ("die", {}, ProcessLimits(), "was killed"),
    ],
)
def test_what_takes_more_is_told(
    confined: ConfinedProcess, name: str, argument: dict[str, Any], bounds: ProcessLimits, told: str
) -> None:
    with pytest.raises(LimitError, match=f"^the table.*{told}"):
        run(confined, name, bounds, **argument)


def test_errors_come_back_by_their_class(confined: ConfinedProcess) -> None:
    with pytest.raises(TargetsError, match=r"^row 3: no table$"):
        run(confined, "refuse")
    with pytest.raises(SwatheError, match=r"^the table: ZeroDivisionError: of ours$"):
        run(confined, "blunder")


def test_files_are_bounded(confined: ConfinedProcess, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with pytest.raises(SwatheError, match=r"OSError.*File too large"):
        run(confined, "write", ProcessLimits(answer_mb=1), path=str(path), length=5 << 20)
    assert path.stat().st_size <= 1 << 20


def test_a_child_knows_nothing_of_ours(
    confined: ConfinedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_TOKEN", "secret")
    fresh = ConfinedProcess()
    try:
        with Path(__file__).open():
            opened, *variables = run(fresh, "look").decode().split()
    finally:
        fresh.close()
    assert int(opened) <= 2  # what it answers by, and the folder it looks into
    assert "PATH" in variables
    assert "SWATHE_TOKEN" not in variables
    assert "HTTPS_PROXY" not in variables  # may have a password; only the resolver gets it


def is_there(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(*processes: int) -> None:
    end = time.monotonic() + 60
    while any(map(is_there, processes)):
        assert time.monotonic() < end
        time.sleep(0.05)


async def written(note: Path) -> list[int]:
    end = time.monotonic() + 60
    while not (note.exists() and (text := note.read_text())):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    return list(map(int, text.split()))


def test_a_call_that_is_cancelled_ends_with_all_it_began(
    confined: ConfinedProcess, tmp_path: Path
) -> None:
    note = tmp_path / "note"

    async def cancelled() -> list[int]:
        argument = {"note": str(note)}
        call = asyncio.ensure_future(
            confined.call(
                "the table",
                "tests.support.confined_calls:sleep",
                argument,
                ProcessLimits(wall_s=600),
            )
        )
        processes = await written(note)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return processes

    wait_until_gone(*asyncio.run(cancelled()))


def test_children_end_with_the_process_that_asked(tmp_path: Path) -> None:
    note = tmp_path / "note"
    program = (
        "from swathe.core.confined import *\n"
        "ConfinedProcess().run('it', 'tests.support.confined_calls:sleep', "
        f"{{'note': {str(note)!r}}}, ProcessLimits(wall_s=600))"
    )
    path = os.pathsep.join(filter(None, sys.path))
    asker = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}
    )
    processes = asyncio.run(written(note))
    asker.kill()
    asker.wait()
    wait_until_gone(*processes)


def test_few_calls_run_and_few_wait() -> None:
    confined = ConfinedProcess(places=1, most_waiting=1)

    async def several() -> list[Any]:
        calls = [
            confined.call(
                "the table",
                "tests.support.confined_calls:repeat",
                {"text": "a", "times": 3},
                ProcessLimits(),
            )
            for _ in range(4)
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    try:
        answers = asyncio.run(several())
    finally:
        confined.close()
    assert answers[:2] == [b"aaa", b"aaa"]
    assert all(isinstance(answer, LimitError) and answer.retry_after_s for answer in answers[2:])
