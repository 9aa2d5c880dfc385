"""Portal, workers and launchers killed at random: each group of an order is in the results once.

    python benches/order_kills.py [--smoke] [--kills 50]

A portal with a pool of two workers runs orders of an algorithm whose groups take half a second.
Again and again the portal, a worker or a launcher of the sandbox is ended by SIGKILL, and started
again. A group that was at work at three deaths is an error, as the cause may be the group; it is
resumed at the end. Then all rows and all files of the results are counted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import swathe
from harness import HERE, options, save, work_folder
from order_study import sandbox
from swathe.catalog import Catalog
from swathe.client.job import RemoteJob
from tests.portal.test_orders import launchers
from tests.support.pools import Process, environment, process
from tests.support.portals import RunningPortal, database_in, served

SOURCE = """\
# /// script
# [tool.swathe.algorithm]
# name = "slow"
# version = "1"
# inputs.texts = {}
# outputs.table = {media_type = "text/csv"}
# resources = {wall = "60 s", output = "1 MB", memory = "200 MB"}
# ///
import time
def run(texts, table):
    time.sleep(0.5)
    table.write_text(texts[0].id)
"""
GROUPS = 80
"""Of an order; when one has ended, the next is placed."""
WORKERS, RESUMES = 2, 5
WORKER = "tests.support.program_worker"
SECONDS = 600.0


class Archive:
    """The portal and the workers, which are started again when they were killed."""

    def __init__(self, folder: Path, users: list[str], stack: ExitStack) -> None:
        """Start all."""
        self.folder, self.users, self.stack = folder, users, stack
        self.scheduler = stack.enter_context(process("scheduler", "--port", "0"))
        self.settings = f'{sandbox(users[0])}[workers]\nurl = "{self.scheduler.address}"\n'
        self.port = 0
        self.portal = self._start_portal()
        self.port = int(self.portal.host.rpartition(":")[2])
        self.workers = [self._start_worker(number) for number in range(WORKERS)]

    def _start_portal(self) -> RunningPortal:
        return self.stack.enter_context(served(self.folder, self.settings, self.port))

    def _start_worker(self, number: int) -> Process:
        words = [sys.executable, "-m", WORKER, self.users[number + 1], "pool", "worker"]
        words += [self.scheduler.address, "--threads", "2", "--json"]
        path = self.folder / f"worker-{number}.log"
        log = self.stack.enter_context(path.open("a"))
        child = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(),
            cwd=HERE.parent,
        )
        self.stack.callback(child.terminate)
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"worker {number} ended before it was ready: {path.read_text()}")
        return Process(next(iter(json.loads(line).values())), child)

    def kill(self, what: str, rng: random.Random) -> None:
        """End one by SIGKILL, and start it again."""
        number = rng.randrange(WORKERS)
        if what == "launcher":
            launchers(self.workers[number].process.pid, signal.SIGKILL)
        elif what == "worker":
            self.workers[number].kill()
            self.workers[number] = self._start_worker(number)
        else:
            self.portal.kill()
            self.portal = self._start_portal()


def order(url: str, texts: list[str]) -> str:
    """Place an order, and return its id."""
    with swathe.connect(url) as portal:
        return portal.submit({"file": texts}, operation="algorithm", algorithm="slow").id


def ended(job: RemoteJob) -> None:
    """Wait for a job, and resume what three deaths made an error of.

    Raises:
        RuntimeError: If it does not succeed in the end.
    """
    for _ in range(RESUMES):
        status = job.wait(timeout_s=SECONDS, progress=False)
        if status.phase == "COMPLETED" and not status.counts["error"]:
            return
        job.resume()
    raise RuntimeError(f"job {job.id}: expected all groups to succeed, found {status.counts}")


def count(job: RemoteJob, results: Path, texts: list[str]) -> None:
    """Check that each group has one row that is ok, and one file.

    Raises:
        RuntimeError: If one is missing or there twice.
    """
    rows = [row for row in job.rows() if row.name]
    groups = Counter(row.id for row in rows)
    files = Counter(path.name for path in (results / job.id).rglob("*") if path.is_file())
    if set(groups.values()) != {1} or len(groups) != len(texts):
        raise RuntimeError(f"job {job.id}: expected each group once, found {groups}")
    if files != Counter(str(row.name) for row in rows):
        raise RuntimeError(f"job {job.id}: expected a file of each group, found {files}")


def main() -> None:
    """Kill, wait, count, and print what was done."""
    parser = options(__doc__)
    parser.add_argument("--kills", type=int, default=50, help="(default: 50)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--users", type=int, default=72000, help="first of 12 user ids of programs")
    words = parser.parse_args()
    kinds = ["portal", "worker", "launcher"]
    rng = random.Random(words.seed)
    plan = ["worker"] if words.smoke else rng.choices(kinds, k=words.kills)
    groups = 12 if words.smoke else GROUPS
    users = [f"{words.users + 4 * number}:4" for number in range(WORKERS + 1)]
    begin = time.monotonic()
    with work_folder() as folder, ExitStack() as stack:
        folder.chmod(0o755)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        (folder / "texts").mkdir()
        (folder / "slow.py").write_text(SOURCE)
        for number in range(groups):
            (folder / f"texts/t{number:03}.txt").write_text("text")
        texts = [f"texts:t{number:03}.txt" for number in range(groups)]
        with Catalog.open(database_in(folder)) as catalog:
            catalog.add_store("texts", str(folder / "texts"))
        archive = Archive(folder, users, stack)
        with swathe.connect(archive.portal.url) as portal:
            portal.add_algorithm(folder / "slow.py")
        jobs = [order(archive.portal.url, texts)]
        for number, what in enumerate(plan, 1):
            time.sleep(rng.uniform(0.2, 1.5))
            archive.kill(what, rng)
            with swathe.connect(archive.portal.url) as portal:
                counts = portal.job(jobs[-1]).status().counts
                print(f"{number}: {what} killed; {counts}", file=sys.stderr, flush=True)
                if counts["waiting"] < groups / 4 and number < len(plan):
                    jobs.append(order(archive.portal.url, texts))
        with swathe.connect(archive.portal.url) as portal:
            for job in map(portal.job, jobs):
                ended(job)
                count(job, folder / "results", texts)
    kills = Counter(plan)
    save("order-kills", {"kills": kills, "jobs": len(jobs), "groups": groups * len(jobs)})
    print(f"{dict(kills)} killed; {groups * len(jobs)} groups of {len(jobs)} orders, each once; "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
