"""Outcomes wait in a log beside the catalogue file, and none is lost or entered twice."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from swathe.catalog import Catalog, Outcome, OutcomeLog
from swathe.catalog.line_log import FULL_BYTES
from swathe.catalog.read_log import ReadLog
from swathe.core.errors import CatalogError, StoreSettingsError


def outcome(number: int, root: str = "") -> Outcome:
    at = datetime(2026, 1, 2, 3, 4, 5, number, UTC)
    return Outcome(at, "here", "a cut", number, root, 1.0, 0.5, 2.0, 1.5, 10, 11, 2, 3)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new/catalog.sqlite"


def log_of(url: str) -> OutcomeLog:
    log = OutcomeLog.of(url)
    assert log is not None
    return log


def test_outcomes_enter_the_catalogue_when_they_are_read(url: str) -> None:
    for number in range(3):
        assert not log_of(url).append(outcome(number))
    with Catalog.open(url) as catalog:
        catalog.add_outcome(outcome(9))
        assert {each.targets for each in catalog.outcomes()} == {0, 1, 2, 9}
        assert outcome(2) in catalog.outcomes()
        assert log_of(url).path.stat().st_size == 0
        log_of(url).append(outcome(4))
        assert catalog.outcomes(1) == [outcome(4)]


def test_a_process_killed_after_entering_them_enters_none_twice(url: str) -> None:
    log = log_of(url)
    log.append(outcome(1))
    lines = log.path.read_bytes()
    with Catalog.open(url) as catalog:
        catalog.enter_outcomes()
        log.path.write_bytes(lines)
        log.append(outcome(2))
        assert catalog.outcomes() == [outcome(2), outcome(1)]


def test_a_failure_to_enter_them_keeps_them(url: str) -> None:
    log = log_of(url)
    log.append(outcome(1))
    with pytest.raises(KeyError), log.draining() as outcomes:
        raise KeyError(outcomes[0].targets)
    with log.draining() as outcomes:
        assert outcomes == [outcome(1)]
    with log.draining() as outcomes:
        assert outcomes == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"at"', b'{"at": "2026\n{"at"'),
        (b'"actual_s": 1.5', b'"actual_s": NaN'),
        (b"+00:00", b""),
        (b'"targets": 7', b'"targets": -7'),
        (b'"summary": "a cut"', b'"summary": 3'),
    ],
)
def test_a_line_that_is_no_outcome_is_left_out(
    old: bytes, new: bytes, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a power failure leaves it, or another program."""
    log = log_of(url)
    log.append(outcome(7))
    line = log.path.read_bytes()
    assert old in line
    log.path.write_bytes(line.replace(old, new).split(b"\n")[0] + b"\n")
    log.append(outcome(1))
    log.append(outcome(2))
    with log.draining() as outcomes:
        assert outcomes == [outcome(1), outcome(2)]
    assert "expected an outcome in each line" in caplog.text


def test_a_large_log_is_due(url: str) -> None:
    log = log_of(url)
    log.append(outcome(1))
    with log.path.open("ab") as file:
        file.truncate(FULL_BYTES)
    assert log.append(outcome(2))


@pytest.mark.more
def test_several_processes_append_at_once(url: str) -> None:
    code = (
        "import sys; from tests.catalog.test_outcome_log import log_of, outcome\n"
        "for number in range(50): log_of(sys.argv[1]).append(outcome(number))"
    )
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([sys.executable, "-c", code, url], cwd=root) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    with log_of(url).draining() as outcomes:
        assert sorted(each.targets for each in outcomes) == sorted([*range(50), *range(50)])


def test_what_no_catalogue_takes_is_refused_at_once(url: str) -> None:
    with pytest.raises(StoreSettingsError):
        log_of(url).append(outcome(1, root="https://user:secret@archive.example/"))
    with pytest.raises(ValueError, match="time zone"):
        log_of(url).append(Outcome(datetime(2026, 1, 1), *[*vars(outcome(1)).values()][1:]))
    assert not log_of(url).path.exists() or log_of(url).path.stat().st_size == 0


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="cannot write"):
        log_of(f"sqlite:///{tmp_path}/file/catalog.sqlite").append(outcome(1))


def test_a_catalogue_on_a_server_has_no_log() -> None:
    assert OutcomeLog.of("postgresql+psycopg://user@host/name") is None
    assert OutcomeLog.of("sqlite:///x?mode=ro") is None
    assert os.fspath(log_of("sqlite:///x").path) == "x-outcomes"


def test_catalogue_in_memory_has_no_log() -> None:
    assert OutcomeLog.of("sqlite:///:memory:") is None
    assert OutcomeLog.of("sqlite://") is None


NESTED = "[" * 100_000
READ = '["http://a.b/", "here", {}, 1, {}, 0.01, 1790000000, "lone"]'


@pytest.mark.parametrize(
    "damage",
    [
        *(NESTED, READ.format(10, "NaN"), READ.format(10, "Infinity"), READ.format("1e30", 0.1)),
        *(READ.replace("http://a.b/", root).format(10, 0.1) for root in ("x y", "http://u:p@a.b/")),
        *(READ.replace("here", host).format(10, 0.1) for host in ("", "h" * 256, "\\ud800")),
        READ.replace('"here"', "1").format(10, 0.1),
    ],
)
def test_a_damaged_read_does_not_keep_others_out(url: str, damage: str) -> None:
    log = ReadLog.of(url)
    assert log is not None
    good = READ.format(10, 0.1) + "\n"
    log.append_lines(f"{good}{damage}\n{good}".encode())
    with Catalog.open(url) as catalog:
        catalog.enter_reads()
        assert len(catalog.samples("http://a.b/", "here")) == 2
    assert log.size() == 0


@pytest.mark.parametrize("at", [None, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_damaged_outcome_does_not_keep_others_out(url: str, at: str | None) -> None:
    log = log_of(url)
    log.append(outcome(1))
    line = log.path.read_text()
    date = json.loads(line)["at"]
    log.append_lines(f"{NESTED if at is None else line.rstrip().replace(date, at)}\n".encode())
    with Catalog.open(url) as catalog:
        assert catalog.outcomes() == [outcome(1)]
    assert log.size() == 0


def test_a_lock_that_is_never_released_is_reported(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.line_log.LOCK_S", 0.05)
    log = log_of(url)
    log.append(outcome(1))
    with log.path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(CatalogError, match="locked by another process"):
            log.append(outcome(2))
    log.append(outcome(3))
    with log.draining() as outcomes:
        assert outcomes == [outcome(1), outcome(3)]
