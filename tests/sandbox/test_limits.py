"""Attacks that use more than a program may, outlive it, or hand over what is no output."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from swathe.core.errors import SandboxBusyError
from swathe.sandbox import Output, Request, UserIds, run
from tests.support.sandbox_services import LIMITS, PRELUDE, PYTHON, Service, names

SMALL = replace(
    LIMITS, memory_bytes=100_000_000, output_bytes=5_000_000, temporary_bytes=10_000_000
)
WIDE = replace(LIMITS, memory_bytes=1 << 31, output_bytes=1 << 30, inodes=5000, processes=200)
MARK = f"swathe-attack-{os.getpid()}"
"""Argument by which the processes of a job are known."""

EXCESSES = {
    "6 many files": ("inodes", "for n in range(2000): open(f'{OUT}/{n}', 'w')\ntime.sleep(0.3)"),
    "6 deep folders": (
        "inodes",
        "for _ in range(150):\n    os.mkdir('d')\n    os.chdir('d')\ntime.sleep(0.3)",
    ),
    "6 large outputs": (
        "output_bytes",
        "for n in range(9): open(f'{OUT}/{n}', 'wb').write(bytes(10**6))\ntime.sleep(0.3)",
    ),
    "6 removed files": (
        "temporary_bytes",
        "files = [open(OUT + '/x', 'wb') for n in range(3) if not n or not os.remove(OUT + '/x')]\n"
        "os.remove(OUT + '/x')\nfor each in files: each.write(bytes(4 * 10**6)), each.flush()\n"
        "time.sleep(0.3)",
    ),
    "9 sleep for ever": ("wall_s", "time.sleep(0.5)"),
    "9 stop in mid-line": ("wall_s", "print('half', end='', flush=True)\ntime.sleep(0.5)"),
    "8 stop itself": ("wall_s", "os.kill(os.getpid(), signal.SIGSTOP)"),
    "8 ignore signals": (
        "wall_s",
        "for n in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\n"
        "time.sleep(0.5)",
    ),
    "9 spin": ("cpu_s", "while time.process_time() < 0.6: pass"),
    "9 spin in children": (
        "cpu_s",
        "for _ in range(3):\n    if not os.fork():\n"
        "        while time.process_time() < 0.3: pass\n        os._exit(0)\n"
        "for _ in range(3): os.wait()",
    ),
    "9 children that nobody waits for": (
        "cpu_s",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nfor _ in range(8):\n    if not os.fork():\n"
        "        while time.process_time() < 0.3: pass\n        os._exit(0)\n"
        "    try: os.wait()\n    except ChildProcessError: pass",
    ),
    "6 folder that may not be listed": (
        "inodes",
        "try: os.chmod(OUT, 0o300)\nexcept PermissionError: pass\n"
        "for n in range(2000): open(f'{OUT}/{n}', 'w')\ntime.sleep(0.3)",
    ),
    "10 memory of sockets": (
        "memory_bytes",
        "children = [os.fork() for _ in range(2)]\n"
        "pairs = [socket.socketpair() for _ in range(100)]\ntime.sleep(0.5)",
    ),
    "10 memory of many processes": (
        "memory_bytes",
        "for n in range(6):\n    if not os.fork():\n        a = bytearray(b'x') * 40_000_000\n"
        "        time.sleep(1)\n        os._exit(0)\nfor _ in range(6): os.wait()",
    ),
    "10 shared memory": (
        "memory_bytes",
        "import mmap\nm = mmap.mmap(-1, 200_000_000)\n"
        "for at in range(0, len(m), 4096): m[at] = 1\ntime.sleep(0.3)",
    ),
}
"""The limit that ends a script, and the script. With wide limits it ends well."""


#: Whatever the limits are.
ALWAYS = {"8 stop itself", "6 deep folders"}


@pytest.mark.parametrize("attack", EXCESSES)
def test_a_limit_ends_the_program(attack: str, box: Service) -> None:
    limit, script = EXCESSES[attack]
    times: dict[str, Any] = {limit: 0.3} if limit in ("wall_s", "cpu_s") else {}
    limits = replace(SMALL, **times)
    report = box.script(script, limits=limits)
    assert (report.status, report.limit) == ("TO", limit), report
    assert attack in ALWAYS or box.script(script, limits=WIDE).status == "OK"


REFUSALS = {
    "6 sparse file": "os.truncate(os.open(OUT + '/x', os.O_CREAT | os.O_RDWR), 1 << 40)",
    "7 fork bomb": "children = [os.fork() or time.sleep(0.3) or os._exit(0) for _ in range(100)]",
    "7 thread bomb": (
        "all = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(100)]\n"
        "for each in all: each.start()"
    ),
    "10 one large array": "bytearray(1_000_000_000)",
    "10 temporary files": (
        "for n in range(20):\n    open(f'{os.environ[\"TMPDIR\"]}/{n}', 'wb').write(bytes(10**7))\n"
        "    time.sleep(0.05)"
    ),
}
"""What is refused to the program itself, which then fails."""


@pytest.mark.parametrize("attack", REFUSALS)
def test_the_program_fails_at_its_limit(attack: str, box: Service) -> None:
    limits = replace(SMALL, temporary_bytes=50_000_000)
    report = box.script(REFUSALS[attack], limits=limits)
    assert report.status in ("RE", "SG", "TO"), report
    more = replace(WIDE, temporary_bytes=1 << 30, output_bytes=1 << 41)
    report = box.script(REFUSALS[attack], limits=more)
    assert report.status == "OK", report


def test_memory_that_no_process_shows_is_refused(box: Service) -> None:
    """10"""
    script = "attempt('memfd', lambda: os.memfd_create('x'))"
    assert "reached memfd" in box.outside(script, {})
    assert "refused memfd" in box.script(script).stdout.text


def test_what_would_hide_or_grow_what_a_program_holds_is_refused(box: Service) -> None:
    """6, 10: open files that /proc does not show; memory of the kernel"""
    script = """
