"""Runs in the portal: their interface and pages, without a browser."""

from __future__ import annotations

import asyncio
import html
import io
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import swathe
from swathe import trace
from swathe.catalog import Catalog
from swathe.cli.app import app as command_line
from swathe.core.errors import SettingsError
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.run_requests import MOST_ARRAYS, MOST_BYTES
from swathe.trace.viewer.event_parts import job_events
from tests.support.catalogs import new_catalog
from tests.support.portals import wait_until

RUN = """
name = "astro3d"
iterations = 12
ranks = 2
[arrays.temp]
shape = [64, 64, 64]
every = 6
location = "near"
[arrays."vr.temp"]
shape = [16, 16]
dtype = "u1"
location = ["auto", "near"]
purpose = "visualise"
within_s = 1e6
"""
SHAPE = (6, 7, 8)
Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A catalogue with two stores and a run in them; stubs of Slurm are in `bin`."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "bin").mkdir()
    sbatch = folder / "bin" / "sbatch"
    sbatch.write_text(f"#!/bin/sh\ncat > {folder}/script; echo 4711\n")
    sbatch.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", new_catalog(folder / "catalog.sqlite"))
        patch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        with Catalog.open() as catalog:
            catalog.add_store("near", str(folder / "near"), "local")
            catalog.add_store("gone", str(folder / "gone"), "local")
        with swathe.run("app", iterations=4) as run:
            temp = run.array("temp", SHAPE, "f4", every=2, location="near")
            last = run.array("last", SHAPE, "u1", location="gone", mode="overwrite")
            for at in range(5):
                temp.write(at, np.arange(336, dtype="f4").reshape(SHAPE) + at)
                last.write(at, np.full(SHAPE, at, "u1"))
        yield folder


@pytest.fixture(scope="module")
def ask(folder: Path) -> Iterator[Ask]:
    """Asks a portal in this process that allows runs to be submitted."""
    runs = {"submit": True, "folder": str(folder), "commands": ["srun app {settings}"]}
    settings = {"results": {"folder": str(folder / "results")}, "runs": runs}
    with open_portal(config_of(settings)) as portal:
        transport = httpx.ASGITransport(make_app(portal))

        def ask(method: str, path: str, **more: Any) -> httpx.Response:
            async def once() -> httpx.Response:
                base = "http://localhost"
                async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                    return await client.request(method, path, **more)

            return asyncio.run(once())

        yield ask


