"""`swathe portal doctor`: what it finds, and that it changes nothing."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.catalog.database_status import database_status
from swathe.core.errors import SandboxUnavailableError
from swathe.portal.doctor import Check, examine, stores
from swathe.portal.doctor.machine import clock_check
from swathe.workers.dask.certificates import make_certificates
from tests.support.fits_frames import Runner
from tests.support.portals import database_in, served
from tests.support.scripted_servers import Handler, serving
from tests.support.servers import free_port

SETTINGS = """
[catalog]
database = "{database}"
[results]
folder = "{folder}/results"
[server]
port = {port}
[algorithms]
run = false
[limits]
result_gb = 0.001
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The settings of a portal in a folder, without a catalogue yet."""
    path = tmp_path / "swathe.toml"
    text = SETTINGS.format(database=database_in(tmp_path), folder=tmp_path, port=free_port())
    path.write_text(text)
    return path


@pytest.fixture
def catalog(settings: Path, tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(database_in(tmp_path)) as catalog:
        yield catalog


def checks(settings: Path) -> dict[str, Check]:
    return {check.name: check for check in examine(settings)}


def states(settings: Path) -> dict[str, str]:
    return {name: check.state for name, check in checks(settings).items()}


def test_a_portal_that_works(settings: Path, catalog: Catalog, tmp_path: Path, run: Runner) -> None:
    (tmp_path / "data").mkdir()
    catalog.add_store("data", str(tmp_path / "data"))
    ran = run.ran("portal", "doctor", "--config", str(settings), "--json")
    assert ran.code == 0
    found = {each["name"]: each["state"] for each in ran.json["checks"]}
    names = ("settings", "address", "database", "clock", "results", "store data", "certificates")
    assert ran.json["works"] and list(found) == [*names, "sandbox", "pool"]
    assert {*found.values()} == {"OK"}
    lines = run.ran("portal", "doctor", "--config", str(settings)).out.splitlines()
    assert [line[:5].strip() for line in lines] == ["OK"] * len(found)
    assert not (tmp_path / "data" / "anything").exists() and not any((tmp_path / "data").iterdir())


def test_nothing_is_made(settings: Path, tmp_path: Path) -> None:
    found = checks(settings)
    assert found["database"].state == "WARN"
    assert "there is none yet" in found["database"].text
    assert found["results"].state == "OK"
    assert [path.name for path in tmp_path.iterdir()] == ["swathe.toml"]


def test_settings_that_are_wrong_are_all_there_is(settings: Path, run: Runner) -> None:
    settings.write_text("[server]\nport = 70000\n")
    ran = run.ran("portal", "doctor", "--config", str(settings))
    assert ran.code == 1
    assert ran.out.startswith("FAIL settings: ")
    assert "server.port: expected" in ran.out
    assert len(ran.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[access]\nopen = true\n", "access.open"),
        ('[server]\nurl = "http://archive.example"\n', "without encryption"),
        ('[workers]\nurl = "dask://127.0.0.1:9"\ninsecure = true\n', "workers.insecure"),
    ],
)
def test_settings_that_are_rarely_meant(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "swathe.toml"
    path.write_text(line)
    check = next(iter(examine(path)))
    assert (check.name, check.state) == ("settings", "WARN")
    assert text in check.text and check.remedy


def test_an_older_catalogue_is_not_migrated(
    settings: Path, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.close()
    with closing(sqlite3.connect(tmp_path / "portal.sqlite")) as database:
        database.execute("UPDATE swathe_schema SET version_num = 'v0021'")
        database.commit()
        found = checks(settings)
        (version,) = database.execute("SELECT version_num FROM swathe_schema").fetchone()
    assert found["database"].state == "WARN"
    assert "older version" in found["database"].text
    assert version == "v0021"


@pytest.mark.parametrize("version", ["v9999", ""])
def test_a_catalogue_that_cannot_be_used_fails(
    settings: Path, catalog: Catalog, tmp_path: Path, version: str
) -> None:
    catalog.close()
    path = tmp_path / "portal.sqlite"
    if version:
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE swathe_schema SET version_num = ?", (version,))
            database.commit()
    else:
        path.write_bytes(b"no database" * 1000)
    assert checks(settings)["database"].state == "FAIL"


def test_results_that_cannot_be_stored_fail(
    settings: Path, catalog: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("a file in the place of the folder")
    assert states(settings)["results"] == "FAIL"
    (tmp_path / "results").unlink()
    (tmp_path / "results").mkdir()
    os.chmod(tmp_path / "results", 0o777)
    check = checks(settings)["results"]
    assert (check.state, check.remedy) == ("WARN", "run: chmod o-w")
    settings.write_text(settings.read_text().replace("0.001", "1000000"))
    assert "less than limits.result_gb" in checks(settings)["results"].text


class LateServer(Handler):
    """A web server whose clock is an hour behind."""

    def do_HEAD(self) -> None:
        self.send_response_only(200)
        late = datetime.now(UTC) - timedelta(hours=1)
        self.send_header("Date", format_datetime(late, usegmt=True))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.answer(200, b"<a href='a.fits'>a.fits</a>", {"Content-Type": "text/html"})


def test_stores_are_listed_and_their_clocks_compared(
    settings: Path, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.add_store("gone", str(tmp_path / "gone"))
    with serving(LateServer) as url:
        catalog.add_store("late", url)
        found = checks(settings)
    assert found["store gone"].state == "FAIL"
    assert str(tmp_path / "gone") in found["store gone"].text
    assert found["store late"].state == "OK"
    assert found["clock of late"].state == "FAIL"
    assert "behind that of this machine" in found["clock of late"].text


def test_a_store_that_never_answers_does_not_hold_the_others(
    settings: Path, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "LIST_S", 1.0)
    (tmp_path / "data").mkdir()
    catalog.add_store("data", str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        catalog.add_store("silent", f"http://127.0.0.1:{silent.getsockname()[1]}")
        found = checks(settings)
    assert found["store data"].state == "OK"
    assert (found["store silent"].state, found["store silent"].text) == (
        "FAIL",
        "no answer within 1 s",
    )


@pytest.mark.parametrize(
    ("offset_s", "state", "text"),
    [(0.5, "OK", "ahead of"), (-30.0, "WARN", "behind"), (4000.0, "FAIL", "ahead of")],
)
def test_clocks(offset_s: float, state: str, text: str) -> None:
    check = clock_check("clock of the database", offset_s)
    assert check.state == state and text in check.text


@pytest.mark.parametrize(("days", "state"), [(825, "OK"), (10, "WARN"), (0, "FAIL")])
def test_certificates_end(settings: Path, tmp_path: Path, days: int, state: str) -> None:
    make_certificates(tmp_path / "tls", days)
    pool = f'[workers]\nurl = "dask://127.0.0.1:{free_port()}"\n'
    if state == "FAIL":
        # The settings themselves refuse these; those of loopback are looked at here.
        own = tmp_path / "state" / "swathe" / "pools"
        own.mkdir(parents=True)
        port = pool.rpartition(":")[2].rstrip('"\n')
        (tmp_path / "tls").rename(own / f"loopback-{port}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
            settings.write_text(settings.read_text() + pool)
            found = checks(settings)
    else:
        settings.write_text(f'{settings.read_text()}{pool}certificates = "{tmp_path}/tls"\n')
        found = checks(settings)
    assert found["certificates"].state == state
    # No scheduler runs there.
    assert found["pool"].state == "FAIL"


def test_a_sandbox_that_does_not_hold(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_box: object) -> None:
        raise SandboxUnavailableError("no namespaces here")

    monkeypatch.setattr("swathe.algorithms.group_run.BoxSettings.check", refuse)
    settings.write_text(settings.read_text().replace("run = false", "run = true"))
    check = checks(settings)["sandbox"]
    assert (check.state, check.text) == ("WARN", "[algorithms]: no namespaces here")
    settings.write_text(settings.read_text().replace("run = true", "run = true\nprograms = 1"))
    assert states(settings)["sandbox"] == "FAIL"


def test_a_portal_that_runs_is_asked(tmp_path: Path) -> None:
    port = free_port()
    with served(tmp_path, port=port):
        path = tmp_path / "swathe.toml"
        path.write_text(f"{path.read_text()}\n[server]\nport = {port}\n")
        assert checks(path)["address"].text.endswith("a portal runs there, and is ready")
        (tmp_path / "results").rename(tmp_path / "elsewhere")
        check = checks(path)["address"]
        (tmp_path / "elsewhere").rename(tmp_path / "results")
        assert check.state == "FAIL"
        assert check.text.endswith("is not ready: disk, results")
    with socket.create_server(("127.0.0.1", port)):
        assert "cannot listen" in checks(path)["address"].text


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_the_clock_of_a_server_is_compared(url: str) -> None:
    with Catalog.open(url):
        status = database_status(url)
    assert status.kind == "postgresql" and status.is_up_to_date and status.bytes > 0
    assert status.offset_s is not None and abs(status.offset_s) < 1
    assert "open-Sesame" not in status.url
