"""The session with which the page on algorithms begins, as its reader pastes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import swathe
from tests.support.box import USERS, box, python

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "algorithms.md"
SWATHE = """\
#!{python}
import sys
sys.path[:0] = {paths}
from swathe.cli.app import main
sys.argv = ["swathe", *sys.argv[1:], *({more} if sys.argv[1:3] == ["algorithm", "try"] else [])]
sys.exit(main())
"""


def test_the_first_session_runs_as_it_is_written(tmp_path: Path) -> None:
    box()
    pytest.importorskip("pyhdf")
    session = re.search(r"^## A first session\n.*?^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert session is not None
    tmp_path.chmod(0o755)
    command = tmp_path / "swathe"
    more = ["--users", str(USERS.first)] if USERS else []
    if (program := python().executable) != sys.executable:
        more += ["--python", program, "--folder", str(Path(np.__file__).parents[1])]
    paths = [str(Path(swathe.__file__).parents[1])]
    command.write_text(SWATHE.format(python=sys.executable, paths=paths, more=more))
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-e", "-c", session[1]],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    tables = ended.stdout.partition("granule,kelvin\n")[2].splitlines()
    assert len(tables) == 3, "two days, and the second heading"
    for day, line in zip(("2005121", "2005122"), tables[::2], strict=True):
        name, kelvin = line.split(",")
        assert day in name and 250 < float(kelvin) < 400
