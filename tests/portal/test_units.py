"""The services of `deploy/`, as systemd itself judges them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SERVICES = sorted((Path(__file__).parents[2] / "deploy").glob("*.service"))
WORST_EXPOSURE = 20
"""Limit of `systemd-analyze security`, in tenths: from 0 to 100; up to 20 it says "OK"."""

if shutil.which("systemd-analyze") is None:
    pytest.skip("systemd-analyze is not installed", allow_module_level=True)


def judged(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Let systemd judge a service whose program and user are there, as they are once installed."""
    for old, new in (
        ("ExecStart=/opt/swathe/bin/swathe ", f"ExecStart={sys.executable} "),
        ("User=swathe\n", "User=daemon\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = folder / "swathe-tried.service"
    path.write_text(text)
    command = ["systemd-analyze", *words, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def assessed(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Let systemd judge how much a service could do to its machine."""
    options = ("--offline=true", f"--threshold={WORST_EXPOSURE}", "--no-pager")
    return judged(folder, text, "security", *options)


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.stem)
def test_systemd_knows_every_line(service: Path, tmp_path: Path) -> None:
    text = service.read_text()
    done = judged(tmp_path, text, "verify")
    assert (done.returncode, done.stderr) == (0, "")
    wrong = judged(tmp_path, text.replace("ProtectHome=yes", "ProtectHomes=yes"), "verify")
    assert "ProtectHomes" in wrong.stderr


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.stem)
def test_a_service_can_do_little_to_its_machine(service: Path, tmp_path: Path) -> None:
    text = service.read_text()
    done = assessed(tmp_path, text)
    assert done.returncode == 0, done.stdout
    less = text.replace("CapabilityBoundingSet=\n", "").replace("NoNewPrivileges=yes\n", "")
    assert assessed(tmp_path, less).returncode != 0


def test_there_are_services() -> None:
    assert [path.stem for path in SERVICES] == ["swathe-portal", "swathe-worker"]
