"""Files on servers: the same pixels by few and small requests, typed errors without secrets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from swathe.core.errors import AccessError, NotFoundError, SourceError, SwatheError
from tests.support import servers
from tests.support.fits_frames import KINDS, contents, image_of, noise, swathe_command
from tests.support.servers import PASSWORD, TOKEN, USER, FileServer

SHAPE = (1500, 1600)
BOX = (1200, 1300, 40, 30)
SECRETS = (PASSWORD, TOKEN, USER)


@pytest.fixture(scope="module")
def frame() -> NDArray[np.uint16]:
    return noise(1, SHAPE)


@pytest.fixture(scope="module")
def files(frame: NDArray[np.uint16]) -> dict[str, bytes]:
    """A frame of each kind."""
    return {kind: contents(frame, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> Iterator[FileServer]:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    with servers.nginx(tmp_path_factory.mktemp("nginx")) as running:
        for kind, content in files.items():
            (running.folder / f"a.{kind}").write_bytes(content)
        yield running


def wanted(frame: NDArray[np.uint16]) -> NDArray[np.uint16]:
    x0, y0, width, height = BOX
    return frame[y0 : y0 + height, x0 : x0 + width]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_equals_numpy(kind: str, server: FileServer, frame: NDArray[np.uint16]) -> None:
    url = f"{server.url}/a.{kind}"
    for _ in range(2):
        cut = swathe.cut(url, box=BOX)
        np.testing.assert_array_equal(cut.data, wanted(frame))
    assert cut.url == url
    assert str(swathe.open(url).size) in cut.version


def test_plain_cut_moves_little_in_few_requests(server: FileServer) -> None:
    swathe.cut(f"{server.url}/a.fit", box=(0, 0, 1, 1))
    size = (server.folder / "a.fit").stat().st_size
    new = server.folder / "few.fit"
    new.write_bytes((server.folder / "a.fit").read_bytes())
    for first in (1, 0):  # the headers are kept after the first
        server.requests()
        swathe.cut(f"{server.url}/few.fit", box=BOX)
        made = server.requests()
        assert first < len(made) <= first + 8
        assert sum(request.range.startswith("bytes=0-") for request in made) == first
        assert sum(request.bytes for request in made) < size / 10
        assert {request.status for request in made} <= {200, 206}
        assert all(request.range != "-" for request in made if request.method == "GET")


@pytest.mark.parametrize("kind", ["fit.gz", "fit.bz2"])
def test_second_cut_starts_at_a_seek_point(
    kind: str, server: FileServer, files: dict[str, bytes], frame: NDArray[np.uint16]
) -> None:
    (server.folder / f"seek.{kind}").write_bytes(files[kind])
    moved = []
    for _ in range(2):
        server.requests()
        cut = swathe.cut(f"{server.url}/seek.{kind}", box=BOX)
        np.testing.assert_array_equal(cut.data, wanted(frame))
        moved.append(sum(request.bytes for request in server.requests()))
    assert moved[1] < moved[0] / 2


@pytest.mark.parametrize("kind", ["fit.gz", "fit.bz2"])
def test_of_a_stream_no_byte_comes_twice(
    kind: str, server: FileServer, frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    url = f"{server.url}/a.{kind}"
    swathe.cut(url, box=BOX)  # the seek points
    # So far apart that each is entered at a seek point of its own, which one request may bring.
    places = [(100, 60 * number) for number in range(24)]
    rows = {"file": [url] * 24, "x0": [x for x, _ in places], "y0": [y for _, y in places]}
    server.requests()
    manifest = swathe.cut_many(
        {**rows, "width": [20] * 24, "height": [4] * 24}, tmp_path / "out", threads=1
    )
    asked = [[int(at) for at in request.range[6:].split("-")] for request in server.requests()]
    moved = manifest.meta["bytes_moved"]
    for row, (x, y) in zip(manifest, places, strict=True):
        pixels = image_of((tmp_path / "out" / row["path"]).read_bytes())
        np.testing.assert_array_equal(pixels, frame[y : y + 4, x : x + 20])
    covered = set()
    for first, last in asked:
        covered |= set(range(first // 1024, last // 1024 + 1))
    assert moved <= 1.02 * len(covered) * 1024


def test_fz_moves_its_tiles_only(server: FileServer, files: dict[str, bytes]) -> None:
    (server.folder / "tiles.fit.fz").write_bytes(files["fit.fz"])
    server.requests()
    swathe.cut(f"{server.url}/tiles.fit.fz", box=BOX)
    assert sum(request.bytes for request in server.requests()) < len(files["fit.fz"]) / 4


def test_redirects_are_followed(server: FileServer, frame: NDArray[np.uint16]) -> None:
    cut = swathe.cut(f"{server.url}/moved/a.fit", box=BOX)
    np.testing.assert_array_equal(cut.data, wanted(frame))


def test_replaced_file_gives_the_new_pixels(server: FileServer) -> None:
    for number, kind in enumerate(KINDS):
        path = server.folder / f"replaced.{kind}"
        for version in range(2):
            data = noise(100 + 10 * number + version, (400, 500))
            new = server.folder / "new"
            new.write_bytes(contents(data, kind))
            os.utime(new, (1e9 + version, 1e9 + version))
            new.replace(path)
            cut = swathe.cut(f"{server.url}/replaced.{kind}", box=(10, 350, 20, 30))
            np.testing.assert_array_equal(cut.data, data[350:380, 10:30])


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("none.fit", NotFoundError, "not found"),
        ("none/", NotFoundError, "not found"),
        ("forbidden/a.fit", AccessError, "403"),
        ("broken/a.fit", SourceError, "500"),
        ("whole/a.fit", SourceError, "ranges"),
        ("password/a.fit", AccessError, "401"),
        (f"token/a.fit?token={TOKEN}x", AccessError, "403"),
    ],
)
def test_refusals_are_typed(
    path: str, kind: type[SwatheError], said: str, server: FileServer
) -> None:
    with pytest.raises(kind, match=said) as caught:
        swathe.cut(f"{server.url}/{path}", box=BOX)
    assert server.host in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_server_that_is_not_there() -> None:
    url = f"http://127.0.0.1:{servers.free_port()}/a.fit"
    with pytest.raises(SourceError, match="cannot connect"):
        swathe.cut(url, box=BOX)


def test_server_that_hangs_up() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "swathe.cli", "info", f"http://127.0.0.1:{port}/a.fit"],
            stderr=subprocess.PIPE,
            text=True,
        )
        listener.settimeout(0.2)
        while process.poll() is None:
            try:
                listener.accept()[0].close()
            except TimeoutError:
                continue
        _, said = process.communicate(timeout=120)
    assert process.returncode == 3
    assert f"http://127.0.0.1:{port}/a.fit" in said
    assert len(said.splitlines()) == 1


def secret_urls(server: FileServer) -> list[str]:
    return [
        f"http://{USER}:{PASSWORD}@{server.host}/password/a.fit.gz",
        f"{server.url}/token/a.fit.gz?token={TOKEN}",
    ]


def test_password_and_token_open_but_are_not_shown(
    server: FileServer, frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    for url in secret_urls(server):
        cut = swathe.cut(url, box=BOX)
        np.testing.assert_array_equal(cut.data, wanted(frame))
        cut.write(tmp_path / "cut.fits", overwrite=True)
        file = swathe.open(url)
        shown = [cut.url, cut.version, repr(cut), repr(file), repr(file.image())]
        shown += [file.version, file.url, repr(cut.header)]
        shown += [(tmp_path / "cut.fits").read_bytes().decode("latin-1")]
        assert not [secret for secret in SECRETS if any(secret in text for text in shown)]


def test_what_one_secret_opened_is_not_given_to_another(server: FileServer) -> None:
    for url in secret_urls(server):
        swathe.cut(url, box=BOX)
        wrong = url.replace(PASSWORD, f"{PASSWORD}x").replace(TOKEN, f"{TOKEN}x")
        for _ in range(2):
            with pytest.raises(AccessError, match=r"40[13]"):
                swathe.cut(wrong, box=BOX)


def test_password_and_token_are_in_no_error(server: FileServer, tmp_path: Path) -> None:
    wrong = [url.replace("a.fit.gz", "none.fit") for url in secret_urls(server)]
    wrong += [url.replace(server.host, "127.0.0.1:1") for url in secret_urls(server)]
    wrong += [secret_urls(server)[0].replace(PASSWORD, f"{PASSWORD}-wrong")]
    wrong += [secret_urls(server)[1] + "-wrong"]
    for url in wrong:
        with pytest.raises(SwatheError) as caught:
            swathe.cut(url, box=BOX)
        assert not [secret for secret in SECRETS if secret in str(caught.value)]
    for url in secret_urls(server):
        with pytest.raises(SwatheError) as caught:
            swathe.cut(url, box=(9999, 0, 5, 5))
        assert not [secret for secret in SECRETS if secret in str(caught.value)]
    ran = swathe_command("cut", wrong[0], "--box", 0, 0, 5, 5, "-o", tmp_path / "c.fits", "--json")
    assert ran.returncode == 3
    assert not [secret for secret in SECRETS if secret in ran.stdout + ran.stderr]


def test_password_and_token_are_not_in_the_manifest(server: FileServer, tmp_path: Path) -> None:
    urls = secret_urls(server)
    urls += [url.replace("a.fit.gz", "none.fit") for url in urls]
    rows = {"file": urls} | {name: [5] * 4 for name in ("x0", "y0", "width", "height")}
    found = swathe.cut_many(rows, tmp_path / "out", progress=False)
    assert list(found["status"]) == ["ok", "ok", "missing", "missing"]
    text = (tmp_path / "out" / "manifest.ecsv").read_text()
    assert not [secret for secret in SECRETS if secret in text]
    again = swathe.cut_many(rows, tmp_path / "out", progress=False, resume=True)
    assert list(again["sha256"]) == list(found["sha256"])


def test_batch_of_local_and_remote_files(
    server: FileServer, frame: NDArray[np.uint16], tmp_path: Path
) -> None:
    names = [f"{place}/a.{kind}" for kind in KINDS for place in (server.url, server.folder)]
    names += [f"{server.url}/none.fit", f"{server.url}/forbidden/a.fit"]
    names *= 4
    rng = np.random.default_rng(5)
    x0, y0 = rng.integers(0, 1400, (2, len(names))).tolist()
    sides = {"width": [25] * len(names), "height": [35] * len(names)}
    rows = {"file": names, "x0": x0, "y0": y0, **sides}
    found = swathe.cut_many(rows, tmp_path / "out.zip", progress=False, threads=2)
    assert list(found["status"]) == ([*["ok"] * 8, "missing", "error"] * 4)
    from tests.support.fits_frames import results

    written = results(tmp_path / "out.zip")
    for row, path in enumerate(found["path"]):
        if path:
            pixels = frame[y0[row] : y0[row] + 35, x0[row] : x0[row] + 25]
            np.testing.assert_array_equal(image_of(written[path]), pixels)


def test_table_beside_its_files_may_name_urls(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "a.fit").write_bytes((server.folder / "a.fit").read_bytes())
    lines = "".join(f"{name},5,6,7,8\n" for name in ("a.fit", f"{server.url}/a.fit.fz"))
    (tmp_path / "t.csv").write_text(f"file,x0,y0,width,height\n{lines}")
    ran = swathe_command("cut", "--targets", tmp_path / "t.csv", "-o", tmp_path / "out", "--json")
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["ok"] == 2


# S3.


@pytest.fixture(scope="module")
def bucket(files: dict[str, bytes]) -> Iterator[str]:
    """URL of an S3 server with a bucket `survey`, which holds a frame of each kind."""
    with servers.s3_server() as url:
        servers.put(f"{url}/survey")
        for kind, content in files.items():
            servers.put(f"{url}/survey/dr1/a.{kind}", content)
        yield url


@pytest.fixture
def s3(bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment that leads to the bucket."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    settings = {
        "AWS_ENDPOINT_URL": bucket,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test-key-id",
        "AWS_SECRET_ACCESS_KEY": "test-secret-hush",
        "AWS_REGION": "us-east-1",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return "s3://survey/dr1"


@pytest.mark.parametrize("kind", KINDS)
def test_s3_cut_equals_numpy(kind: str, s3: str, frame: NDArray[np.uint16]) -> None:
    for _ in range(2):
        cut = swathe.cut(f"{s3}/a.{kind}", box=BOX)
        np.testing.assert_array_equal(cut.data, wanted(frame))
    assert cut.url == f"{s3}/a.{kind}"


@pytest.mark.parametrize(
    "url", ["s3://survey/dr1/none.fit", "s3://nobucket/a.fit", "s3://survey/dr1"]
)
def test_s3_missing_key_or_bucket(url: str, s3: str) -> None:
    with pytest.raises(NotFoundError, match=url) as caught:
        swathe.open(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://survey", "s3://survey/", "s3:///a.fit", "s3://a b/c"])
def test_s3_url_without_bucket_or_key(url: str, s3: str) -> None:
    with pytest.raises(SwatheError, match="s3://"):
        swathe.open(url)


def test_s3_in_a_batch_and_on_the_command_line(s3: str, bucket: str, tmp_path: Path) -> None:
    rows: dict[str, Any] = {"file": [f"{s3}/a.fit", f"{s3}/none.fit", f"{s3}/a.fit.gz"]}
    rows |= {name: [5] * 3 for name in ("x0", "y0", "width", "height")}
    found = swathe.cut_many(rows, tmp_path / "out", progress=False)
    assert list(found["status"]) == ["ok", "missing", "ok"]
    ran = swathe_command("info", f"{s3}/a.fit.fz", "--json")
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["hdus"][1]["codec"] == "RICE_1"


def test_s3_server_that_is_not_there(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{servers.free_port()}")
    with pytest.raises(SourceError, match=r"s3://survey/dr1/a\.fit") as caught:
        swathe.open(f"{s3}/a.fit")
    assert "hush" not in str(caught.value)
