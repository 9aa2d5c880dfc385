"""Attacks that reach for what is not a program's own: files, processes, network, kernel.

Each attempt is made in the sandbox, where it must be refused, and outside by the same service,
where it must succeed: otherwise it would prove nothing. Numbers are those of the list of attacks.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swathe.sandbox import Input, Request
from tests.support.sandbox_services import LIMITS, NOBODY, Service, names

#: Only root succeeds in these outside.
FOR_ROOT = {
    *("mount", "chroot", "setns", "pivot_root", "unshare_mount", "unshare_net", "raw", "packet"),
    *("open_by_handle", "core_pattern", "clock", "kmsg", "other_environ"),
}

ATTACKS = {
    "1 files and environments of others": """
attempt("secret", lambda: open(os.environ["SWATHE_SECRET"]).read())
attempt("passwd", lambda: open("/etc/passwd").read())
attempt("own_list", lambda: os.listdir(os.path.dirname(os.environ["SWATHE_SECRET"])))
attempt("environ", lambda: open(f"/proc/{os.environ['SWATHE_PID']}/environ").read())
attempt("other_environ", lambda: open("/proc/1/environ").read()[0] == "x" or None
    if os.environ.get("SWATHE_OUTSIDE") or not os.path.isdir("/in")
    else (_ for _ in ()).throw(OSError("its own first process")))
""",
    "2 links as outputs": """
attempt("symlink_away", lambda: print(open(OUT + "/away-link").read()[:0])
    if not os.symlink("/etc/passwd", OUT + "/away-link") else None)
""",
    "3 hard links": """
attempt("link_secret", lambda: os.link(os.environ["SWATHE_SECRET"], OUT + "/hard"))
attempt("link_input", lambda: os.link(os.path.realpath(IN + "/data"), OUT + "/hard2"))
""",
    "8 signals to others": """
attempt("kill", lambda: os.kill(int(os.environ["SWATHE_PID"]), signal.SIGCONT))
attempt("pidfd", lambda: call(424, call(434, int(os.environ["SWATHE_PID"]), 0), 18, None, 0))
""",
    "12 network": """
attempt("tcp", lambda: socket.socket())
attempt("udp", lambda: socket.socket(type=socket.SOCK_DGRAM))
attempt("inet6", lambda: socket.socket(socket.AF_INET6))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt("mptcp", lambda: socket.socket(proto=262))
attempt("raw", lambda: socket.socket(type=socket.SOCK_RAW, proto=1))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(240)))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(os.environ["SWATHE_PORT"]))))
""",
    "13 unix sockets": """
