"""The proxy between the tests and their servers does what it is told."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.servers import FileServer

CONTENT = bytes(range(256)) * 4000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    with servers.nginx(tmp_path_factory.mktemp("nginx")) as running:
        (running.folder / "a").write_bytes(CONTENT)
        yield running


def read(url: str, **headers: str) -> bytes:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        content: bytes = answer.read()
        return content


def test_proxy_passes_bytes_late_and_slowly_and_counts_them(server: FileServer) -> None:
    with servers.proxy(f"{server.url}/a", rtt_ms=30, shared_bytes_per_s=10_000_000) as proxy:
        start = time.monotonic()
        assert read(proxy.url) == CONTENT
        taken_s = time.monotonic() - start
        assert taken_s >= 0.06 + len(CONTENT) / 10_000_000
        stats = proxy.stats()
        assert stats["connections"] == stats["requests"] == 1
        assert stats["bytes_down"] > len(CONTENT)
        assert 0.1 < stats["busy_s"] <= stats["last_s"] - stats["first_s"] < taken_s
        proxy.clear()
        assert proxy.stats()["bytes_down"] == 0
    assert proxy.process.returncode == 0


def test_proxy_settings_change_while_it_runs(server: FileServer) -> None:
    with servers.proxy(server.url, seed=3) as proxy:
        assert read(f"{proxy.url}/a") == CONTENT
        proxy.set(unavailable=1, retry_after=5)
        with pytest.raises(urllib.error.HTTPError) as error_info:
            read(f"{proxy.url}/a")
        assert error_info.value.code == 503
        assert error_info.value.headers["Retry-After"] == "5"
        error_info.value.close()
        proxy.set(unavailable=0, reset=1)
        with pytest.raises(ConnectionResetError):
            read(f"{proxy.url}/a")
        assert proxy.stats()["resets"] == 1
        with pytest.raises(ValueError, match="no setting"):
            proxy.set(latency=3)


def test_proxy_says_when_it_cannot_start(server: FileServer) -> None:
    with pytest.raises(ValueError, match="did not start"), servers.proxy(server.url, reset=2):
        pass


def test_guard_asks_for_the_token(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    with servers.xrootd(tmp_path, token="hush") as door:
        assert read(f"{door.url}/a", Authorization="Bearer hush", Range="bytes=5-8") == CONTENT[5:9]
        assert read(f"{door.url}/a?authz=Bearer%20hush") == CONTENT
        for headers, status in [({}, 401), ({"Authorization": "Bearer hus"}, 403)]:
            with pytest.raises(urllib.error.HTTPError) as error_info:
                read(f"{door.url}/a", **headers)
            assert error_info.value.code == status
            error_info.value.close()
