"""Granules come, are replaced and go while portal, workers and launchers are killed at random.

    python benches/subscription_kills.py [--smoke] [--granules 10000] [--minutes 30] [--kills 50]

A portal with a pool of two workers runs a subscribed algorithm on each granule. Granules are
registered, replaced, withdrawn and brought back in random order. Again and again the portal, a
worker or a launcher of the sandbox is ended by SIGKILL, and started again.

What must have run follows from the log of what was registered. A version runs exactly once if the
portal had the time to see it: so in three of four batches the next changes wait until all groups
were submitted. In the others a version that is replaced or withdrawn at once may be missing, but
not there twice. A run whose granule is gone may have failed. A result that is there has the
content of the version that its run names.
"""

from __future__ import annotations

import io
import os
import random
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from astropy.io import fits

import swathe
from harness import options, save, work_folder
from order_kills import RESUMES, SECONDS, WORKERS, Archive
from swathe.catalog import Catalog
from swathe.datasets.named_datasets import update
from tests.support.portals import database_in

SOURCE = """\
# /// script
# [tool.swathe.algorithm]
# name = "copy"
# version = "1"
# inputs.images = {}
# outputs.table = {media_type = "text/csv"}
# resources = {wall = "60 s", output = "1 MB", memory = "200 MB"}
# ///
def run(images, table):
    with open(images[0], "rb") as file:
        value = int.from_bytes(file.read()[2880:2884], "big")
    table.write_text(f"{images[0].id} {value}")
"""
DATASET = "nights"
SHARES = {"register": 70, "replace": 18, "withdraw": 8, "return": 4}
"""How often each change is, in percent."""
SETTLED = 0.75
"""Part of the batches after which all groups are submitted before the next changes."""
BATCH = 100
MOST_JOBS = 4
"""Jobs at work for which the next changes wait: a user may have 20."""
KILL_S = 80.0
"""Longest time between two kills."""
PAGE = 1000

Version = tuple[str, str]
"""A granule, and its version."""


@dataclass
class Log:
    """What was registered.

    Attributes:
        values: pixel of each version.
        requirements: versions that the portal had the time to see.
        present: version of each granule that is there.
        changes: number of changes of each kind.
    """

    values: dict[Version, int] = field(default_factory=dict)
    requirements: set[Version] = field(default_factory=set)
    present: dict[str, str] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)


class Granules:
    """The files of a dataset, which change in batches."""

    def __init__(self, folder: Path, catalog: Catalog, rng: random.Random) -> None:
        """Begin without any."""
        self.folder, self.catalog, self.rng = folder, catalog, rng
        self.away = folder / "away"
        self.away.mkdir()
        self.log = Log()
        self._here: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._registered = self._value = 0

    def change(self, granules: int) -> None:
        """Change some, of as many as are to be registered in all, and update the dataset."""
        batch: set[str] = set()
        for kind in self.rng.choices(list(SHARES), list(SHARES.values()), k=BATCH):
            if self._registered < granules:
                self._change(kind, batch)
        dataset = self.catalog.dataset(DATASET)
        report = update(self.catalog, dataset)
        if report.faults:
            raise RuntimeError(f"{DATASET}: expected granules that can be read: {report.faults}")
        replicas = self.catalog.replicas(DATASET, "images")
        present = {
            each.path: each.version
            for each in replicas
            if each.state == "ok" and each.version is not None
        }
        if present.keys() != self._here.keys():
            raise RuntimeError(f"expected {len(self._here)} granules, found {len(present)}")
        self.log.present = present
        for name, version in present.items():
            value = self.log.values.setdefault((name, version), self._here[name])
            if value != self._here[name]:
                raise RuntimeError(f"{name}: expected another version with {self._here[name]}")

    def _change(self, kind: str, batch: set[str]) -> None:
        """Change a granule that is not in this batch, if there is one."""
        names = self._gone if kind == "return" else self._here
        name = f"g{self._registered:06}.fits"
        if kind == "register":
            self._registered += 1
        else:
            name = self.rng.choice(list(names) or [name])
            if name not in names or name in batch:
                return
        batch.add(name)
        self.log.changes[kind] += 1
        if kind in ("register", "replace"):
            self._value += 1
            self._here[name] = self._value
            self._write(name)
        elif kind == "withdraw":
            self._gone[name] = self._here.pop(name)
            (self.folder / "images" / name).rename(self.away / name)
        else:
            self._here[name] = self._gone.pop(name)
            (self.away / name).rename(self.folder / "images" / name)

    def _write(self, name: str) -> None:
        """Write an image as an archive does: under another name first."""
        path = self.away / f"{name}.part"
        fits.PrimaryHDU(np.array([[self._value]], "i4")).writeto(path)
        path.rename(self.folder / "images" / name)


