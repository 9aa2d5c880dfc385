"""Callbacks of executions: what servers of clients get, also after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from swathe.catalog.tables import JobCallbackRow, JobTable
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.processes.callbacks import PAUSES_S, Callbacks
from tests.portal.test_processes import ASYNC, ONE, Client, problem
from tests.support.catalogs import new_catalog
from tests.support.webhook_receiver import Receiver, receiving

URL = "https://archive.example"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


class Restarting:
    """A portal that is begun anew on the same catalogue."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._settings: dict[str, Any] = {
            "catalog": {"database": new_catalog(folder / "c.sqlite")},
            "results": {"folder": str(folder / "results")},
            "server": {"url": URL},
            "access": {"webhooks": ["127.0.0.1"], "hosts": []},
        }
        (folder / "survey").mkdir()
        self.start()
        self.portal.catalog.add_store("survey", str(folder / "survey"))

    def start(self) -> None:
        self._stack.close()
        self.portal = self._stack.enter_context(open_portal(config_of(self._settings)))
        self.ask = Client(make_app(self.portal), {})

    def deliver(self) -> None:
        """Send all that is due, as a thread of the portal does."""
        callbacks = Callbacks(self.portal)
        while callbacks.deliver():
            pass

    def set(self, table: Any, **values: Any) -> None:
        with self.portal.catalog._writing() as session:
            session.execute(update(table).values(values))

    def execute(self, process: str, inputs: Any, **subscriber: str) -> Any:
        body = {"inputs": inputs, "subscriber": subscriber}
        headers = {**ASYNC, "Host": "archive.example"}
        answer = self.ask("POST", f"/processes/{process}/execution", body, **headers)
        assert answer.status_code == 201, answer.text
        return answer.json()


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[Restarting]:
    with ExitStack() as stack:
        yield Restarting(tmp_path, stack)


def urls(receiver: Receiver) -> dict[str, str]:
    names = ("successUri", "inProgressUri", "failedUri")
    return {name: f"{receiver.url}?{name}" for name in names}


def received(receiver: Receiver) -> list[tuple[str, Any]]:
    names = [path.partition("?")[2] for path in receiver.paths]
    return [(name, json.loads(body)) for name, (_, body) in zip(names, receiver.got, strict=True)]


def test_results_are_sent_once_also_after_a_restart(
    restarting: Restarting, receiver: Receiver
) -> None:
    receiver.statuses = [503]
    restarting.execute("echo", {"stringInput": "a"}, **urls(receiver))
    restarting.deliver()
    restarting.start()
    restarting.deliver()
    assert len(receiver.got) == 1  # the next try is later
    restarting.set(JobCallbackRow, due_at=datetime.now(UTC))
    restarting.deliver()
    restarting.deliver()
    assert received(receiver) == [("successUri", {"stringOutput": "a"})] * 2
    assert receiver.got[0][0]["content-type"] == "application/json"


def test_a_job_tells_that_it_runs_and_that_it_was_dismissed(
    restarting: Restarting, receiver: Receiver
) -> None:
    job = restarting.execute("cut", {"targets": ONE}, **urls(receiver))["jobID"]
    restarting.deliver()
    assert receiver.got == []
    restarting.set(JobTable, phase="EXECUTING")
    restarting.deliver()
    restarting.deliver()
    restarting.portal.jobs.cancel(job)
    restarting.deliver()
    (first, running), (second, dismissed) = received(receiver)
    assert (first, running["status"], running["jobID"]) == ("inProgressUri", "running", job)
    assert (second, dismissed["status"]) == ("failedUri", "dismissed")
    assert dismissed["links"][0]["href"] == f"{URL}/ogc/jobs/{job}"


def test_a_callback_that_fails_ends_with_a_note(restarting: Restarting, receiver: Receiver) -> None:
    receiver.statuses = [500] * 100
    job = restarting.execute("echo", {}, successUri=receiver.url)["jobID"]
    for _ in range(len(PAUSES_S) + 3):
        restarting.set(JobCallbackRow, due_at=datetime.now(UTC))
        restarting.deliver()
    assert len(receiver.got) == len(PAUSES_S) + 1
    (note,) = restarting.portal.jobs.job(job).notes
    assert receiver.url in note and "found 500" in note


def test_a_server_that_is_not_public_gets_nothing(
    restarting: Restarting, receiver: Receiver
) -> None:
    url = receiver.url.replace("127.0.0.1", "localhost")
    restarting.execute("echo", {}, successUri=url)
    restarting.deliver()
    assert receiver.got == []


@pytest.mark.parametrize(
    ("subscriber", "text"),
    [
        ([], "subscriber: expected an object"),
        ({}, "expected successUri, found none"),
        ({"failedUri": "https://a.example/"}, "expected successUri, found none"),
        ({"successUri": "file:///etc/passwd"}, "subscriber.successUri: expected http"),
        ({"successUri": 3}, "subscriber.successUri: expected http"),
        ({"successUri": "https://a.example/", "inProgressUri": "x"}, "subscriber.inProgressUri"),
        ({"successUri": "https://a.example/", "other": "x"}, "found 'other'"),
    ],
)
def test_bad_subscribers_are_problems(restarting: Restarting, subscriber: Any, text: str) -> None:
    body = {"inputs": {}, "subscriber": subscriber}
    answer = restarting.ask.echo(body, Host="archive.example")
    assert text in problem(answer, 400)
