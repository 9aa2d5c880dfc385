"""Required tests: a skip is a failure."""

from __future__ import annotations

import pytest

from tests.support.required_tests import VARIABLE, required_names, without_skip


def report(outcome: str, reason: object) -> pytest.TestReport:
    place = ("tests/a.py", 1, "test_a")
    return pytest.TestReport("tests/a.py::test_a", place, {}, outcome, reason, "setup")  # type: ignore[arg-type]


def test_a_skip_is_a_failure() -> None:
    failed = without_skip(report("skipped", ("tests/a.py", 1, "Skipped: no xrootd")))
    assert (failed.failed, failed.skipped) == (True, False)
    assert failed.longreprtext.endswith(
        "expected tests/a.py::test_a to run, found: Skipped: no xrootd"
    )
    assert without_skip(report("passed", None)).passed


def test_a_name_of_no_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "runs/test_mpi  stores/test_no")
    with pytest.raises(pytest.UsageError, match="found stores/test_no"):
        required_names(["runs/test_mpi", "stores/test_frm"])
    assert required_names(["runs/test_mpi", "stores/test_no"]) == {
        "runs/test_mpi",
        "stores/test_no",
    }
