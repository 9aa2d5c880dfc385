"""`trace report` names the server of damage that the client of a striped store saw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import swathe
from tests.support.fits_frames import Runner
from tests.support.stripe_run import StripeRun
from tests.support.stripes import add_stripe


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("disk1:", "disk1"),
        ("lake:parts/", "lake:parts/"),
        ("/data1:", "/data1"),
        ("127.0.0.1%3A8430:", "127.0.0.1%3A8430"),
    ],
)
@pytest.mark.parametrize("has_requests", [False, True])
def test_damage_that_the_client_saw(
    tmp_path: Path, server: str, expected: str, has_requests: bool
) -> None:
    run = StripeRun(tmp_path)
    run.put(0, "STRIPE_START", "lab", OBJECT="wide:x")
    if has_requests:
        run.request(10, "hosta")
    for _ in range(3):
        run.damage(server)
    run.damage("other:")
    damages = [each for each in run.report().bottlenecks if each.symptom == "damage"]
    assert [(each.part, each.server, each.disk) for each in damages] == [
        ("disk", expected, ""),
        ("disk", "other", ""),
    ]
    assert "3 ranges of its parts" in damages[0].why and "byte 4096" in damages[0].why


def test_damage_on_folders_that_were_renamed_is_reported(run: Runner, tmp_path: Path) -> None:
    folders = add_stripe(tmp_path, servers=3)
    (tmp_path / "object").write_bytes(np.random.default_rng(1).bytes(100_000))
    run("put", tmp_path / "object", "wide:")
    run("store", "remove", "wide")
    for number, folder in enumerate(folders):
        swathe.stores.add(f"ng{number}", str(folder))
    swathe.stores.add("wide", "striped:", over=["ng0", "ng1", "ng2"], block_bytes=4096)
    (part,) = folders[1].glob("*.stripe.*")
    with part.open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    with swathe.trace.recording(str(tmp_path / "run.ulm")):
        assert swathe.fs().cat_file("wide/object") == (tmp_path / "object").read_bytes()
    text = run("trace", "report", tmp_path / "run.ulm")
    assert "slow: disk (unknown) of ng1: damage, " in text
    assert text.count("slow: ") == 1
    check = swathe.stores.check_stripes("wide", deep=True)
    assert [(each.server, each.state) for each in check.checks[0].parts] == [
        ("ng0:", "whole"),
        ("ng1:", "damaged"),
        ("ng2:", "whole"),
    ]
