"""Real portals for the tests: `swathe portal serve` as a process, ended by whoever began it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.postgres_server import new_database
from tests.support.sample_surveys import new_sample

SECOND_S = 120.0
"""How long anything may take."""


@dataclass
class RunningPortal:
    """A running portal, and what it was started with."""

    url: str
    process: subprocess.Popen[str]
    folder: Path

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=SECOND_S)


SETTINGS = """
[catalog]
database = "{database}"
[results]
{results}
"""


def database_in(folder: Path) -> str:
    """The URL of the catalogue of a portal in this folder: SQLite, or what `put_database` put."""
    other = folder / "database.url"
    return other.read_text() if other.exists() else f"sqlite:///{folder}/portal.sqlite"


@contextmanager
def put_database(folder: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the catalogue of a portal in this folder be of the kind that the fixture asks for."""
    if request.param == "sqlite":
        yield
        return
    with new_database(request.getfixturevalue("postgres")) as url:
        (folder / "database.url").write_text(url)
        yield


def command_for(
    folder: Path, settings: str = "", port: int = 0, results: str | None = None
) -> list[str]:
    """Write the settings of a portal in a folder; gives what starts it."""
    path = folder / "swathe.toml"
    results = f'folder = "{folder}/results"' if results is None else results
    path.write_text(SETTINGS.format(results=results, database=database_in(folder)) + settings)
    serve = ["portal", "serve", "--config", str(path), "--port", str(port), "--json"]
    return [sys.executable, "-m", "swathe.cli", *serve]


@contextmanager
def served(
    folder: Path, settings: str = "", port: int = 0, results: str | None = None
) -> Iterator[RunningPortal]:
    """Serve a portal whose catalogue is in a folder, and so are its results if not elsewhere."""
    log = (folder / "portal.log").open("a")
    process = subprocess.Popen(
        command_for(folder, settings, port, results),
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "portal.log").read_text()
        yield RunningPortal(json.loads(line)["portal"].rstrip("/"), process, folder)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=SECOND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        finally:
            log.close()


def add_survey(folder: Path, frames: int = 1, targets: int = 200) -> Path:
    """Make a sample survey and register it as store and dataset `survey`; gives its targets.

    The table has files as users of a portal name them, `survey:NAME`.
    """
    from astropy.table import Table

    from swathe.catalog import Catalog
    from swathe.datasets.scan import scan
    from swathe.stores.listing import list_objects

    table = Table.read(new_sample(folder / "survey", frames, targets), format="ascii.csv")
    table["file"] = [f"survey:{name}" for name in table["file"]]
    table.write(folder / "targets.csv", format="ascii.csv", overwrite=True)
    # The engine finds stores by the catalogue that this names.
    with (
        pytest.MonkeyPatch.context() as patch,
        Catalog.open(database_in(folder)) as catalog,
    ):
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("survey", str(folder / "survey"))
        catalog.add_dataset("survey", "survey", "", "*.fit*")
        scan(catalog, "survey", list_objects(store, "", "*.fit*"))
    return folder / "targets.csv"


@contextmanager
def survey_in_database(
    folder: Path, request: pytest.FixtureRequest, targets: int
) -> Iterator[Path]:
    """A folder with a sample survey, in a catalogue of the kind that the fixture asks for."""
    with put_database(folder, request):
        add_survey(folder, targets=targets)
        yield folder


def targets_in(folder: Path) -> dict[str, list[Any]]:
    """The targets of the survey that `add_survey` made, as columns."""
    from astropy.table import Table

    table = Table.read(folder / "targets.csv", format="ascii.csv")
    return {name: table[name].tolist() for name in table.colnames}


def finished(client: httpx.Client, job: str) -> dict[str, Any]:
    """The job when it has ended."""
    status = client.get(f"/jobs/{job}").json()
    while status["phase"] not in ("COMPLETED", "ERROR", "ABORTED"):
        status = client.get(f"/jobs/{job}", params={"wait": 10, "phase": status["phase"]}).json()
    result: dict[str, Any] = status
    return result


def submitted(client: httpx.Client, targets: Any, **options: Any) -> dict[str, Any]:
    """A new job."""
    answer = client.post("/jobs", json={"targets": targets, **options})
    assert answer.status_code == 201, answer.text
    result: dict[str, Any] = answer.json()
    return result


def wait_until(what: Callable[[], Any]) -> None:
    """Wait for something to be so, but not for ever."""
    until = time.monotonic() + SECOND_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)
