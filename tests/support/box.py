"""The sandbox as tests use it: user ids, and an interpreter that their programs can start."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.algorithms.box_python import BoxPython
from swathe.algorithms.group_run import BoxSettings
from swathe.sandbox import ModeCheck, UserIds, check
from swathe.sandbox.launch import PROGRAM

# Of each process of tests its own: a run takes one that no other process uses.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
USERS = UserIds(71000 + 10 * WORKER, 4) if os.geteuid() == 0 else None


def modes() -> list[ModeCheck]:
    return list(check(USERS).modes) if PROGRAM.is_file() else []


def python() -> BoxPython:
    """Return an interpreter that the user of the runs can start."""
    here = BoxPython.here()
    packages = Path(np.__file__).parents[1]
    home = Path(swathe.__file__).parents[1]
    for folder in (home, packages):
        if os.geteuid() == 0 and not is_open(folder):
            pytest.skip(f"{folder}: other users than root cannot reach it")
    if os.geteuid() or is_open(Path(here.executable)):
        return here
    return BoxPython("/usr/bin/python3", (home, packages), (home, packages))


def is_open(path: Path) -> bool:
    """Check whether everybody can go to a place."""
    path = path.resolve()
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def box() -> BoxSettings:
    """Return the sandbox of this machine, in the first mode that holds."""
    if not any(each.holds for each in modes()):
        pytest.skip("no sandbox holds on this machine: see swathe sandbox check")
    return BoxSettings(python(), "auto", USERS)
