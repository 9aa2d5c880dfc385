"""A host whose clock is an hour wrong writes a run and reads another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from tests.support.clocks import wrong_by

pytestmark = pytest.mark.skipif(wrong_by(0) is None, reason="needs libfaketime")

HOUR_S = 3600.0
LIMIT_S = 300
"""A host that waits for its own clock is a failure, no test without an end."""
READ_AND_WRITE = """
import numpy as np
import swathe
array = swathe.open_run("app")["temp"]
print([float(array[at][1, 2]) for at in sorted(array.dumps)])
with swathe.run("app", iterations=4) as run:
    temp = run.array("temp", (3, 4), "f4", every=2, location="near")
    for at in range(run.iterations + 1):
        temp.write(at, np.full((3, 4), at + 10, "f4"))
"""


@pytest.mark.parametrize("seconds", [HOUR_S, -HOUR_S])
def test_runs_of_a_host_with_a_wrong_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/catalog.sqlite")
    with Catalog.open() as catalog:
        catalog.add_store("near", str(tmp_path / "near"), "local")
    with swathe.run("app", iterations=4) as run:
        temp = run.array("temp", (3, 4), "f4", every=2, location="near")
        for at in range(run.iterations + 1):
            temp.write(at, np.full((3, 4), at, "f4"))
    ended = subprocess.run(
        [sys.executable, "-c", READ_AND_WRITE],
        env={**os.environ, **(wrong_by(seconds) or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (ended.returncode, ended.stdout) == (0, "[0.0, 2.0, 4.0]\n"), ended.stderr
    newest = swathe.open_run("app")
    assert newest.record.label == "app@2", "the order is that of the runs, not of clocks"
    array = newest["temp"]
    assert {at: float(array[at][2, 3]) for at in sorted(array.dumps)} == {0: 10, 2: 12, 4: 14}
    assert newest.record.state == "complete"
