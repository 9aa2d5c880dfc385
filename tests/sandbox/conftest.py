"""Each attack is tried on a service of either user, in either mode."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.sandbox_services import Service, service

CASES = list(itertools.product(("root", "nobody"), ("bwrap", "landlock")))


@pytest.fixture(scope="module", params=CASES, ids=["-".join(case) for case in CASES])
def box(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A service that runs users' programs."""
    with service(*request.param) as made:
        yield made
