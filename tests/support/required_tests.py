"""Tests that may not be skipped on a machine that has what they need, as that of `.ci/run`."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

VARIABLE = "SWATHE_TEST_REQUIRE"
"""Names of files of tests below `tests/`, without their suffix, with blanks between."""


def required_names(files: Iterable[str]) -> frozenset[str]:
    """Return the names of the variable.

    Args:
        files: names of all files of tests.

    Raises:
        UsageError: If there is no such file.
    """
    names = frozenset(os.environ.get(VARIABLE, "").split())
    if unknown := names.difference(files):
        raise pytest.UsageError(
            f"{VARIABLE}: expected files of tests, as runs/test_mpi, found {' '.join(unknown)}"
        )
    return names


def without_skip(report: pytest.TestReport) -> pytest.TestReport:
    """Return the report of a required test: if it was skipped, it has failed."""
    if report.skipped:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE}: expected {report.nodeid} to run, found: {reason}"
    return report
