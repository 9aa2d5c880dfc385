"""What the tests of libswathe share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import c_library, servers
from tests.support.c_library import Library
from tests.support.servers import FileServer


@pytest.fixture(scope="session")
def library() -> Library:
    return c_library.library()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled programs."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    """nginx over an empty folder."""
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    folder = tmp_path / "nginx"
    folder.mkdir()
    with servers.nginx(folder) as running:
        yield running
