"""Outputs of runs: what they must have, and the bounds of looking at it."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from swathe.algorithms import output_check
from swathe.algorithms.definition import Output
from swathe.algorithms.output_check import CheckTime, output_fault
from swathe.core.errors import LimitError

ARRAY = Output("application/x-hdf5", ".h5", ("v",))
JSON = Output("application/json", ".json")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A small file with a large array. None of its chunks is written."""
    path = tmp_path / "empty.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (1 << 30,), np.float64, chunks=(1 << 20,), fillvalue=np.nan)
    assert path.stat().st_size < 10_000
    return path


def test_a_search_for_a_valid_value_ends(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_check, "CHECKS_S", 0.2)
    fault = output_fault(empty, ARRAY, CheckTime())
    assert fault == ("array /v: expected a valid value within 0.2 s of checks, found none so far")


def test_outputs_of_a_group_share_the_time(empty: Path) -> None:
    assert "expected a valid value" in str(output_fault(empty, ARRAY, CheckTime(end=0.0)))


def test_a_cancelled_run_is_no_longer_checked(empty: Path, tmp_path: Path) -> None:
    answers = iter([False, False, True, True])
    with pytest.raises(LimitError, match="was cancelled"):
        output_fault(empty, ARRAY, CheckTime(lambda: next(answers)))
    text = tmp_path / "a.txt"
    text.write_text("a")
    with pytest.raises(LimitError, match="was cancelled"):
        output_fault(text, Output("text/plain", ".txt"), CheckTime(lambda: True))


def test_values_of_json_are_counted_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "values.json"
    path.write_text(json.dumps([[]] * 499_999))
    assert output_fault(path, JSON, CheckTime()) is None
    path.write_text(json.dumps([[]] * 500_001))
    monkeypatch.setattr("json.loads", lambda _: pytest.fail("it was parsed"))
    assert output_fault(path, JSON, CheckTime()) == (
        "expected at most 1,000,000 values of JSON, found 1,000,002"
    )
