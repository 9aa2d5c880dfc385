"""Sandboxes of this machine, and folders that the users of their runs can reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from swathe.algorithms.group_run import BoxSettings
from tests.support.box import USERS, modes, python


@pytest.fixture(scope="module", params=["bwrap", "landlock"])
def settings(request: pytest.FixtureRequest) -> BoxSettings:
    mode = request.param
    holding = [each for each in modes() if each.mode == mode and each.holds]
    if not holding:
        pytest.skip(f"{mode} does not hold on this machine: see swathe sandbox check")
    return BoxSettings(python(), mode, USERS)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that the user of the runs can reach; those of pytest are for their owner."""
    with TemporaryDirectory(prefix="swathe-trial-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
