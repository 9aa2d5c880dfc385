"""Services that run users' programs: as root, which drops to another user, and as an ordinary user.

Attacks are scripts of attempts. Each attempt prints whether it reached what it should not.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from swathe.sandbox import Limits, Report, Request, UserIds
from swathe.sandbox.launch import PROGRAM

PYTHON = "/usr/bin/python3"
NOBODY = 65534
FIRST_USER = 70000
LIMITS = Limits(cpu_s=20, wall_s=100, memory_bytes=200_000_000, processes=30, inodes=200)
PRELUDE = """
import ctypes, fcntl, os, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    words = (ctypes.c_long(each) if isinstance(each, int) else each for each in words)
    result = libc.syscall(*words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
def attempt(name, work):
    try:
        work()
    except (OSError, subprocess.SubprocessError) as error:
        print("refused", name, str(error).replace("\\n", " "), flush=True)
    else:
        print("reached", name, flush=True)
def apart(work):
    # In a child, which alone is changed by it.
    child = os.fork()
    if child == 0:
        try:
            work()
        except OSError as error:
            os._exit(error.errno or 200)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code) if code > 0 else "killed")
IN, OUT = os.environ["SWATHE_IN"], os.environ["SWATHE_OUT"]
"""


@dataclass(frozen=True)
class Service:
    """A service under a user id, with the mode in which it runs programs."""

    user: str
    mode: Any
    program: Path
    folder: Path

    @property
    def prefix(self) -> list[str]:
        """Words before a command that this service starts."""
        if self.user == "root":
            return []
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    @property
    def users(self) -> UserIds | None:
        return UserIds(FIRST_USER, 8) if self.user == "root" else None

    def popen(self, request: Request, **options: Any) -> subprocess.Popen[bytes]:
        """Start the launcher as this service's user, with a request that it reads at once."""
        request = replace(request, mode=self.mode, users=self.users, work=self.folder / "work")
        process = subprocess.Popen(
            [*self.prefix, str(self.program), "run", "--leash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            **options,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request.to_json(self.folder / "results")).encode() + b"\n")
        process.stdin.flush()
        return process

    def run(self, request: Request, **options: Any) -> Report:
        with self.popen(request, **options) as process:
            assert process.stdout is not None
            answer = json.loads(process.stdout.read())
        assert answer["status"] != "XX", answer["message"]
        assert os.listdir(self.folder / "work") == []
        return Report.from_json(answer)

    def script(self, text: str, **settings: Any) -> Report:
        """Run a Python script in the sandbox."""
        options = settings.pop("options", {})
        command = [PYTHON, "-I", "-B", "-c", PRELUDE + text]
        return self.run(Request(command, **({"limits": LIMITS} | settings)), **options)

    def outside(self, text: str, variables: Mapping[str, str], **options: Any) -> str:
        """Run a Python script as this service's user, without a sandbox."""
        here = self.folder / "results"
        variables = {"SWATHE_IN": str(here), "SWATHE_OUT": str(here), **variables}
        command = [*self.prefix, PYTHON, "-I", "-B", "-c", PRELUDE + text]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=60, cwd=here, **options
        )
        return str(done.stdout + done.stderr)


@contextmanager
def service(user: str, mode: str) -> Iterator[Service]:
    """A service with folders that its user and its programs reach.

    Where the machine cannot confine programs in this mode, the test is skipped.
    """
    if os.getuid() != 0:
        pytest.skip("the tests have to be started as root, to be a service of either user")
    if not PROGRAM.is_file():
        pytest.skip(f"{PROGRAM} is not built")
    folder = Path(tempfile.mkdtemp(prefix="swathe-attacks-"))
    try:
        folder.chmod(0o755)
        program = folder / "swathe-sandbox"
        shutil.copy(PROGRAM, program)
        owner = 0 if user == "root" else NOBODY
        for name in ("work", "results"):
            (folder / name).mkdir(mode=0o755)
            os.chown(folder / name, owner, owner)
        made = Service(user, mode, program, folder)
        words = ["check", *(["--users", f"{FIRST_USER}:8"] if user == "root" else [])]
        done = subprocess.run([*made.prefix, program, *words], capture_output=True, text=True)
        (check,) = (each for each in json.loads(done.stdout)["modes"] if each["mode"] == mode)
        if not check["holds"]:
            pytest.skip(f"{mode} does not hold here: {check['reason']}")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def names(text: str, outcome: str) -> set[str]:
    """Return the attempts with an outcome: `reached` or `refused`."""
    lines = (line.split() for line in text.splitlines())
    return {words[1] for words in lines if len(words) > 1 and words[0] == outcome}