class Fields(HTMLParser):
    """The fields of the form, what its cells say, and which fields are wrong."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.wrong: list[str] = []
        self._select = ""
        self.feed(page.partition('id="form"')[2])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name = values.get("name") or ""
        if "aria-invalid" in values:
            self.wrong.append(name)
        if tag == "input":
            self.fields[name] = values.get("value") or ""
        if tag == "select":
            self._select = name

    def handle_data(self, data: str) -> None:
        if self._select and self.rawdata[: self.rawdata.find(data)].endswith("selected>"):
            self.fields[self._select] = data


def part(page: str, name: str) -> str:
    """Return the text of an element by its id."""
    match = re.search(rf'id="{name}"[^>]*>([^<]*)', page)
    assert match is not None, name
    return match[1]


def sent(ask: Ask, action: str, **fields: str) -> httpx.Response:
    form = {"do": action, **fields}
    return ask("POST", "/runs/new", files={key: (None, value) for key, value in form.items()})


@pytest.fixture(scope="module")
def fields(ask: Ask) -> dict[str, str]:
    """The fields of the form of `RUN`."""
    answer = sent(ask, "read", paste=RUN)
    assert answer.status_code == 200, answer.text
    fields = Fields(answer.text).fields
    assert (fields["a0-shape"], fields["a1-location"], fields["a1-mode"]) == (
        "64, 64, 64", "auto, near", "create",
    )  # fmt: skip
    return fields


def test_page_interface_and_command_say_the_same(
    ask: Ask, folder: Path, fields: dict[str, str]
) -> None:
    (folder / "run.toml").write_text(RUN)
    words = ["run", "predict", str(folder / "run.toml")]
    told = CliRunner().invoke(command_line, [*words, "--json"], catch_exceptions=False).stdout
    said = json.loads(told)
    for content, kind in (
        (RUN, "application/toml"),
        (json.dumps(tomllib.loads(RUN)), "application/json"),
    ):
        answer = ask("POST", "/api/runs/predict", content=content, headers={"Content-Type": kind})
        found = answer.json()
        reasons = found.pop("reasons")
        assert found == said
        assert reasons["temp"] == "near, as its location says: near"
    table = CliRunner().invoke(command_line, words, catch_exceptions=False).stdout
    page = sent(ask, "predict", **fields).text
    for at, row in enumerate(said["arrays"]):
        assert part(page, f"a{at}-seconds") == f"{row['seconds']:.6g}"
        assert part(page, f"a{at}-seconds") in table
    total = re.search(r"^total (.*?) \(", table, re.MULTILINE)
    assert total is not None
    assert part(page, "total").replace("\N{NARROW NO-BREAK SPACE}", " ") == total[1]


def test_a_change_changes_the_prediction(ask: Ask, fields: dict[str, str]) -> None:
    before = sent(ask, "predict", **fields).text
    after = sent(ask, "predict", **{**fields, "a0-every": "3"}).text
    assert (part(before, "a0-dumps"), part(after, "a0-dumps")) == ("3", "5")
    assert float(part(after, "a0-seconds")) > float(part(before, "a0-seconds"))
    assert part(after, "a1-seconds") == part(before, "a1-seconds")
    off = sent(ask, "predict", **{**fields, "a0-location": "disable"}).text
    assert (part(off, "a0-dumps"), part(off, "a0-store")) == ("0", "disable")


def test_lifelines_of_a_run_are_its_own(ask: Ask, folder: Path) -> None:
    path = "/runs/app@1/trace"
    assert ask("GET", path).status_code == 404, "nothing is recorded"
    assert "records no trace" in ask("GET", "/runs/app").text
    with trace.recording(folder / "trace.ulm"):
        assert ask("GET", path).status_code == 200, "nothing is recorded yet"
        for job, name, reason in (
            ("app@1", "near:mine", "/secret/1"),
            ("app@10", "near:other", ""),
        ):
            fields = {"object": name, "result": "error", "reason": reason}
            trace.point("WRITE_END", job=job, **fields)
        page = ask("GET", "/runs/app").text
        assert html.unescape(page).count('"source": "/runs/app%401/trace"') == 1
        wait_until(lambda: b"near:mine" in ask("GET", path).content)
        own = ask("GET", path)
        assert b"near:other" not in own.content
        version = own.headers["x-version"]
        assert ask("GET", path, params={"seen": version}).status_code == 204
        trace.point("WRITE_END", job="app@10", object="near:other")
        assert ask("GET", path, params={"seen": version}).status_code == 204
        trace.point("WRITE_START", job="app@1", object="near:late")
        wait_until(lambda: b"near:late" in ask("GET", path, params={"seen": version}).content)
        assert ask("GET", "/runs/none/trace").status_code == 404
        events = swathe.trace.read(folder / "trace.ulm")
        for has_reasons in (True, False):
            kept = job_events(events, "app@1", has_reasons=has_reasons).fields
            assert ("REASON" in kept) == has_reasons


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("a0-every", "6x", "arrays.temp.every: expected a whole number, found"),
        ("a0-shape", "64, 0", "arrays.temp.shape: expected at least 1, found 0"),
        ("a1-location", "nowhere", "arrays.vr.temp.location: expected a store"),
        ("a1-pattern", "BBB", "arrays.vr.temp.pattern: expected a letter for each axis"),
        ("a0-shape", "1000000000, 1000, 100", "arrays.temp: expected room for"),
        ("ranks", "0", "run.ranks: expected at least 1, found"),
    ],
)
def test_an_error_is_at_its_field(
    ask: Ask, fields: dict[str, str], key: str, value: str, text: str
) -> None:
    for action, status in (("predict", 200), ("submit", 422), ("script", 422)):
        answer = sent(ask, action, **{**fields, key: value})
        assert answer.status_code == status
    shown = Fields(answer.text)
    assert shown.fields[key] == value, "what was typed is there"
    field = "a0-location" if "room" in text else key
    assert shown.wrong == [field]
    assert text.partition(": ")[2] in part(answer.text, f"{field}-fault")


def test_problems_name_array_and_setting(ask: Ask) -> None:
    def problem(content: str, kind: str = "application/toml") -> dict[str, Any]:
        answer = ask("POST", "/api/runs/predict", content=content, headers={"Content-Type": kind})
        assert answer.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = answer.json()
        assert answer.status_code == found["status"] == 422
        assert found["detail"] == found["error"]
        return found

    wrong = problem(RUN.replace('"u1"', '"O"'))
    assert (wrong["array"], wrong["setting"], wrong["kind"]) == (
        "vr.temp",
        "dtype",
        "SettingsError",
    )
    wrong = problem(RUN.replace("purpose", "purpos"))
    assert (wrong["array"], wrong["setting"]) == ("vr.temp", "purpos")
    wrong = problem(RUN.replace("within_s = 1e6", "within_s = 1e-9"))
    assert (wrong["setting"], wrong["kind"]) == ("within_s", "LimitError")
    assert problem(RUN.replace("= 12", "= -1"))["setting"] == "iterations"
    many = {f"a{at}": {"shape": [1]} for at in range(MOST_ARRAYS + 1)}
    body = json.dumps({"name": "a", "iterations": 1, "arrays": many})
    assert problem(body, "application/json")["setting"] == "arrays"
    for content in ("[" * 100_000, '{"a": ' * 100_000, "x" * (MOST_BYTES + 1), "[1]"):
        problem(content, "application/json")
    problem("a" + ".a" * 100_000 + " = 1")
    problem(RUN, "image/png")
    for hostile in ("(" * 900 + "2)f4", "f4," * 300, "B" * 900):
        problem(RUN.replace('"u1"', f'"{hostile}"'))
    assert "1000 characters" in problem(RUN.replace('"u1"', f'"{"(" * 2000}"'))["error"]


def test_settings_and_script_are_downloads(ask: Ask, fields: dict[str, str]) -> None:
    changed = {**fields, "a0-every": "4", "a0-location": "gone, near", "compute_s": "2.5"}
    run = tomllib.loads(sent(ask, "settings", **changed).text)
    assert run["arrays"]["temp"]["every"] == 4
    assert run["arrays"]["temp"]["location"] == ["gone", "near"]
    assert run["arrays"]["vr.temp"]["purpose"] == "visualise", "what has no field stays"
    answer = sent(ask, "script", **{**changed, "command": "srun python 'a b.py'"})
    assert answer.headers["content-disposition"] == 'attachment; filename="run.sh"'
    script = swathe.runs.submit(run, ["srun", "python", "a b.py"], dry_run=True).script
    assert answer.text == script
    without = sent(ask, "script", **fields)
    assert without.status_code == 422
    assert "expected the seconds" in part(without.text, "compute_s-fault")


def test_a_run_is_submitted_with_a_command_of_the_operator(
    ask: Ask, folder: Path, fields: dict[str, str]
) -> None:
    ready = {**fields, "compute_s": "2.5", "a0-every": "4"}
    assert sent(ask, "submit", **{**ready, "choice": "1"}).status_code == 422
    answer = sent(ask, "submit", **{**ready, "choice": "0", "command": "rm -r /"})
    assert answer.headers["location"] == "/runs?job=4711"
    assert "Slurm has job 4711" in ask("GET", "/runs?job=4711").text
    (line,) = re.findall(r"^exec srun app (\S+)$", (folder / "script").read_text(), re.MULTILINE)
    assert f"#SBATCH --chdir={folder}\n" in (folder / "script").read_text()
    assert tomllib.loads(Path(line).read_text())["arrays"]["temp"]["every"] == 4


def test_submission_is_off_by_default_and_needs_its_settings() -> None:
    assert not config_of({}).runs.submit
    for runs in ({"commands": ["srun a"]}, {"folder": "/tmp"}):
        with pytest.raises(SettingsError, match=r"runs\.(folder|commands): is missing"):
            config_of({"runs": {"submit": True, **runs}})
    with pytest.raises(SettingsError, match=r"runs\.commands: expected a program"):
        config_of({"runs": {"commands": ["srun 'a"]}})


def test_a_run_says_what_was_written(ask: Ask) -> None:
    assert [run["label"] for run in ask("GET", "/api/runs?name=app").json()["runs"]] == ["app@1"]
    found = ask("GET", "/api/runs/app").json()
    assert (found["label"], found["state"]) == ("app@1", "complete")
    temp, last = found["arrays"]
    assert (temp["dumps"], temp["planned_dumps"], temp["stores"]) == (3, 3, {"near": 3})
    assert (temp["bytes"], temp["last"], last["last"]) == (3 * 336 * 4, 4, 4)
    assert temp["seconds"] > 0 and temp["predicted_s"] > 0
    assert not {"pid", "folder", "id"} & set(found)
    for address in ("/runs", "/runs/app@1", "/runs/app@1/arrays/temp?iteration=2&after=0"):
        assert ask("GET", address).status_code == 200, address
    assert "no run" in ask("GET", "/runs/none@1").text
    for label in ("none", "app@2", "a\0b", "app@x"):
        assert ask("GET", f"/api/runs/{quote(label)}").status_code == 404, label
    assert ask("GET", "/runs/app@1/arrays/none").status_code == 404


def test_sections_are_those_of_the_run(ask: Ask) -> None:
    expected = np.arange(336, dtype="f4").reshape(SHAPE) + 2
    path = "/api/runs/app@1/temp/2/section"
    for index, where in (("3,:,:", np.s_[3]), ("-1,2:5,0", np.s_[-1, 2:5, 0]), ("", np.s_[3])):
        answer = ask("GET", f"{path}.npy", params={"index": index})
        np.testing.assert_array_equal(np.load(io.BytesIO(answer.content)), expected[where])
    picture = ask("GET", f"{path}.png", params={"index": ":,2,:", "size": 64})
    grey = np.asarray(Image.open(io.BytesIO(picture.content)))
    assert grey.shape == (48, 64)
    assert grey[-1, 0] < grey[0, -1], "the first axis is upwards"
    again = ask(
        "GET", f"{path}.png", params={"index": ":,2,:", "size": 64},
        headers={"If-None-Match": picture.headers["etag"]},
    )  # fmt: skip
    assert again.status_code == 304
    for index, status in (("1,2", 422), ("9,:,:", 422), ("x,:,:", 422), (":,:,:", 422)):
        assert ask("GET", f"{path}.png", params={"index": index}).status_code == status, index
    assert ask("GET", "/api/runs/app@1/temp/3/section.npy").status_code == 404


def test_a_run_whose_folder_leads_elsewhere_is_not_shown(ask: Ask, folder: Path) -> None:
    with Catalog.open() as catalog:
        (record,) = catalog.runs("app")
    inside, outside = folder / "near" / "runs" / record.folder, folder / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    try:
        for address in ("/api/runs/app@1", "/api/runs/app@1/temp/2/section.npy", "/runs/app@1"):
            assert ask("GET", address).status_code == 403, address
        assert ask("GET", "/runs/new?run=app@1").status_code == 403
    finally:
        inside.unlink()
        outside.rename(inside)
