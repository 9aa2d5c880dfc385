"""The commands `swathe store`, and a catalogue that fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.cli import output
from tests.support.fits_frames import SWATHE, ProgramRun, Runner

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
SURVEY = {
    "name": "survey",
    "url": "https://archive.example/dr17",
    "tier": "lan",
    "options": {},
    "over": [],
}


Run = Callable[..., ProgramRun]


@pytest.fixture
def run(run: Runner) -> Run:
    """Runs `swathe store` with words of one text, and more words."""
    return lambda words, *more: run.ran("store", *words.split(), *more)


def test_add_list_show_remove(run: Run) -> None:
    assert run("list --json").json == {"stores": []}
    assert run("add survey https://Archive.example/dr17/ --json").json == SURVEY
    options = "--option anonymous=True --option endpoint=http://host:9000/"
    kept = {"anonymous": "true", "endpoint": "http://host:9000"}
    lake = {"name": "lake", "url": "s3://bucket/x", "tier": "wan", "options": kept, "over": []}
    assert run(f"add lake s3://bucket/x --tier wan {options} --json").json == lake
    assert run("list --json").json == {"stores": [lake, SURVEY]}
    nothing = {"host": this_host(), "probed_at": None, "profile": None, "usage": None}
    assert run("show survey --json").json == SURVEY | nothing
    assert run("remove lake --json").json == {"removed": "lake"}
    assert run("list --json").json == {"stores": [SURVEY]}


@pytest.mark.more
@pytest.mark.parametrize("output", ["disk:c.fits", "disk:c", "s3://bucket/c.fits"])
def test_results_are_not_written_into_stores(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run("add disk", str(tmp_path))
    (tmp_path / "t.csv").write_text("file,x0,y0,width,height\na.fits,1,1,5,5\n")
    one = ["cut", str(tmp_path / "a.fits"), "--box", "1", "1", "5", "5"]
    for command in (one, ["cut", "--targets", str(tmp_path / "t.csv")]):
        ran = subprocess.run([SWATHE, *command, "-o", output], capture_output=True, text=True)
        assert ran.returncode == 6
        assert "expected a local file or folder, found a" in ran.stderr
    assert list(folder.iterdir()) == []


def test_what_people_read(run: Run, tmp_path: Path) -> None:
    said = run("list")
    assert (said.code, said.out) == (0, "")
    assert said.err == "no stores yet; add one: swathe store add NAME URL\n"
    folder = tmp_path / "a [bold]b" / ("long" * 30)
    url = f"file://{tmp_path}/a%20%5Bbold%5Db/{'long' * 30}"
    assert run("add disk", str(folder)).out == f"disk: {url} (local)\n"
    run("add lake s3://bucket --option profile=work --option", "token_file=/run/[red]token")
    lines = [line.split() for line in run("list").out.splitlines()]
    assert lines == [
        ["name", "tier", "url", "options"],
        ["disk", "local", url],
        ["lake", "lan", "s3://bucket", "profile=work", "token_file=/run/[red]token"],
    ]
    assert run("show lake").out.splitlines() == [
        "lake: s3://bucket (lan)",
        "  options: profile=work token_file=/run/[red]token",
        f"  probed from {this_host()}: never",
    ]
    assert run("remove lake").out == "lake: removed\n"


def test_show_tells_the_latest_profile_of_this_host(run: Run) -> None:
    run("add survey https://archive.example/dr17")
    costs = {
        "connect_s": 0.0561234567,
        "request": [[0, 0.02], [1_000_000, 0.1]],
        "total_bytes_per_s": 2.833e10,
        "requests_per_s": 5123.4,
        "streams": 8,
        "buffer_bytes": None,
        "served_bytes_per_s": 2.4e9,
        "multi_range": {
            "ranges": 200,
            "header_bytes": 7000,
            "range_s": 5e-6,
            "part_bytes": 110,
            "gap_bytes": 0,
        },
    }
    # Parts of the values: no seconds, no MB/s.
    spread = {"connect_s": 0.001, "total_bytes_per_s": 0.17, "model": 0.2}
    with Catalog.open() as catalog:
        root = catalog.store("survey").url
        catalog.add_probe(root, this_host(), {}, 3, 4, at=NOON)
        catalog.put_profile(root, this_host(), {}, {}, NOON - timedelta(1))
        catalog.put_profile(root, this_host(), costs, spread, NOON)
        catalog.put_profile(root, "elsewhere", {"latency_s": 9}, {}, NOON + timedelta(1))
    said = run("show survey --json").json
    assert said["probed_at"] == NOON.isoformat()
    assert said["profile"] == {"costs": costs, "spread": spread, "fitted_at": NOON.isoformat()}
    assert run("show survey").out.splitlines() == [
        "survey: https://archive.example/dr17 (lan)",
        f"  probed from {this_host()}: 2026-03-20 12:00:00 UTC",
        "  profile, fitted 2026-03-20 12:00:00 UTC:",
        "    connect_s 56.1 ms ± 0.1%",
        "    request 20 ms, one stream 12.5 MB/s",
        "    total_bytes_per_s 28.3 GB/s ± 17.0%",
        "    requests_per_s 5,123",
        "    streams 8",
        "    served_bytes_per_s 2.4 GB/s",
        "    multi_range up to 200 in a request, 5 µs and 110 bytes for each",
        "    model measured over predicted ± 20.0%",
    ]


def test_folders_are_named_from_the_root(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "survey").mkdir()
    monkeypatch.chdir(tmp_path)
    added = run("add near survey")
    assert (added.code, added.out, added.err) == (
        0,
        f"near: file://{tmp_path}/survey (local)\n",
        "",
    )
    assert "no such folder on this machine" in run("add gone nothing").err


@pytest.mark.parametrize(
    ("words", "code", "kind", "said"),
    [
        ("show nope", 2, "NoSuchStoreError", "no store 'nope'"),
        ("remove nope", 2, "NoSuchStoreError", "no store 'nope'"),
        ("add s3 /data", 2, "StoreSettingsError", "URL scheme"),
        ("add there /data", 2, "StoreSettingsError", "already"),
        ("add here /data --option colour=red", 2, "StoreSettingsError", "endpoint"),
        ("add here https://u:hush@host", 2, "StoreSettingsError", "BEARER_TOKEN_FILE"),
        ("add here https://host/?sig=hush", 2, "StoreSettingsError", "BEARER_TOKEN_FILE"),
        ("add here s3://b --option secret_key=hush", 2, "StoreSettingsError", "AWS profile"),
    ],
)
def test_errors_are_one_line(words: str, code: int, kind: str, said: str, run: Run) -> None:
    run("add there /data")
    ran = run(words, "--json")
    assert ran.code == code
    assert len(ran.err.splitlines()) == 1
    assert said in ran.err
    assert "hush" not in ran.err + ran.out
    error = json.loads(ran.out)
    assert (error["exit_code"], error["kind"]) == (code, kind)
    assert hasattr(swathe.errors, kind)
    assert [store["name"] for store in run("list --json").json["stores"]] == ["there"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("add here", "url"),
        ("add here /data --option hush", "expected NAME=VALUE"),
        (
            "add here /data --option region=a --option region=b",
            "region: expected once, found twice",
        ),
        ("nonsense", "nonsense"),
        ("", "Usage"),
    ],
)
def test_usage(words: str, said: str, run: Run) -> None:
    ran = run(words)
    assert ran.code == 2
    assert said in (ran.err + ran.out).replace("URL", "url")
    assert "hush" not in ran.err + ran.out
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///FOLDER/text", "text: file is not a database"),
        ("postgresql+psycopg://user:hush@127.0.0.1:1/name", "Connection refused"),
        ("nonsense", "cannot be read"),
    ],
)
@pytest.mark.parametrize("words", ["list", "show survey", "add survey /data", "remove survey"])
def test_catalogue_that_fails_exits_7(
    words: str, url: str, said: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no database\n" * 200)
    monkeypatch.setenv("SWATHE_DATABASE", url.replace("FOLDER", str(tmp_path)))
    ran = run(words, "--json")
    assert ran.code == 7
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "hush" not in ran.err + ran.out
    assert json.loads(ran.out)["kind"] == "CatalogError"


@pytest.mark.more
def test_installed_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")

    def swathe_store(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(SWATHE), "store", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert swathe_store("add", "survey", "/data").returncode == 0
    assert swathe_store("show", "other").returncode == 2
    shown = swathe_store("--help")
    assert shown.returncode == 0
    for command in ("add", "list", "show", "remove"):
        assert re.search(rf"^  {command} ", shown.stdout, re.MULTILINE)
    options = swathe_store("add", "--help").stdout
    assert all(option in options for option in ("--tier", "--option", "--json"))


def test_help_loads_no_database() -> None:
    code = (
        "import sys; sys.argv = ['swathe', '--help']\n"
        "from swathe.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'sqlalchemy', 'alembic', 'numpy', 'astropy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_wait_is_reported_once_and_only_for_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[str] = []
    is_reported, is_checked = Event(), Event()

    def echo(text: str, *, err: bool) -> None:
        reports.append(text)
        is_reported.set()

    monkeypatch.setattr(output, "REPORT_AFTER_S", 0.001)
    monkeypatch.setattr("typer.echo", echo)
    checks = iter([False, False, True])
    with output.report_wait("the catalogue", lambda: next(checks)):
        assert is_reported.wait(60)
    assert len(reports) == 1 and reports[0].startswith("waiting for the catalogue: ")

    results = iter([False] * 5)

    def is_locked() -> bool:
        state = next(results, None)
        if state is None:
            is_checked.set()
        return False

    with output.report_wait("the catalogue", is_locked):
        assert is_checked.wait(60)
    assert len(reports) == 1
