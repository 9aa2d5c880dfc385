"""Short ranges of stripes over block servers: read exactly, as each answer tells its checksum.

What does not prove its bytes is compared with the checksums of the record, as of any other server.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest
from astropy.io import fits

import swathe
from tests.support.block_servers import block_server

pytestmark = [pytest.mark.more, pytest.mark.usefixtures("own_catalog")]

SERVERS = 3
SHAPE = (300, 700)
SIDE = 20
CUTS = 60
NAME = "frame.fits"
KEPT = ("content-type", "content-range", "etag", "last-modified", "accept-ranges")
PROVING = ("swathe-verified", "swathe-damage", "content-digest")


@dataclass
class Between:
    """What stands between a client and a block server.

    Attributes:
        url: where it answers.
        questions: the ranges that were asked for with proof.
        change: what it makes of the body and the headers of a proven answer.
    """

    url: str
    questions: list[str] = field(default_factory=list)
    change: Callable[[bytes, dict[str, str]], bytes] = lambda body, headers: body


@contextmanager
def between(upstream_url: str) -> Iterator[Between]:
    """Hand requests for objects on to a block server, until the block ends."""
    client = httpx.Client(base_url=upstream_url, timeout=60)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            names = ("range", "if-match", "want-content-digest")
            asked = {name: self.headers[name] for name in names if name in self.headers}
            answer = client.get(self.path, headers=asked)
            body = answer.content
            kept = (*KEPT, *PROVING)
            headers = {name: answer.headers[name] for name in kept if name in answer.headers}
            if "want-content-digest" in asked:
                there.questions.append(asked["range"])
                body = there.change(body, headers)
            self.send_response(answer.status_code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with client, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        there = Between(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield there
        server.shutdown()
        thread.join()


@dataclass
class Lab:
    """Disks of block servers, what stands before each, and the image on `wide:`."""

    disks: list[Path]
    before: list[Between]
    image: np.ndarray


def declare(roots: list[str]) -> None:
    """Declare `wide:` over stores with these roots; those of before are forgotten."""
    names = [f"block{number}" for number in range(len(roots))]
    present = {store.name for store in swathe.stores.list()}
    for name in ("wide", *names):
        if name in present:
            swathe.stores.remove(name)
    for name, root in zip(names, roots, strict=True):
        swathe.stores.add(name, root)
    swathe.stores.add("wide", "striped:", over=names, parity=1, block_bytes=65_536)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        disks, urls = [], []
        for number in range(SERVERS):
            (disk := tmp_path / f"d{number}").mkdir()
            disks.append(disk)
            urls.append(stack.enter_context(block_server(disk)).url)
        declare([url.replace("http://", "dav://") for url in urls])
        image = np.random.default_rng(3).integers(0, 30_000, SHAPE, np.int16)
        fits.writeto(tmp_path / NAME, image)
        swathe.stores.copy_objects(str(tmp_path / NAME), f"wide:{NAME}", progress=False)
        before = [stack.enter_context(between(url)) for url in urls]
        declare([each.url for each in before])
        yield Lab(disks, before, image)


def assert_cuts_are_right(there: Lab) -> None:
    draw = np.random.default_rng(5)
    for _ in range(CUTS):
        x0, y0 = int(draw.integers(SHAPE[1] - SIDE)), int(draw.integers(SHAPE[0] - SIDE))
        cutout = swathe.cut(f"wide:{NAME}", box=(x0, y0, SIDE, SIDE))
        expected = there.image[y0 : y0 + SIDE, x0 : x0 + SIDE]
        assert np.array_equal(cutout.data, expected), (x0, y0)


def questions(there: Lab) -> list[str]:
    return [question for each in there.before for question in each.questions]


def test_short_ranges_are_read_exactly(lab: Lab) -> None:
    assert_cuts_are_right(lab)
    starts = [
        int(one.partition("-")[0])
        for question in questions(lab)
        for one in question.removeprefix("bytes=").split(",")
    ]
    assert starts
    assert any(start % 512 for start in starts), "none is widened to whole blocks"


@contextmanager
def large_object(folder: Path) -> Iterator[tuple[list[Path], bytes]]:
    """`wide:` over block servers, and an object on it of several windows: its parts and bytes."""
    content = np.random.default_rng(7).bytes(30_000_000)
    (folder / "large").write_bytes(content)
    with ExitStack() as stack:
        disks = [folder / f"d{number}" for number in range(SERVERS)]
        for disk in disks:
            disk.mkdir()
        urls = [stack.enter_context(block_server(disk)).url for disk in disks]
        declare([url.replace("http://", "dav://") for url in urls])
        swathe.stores.copy_objects(str(folder / "large"), "wide:large", progress=False)
        yield [part for disk in disks for part in disk.glob("large.stripe.*")], content


def test_parts_that_were_made_again_are_read_in_many_windows(tmp_path: Path) -> None:
    """Their versions are other ones than the record has."""
    with large_object(tmp_path) as (parts, content):
        for part in parts[1:]:
            os.utime(part, (1_700_000_000, 1_700_000_000))
        for _ in range(3):
            assert swathe.fs().cat_file("wide/large") == content
        assert swathe.stores.check_stripes("wide", deep=True).is_whole


def test_damage_at_the_beginning_of_a_part_leaves_its_other_blocks(tmp_path: Path) -> None:
    with large_object(tmp_path) as (parts, content):
        for part, at in ((parts[0], 100), (parts[1], -50)):
            before = part.stat()
            changed = bytearray(part.read_bytes())
            changed[at] ^= 1
            with part.open("r+b") as file:
                file.write(changed)
            os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert swathe.fs().cat_file("wide/large") == content
        (check,) = swathe.stores.check_stripes("wide", deep=True).checks
        assert check.is_readable
        assert [len(part.damage_starts) for part in check.parts] == [1, 1, 0]
        assert swathe.stores.repair_stripes("wide", deep=True).parts == 2
        assert swathe.stores.check_stripes("wide", deep=True).is_whole


def test_damage_at_the_beginning_of_a_part_that_was_changed_later_is_repaired(
    tmp_path: Path,
) -> None:
    """Its server refuses it, and so does not say its version, which is another one now."""
    with large_object(tmp_path) as (parts, content):
        with parts[0].open("r+b") as file:
            file.seek(1000)
            file.write(bytes([content[1000] ^ 1]))
        (check,) = swathe.stores.check_stripes("wide", deep=True).checks
        assert [part.state for part in check.parts] == ["damaged", "whole", "whole"]
        assert swathe.stores.repair_stripes("wide", deep=True).parts == 1
        assert swathe.stores.check_stripes("wide", deep=True).is_whole
        assert swathe.fs().cat_file("wide/large") == content


def test_bytes_that_change_on_the_way_are_asked_for_again(lab: Lab) -> None:
    changes: list[int] = []

    def flip(body: bytes, headers: dict[str, str]) -> bytes:
        if len(changes) >= 5 or not body:
            return body
        changes.append(len(body))
        # In the data, also where heads of parts stand before it.
        at = max(body.find(b"\r\n\r\n") + 4, 0) if body.startswith(b"\r\n--") else 0
        return body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :]

    for each in lab.before:
        each.change = flip
    assert_cuts_are_right(lab)
    assert len(changes) == 5


@pytest.mark.parametrize("name", ["content-digest", "swathe-verified"])
def test_answers_without_proof_are_compared_with_the_record(lab: Lab, name: str) -> None:
    counts: list[int] = []

    def strip(body: bytes, headers: dict[str, str]) -> bytes:
        headers.pop(name, None)
        counts.append(len(body))
        # Nobody may take it for right.
        return bytes(len(body))

    for each in lab.before:
        each.change = strip
    assert_cuts_are_right(lab)
    # A server without checksums of answers is asked once, any other once for each part.
    assert 1 <= len(counts) <= (2 * SERVERS if name == "content-digest" else CUTS * SERVERS)


def test_blocks_that_were_flipped_on_a_disk_are_rebuilt(lab: Lab) -> None:
    [part] = lab.disks[1].glob(f"{NAME}.stripe.*")
    content = bytearray(part.read_bytes())
    for at in range(100, len(content), 4096):
        content[at] ^= 8
    with part.open("r+b") as file:
        file.write(content)
    assert_cuts_are_right(lab)


def test_bytes_of_another_object_are_not_taken(lab: Lab) -> None:
    [part] = lab.disks[2].glob(f"{NAME}.stripe.*")
    other = part.with_name("other")
    other.write_bytes(bytes(part.stat().st_size))
    other.replace(part)
    assert_cuts_are_right(lab)


def test_a_version_that_was_replaced_is_not_mixed(lab: Lab, tmp_path: Path) -> None:
    assert_cuts_are_right(lab)
    newer = lab.image[::-1].copy()
    fits.writeto(tmp_path / "newer.fits", newer)
    roots = [each.url for each in lab.before]
    declare([f"file://{disk}" for disk in lab.disks])
    swathe.stores.copy_objects(
        str(tmp_path / "newer.fits"), f"wide:{NAME}", overwrite=True, progress=False
    )
    declare(roots)
    lab.image = newer
    # Written to the folders: the servers have no checksums of it.
    assert_cuts_are_right(lab)


def test_damage_at_the_beginning_of_a_part_on_an_exchanged_disk_is_repaired(
    tmp_path: Path,
) -> None:
    with large_object(tmp_path) as (parts, content):
        for part, at in ((parts[0], 5), (parts[1], 2_000_000)):
            with part.open("r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1]))
        numbers = [part.suffix for part in parts]
        places = [part.parent for part in parts]
        for number, to in ((0, 2), (2, 0)):
            moved = parts[number].rename(places[to] / "moved")
            moved.rename(places[to] / parts[number].name)
        assert numbers == [".0", ".1", ".2"]
        assert swathe.fs().cat_file("wide/large") == content
        assert swathe.stores.repair_stripes("wide", deep=True).parts == 2
        assert swathe.stores.check_stripes("wide", deep=True).is_whole
        assert [len([*place.glob("large.stripe.*")]) for place in places] == [1, 1, 1]


def test_damage_in_two_places_of_two_servers_is_repaired(tmp_path: Path) -> None:
    """Both parts were changed later, and one of them at its beginning: its server refuses it."""
    content = np.random.default_rng(8).bytes(3_000_000)
    (tmp_path / "object").write_bytes(content)
    with ExitStack() as stack:
        disks = [tmp_path / f"e{number}" for number in range(2)]
        for disk in disks:
            disk.mkdir()
        urls = [stack.enter_context(block_server(disk)).url for disk in disks]
        declare([url.replace("http://", "dav://") for url in urls])
        swathe.stores.copy_objects(str(tmp_path / "object"), "wide:object", progress=False)
        parts = [part for disk in disks for part in disk.glob("object.stripe.*")]
        # More than eight blocks of one shard, too.
        for part, places in ((parts[1], [10_000]), (parts[0], range(900_000, 1_000_000, 8192))):
            with part.open("r+b") as file:
                for at in places:
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 1]))
        assert swathe.fs().cat_file("wide/object") == content
        (check,) = swathe.stores.check_stripes("wide", deep=True).checks
        assert check.is_readable
        assert [len(part.damage_starts) > 0 for part in check.parts] == [True, True]
        assert swathe.stores.repair_stripes("wide", deep=True).parts == 2
        assert swathe.stores.check_stripes("wide", deep=True).is_whole
