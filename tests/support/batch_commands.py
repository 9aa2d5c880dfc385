"""The commands of PBS and HTCondor, for the tests: `batch_commands.py FOLDER COMMAND ...`.

Neither can be installed where the tests run. These keep their jobs in a folder, and run them for
real: each has a process that waits for one of `cpus` places, starts it with the environment that
the batch system gives it and nothing of who submitted it, ends it when it is told to or its time
is over, and takes it off the queue. The texts are those of OpenPBS; of HTCondor its own library
reads submit descriptions, evaluates expressions and writes JSON.

In the folder, `refuse` is why nothing can be submitted, `hold` why jobs are held instead of
started, and `says-COMMAND` what a command says instead of doing anything.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

KILL_S = 10.0
"""After which one that was told to end is killed."""
USER = pwd.getpwuid(os.geteuid()).pw_name
PATH = "/usr/local/bin:/usr/bin:/bin"


class RefusedError(Exception):
    """What a command says when it fails, and its exit."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class Queue(ABC):
    """Jobs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.jobs = folder, folder / "jobs"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def say(self, name: str) -> str:
        """What is to be said, or empty."""
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return ""

    def add(self, job: dict[str, Any]) -> str:
        """Queue a job, and start what runs it."""
        if why := self.say("refuse"):
            raise RefusedError(why, 188)
        with self.locked():
            number = str(int(self.say("last") or 0) + 1)
            (self.folder / "last").write_text(number)
            at = self.jobs / f"new-{number}"
            at.mkdir(parents=True)
            (at / "job").write_text(json.dumps(job))
            self.put(at, {"state": self.first, "since": time.time(), "why": ""})
            at.rename(self.jobs / number)
        subprocess.Popen(
            [sys.executable, __file__, str(self.folder), type(self).__name__, number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "log").open("ab"),
            start_new_session=True,
        )
        return number

    def numbers(self) -> list[str]:
        """Those that are there."""
        folders = self.jobs.iterdir() if self.jobs.exists() else ()
        return sorted((each.name for each in folders if each.name.isdigit()), key=int)

    def job(self, number: str) -> dict[str, Any]:
        """What was submitted, and what became of it."""
        at = self.jobs / number
        record: dict[str, Any] = json.loads((at / "job").read_text())
        record |= json.loads((at / "state").read_text())
        return record

    def put(self, at: Path, state: dict[str, Any]) -> None:
        """Note the state of a job."""
        new = at / "state.new"
        new.write_text(json.dumps(state))
        new.rename(at / "state")

    def cancel(self, numbers: list[str]) -> list[str]:
        """Tell jobs to end, and give those that are not there."""
        missing = []
        for number in numbers:
            try:
                (self.jobs / number / "cancelled").touch()
            except FileNotFoundError:
                missing.append(number)
        return missing

    # ---- What runs a job

    def run(self, number: str) -> None:
        """Run a job until it has ended."""
        at = self.jobs / number
        try:
            if self.place(number, at):
                self.started(number, at)
        finally:
            with self.locked():
                shutil.rmtree(at)

    def place(self, number: str, at: Path) -> bool:
        """Wait for a place, unless it is cancelled before."""
        while not self.is_over(number, at):
            time.sleep(0.05)
            with self.locked():
                state, since = self.job(number)["state"], self.job(number)["since"]
                if why := self.say("hold"):
                    if state != self.held:
                        self.put(at, {"state": self.held, "since": time.time(), "why": why})
                elif state == self.held:
                    if not self.releases:
                        continue
                    self.put(at, {"state": self.first, "since": time.time(), "why": ""})
                else:
                    busy = [self.job(other)["state"] for other in self.numbers()]
                    if sum(each == self.runs for each in busy) < int(self.say("cpus")):
                        self.put(at, {"state": self.runs, "since": time.time(), "why": ""})
                        return True
                    self.put(at, {"state": state, "since": since, "why": self.full})
        return False

    def started(self, number: str, at: Path) -> None:
        """Start the command, and see to its end."""
        job = self.job(number)
        with (at / "said").open("wb") as output:
            process = subprocess.Popen(
                job["words"],
                executable=job["program"],
                env=self.variables(number, at) | job["environment"],
                cwd=at,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        (at / "pid").write_text(str(process.pid))
        while process.poll() is None and not self.is_over(number, at):
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        if self.leaving:
            self.put(at, {"state": self.leaving, "since": time.time(), "why": ""})
        try:
            process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def is_over(self, number: str, at: Path) -> bool:
        """It is to end."""
        return (at / "cancelled").exists() or (self.folder / "over").exists()

    first: Any
    runs: Any
    held: Any
    leaving: Any
    full: str
    releases: bool
    """What is held need not be released by somebody."""

    @abstractmethod
    def variables(self, number: str, at: Path) -> dict[str, str]:
        """Those that the batch system gives."""


class PBS(Queue):
    """OpenPBS."""

    first, runs, held, leaving = "Q", "R", "H", "E"
    full = "Not Running: Insufficient amount of resource: ncpus"
    releases = True

    def variables(self, number: str, at: Path) -> dict[str, str]:
        own = {"PBS_JOBID": f"{number}.test", "PBS_ENVIRONMENT": "PBS_BATCH", "TMPDIR": str(at)}
        return {"HOME": str(Path.home()), "LOGNAME": USER, "USER": USER, "PATH": PATH, **own}

    def is_over(self, number: str, at: Path) -> bool:
        job = self.job(number)
        spent_s = time.time() - job["since"] if job["state"] == self.runs else 0.0
        return super().is_over(number, at) or spent_s > job["walltime_s"]

    def qsub(self, arguments: list[str]) -> str:
        """Submit the script of the standard input."""
        parser = argparse.ArgumentParser("qsub")
        for option in ("-N", "-r", "-S", "-j", "-o", "-A", "-W"):
            parser.add_argument(option)
        parser.add_argument("-q", default="work")
        parser.add_argument("-l", action="append", default=[])
        parsed_arguments = parser.parse_args(arguments)
        if parsed_arguments.q != "work":
            raise RefusedError("qsub: Unknown queue", 170)
        if not re.fullmatch(r"[A-Za-z_][\w.+-]{0,229}", parsed_arguments.N):
            raise RefusedError("qsub: illegal -N value", 2)
        resources = dict(each.split("=", 1) for each in parsed_arguments.l)
        if not re.fullmatch(r"1:ncpus=\d+(:mem=\d+mb)?", resources["select"]):
            raise RefusedError("qsub: Illegal attribute or resource value", 2)
        hours, minutes, seconds = map(int, resources["walltime"].split(":"))
        script = self.folder / f"{parsed_arguments.N}.SC"
        script.write_text(sys.stdin.read())
        number = self.add(
            {
                "name": parsed_arguments.N,
                "program": parsed_arguments.S,
                "words": [parsed_arguments.S, str(script)],
                "environment": {},
                "walltime_s": 3600 * hours + 60 * minutes + seconds,
                "resources": resources,
            }
        )
        return f"{number}.test\n"

    def qselect(self, arguments: list[str]) -> str:
        """Those of a user."""
        assert arguments == ["-u", USER]
        return "".join(f"{number}.test\n" for number in self.numbers())

    def qstat(self, arguments: list[str]) -> NoReturn:
        """All attributes of jobs."""
        assert arguments[0] == "-f"
        texts, code = [], 0
        for each in arguments[1:]:
            try:
                texts.append(self.shown(each, self.job(each.removesuffix(".test"))))
            except FileNotFoundError:
                sys.stderr.write(f"qstat: Unknown Job Id {each}\n")
                code = 153
        sys.stdout.write("\n".join(texts))
        sys.exit(code)

    def shown(self, number: str, job: dict[str, Any]) -> str:
        times = {"stime": time.ctime(job["since"])} if job["state"] in "RE" else {}
        home = f"PBS_O_HOME={Path.home()},PBS_O_LANG=C.UTF-8,PBS_O_LOGNAME={USER},PBS_O_PATH={PATH}"
        attributes = {
            "Job_Name": job["name"],
            "Job_Owner": f"{USER}@test",
            "job_state": job["state"],
            "queue": "work",
            **{f"Resource_List.{name}": value for name, value in job["resources"].items()},
            **times,
            "Variable_List": f"{home},PBS_O_WORKDIR=/,PBS_O_SYSTEM=Linux,PBS_O_QUEUE=work",
            **({"comment": job["why"]} if job["why"] else {}),
        }
        lines = [wrapped(name, value) for name, value in attributes.items()]
        return "\n".join([f"Job Id: {number}", *lines, ""])

    def qdel(self, arguments: list[str]) -> str:
        """End jobs."""
        missing = self.cancel([each.removesuffix(".test") for each in arguments])
        if missing:
            message = "\n".join(f"qdel: Unknown Job Id {number}.test" for number in missing)
            raise RefusedError(message, 153)
        return ""


def wrapped(name: str, value: str) -> str:
    """A line as `qstat` writes it: at most about 78 characters, broken after commas if it can."""
    text = f"    {name} = "
    start = len(text)
    for place, part in enumerate(value.split(",")):
        text += "," if place else ""
        if len(part) + start < 78:
            text, start = text + part, start + len(part)
            continue
        if place:
            text, start = text + "\n\t", 9
        for letter in part:
            text, start = text + letter, start + 1
            if start > 78:
                text, start = text + "\n\t", 8
    return text


class HTCondor(Queue):
    """HTCondor."""

    first, runs, held, leaving = 1, 2, 5, 3
    full = "no match found "
    releases = False

    def variables(self, number: str, at: Path) -> dict[str, str]:
        return {"_CONDOR_SCRATCH_DIR": str(at), "TMPDIR": str(at)}

    def ad(self, number: str) -> Any:
        """A job as HTCondor has it."""
        import classad

        job = self.job(number)
        ad = classad.ClassAd(job["ad"])
        ad["JobStatus"], ad["EnteredCurrentStatus"] = job["state"], int(job["since"])
        if job["state"] == self.runs:
            ad["JobCurrentStartDate"], ad["NumJobStarts"] = int(job["since"]), 1
        if job["why"]:
            ad["HoldReason" if job["state"] == self.held else "LastRejMatchReason"] = job["why"]
        return ad

    def is_over(self, number: str, at: Path) -> bool:
        return super().is_over(number, at) or self.ad(number).eval("PeriodicRemove") is True

    def condor_submit(self, arguments: list[str]) -> str:
        """Submit what a description of the standard input asks for."""
        assert arguments == ["-terse", "-"]
        import htcondor

        try:
            [ad] = htcondor.Submit(sys.stdin.read()).jobs(clusterid=1)
        except htcondor.HTCondorException as error:
            raise RefusedError(f"ERROR: {error}") from error
        assert not ad["TransferExecutable"]
        assert ad["Out"] == ad["Err"] == "/dev/null"
        number = self.add(
            {
                "program": ad["Cmd"],
                "words": ["condor_exec.exe", *split(ad["Arguments"])],
                "environment": dict(each.split("=", 1) for each in split(ad["Environment"])),
                "ad": str(ad),
            }
        )
        return f"{number}.0 - {number}.0\n"

    def condor_q(self, arguments: list[str]) -> str:
        """Some attributes of the jobs for which something is so; of none, nothing."""
        parser = argparse.ArgumentParser("condor_q")
        parser.add_argument("-json", action="store_true", required=True)
        parser.add_argument("-constraint", required=True)
        parser.add_argument("-attributes", required=True)
        options = parser.parse_args(arguments)
        import classad

        texts = []
        for number in self.numbers():
            try:
                ad = self.ad(number)
            except FileNotFoundError:  # it has ended meanwhile
                continue
            ad["ClusterId"], ad["ServerTime"] = int(number), int(time.time())
            if classad.ExprTree(options.constraint).eval(ad) is True:
                names = [*options.attributes.split(","), "ClusterId", "ProcId", "ServerTime"]
                answer = classad.ClassAd({name: ad[name] for name in names if name in ad})
                texts.append(answer.printJson())
        return "[\n" + "\n,\n".join(texts) + "\n]\n" if texts else ""

    def condor_rm(self, arguments: list[str]) -> str:
        """End jobs."""
        missing = self.cancel(arguments)
        if missing:
            messages = [f"Couldn't find/remove all jobs in cluster {number}" for number in missing]
            raise RefusedError("\n".join(messages))
        return "".join(
            f"All jobs in cluster {each} have been marked for removal\n" for each in arguments
        )


def split(text: str) -> list[str]:
    """The words of arguments, or an environment: within quotes, two of them are one."""
    words = re.findall(r"(?:'(?:[^']|'')*'|[^\s'])+", text)
    inner = re.compile(r"'((?:[^']|'')*)'")
    return [inner.sub(lambda match: match[1].replace("''", "'"), word) for word in words]


COMMANDS = {
    "PBS": ("qsub", "qselect", "qstat", "qdel"),
    "HTCondor": ("condor_submit", "condor_q", "condor_rm"),
}


def main() -> None:
    """Do what a command is to do, or run a job."""
    folder, name, *words = sys.argv[1:]
    if name in COMMANDS:
        {"PBS": PBS, "HTCondor": HTCondor}[name](Path(folder)).run(*words)
        return
    queue = PBS(Path(folder)) if name in COMMANDS["PBS"] else HTCondor(Path(folder))
    if answer := queue.say(f"says-{name}"):
        sys.stdout.write(answer)
        return
    try:
        sys.stdout.write(getattr(queue, name)(words))
    except RefusedError as refused:
        sys.stderr.write(f"{refused}\n")
        sys.exit(refused.code)


if __name__ == "__main__":
    main()
