"""A request as `swathe-sandbox` reads it, and a report as it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swathe.core.errors import LimitError, OptionError, ProgramError
from swathe.sandbox import Input, Output, Report, Request, UserIds

ANSWER: dict[str, Any] = {
    "status": "OK",
    "limit": None,
    "message": "",
    "exit_code": 0,
    "signal": None,
    "mode": "bwrap",
    "uid": 7,
    "cpu_s": 0.5,
    "wall_s": 1.5,
    "max_rss_bytes": 10,
    "stdout": {"text": "", "bytes": 0, "is_whole": True},
    "stderr": {"text": "first\nlast\n", "bytes": 11, "is_whole": True},
    "outputs": [{"name": "grid", "path": "/results/grid", "bytes": 3, "sha256": "ab"}],
    "problems": [],
}


def test_paths_of_a_request_are_absolute() -> None:
    inputs = [Input("a", path="x.nc"), Input("b", descriptor=5)]
    request = Request(["true"], inputs=inputs, outputs=[Output("c", 3)], users=UserIds(7, 2))
    values = request.to_json("results")
    here = Path.cwd()
    assert values["inputs"] == [
        {"name": "a", "path": str(here / "x.nc")},
        {"name": "b", "descriptor": 5},
    ]
    assert values["outputs"] == [{"name": "c", "bytes": 3, "optional": False}]
    assert values["users"] == {"first": 7, "count": 2}
    assert values["collect"] == str(here / "results")


@pytest.mark.parametrize("wrong", [Input("a"), Input("a", path="x", descriptor=3)])
def test_an_input_has_a_path_or_a_descriptor(wrong: Input) -> None:
    with pytest.raises(OptionError, match="input a: expected a path or a descriptor"):
        Request(["true"], inputs=[wrong]).to_json(None)


def test_a_report_raises_what_became_of_the_program() -> None:
    report = Report.from_json(ANSWER)
    report.check()
    assert report.outputs["grid"].path == Path("/results/grid")
    over = {"status": "TO", "limit": "wall_s", "message": "wall_s: 3 s are over"}
    with pytest.raises(LimitError, match="3 s are over"):
        Report.from_json(ANSWER | over).check()
    with pytest.raises(ProgramError, match=r"exit code 1: last$"):
        Report.from_json(ANSWER | {"status": "RE", "message": "exit code 1"}).check()
