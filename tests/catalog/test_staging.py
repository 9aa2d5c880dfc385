"""Objects that are staged from tape, in the catalogue."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from swathe.catalog import Catalog, staging
from swathe.catalog.records.staging import StageChange
from swathe.core.errors import NoSuchStoreError

NEARLINE = {"a": (False, 10, "T1", 5), "b": (False, 20, "T2", None)}


@pytest.fixture
def tape(catalog: Catalog) -> Catalog:
    catalog.add_store("tape", "/data/tape", "tape")
    return catalog


def test_two_that_ask_for_an_object_stage_it_once(tape: Catalog) -> None:
    first = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert first.paths == ["a", "b"] and first.request is not None
    again = tape.claim_files("tape", {"b": NEARLINE["b"], "c": (False, None, None, None)}, "two", 9)
    assert again.paths == ["c"]
    assert {file.path: file.pins for file in tape.stage_files("tape")} == {"a": 1, "b": 2, "c": 1}


def test_claims_at_the_same_time_send_each_object_once(tape: Catalog, url: str) -> None:
    sent: list[str] = []

    def ask(owner: str) -> None:
        with Catalog.open(url) as own:
            sent.extend(own.claim_files("tape", NEARLINE, owner, 60).paths)

    threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sent) == ["a", "b"]
    assert [file.pins for file in tape.stage_files("tape")] == [4, 4]


def test_an_object_is_free_when_the_last_pin_is_released(tape: Catalog) -> None:
    claim = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert claim.request is not None
    tape.send_request(claim.request, "r-1")
    tape.claim_files("tape", NEARLINE, "two", 3600)
    tape.change_files("tape", [StageChange("a", "disk"), StageChange("b", "failed", reason="no")])
    assert tape.release_pins("tape", ["a", "b"], "one") == []
    (free,) = tape.release_pins("tape", None, "two")
    assert (free.path, free.token, free.state) == ("a", "r-1", "disk")
    assert [file.state for file in tape.stage_files("tape")] == ["released", "failed"]
    assert tape.claim_files("tape", NEARLINE, "one", 3600).paths == ["a", "b"]


def test_an_object_that_left_the_disk_is_asked_for_again(tape: Catalog) -> None:
    claim = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert claim.request is not None
    tape.send_request(claim.request, "r-1")
    tape.change_files("tape", [StageChange("a", "disk"), StageChange("b", "disk")])
    places = {"a": (True, 10, "T1", 5), "b": NEARLINE["b"]}
    assert tape.claim_files("tape", places, "two", 60).paths == ["b"]
    assert tape.claim_files("tape", {"a": places["a"]}, "two", 7200).paths == ["a"]


def test_an_object_that_came_after_the_look_is_not_asked_for_again(tape: Catalog) -> None:
    before = datetime.now(UTC)
    claim = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert claim.request is not None
    tape.send_request(claim.request, "r-1")
    tape.change_files("tape", [StageChange("a", "disk"), StageChange("b", "disk")])
    assert tape.claim_files("tape", NEARLINE, "two", 60, looked_at=before).paths == []
    now = datetime.now(UTC)
    assert tape.claim_files("tape", NEARLINE, "two", 60, looked_at=now).paths == ["a", "b"]


def test_a_request_that_has_ended_is_an_outcome(tape: Catalog) -> None:
    claim = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert claim.request is not None
    tape.send_request(claim.request, "r-1")
    tape.change_files("tape", [StageChange("a", "disk")])
    assert tape.stage_outcomes("tape") == []
    tape.change_files("tape", [StageChange("b", "disk")])
    (outcome,) = tape.stage_outcomes("tape")
    assert (outcome.files, outcome.bytes, outcome.media) == (2, 30, 2)
    assert 0 <= outcome.first_s <= outcome.seconds


def test_a_request_that_cannot_be_sent_has_failed(tape: Catalog) -> None:
    claim = tape.claim_files("tape", NEARLINE, "one", 3600)
    assert claim.request is not None
    tape.drop_request(claim.request, "no answer")
    assert {file.reason for file in tape.stage_files()} == {"no answer"}
    assert tape.claim_files("tape", NEARLINE, "one", 3600).paths == ["a", "b"]


def test_objects_that_have_been_over_for_long_are_forgotten(
    tape: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = tape.claim_files("tape", NEARLINE, "one", 0)
    assert claim.request is not None
    tape.send_request(claim.request, "r-1")
    tape.change_files("tape", [StageChange("a", "failed", reason="no")])
    monkeypatch.setattr(staging, "HISTORY", timedelta(0))
    tape.claim_files("tape", {"c": (False, None, None, None)}, "one", 60)
    assert [file.path for file in tape.stage_files()] == ["b", "c"]


def test_a_store_that_is_removed_forgets_its_objects(tape: Catalog) -> None:
    tape.claim_files("tape", NEARLINE, "one", 3600)
    tape.remove_store("tape")
    assert tape.stage_files() == []
    with pytest.raises(NoSuchStoreError):
        tape.claim_files("tape", NEARLINE, "one", 3600)
