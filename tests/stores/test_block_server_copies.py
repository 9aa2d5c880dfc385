"""Copies that block servers make: COPY of an object, and of the parts of a striped store."""

from __future__ import annotations

import shutil
import signal
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import pytest

import swathe
from swathe.trace.ulm import CodedColumn
from tests.support.block_servers import BlockServer, block_server
from tests.support.fits_frames import Runner

CONTENT = np.random.default_rng(3).bytes(1_500_001)
SERVERS = 3


@pytest.fixture
def client(server: BlockServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=120) as one:
        yield one


def copy(client: httpx.Client, path: str, to: str, **headers: str) -> httpx.Response:
    target = {"Destination": str(client.base_url.join(to))}
    return client.request("COPY", path, headers={**target, **headers})


def file_of(disks: list[Path], name: str) -> Path:
    (path,) = [disk / name for disk in disks if (disk / name).exists()]
    return path


def test_a_copy_has_the_bytes_and_checksums_of_its_own(
    client: httpx.Client, disks: list[Path]
) -> None:
    crc = f"{zlib.crc32(CONTENT):08x}"
    for number, content in enumerate((CONTENT, b"", CONTENT[:4096])):
        client.put("/a", content=content)
        answer = copy(client, "/a", f"/b{number}")
        assert answer.status_code == 201
        assert answer.headers["swathe-crc32"] == f"{zlib.crc32(content):08x}"
        assert answer.headers["swathe-verified"] == "yes"
        found = client.get(f"/b{number}")
        assert (found.content, found.headers["swathe-verified"]) == (content, "yes")
        assert found.headers["etag"] == answer.headers["etag"]
        assert client.get("/a").content == content
    with file_of(disks, "b0").open("r+b") as file:
        file.seek(5000)
        file.write(b"x" if CONTENT[5000:5001] != b"x" else b"y")
    assert client.get("/b0", headers={"Range": "bytes=4096-8191"}).status_code == 500
    for name in ("crc32", "sha-256, CRC32;q=0.5"):
        head = client.head("/b0", headers={"Want-Digest": name})
        assert head.headers["digest"] == f"crc32={crc}"
    assert "digest" not in client.head("/b0").headers
    assert "digest" not in client.head("/b0", headers={"Want-Digest": "crc32c"}).headers


def test_conditions_of_a_copy(client: httpx.Client) -> None:
    first = client.put("/a", content=b"1").headers["etag"]
    client.put("/b", content=b"2")
    assert copy(client, "/a", "/b", Overwrite="F").status_code == 412
    assert client.get("/b").content == b"2"
    assert copy(client, "/a", "/c", **{"If-Match": '"other"'}).status_code == 412
    assert client.get("/c").status_code == 404
    assert copy(client, "/a", "/b", **{"If-Match": first}).status_code == 204
    assert client.get("/b").content == b"1"
    assert copy(client, "/a", "/c", Overwrite="F").status_code == 201


def test_copies_that_cannot_be(client: httpx.Client) -> None:
    client.put("/a", content=b"1")
    client.request("MKCOL", "/folder")
    assert copy(client, "/none", "/b").status_code == 404
    assert copy(client, "/a", "/a").status_code == 403
    assert copy(client, "/a", "/lacking/b").status_code == 409
    assert copy(client, "/a", "/folder").status_code == 405
    assert copy(client, "/a", "/folder/").status_code == 409
    assert copy(client, "/folder", "/other").status_code == 501
    assert copy(client, "/a", "/b", Overwrite="X").status_code == 400
    assert client.request("COPY", "/a").status_code == 400
    other = {"Destination": "http://127.0.0.1:1/b"}
    assert client.request("COPY", "/a", headers=other).status_code == 502
    assert client.get("/b").status_code == 404


