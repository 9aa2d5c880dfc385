"""Staging of archive classes of S3, with moto behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from swathe.catalog.store_settings import validate_store
from swathe.core.errors import AccessError, StagingError
from swathe.stores.staging.s3_restore import S3Restore
from tests.support.glacier import Glacier, glacier

CLASSES = {
    "a": "GLACIER", "b": "GLACIER", "deep": "DEEP_ARCHIVE", "instant": "GLACIER_IR",
    "plain": "STANDARD",
}  # fmt: skip


@pytest.fixture(scope="module")
def archive() -> Iterator[Glacier]:
    with pytest.MonkeyPatch.context() as monkeypatch, glacier(monkeypatch) as running:
        yield running


@pytest.fixture(scope="module")
def bucket(archive: Glacier) -> Iterator[Any]:
    """What puts an object into moto itself: not asked for yet."""
    with closing(stager_at(archive, staging_endpoint=archive.upstream)) as made:
        client: Any = made._client
        client.create_bucket(Bucket="cold")
        yield client


@pytest.fixture(scope="module")
def shared(archive: Glacier) -> Iterator[S3Restore]:
    with closing(stager_at(archive)) as made:
        yield made


def stager_at(archive: Glacier, **options: str) -> S3Restore:
    settings = {"staging": "s3-restore", "endpoint": archive.url, "region": "us-east-1"}
    return S3Restore(validate_store("cold", "s3://cold/x", "tape", settings | options))


@pytest.fixture
def stager(archive: Glacier, bucket: Any, shared: S3Restore) -> S3Restore:
    for key, kind in CLASSES.items():
        bucket.put_object(Bucket="cold", Key=f"x/{key}", Body=b"123", StorageClass=kind)
    archive.restores.clear()
    archive.heads = 0
    return shared


def test_classes_say_where_objects_are(stager: S3Restore) -> None:
    places = stager.locate([*CLASSES, "none"])
    assert {path: place.locality for path, place in places.items()} == {
        "a": "nearline", "b": "nearline", "deep": "nearline", "instant": "disk", "plain": "disk",
        "none": "lost",
    }  # fmt: skip
    assert places["a"].bytes == 3


def test_all_are_asked_for_before_any_is_waited_for(stager: S3Restore, archive: Glacier) -> None:
    token = stager.stage(["a", "b", "deep"], 2.5 * 86400)
    assert sorted(archive.restores) == [(f"x/{key}", 3, "Bulk") for key in ("a", "b", "deep")]
    assert archive.heads == 0
    states: list[dict[str, str]] = []
    while not states or set(states[-1].values()) != {"disk"}:
        progress = stager.poll(token, ["a", "b", "deep"])
        states.append({path: each.state for path, each in progress.items()})
    assert set(states[0].values()) == {"active"}
    assert stager.locate(["a"])["a"].locality == "disk"
    # More days are asked for as the first were.
    stager.renew(token, ["a"], 86400)
    assert archive.restores[-1] == ("x/a", 1, "Bulk")
    stager.release(token, ["a"])


def test_an_object_on_its_way_is_waited_for(stager: S3Restore, archive: Glacier) -> None:
    archive.refusals = [(409, "RestoreAlreadyInProgress")]
    assert stager.stage(["a"], 60)


def test_a_class_that_is_read_at_once_needs_nothing(stager: S3Restore, archive: Glacier) -> None:
    archive.refusals = [(403, "InvalidObjectState")]
    token = stager.stage(["instant"], 60)
    assert stager.poll(token, ["instant"])["instant"].state == "disk"


def test_an_expedited_restore_that_is_not_available_is_a_standard_one(
    stager: S3Restore, archive: Glacier
) -> None:
    with closing(stager_at(archive, staging_tier="Expedited")) as expedited:
        expedited.stage(["a"], 60)
    tiers = [tier for *_, tier in archive.restores]
    assert set(tiers[:-1]) == {"Expedited"} and tiers[-1] == "Standard"


def test_a_restore_that_is_denied_is_an_error(stager: S3Restore, archive: Glacier) -> None:
    archive.refusals = [(403, "AccessDenied")]
    with pytest.raises(AccessError, match="restore s3://cold/x/a: expected success, found 403"):
        stager.stage(["a"], 60)
    with pytest.raises(StagingError, match="404 NoSuchKey"):
        stager.stage(["none"], 60)


def test_a_restore_that_nobody_asked_for_has_failed(stager: S3Restore) -> None:
    progress = stager.poll("restore", ["a", "none", "plain"])
    assert {path: each.state for path, each in progress.items()} == {
        "a": "failed", "none": "failed", "plain": "disk",
    }  # fmt: skip
    with pytest.raises(StagingError, match="go when their days are over"):
        stager.evict(["a"])