one, _ = socket.socketpair()
_, pipe = os.pipe()
attempt("dumpable", lambda: call(157, 4, 0, 0, 0, 0))
attempt("send", lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16))
attempt("receive", lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16))
attempt("pipe", lambda: fcntl.fcntl(pipe, 1031, 1 << 16))
attempt("socket", lambda: socket.socket(socket.AF_UNIX))
attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
"""
    attempts = {"dumpable", "send", "receive", "pipe", "socket", "datagrams"}
    assert names(box.outside(script, {}), "reached") == attempts
    assert names(box.script(script).stdout.text, "refused") == attempts
    loop = "import asyncio\nasyncio.run(asyncio.sleep(0))\nprint('done')"
    assert box.script(loop).stdout.text == "done\n"


def test_a_program_that_hides_its_open_files_is_ended(box: Service) -> None:
    """6: a program that may not be read; under Landlock modes cannot be changed"""
    script = """
import shutil
shutil.copy("/usr/bin/sleep", OUT + "/x")
os.chmod(OUT + "/x", {})
os.execv(OUT + "/x", ["x", "0.5"])
"""
    if box.mode == "landlock":
        assert "PermissionError" in box.script(script.format("0o111")).stderr.text
        return
    report = box.script(script.format("0o111"))
    # Root is shown all.
    hidden = "the program hid its open files or its outputs"
    assert report.message == ("" if box.user == "root" else hidden)
    assert box.script(script.format("0o755")).status == "OK"


def test_a_flood_of_output_is_capped(box: Service) -> None:
    """11"""
    script = "os.write(2, b'\\x1b[2J<b>begin')\nfor _ in range(500): os.write(1, bytes(100_000))"
    report = box.script(script, limits=replace(LIMITS, log_bytes=1000))
    assert report.status == "OK"
    assert (report.stdout.bytes, report.stdout.is_whole) == (50_000_000, False)
    assert len(report.stdout.text) < 1100
    assert report.stderr.text == "[2J<b>begin"


def processes() -> list[psutil.Process]:
    return [
        each for each in psutil.process_iter(["cmdline"]) if MARK in (each.info["cmdline"] or [])
    ]


def wait_until(is_so: Callable[[], bool], longest_s: float = 20) -> None:
    end = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


DAEMON = f"""
for step in ("setsid", "fork"):
    if os.fork():
        {{}}
    try:
        os.setsid()
    except OSError as error:
        print(error)