def test_a_damaged_object_is_not_copied(client: httpx.Client, disks: list[Path]) -> None:
    client.put("/a", content=CONTENT)
    with file_of(disks, "a").open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    answer = copy(client, "/a", "/b")
    assert answer.status_code == 500
    assert answer.headers["swathe-damage"] == str(1_000_000 // 4096 * 4096)
    assert client.get("/b").status_code == 404
    assert not any(list((disk / ".swathe/new").iterdir()) for disk in disks)


def test_a_copy_of_a_file_of_others_says_so(client: httpx.Client, disks: list[Path]) -> None:
    (disks[0] / "a").write_bytes(CONTENT)
    answer = copy(client, "/a", "/b")
    assert (answer.status_code, answer.headers["swathe-verified"]) == (201, "no")
    assert client.get("/b").content == CONTENT


def test_a_copy_without_room_names_the_disk(tmp_path: Path, disks: list[Path]) -> None:
    with (
        block_server(*disks, options=("--max-bytes", "2MB")) as running,
        httpx.Client(base_url=running.url, timeout=120) as client,
    ):
        assert client.put("/a", content=CONTENT).status_code == 201
        codes = [copy(client, "/a", f"/b{number}").status_code for number in range(2)]
        assert codes == [201, 507]
        assert "disk" in copy(client, "/a", "/c").text


def test_a_copy_in_room_that_was_reserved(client: httpx.Client) -> None:
    client.put("/a", content=CONTENT)
    room = client.request("RESERVE", "/b", headers={"Swathe-Bytes": str(len(CONTENT))})
    number = room.headers["swathe-room"]
    assert copy(client, "/a", "/b", **{"Swathe-Room": number}).status_code == 201
    assert client.get("/b").content == CONTENT
    assert copy(client, "/a", "/b", **{"Swathe-Room": number}).status_code == 412


def test_readers_may_not_copy(tmp_path: Path, disks: list[Path]) -> None:
    (tmp_path / "write").write_text("w" * 32)
    (tmp_path / "read").write_text("r" * 32)
    options = ("--token-file", tmp_path / "write", "--read-token-file", tmp_path / "read")
    with (
        block_server(*disks, options=options) as running,
        httpx.Client(base_url=running.url, timeout=120) as client,
    ):
        tokens = {name: {"Authorization": f"Bearer {name[0] * 32}"} for name in ("write", "read")}
        client.put("/a", content=b"1", headers=tokens["write"])
        assert copy(client, "/a", "/b", **tokens["read"]).status_code == 403
        assert copy(client, "/a", "/b", **tokens["write"]).status_code == 201


def test_curl_copies(server: BlockServer, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    (tmp_path / "a").write_bytes(CONTENT)
    subprocess.run([curl, "-sfT", tmp_path / "a", f"{server.url}/a"], check=True)
    words = ["-sf", "-X", "COPY", "-H", f"Destination: {server.url}/b", f"{server.url}/a"]
    subprocess.run([curl, *words], check=True)
    answer = subprocess.run([curl, "-sf", f"{server.url}/b"], check=True, stdout=subprocess.PIPE)
    assert answer.stdout == CONTENT


def test_cp_within_a_server_moves_no_bytes(
    server: BlockServer, run: Runner, tmp_path: Path
) -> None:
    swathe.stores.add("lab", server.url.replace("http", "dav", 1) + "/")
    (tmp_path / "a").write_bytes(CONTENT)
    run("put", tmp_path / "a", "lab:a")
    report = swathe.stores.copy_objects("lab:a", "lab:run/b", progress=False)
    assert (report.copied, report.by_servers, report.detours) == (1, 1, {})
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/run/b").content == CONTENT
        counts = [
            line for line in client.get("/metrics").text.splitlines() if 'method="COPY"' in line
        ]
    assert sum(float(line.rpartition(" ")[2]) for line in counts) >= 1


# Striped --------------------------------------------------------------------------------------


@pytest.fixture
def running() -> list[BlockServer]:
    """The block servers of the lab, once they run."""
    return []


@pytest.fixture
def lab(run: Runner, tmp_path: Path, running: list[BlockServer]) -> Iterator[list[Path]]:
    """Block servers under `wide:`, with an object `a`; their disks."""
    with ExitStack() as stack:
        disks = []
        for number in range(SERVERS):
            disks.append(tmp_path / f"host{number}")
            disks[-1].mkdir()
            running.append(stack.enter_context(block_server(disks[-1])))
            url = running[-1].url.replace("http", "dav", 1)
            swathe.stores.add(f"host{number}", f"{url}/")
        names = [f"host{number}" for number in range(SERVERS)]
        swathe.stores.add("wide", "striped:", over=names, parity=1, block_bytes=65_536)
        (tmp_path / "a").write_bytes(CONTENT)
        run("put", tmp_path / "a", "wide:a")
        yield disks


def test_parts_are_copied_by_their_servers(lab: list[Path], tmp_path: Path, run: Runner) -> None:
    trace = tmp_path / "run.ulm"
    with swathe.trace.recording(str(trace)):
        report = swathe.stores.copy_objects("wide:a", "wide:deep/b", progress=False)
    assert (report.copied, report.by_servers, report.detours) == (1, 1, {})
    assert report.bytes == len(CONTENT)
    events = swathe.trace.read(str(trace))
    column = events.fields["METHOD"]
    assert isinstance(column, CodedColumn)
    methods = [column.words[code] for code in column.codes if code >= 0]
    assert methods.count("COPY") >= SERVERS
    assert "PUT" in methods  # the records
    run("get", "wide:deep/b", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == CONTENT
    assert swathe.stores.check_stripes("wide", deep=True, progress=False).is_whole
    # The copy is an object of its own, and survives what the first does not.
    for disk in lab:
        for part in disk.glob("a.stripe*"):
            part.unlink()
    (lab[0] / "deep/b.stripe").unlink()
    run("get", "wide:deep/b", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == CONTENT


def test_a_copy_replaces_another_only_if_it_may(
    lab: list[Path], tmp_path: Path, run: Runner
) -> None:
    (tmp_path / "b").write_bytes(b"other")
    run("put", tmp_path / "b", "wide:b")
    report = swathe.stores.copy_objects("wide:a", "wide:b", progress=False)
    assert (report.copied, report.failed) == (0, 1)
    report = swathe.stores.copy_objects("wide:a", "wide:b", overwrite=True, progress=False)
    assert (report.copied, report.by_servers) == (1, 1)
    run("get", "wide:b", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == CONTENT
    status = swathe.stores.stripe_status("wide")
    assert {each.parts for each in status.servers} == {2}


def test_a_part_that_is_lost_lets_the_bytes_pass_through(
    lab: list[Path], tmp_path: Path, run: Runner
) -> None:
    for part in lab[1].glob("a.stripe.*"):
        part.unlink()
    report = swathe.stores.copy_objects("wide:a", "wide:b", progress=False)
    assert (report.copied, report.by_servers) == (1, 0)
    (reason,) = report.detours
    assert "host1:" in reason
    run("get", "wide:b", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == CONTENT
    # No part of the copy that was given up is left.
    assert not swathe.stores.check_stripes("wide:b", progress=False).faults
    assert all(len(list(disk.glob("b.stripe.*"))) == 1 for disk in lab)


def test_a_damaged_part_is_not_copied(lab: list[Path], tmp_path: Path, run: Runner) -> None:
    (part,) = lab[2].glob("a.stripe.*")
    with part.open("r+b") as file:
        file.seek(300_000)
        file.write(b"damage")
    report = swathe.stores.copy_objects("wide:a", "wide:b", progress=False)
    assert (report.copied, report.by_servers) == (1, 0)
    assert swathe.stores.check_stripes("wide:b", deep=True, progress=False).is_whole


@pytest.mark.parametrize("count", [1, SERVERS - 1])
def test_what_took_the_place_of_a_part_is_not_copied(
    lab: list[Path], tmp_path: Path, run: Runner, count: int
) -> None:
    """Its server has checksums of the other bytes, so only the record tells."""
    (tmp_path / "b").write_bytes(b"what may not be lost")
    run("put", tmp_path / "b", "wide:b")
    roots = {store.name: store.url for store in swathe.stores.list()}
    for number in range(count):
        (part,) = lab[number].glob("a.stripe.*")
        url = f"{roots[f'host{number}'].replace('dav', 'http', 1)}/{part.name}"
        with httpx.Client() as client:
            other = bytes(len(client.get(url).content))
            client.put(url, content=other).raise_for_status()
    report = swathe.stores.copy_objects("wide:a", "wide:b", overwrite=True, progress=False)
    run("get", "wide:b", tmp_path / "c")
    if count == 1:
        assert (report.copied, report.by_servers) == (1, 0)
        assert any("expected CRC-32" in reason for reason in report.detours)
        assert (tmp_path / "c").read_bytes() == CONTENT
    else:
        assert (report.copied, report.failed) == (0, 1)
        assert (tmp_path / "c").read_bytes() == b"what may not be lost"
    assert swathe.stores.check_stripes("wide:b", deep=True, progress=False).is_whole


@pytest.mark.more  # a server that does not answer is asked again
def test_a_server_that_hangs_is_left_out_of_a_copy(
    run: Runner, tmp_path: Path, lab: list[Path], running: list[BlockServer]
) -> None:
    running[1].process.send_signal(signal.SIGSTOP)
    try:
        report = swathe.stores.copy_objects("wide:a", "wide:b", progress=False)
    finally:
        running[1].process.send_signal(signal.SIGCONT)
    assert (report.copied, report.by_servers) == (1, 0)
    (reason,) = report.detours
    assert reason.startswith("host1:") and "no answer" in reason
    run("get", "wide:b", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == CONTENT