@dataclass
class Run:
    """A run of the subscription.

    Attributes:
        granules: its granules, with their versions.
        job: id of its job.
        file: name of its result; empty if there is none.
        reason: why it failed.
    """

    granules: list[Version]
    job: str
    file: str = ""
    reason: str = ""


class Feed:
    """What the feed of a subscription has said."""

    def __init__(self, catalog: Catalog, subscription: str) -> None:
        """Begin at the first event."""
        self.catalog, self.subscription = catalog, subscription
        self.runs: dict[tuple[str, int], Run] = {}
        self.kinds: Counter[str] = Counter()
        self._last = 0

    def read(self) -> None:
        """Read all that has come, without a gap.

        Raises:
            RuntimeError: If an event is missing, or one says that nothing runs any more.
        """
        while events := self.catalog.subscription_events(self.subscription, self._last, PAGE):
            for event in events:
                if event.number != self._last + 1 or event.kind.startswith("subscription."):
                    raise RuntimeError(f"event {self._last + 1}: expected it, found {event}")
                self._last = event.number
                self.kinds[event.kind] += 1
                self._take(event.kind, event.content)

    def _take(self, kind: str, content: dict[str, Any]) -> None:
        key = content["group"], content.get("version", 0)
        if kind == "run.submitted":
            members = [(each["granule"], each["object_version"]) for each in content["granules"]]
            if key in self.runs:
                raise RuntimeError(f"{key}: expected one run, found two")
            self.runs[key] = Run(members, content["job"])
        elif kind in ("run.done", "run.failed"):
            self.runs[key].file = content.get("file", "")
            self.runs[key].reason = content.get("reason", "")


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    """Wait for a condition.

    Raises:
        RuntimeError: If it does not hold in time.
    """
    until = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"expected {what} in {SECONDS:g} s")
        time.sleep(0.1)


def is_submitted(catalog: Catalog) -> bool:
    """Check whether all changes were matched, and all groups were submitted."""
    return not catalog.has_changes() and catalog.due_groups() is None


def kill_at_random(
    archive: Archive, plan: list[str], rng: random.Random, most_s: float, end: threading.Event
) -> Counter[str]:
    """Kill what a plan says, one after another, until the end; return how many of each."""
    kills: Counter[str] = Counter()
    for what in plan:
        if end.wait(rng.uniform(0.2, most_s)):
            break
        archive.kill(what, rng)
        kills[what] += 1
        print(f"{what} killed", file=sys.stderr, flush=True)
    return kills


def resume_failed(archive: Archive, catalog: Catalog, feed: Feed, log: Log) -> None:
    """Resume jobs while a granule that is there has a run that failed.

    Raises:
        RuntimeError: If it fails again and again.
    """
    for _ in range(RESUMES):
        wait_until("the end of all runs", lambda: not catalog.jobs_of_runs())
        feed.read()
        failures = [
            run
            for run in feed.runs.values()
            if not run.file and all(log.present.get(name) == of for name, of in run.granules)
        ]
        if not failures:
            return
        with swathe.connect(archive.portal.url) as portal:
            for job in sorted({run.job for run in failures}):
                portal.job(job).resume()
    raise RuntimeError(f"expected runs to succeed after {RESUMES} tries, found {failures[:5]}")