def connect(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(name)
attempt("pathname", lambda: connect(os.environ["SWATHE_SOCKET"]))
attempt("abstract", lambda: connect("\\0" + os.environ["SWATHE_SOCKET"]))
def send(kind):
    one, _ = socket.socketpair(socket.AF_UNIX, kind)
    one.sendto(b"x", os.environ["SWATHE_SOCKET"] + ".datagram")
attempt("datagram", lambda: send(socket.SOCK_DGRAM))
attempt("raw_datagram", lambda: send(socket.SOCK_RAW))
""",
    "14 namespaces and mounts": """
attempt("unshare_user", lambda: apart(lambda: call(272, 0x10000000)))
attempt("unshare_mount", lambda: apart(lambda: call(272, 0x20000)))
attempt("unshare_net", lambda: apart(lambda: call(272, 0x40000000)))
def clone():
    child = call(56, 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
attempt("clone_user", clone)
def mount():
    call(165, b"none", OUT.encode(), b"tmpfs", 0, None)
    call(166, OUT.encode(), 2)
attempt("mount", mount)
attempt("chroot", lambda: apart(lambda: os.chroot("/usr")))
attempt("setns", lambda: apart(lambda: call(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0)))
def handle():
    data = ctypes.create_string_buffer(struct.pack("Ii", 120, 0), 128)
    mount = ctypes.c_int()
    call(303, -100, b"/usr", data, ctypes.byref(mount), 0)
    call(304, os.open("/usr", os.O_RDONLY), data, os.O_RDONLY)
attempt("open_by_handle", handle)
""",
    "15 other processes": """
other = int(os.environ["SWATHE_PID"])
attempt("seize", lambda: apart(lambda: call(101, 0x4206, other, 0, 0)))
attempt("getfd", lambda: call(438, call(434, other, 0), 0, 0))
attempt("memory", lambda: open(f"/proc/{other}/mem", "r+b"))
attempt("limits", lambda: call(302, other, 7, None, ctypes.create_string_buffer(16)))
def read_memory():
    vector = struct.pack("QQ", 0x1000, 8)
    try:
        call(310, other, vector, 1, vector, 1, 0)
    except OSError as error:
        if error.errno != 14:  # allowed, but nothing lies there
            raise
attempt("vm_readv", read_memory)
attempt("kcmp", lambda: call(312, os.getpid(), other, 0, 0, 0))
""",
    "16 keyrings": """
attempt("session", lambda: call(250, 0, -3, 1))
attempt("add_key", lambda: call(248, b"user", b"swathe", b"x", 1, -4))
""",
    "17 typing on a terminal": """
terminal = 0
if not (os.path.isdir("/out") or os.path.isdir("../tmp")):
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, 0x540E, 0)
def type_x(high_bits):
    call(16, terminal, 0x5412 | high_bits, b"x")
attempt("tiocsti", lambda: type_x(0))
attempt("high_bits", lambda: type_x(1 << 32))
""",
    "19 core dumps": """
attempt("core_pattern", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
import resource
def raise_limit():
    resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if not resource.getrlimit(resource.RLIMIT_CORE)[0]:
        raise OSError("the limit stays 0")
attempt("core_limit", lambda: raise_limit())
""",
    "20 changes of inputs": """
path = IN + "/data"
attempt("write", lambda: open(path, "r+b").write(b"x"))
attempt("truncate", lambda: os.truncate(path, 1))
attempt("utime", lambda: os.utime(path, (1, 1)))
attempt("chmod", lambda: os.chmod(path, 0o777))
attempt("xattr", lambda: os.setxattr(path, "user.swathe", b"x"))
attempt("flock", lambda: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))
attempt("rename", lambda: os.rename(os.path.realpath(path), os.path.realpath(path) + ".moved"))
""",
    "23 devices": """
attempt("fuse", lambda: os.open("/dev/net/tun", os.O_RDWR))
attempt("kmsg", lambda: os.open("/dev/kmsg", os.O_WRONLY))
attempt("loop", lambda: os.listdir("/dev/pts") if not os.path.isdir("/in") and os.listdir("/dev")
    else (_ for _ in ()).throw(OSError("only its own devices")))
""",
    "24 other architectures": """
attempt("personality", lambda: call(135, 0x0040000))
""",
    "28 queues, semaphores and memory that others share": """
shared, semaphore, messages = (int(each) for each in os.environ["SWATHE_SHARED"].split())
def shmat():
    ctypes.set_errno(0)
    try:
        call(30, shared, None, 0o10000)
    except OSError as error:
        if error.errno:  # else it is the address, cut to 32 bits
            raise
attempt("shmat", shmat)
attempt("shmctl", lambda: call(31, shared, 2, ctypes.create_string_buffer(512)))
def shmdt():
    try:
        call(67, None)
    except OSError as error:
        if error.errno != 22:  # allowed, but nothing lies there
            raise
attempt("shmdt", shmdt)
attempt("semctl", lambda: call(66, semaphore, 0, 12))
attempt("semop", lambda: call(65, semaphore, struct.pack("Hhh", 0, 1, 0), 1))
attempt("semtimedop", lambda: call(220, semaphore, struct.pack("Hhh", 0, 1, 0), 1, None))
attempt("msgsnd", lambda: call(69, messages, struct.pack("q8s", 1, b"x"), 8, 0o4000))
attempt("msgrcv", lambda: call(70, messages, ctypes.create_string_buffer(64), 8, 0, 0o4000))
attempt("msgctl", lambda: call(71, messages, 2, ctypes.create_string_buffer(512)))
def queue_call(number, *words):
    try:
        call(number, *words)
    except OSError as error:
        if error.errno not in (2, 9):  # allowed, but there is no such queue
            raise
attempt("mq_unlink", lambda: queue_call(241, b"swathe-nothing"))
attempt("mq_timedsend", lambda: queue_call(242, -1, b"x", 1, 0, None))
attempt("mq_timedreceive", lambda: queue_call(243, -1, b"x", 1, None, None))
attempt("mq_notify", lambda: queue_call(244, -1, None))
attempt("mq_getsetattr", lambda: queue_call(245, -1, None, ctypes.create_string_buffer(64)))
""",
    "1 names of files as they come and go": """
attempt("inotify_init", lambda: call(253))
attempt("inotify_init1", lambda: call(294, 0))
attempt("inotify_add_watch", lambda: call(254, call(294, 0), b"/tmp", 0xfff))
""",
    "29 clocks": """
attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
""",
}
"""Scripts by attack. All of their attempts must be refused in the sandbox."""

#: Not there on this machine, or refused outside as well.
ABSENT = {"fuse", "loop", "other_environ", "open_by_handle", "kmsg", "clock"}


#: Makes shared memory, a semaphore and a queue of messages; prints their ids.
SHARE = "print(call(29, 0, 4096, 0o1600), call(64, 0, 1, 0o1600), call(68, 0, 0o1600))"
UNSHARE = """
shared, semaphore, messages = (int(each) for each in os.environ["SWATHE_SHARED"].split())
call(31, shared, 0, None), call(66, semaphore, 0, 0), call(71, messages, 0, None)
"""


@contextmanager
def victims(service: Service) -> Iterator[dict[str, str]]:
    """What attacks reach for: a secret, a process, sockets, each of the service's own user."""
    folder = service.folder / "victims"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    owner = 0 if service.user == "root" else NOBODY
    for name in ("secret", "data"):
        path = folder / name
        path.write_text("secret")
        path.chmod(0o666)
        os.chown(path, owner, owner)
    process = subprocess.Popen([*service.prefix, "sleep", "60"], stdin=subprocess.DEVNULL)
    shared = service.outside(SHARE, {}).strip()
    names = {"SWATHE_SECRET": folder / "secret", "SWATHE_SOCKET": folder / "socket"}
    names |= {"SWATHE_DATA": folder / "data"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        listeners = [
            (str(names["SWATHE_SOCKET"]), socket.SOCK_STREAM),
            ("\0" + str(names["SWATHE_SOCKET"]), socket.SOCK_STREAM),
            (f"{names['SWATHE_SOCKET']}.datagram", socket.SOCK_DGRAM),
        ]
        sockets = []
        for name, kind in listeners:
            one = socket.socket(socket.AF_UNIX, kind)
            one.bind(name)
            if kind == socket.SOCK_STREAM:
                one.listen(10)
            sockets.append(one)
        for path in folder.iterdir():
            path.chmod(0o777 if "socket" in path.name else 0o666)
        try:
            yield {
                **{name: str(path) for name, path in names.items()},
                "SWATHE_PID": str(process.pid),
                "SWATHE_SHARED": shared,
                "SWATHE_PORT": str(server.getsockname()[1]),
            }
        finally:
            for one in sockets:
                one.close()
            process.kill()
            process.wait()
            service.outside(UNSHARE, {"SWATHE_SHARED": shared})
            shutil.rmtree(folder)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_not_its_own_is_out_of_reach(attack: str, box: Service) -> None:
    script = ATTACKS[attack]
    with victims(box) as variables:
        secret = Path(variables["SWATHE_SECRET"])
        inputs = [Input("data", path=variables["SWATHE_DATA"])]
        report = box.script(script, inputs=inputs, environment=variables)
        said = report.stdout.text + report.stderr.text
        reached, refused = names(said, "reached"), names(said, "refused")
        assert not reached, said
        assert refused, said
        assert secret.read_text() == "secret"
        outside = {**variables, "SWATHE_OUTSIDE": "1"}
        shutil.copy(secret, box.folder / "results/data")
        (box.folder / "results/data").chmod(0o666)
        if box.user != "root":
            os.chown(box.folder / "results/data", NOBODY, NOBODY)
        control = box.outside(script, outside, start_new_session=True)
        expected = refused - ABSENT - (set() if box.user == "root" else FOR_ROOT)
        assert expected <= names(control, "reached"), control
    for path in (box.folder / "results").iterdir():
        path.unlink()


def test_the_first_process_of_the_box_is_confined_as_the_program_is(box: Service) -> None:
    """15: a program may write to the memory of bubblewrap's own process in its namespace"""
    script = "print(open('/proc/1/status').read())"
    assert "Seccomp_filters:\t0" in box.outside(script, {})
    said = box.script(script).stdout.text
    if box.mode == "landlock":
        assert not said  # there is no such process
        return
    assert "Seccomp_filters:\t3" in said and "CapBnd:\t0000000000000000" in said


def test_a_setuid_program_gives_no_rights(box: Service) -> None:
    """18"""
    programs = box.folder / "programs"
    programs.mkdir()
    shutil.copy("/usr/bin/id", programs)
    (programs / "id").chmod(0o4755)
    command = [f"{programs}/id", "-u"]
    ordinary = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    outside = subprocess.run([*ordinary, *command], capture_output=True, text=True)
    assert outside.stdout == "0\n"
    report = box.run(Request(command, folders=[programs], limits=LIMITS))
    assert report.stdout.text == f"{report.uid}\n"
    assert report.uid > 0


def test_descriptors_of_the_service_are_closed(box: Service) -> None:
    """21"""
    script = """
open_files = []
for number in range(3, 300):
    try:
        os.fstat(number)
    except OSError:
        continue
    open_files.append(number)
print("open", open_files)
"""
    with open("/etc/passwd") as first, open("/etc/passwd") as second:
        numbers = [first.fileno(), os.dup2(second.fileno(), 250)]
        options = {"pass_fds": numbers}
        try:
            assert f"open {sorted(numbers)}" in box.outside(script, {}, **options)
            assert "open []" in box.script(script, options=options).stdout.text
            # An input that is a descriptor is in its place, and nowhere else.
            text = script + "print(open(IN + '/x').read()[:5])"
            inputs = [Input("x", descriptor=numbers[0])]
            said = box.script(text, options=options, inputs=inputs).stdout.text
            assert said == "open []\nroot:\n"
        finally:
            os.close(250)


def test_variables_of_the_service_are_cleared(
    box: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """22, and what lies beside the script"""
    for name in ("http_proxy", "AWS_SECRET_ACCESS_KEY", "PYTHONSTARTUP", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/secret")
    script = "print(os.environ)"
    assert "/secret" in box.outside(script, dict(os.environ))
    assert "/secret" not in box.script(script).stdout.text


OTHER_CALLS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {  /* getpid of 32 bits */
        int result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20));
        _exit(0);
    }
    int status;
    wait(&status);
    puts(WIFSIGNALED(status) ? "killed" : "reached");
    return 0;
}
"""


def compile_c(folder: Path, text: str) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (folder / "x.c").write_text(text)
    subprocess.run(["cc", "-o", folder / "x", folder / "x.c"], check=True)
    return folder / "x"


def test_calls_of_32_bits_end_the_program(box: Service, tmp_path: Path) -> None:
    """24"""
    folder = box.folder / "calls"
    folder.mkdir()
    program = compile_c(folder, OTHER_CALLS)
    outside = subprocess.run([program], capture_output=True, text=True).stdout
    assert outside == "reached\n"
    report = box.run(Request([str(program)], folders=[folder], limits=LIMITS))
    assert report.stdout.text == "killed\n"


def test_a_compiler_reads_no_file_of_others(box: Service) -> None:
    """25; flags are a matter of who builds"""
    script = """
with open(OUT + "/x.c", "w") as file:
    file.write('#include "' + os.environ["SWATHE_SECRET"] + '"\\n')
done = subprocess.run(["cc", "-E", OUT + "/x.c"], capture_output=True, text=True)
print("included" if "int secret;" in done.stdout else "not included", done.stderr)
"""
    secret = box.folder / "secret.h"
    secret.write_text("int secret;")
    variables = {"SWATHE_SECRET": str(secret), "PATH": os.defpath}
    assert box.outside(script, variables).startswith("included")
    (box.folder / "results/x.c").unlink()
    said = box.script(script, environment={"SWATHE_SECRET": str(secret)}).stdout.text
    assert said.startswith("not included") and "x.c" in said


def test_jobs_share_nothing(box: Service) -> None:
    """28: the second job of a user finds nothing of the first, not even while it runs"""
    first = """
open(os.environ["TMPDIR"] + "/note", "w").write("x")
for path in ("/dev/shm/note", "/tmp/note"):
    attempt(path, lambda: open(path, "w").write("x"))
attempt("shmget", lambda: call(29, 1234, 4096, 0o1666))
attempt("flock", lambda: fcntl.flock(os.open("/usr/bin/env", os.O_RDONLY), fcntl.LOCK_EX))
open(OUT + "/ready", "w").write("x")
time.sleep(float(os.environ.get("SWATHE_SLEEP", 0)))
"""
    second = """
print("found", [path for path in ("/dev/shm/note", "/tmp/note", os.environ["TMPDIR"] + "/note")
    if os.path.exists(path)])
attempt("shmget", lambda: call(29, 1234, 4096, 0))
"""
    with victims(box):
        control = box.outside(first, {"TMPDIR": str(box.folder / "results")})
        try:
            assert {"shmget", "flock", "/tmp/note"} <= names(control, "reached")
            assert "found []" not in box.outside(second, {"TMPDIR": str(box.folder / "results")})
        finally:
            for path in ("/dev/shm/note", "/tmp/note"):
                Path(path).unlink(missing_ok=True)
            box.outside("call(31, call(29, 1234, 4096, 0), 0, None)", {})
    said = box.script(first).stdout.text
    assert {"shmget", "flock"} <= names(said, "refused")
    assert "found []" in box.script(second).stdout.text
    assert not Path("/dev/shm/note").exists() and not Path("/tmp/note").exists()
    for file in (box.folder / "results").iterdir():
        file.unlink()
