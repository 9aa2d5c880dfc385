"""Algorithms in the catalogue: versions that never change, each name with one owner."""

from __future__ import annotations

from hashlib import sha256

import pytest

from swathe.catalog import Catalog
from swathe.core.errors import AccessError, AlgorithmError, LimitError, NoSuchAlgorithmError


def test_versions_are_kept_by_name(catalog: Catalog) -> None:
    record, is_new = catalog.add_algorithm("sums", "1.0", b"one", "ann", "Sums")
    assert is_new
    assert (record.label, record.owner, record.bytes) == ("sums@1.0", "ann", 3)
    assert record.sha256 == sha256(b"one").hexdigest()
    catalog.add_algorithm("sums", "0.9", b"two", "ann")
    catalog.add_algorithm("means", "1.0", b"one", "bob")
    labels = [each.label for each in catalog.algorithms()]
    assert labels == ["means@1.0", "sums@0.9", "sums@1.0"]
    assert catalog.algorithm("sums")[1] == b"two"
    assert catalog.algorithm("sums@1.0") == (record, b"one")
    for label in ("sum", "sums@2", "sums@", "Sums", "x" * 10_000, "a\0b", "\ud800"):
        with pytest.raises(NoSuchAlgorithmError, match="there is no algorithm"):
            catalog.algorithm(label)


def test_a_version_never_changes(catalog: Catalog) -> None:
    catalog.add_algorithm("sums", "1", b"one", "ann")
    assert catalog.add_algorithm("sums", "1", b"one", "ann")[1] is False
    with pytest.raises(AlgorithmError, match="give it a new version"):
        catalog.add_algorithm("sums", "1", b"two", "ann")
    catalog.remove_algorithm("sums@1", "ann")
    with pytest.raises(NoSuchAlgorithmError):
        catalog.algorithm("sums")
    with pytest.raises(AlgorithmError, match="give it a new version"):
        catalog.add_algorithm("sums", "1", b"two", "ann")
    assert catalog.add_algorithm("sums", "1", b"one", "ann")[1] is True
    assert catalog.algorithm("sums")[1] == b"one"


def test_a_name_belongs_to_one_user(catalog: Catalog) -> None:
    catalog.add_algorithm("sums", "1", b"one", "ann")
    for change in (
        lambda: catalog.add_algorithm("sums", "2", b"two", "bob"),
        lambda: catalog.remove_algorithm("sums", "bob"),
    ):
        with pytest.raises(AccessError, match="another user"):
            change()
    catalog.add_algorithm("sums", "2", b"two", "ann")
    assert len(catalog.remove_algorithm("sums")) == 2
    assert catalog.algorithms() == []


def test_a_user_has_a_limited_number_of_versions(catalog: Catalog) -> None:
    for version in ("1", "2"):
        catalog.add_algorithm("sums", version, b"one", "ann", most=2)
    with pytest.raises(LimitError, match="ann: expected at most 2 versions"):
        catalog.add_algorithm("sums", "3", b"one", "ann", most=2)
    catalog.add_algorithm("sums", "2", b"one", "ann", most=2)
    catalog.add_algorithm("means", "1", b"one", "bob", most=2)
