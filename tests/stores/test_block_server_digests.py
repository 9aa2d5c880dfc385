"""The checksum of one answer of the block server, beside one that another program computes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.stores.test_block_server import CONTENT, LARGE, client_of
from tests.support.block_servers import BlockServer

google_crc32c = pytest.importorskip("google_crc32c", reason="google_crc32c has the checksum")


@pytest.fixture
def client(server: BlockServer) -> Iterator[httpx.Client]:
    with client_of(server) as one:
        yield one


def crc32c(content: bytes) -> str:
    """Return the `Content-Digest` of some bytes, computed by another program."""
    return f"crc32c=:{base64.b64encode(google_crc32c.Checksum(content).digest()).decode()}:"


@pytest.mark.parametrize("text", ["0-0", "4095-4096", "100-300,5000-5100,9000-9001", "0-"])
def test_an_answer_tells_its_checksum_where_that_is_wanted(client: httpx.Client, text: str) -> None:
    client.put("/a", content=CONTENT)
    question = {"Want-Content-Digest": "sha-256=1, crc32c=3"}
    answer = client.get("/a", headers={"Range": f"bytes={text}", **question})
    assert (answer.status_code, answer.headers["swathe-verified"]) == (206, "yes")
    assert answer.headers["content-digest"] == crc32c(answer.content)
    assert client.get("/a", headers=question).headers["content-digest"] == crc32c(CONTENT)
    for other in ({}, {"Want-Content-Digest": "crc32c=0"}, {"Want-Content-Digest": "sha-256=1"}):
        assert "content-digest" not in client.get("/a", headers=other).headers


def test_long_and_unverified_answers_tell_no_checksum(
    server: BlockServer, client: httpx.Client, disks: list[Path]
) -> None:
    question = {"Want-Content-Digest": "crc32c=1"}
    client.put("/a", content=LARGE)
    assert "content-digest" not in client.get("/a", headers=question).headers
    (disks[0] / "b").write_bytes(CONTENT)
    answer = client.get("/b", headers=question)
    assert (answer.content, answer.headers["swathe-verified"]) == (CONTENT, "no")
    assert "content-digest" not in answer.headers