def compare(feed: Feed, log: Log, results: Path) -> dict[str, int]:
    """Compare the runs with what the log says, and return how many there are.

    Raises:
        RuntimeError: If a run is missing, there twice, of another version, or has another content.
    """
    runs = Counter(version for run in feed.runs.values() for version in run.granules)
    problems = [f"{each}: {count} runs" for each, count in runs.items() if count != 1]
    problems += [f"{each}: never registered" for each in runs.keys() - log.values.keys()]
    problems += [f"{each}: no run" for each in log.requirements - runs.keys()]
    archives = {path for path in results.rglob("*.zip") if path.is_file()}
    for run in feed.runs.values():
        ((name, version),) = run.granules
        if not run.file:
            if log.present.get(name) == version:
                problems.append(f"{name}: failed: {run.reason}")
            continue
        paths = [results / run.job / part / run.file for part in os.listdir(results / run.job)]
        files = [path for path in paths if path in archives]
        archives -= set(files)
        values = [value_of(path) for path in files]
        if values != [log.values[name, version]]:
            problems.append(f"{name}: expected {log.values[name, version]}, found {values}")
    problems += [f"{path}: a result of no run" for path in sorted(archives)]
    if problems:
        raise RuntimeError(f"{len(problems)} problems, the first: " + "; ".join(problems[:10]))
    done = sum(1 for run in feed.runs.values() if run.file)
    return {"versions": len(log.values), "required": len(log.requirements), "runs": len(feed.runs),
            "done": done, "failed": len(feed.runs) - done}  # fmt: skip


def value_of(path: Path) -> int:
    """Return the pixel that a result has."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return int(archive.read("table.csv").split()[1])


def change_and_kill(
    archive: Archive,
    granules: Granules,
    feed: Feed,
    count: int,
    minutes: float,
    plan: list[str],
) -> Counter[str]:
    """Change granules batch after batch while kills go on; return the kills of each kind."""
    until = time.monotonic() + 60 * minutes
    catalog, log, rng = granules.catalog, granules.log, granules.rng
    end = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        most_s = KILL_S if len(plan) > 3 else 2.0
        other = random.Random(rng.random())
        kills: Future[Counter[str]]
        kills = threads.submit(kill_at_random, archive, plan, other, most_s, end)
        try:
            while log.changes["register"] < count and time.monotonic() < until:
                granules.change(count)
                if rng.random() < SETTLED:
                    wait_until("all groups to be submitted", lambda: is_submitted(catalog))
                    log.requirements |= set(log.present.items())
                wait_until("jobs to end", lambda: len(catalog.jobs_of_runs()) <= MOST_JOBS)
                feed.read()
                done = feed.kinds["run.done"]
                print(f"{dict(log.changes)}; {done} done", file=sys.stderr, flush=True)
                if kills.done():
                    kills.result()  # it may have failed
            wait_until("all groups to be submitted", lambda: is_submitted(catalog))
            log.requirements |= set(log.present.items())
        finally:
            end.set()
        return kills.result()


def main() -> None:
    """Change, kill, wait, compare, and print what was done."""
    parser = options(__doc__)
    parser.add_argument("--granules", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--minutes", type=float, default=600.0,
                        help="time after which no more is registered (default: 600)")  # fmt: skip
    parser.add_argument("--kills", type=int, default=50, help="(default: 50)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--users", type=int, default=72100, help="first of 12 user ids of programs")
    words = parser.parse_args()
    kinds = ["portal", "worker", "launcher"]
    rng = random.Random(words.seed)
    plan = kinds if words.smoke else rng.choices(kinds, k=words.kills)
    count = 200 if words.smoke else words.granules
    users = [f"{words.users + 4 * number}:4" for number in range(WORKERS + 1)]
    begin = time.monotonic()
    with work_folder() as folder, ExitStack() as stack:
        folder.chmod(0o755)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ["SWATHE_DATABASE"] = database_in(folder)
        (folder / "images").mkdir()
        (folder / "copy.py").write_text(SOURCE)
        catalog = stack.enter_context(Catalog.open(database_in(folder)))
        catalog.add_store("images", str(folder / "images"))
        catalog.add_dataset(DATASET, "images", "", "*.fits")
        archive = Archive(folder, users, stack)
        with swathe.connect(archive.portal.url) as portal:
            portal.add_algorithm(folder / "copy.py")
            subscription = portal.subscribe("copy", DATASET)[0].id
        granules, feed = Granules(folder, catalog, rng), Feed(catalog, subscription)
        kills = change_and_kill(archive, granules, feed, count, words.minutes, plan)
        resume_failed(archive, catalog, feed, granules.log)
        figures = compare(feed, granules.log, folder / "results")
    changes = granules.log.changes
    save("subscription-kills", {"kills": kills, "changes": changes, **figures})
    print(f"{dict(kills)} killed; granules: {dict(changes)}; {figures}; events: "
          f"{dict(feed.kinds)}; {time.monotonic() - begin:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