nothing = os.open("/dev/null", os.O_RDWR)
for number in range(3):
    os.dup2(nothing, number)
os.execv("{PYTHON}", ["{PYTHON}", "-c", "import time; time.sleep(60)", "{MARK}"])
"""


def test_a_daemon_does_not_outlive_its_job(box: Service) -> None:
    """7: it forks twice and leaves its session"""
    box.outside(DAEMON.format("os._exit(0)"), {})
    wait_until(lambda: bool(processes()))
    survivors = processes()
    for each in survivors:
        each.kill()
    wait_until(lambda: not processes())
    assert box.script(DAEMON.format("time.sleep(0.2); os._exit(0)")).status == "OK"
    assert not processes()


def test_kill_all_kills_the_job_alone(box: Service) -> None:
    """8"""
    victim = subprocess.Popen([*box.prefix, "sleep", "60"])
    try:
        report = box.script("os.kill(-1, signal.SIGKILL)\ntime.sleep(0.2)\nprint('alive')")
        assert report.status in ("OK", "SG", "RE")  # all but itself; itself too; nobody
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


KINDS = {
    "symlink": "os.symlink('/etc/passwd', OUT + '/x')",
    "fifo": "os.mkfifo(OUT + '/x')",
    "folder": "os.mkdir(OUT + '/x')",
    "hard link": "open(OUT + '/y', 'w')\nos.link(OUT + '/y', OUT + '/x')",
    "socket": "socket.socket(socket.AF_UNIX).bind(OUT + '/x')",
    "nothing": "",
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_collected(kind: str, box: Service) -> None:
    """2, 4, 27: under Landlock most of them cannot be made"""
    report = box.script(KINDS[kind], outputs=[Output("x")])
    assert report.status == "RE" and not report.outputs
    assert os.listdir(box.folder / "results") == []
    report = box.script("open(OUT + '/x', 'w').write('abc')", outputs=[Output("x")])
    assert (report.status, report.outputs["x"].bytes) == ("OK", 3)
    path = report.outputs["x"].path
    assert path.read_text() == "abc" and path.stat().st_uid == (0 if box.user == "root" else 65534)
    path.unlink()


@pytest.mark.parametrize("victim", ["launcher", "guardian"])
def test_nothing_remains_of_a_job_whose_supervisor_is_killed(victim: str, box: Service) -> None:
    """30"""
    script = f"""
open(OUT + "/x", "w").write("abc")
if os.fork():
    time.sleep(60)
os.execv("{PYTHON}", ["{PYTHON}", "-c", "import time; time.sleep(60)", "{MARK}"])
"""
    command = [PYTHON, "-I", "-B", "-c", PRELUDE + script]
    mounts = Path("/proc/self/mounts").read_text()
    process = box.popen(Request(command, outputs=[Output("x")], limits=replace(LIMITS, wall_s=60)))
    wait_until(lambda: bool(processes()))
    (guardian,) = psutil.Process(process.pid).children()
    os.kill(process.pid if victim == "launcher" else guardian.pid, signal.SIGKILL)
    with process:
        wait_until(lambda: not processes() and not guardian.is_running())
        wait_until(lambda: os.listdir(box.folder / "work") == [])
    assert os.listdir(box.folder / "results") == []
    assert Path("/proc/self/mounts").read_text() == mounts


def test_a_job_ends_with_who_asked_for_it(box: Service) -> None:
    command = [PYTHON, "-c", "import time; time.sleep(60)", MARK]
    process = box.popen(Request(command, limits=replace(LIMITS, wall_s=60)))
    wait_until(lambda: bool(processes()))
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    assert b'"message":"the run was cancelled"' in process.stdout.read()
    assert process.wait() == 2
    assert not processes() and os.listdir(box.folder / "work") == []
    process.stdout.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes user ids for programs")
def test_a_program_waits_while_all_ids_are_in_use(tmp_path: Path) -> None:
    request = Request(("/bin/sh", "-c", "echo $(nice)"), users=UserIds(70990, 1))
    niceness = int(run(request, tmp_path).stdout.text)
    assert niceness == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    with Path("/run/swathe-sandbox/70990").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SandboxBusyError, match="all 1 ids from 70990 are in use"):
            run(request, tmp_path)
    assert run(request, tmp_path).status == "OK"
