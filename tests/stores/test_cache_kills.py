"""A cache whose processes are killed, or work at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog
from tests.support.cache_stores import SIZE, add_cache, content, near_files, new_slow_store, usage

PUT_AND_DIE = """
import os, sys
import swathe
from swathe.stores.front import {module} as module
real = module.copy_whole
def copy(engine, source, version, target, replace):
    {before}
    real(engine, source, version, target, replace)
    os.kill(os.getpid(), 9)
module.copy_whole = copy
{work}
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the store `slow`; `hot` is a cache in front of it."""
    return new_slow_store(tmp_path, monkeypatch)


def run_killed(code: str) -> None:
    process = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert process.returncode == -9


@pytest.mark.parametrize("before", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_fetch_that_is_killed_leaves_nothing(slow: Path, tmp_path: Path, before: str) -> None:
    work = "from swathe.stores.registry import native_stores; native_stores().open('hot:a')"
    run_killed(PUT_AND_DIE.format(module="cache_store", before=before, work=work))
    assert usage() == (1, SIZE, 0)
    assert content("hot:b") + content("hot:c") == b"b" * SIZE + b"c" * SIZE
    assert near_files(tmp_path) == ["b", "c"]
    assert content("hot:a") == b"a" * SIZE


@pytest.mark.parametrize("before", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_write_back_that_is_killed_is_done_later(slow: Path, tmp_path: Path, before: str) -> None:
    add_cache(tmp_path, "back", "back")
    (tmp_path / "new").write_bytes(b"n" * SIZE)
    swathe.stores.copy_objects(str(tmp_path / "new"), "back:one", progress=False)
    work = "swathe.stores.flush('back')"
    run_killed(PUT_AND_DIE.format(module="near_writer", before=before, work=work))
    assert content("back:one") == b"n" * SIZE
    report = swathe.stores.flush("back")
    assert (report.done, report.faults) == (1, {})
    assert (slow / "one").read_bytes() == b"n" * SIZE
    assert swathe.stores.flush("back").done == 0


def test_two_processes_fetch_an_object_once_and_keep_the_limit(slow: Path) -> None:
    code = (
        "from swathe.stores.registry import native_stores\n"
        "for name in 'aabcab':\n"
        "    source = native_stores().open('hot:' + name)\n"
        "    assert source.read(0, source.size) == name.encode() * 1000\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    processes = [subprocess.Popen(command, env=dict(os.environ)) for _ in range(2)]
    with Catalog.open() as catalog:
        while any(process.poll() is None for process in processes):
            assert catalog.cache_usage("hot").bytes <= 2500
    assert [process.wait() for process in processes] == [0, 0]
