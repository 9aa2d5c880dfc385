"""Other systems that keep an object on several servers: GlusterFS and SeaweedFS, on this machine.

Each has four servers, which stand one failure. GlusterFS: a volume of four bricks, one of
redundancy (`cluster/disperse`), read by its own library, libgfapi. SeaweedFS: volumes of 10 + 4
shards on four servers, read by curl, four files at a time; its servers refuse to copy shards from
loopback addresses, so they are in a network namespace, which needs root.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from links import FOLDER
from stripe_lab import AT_ONCE, REQUEST_BYTES, pattern
from tests.support.namespaces import ip
from tests.support.servers import free_port, wait_for

COUNT = 4
LIMIT_S = 300
POLL_S = 0.2
ADDRESS, NAMESPACE = "10.77.0.1", "swathe-weed"
FILE_BYTES = 64 << 20
"""Of a file of SeaweedFS, whose servers take 256 MB at most."""
Client: TypeAlias = Callable[[], object]

BRICK = """volume disk
 type storage/posix
 option directory {folder}
end-volume
volume locks
 type features/locks
 subvolumes disk
end-volume
volume server
 type protocol/server
 option transport-type tcp
 option transport.socket.listen-port {port}
 option transport.socket.bind-address 127.0.0.1
 option auth.addr.locks.allow 127.0.0.1
 subvolumes locks
end-volume
"""
BRICK_CLIENT = """volume brick{number}
 type protocol/client
 option transport-type tcp
 option remote-host 127.0.0.1
 option remote-port {port}
 option remote-subvolume locks
end-volume
"""
DISPERSE = """volume disperse
 type cluster/disperse
 option redundancy 1
 subvolumes {bricks}
end-volume
"""
GLUSTER_CLIENT = """
import concurrent.futures, ctypes, os, sys
volfile, log, source, size, request_bytes, at_once = sys.argv[1:]
size, request_bytes = int(size), int(request_bytes)
gfapi = ctypes.CDLL("libgfapi.so.0", use_errno=True)
gfapi.glfs_new.restype = gfapi.glfs_open.restype = gfapi.glfs_creat.restype = ctypes.c_void_p
gfapi.glfs_pread.restype = gfapi.glfs_pwrite.restype = ctypes.c_ssize_t

def check(result, what):
    if result is None or result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result

volume = ctypes.c_void_p(check(gfapi.glfs_new(b"disperse"), "glfs_new"))
check(gfapi.glfs_set_volfile(volume, volfile.encode()), "glfs_set_volfile")
check(gfapi.glfs_set_logging(volume, log.encode(), 4), "glfs_set_logging")
check(gfapi.glfs_init(volume), "glfs_init")
pieces = [(at, min(request_bytes, size - at)) for at in range(0, size, request_bytes)]
if source:
    file = ctypes.c_void_p(check(gfapi.glfs_creat(volume, b"/object", os.O_RDWR, 0o644), "creat"))
    data = open(source, "rb").read()
    for at, count in pieces:
        piece = data[at : at + count]
        done = gfapi.glfs_pwrite(
            file, piece, ctypes.c_size_t(count), ctypes.c_int64(at), 0, None, None
        )
        if check(done, "glfs_pwrite") != count:
            raise OSError(f"glfs_pwrite: expected {count} bytes, found {done}")
else:
    file = ctypes.c_void_p(check(gfapi.glfs_open(volume, b"/object", os.O_RDONLY), "glfs_open"))

    def read(piece):
        at, count = piece
        target = ctypes.create_string_buffer(count)
        done = gfapi.glfs_pread(file, target, ctypes.c_size_t(count), ctypes.c_int64(at), 0, None)
        if check(done, "glfs_pread") != count:
            raise OSError(f"glfs_pread: expected {count} bytes, found {done}")

    with concurrent.futures.ThreadPoolExecutor(int(at_once)) as pool:
        list(pool.map(read, pieces))
check(gfapi.glfs_close(file), "glfs_close")
# Taking the volume down takes seconds.
os._exit(0)
"""


def run(*words: str, **options: Any) -> str:
    """Run a program to its end; return what it prints.

    Raises:
        RuntimeError: When it fails; the text has the end of its output.
    """
    done: subprocess.CompletedProcess[str] = subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT_S, **options
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def start(stack: ExitStack, words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server, which ends with the stack."""
    output = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)

    def end() -> None:
        process.terminate()
        process.wait(timeout=LIMIT_S)

    stack.callback(end)
    return process


@contextmanager
def gluster(size: int) -> Iterator[Client]:
    """Serve the object by four bricks; yield what reads it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gl-", dir=FOLDER)))
        clients = []
        for number in range(COUNT):
            disk, port = folder / f"disk-{number}", free_port()
            disk.mkdir()
            volfile, log = folder / f"brick-{number}.vol", folder / f"brick-{number}.log"
            volfile.write_text(BRICK.format(folder=disk, port=port))
            words = ["glusterfsd", "--no-daemon", "-f", str(volfile), "-l", f"{log}.own"]
            words += ["-p", f"{volfile}.pid"]
            wait_for(port, start(stack, words, log), log)
            clients.append(BRICK_CLIENT.format(number=number, port=port))
        bricks = " ".join(f"brick{number}" for number in range(COUNT))
        volume, source = folder / "client.vol", folder / "object"
        volume.write_text("".join([*clients, DISPERSE.format(bricks=bricks)]))
        source.write_bytes(pattern(size))
        log = folder / "client.log"
        client = [sys.executable, "-c", GLUSTER_CLIENT, str(volume), str(log)]
        more = [str(size), str(REQUEST_BYTES), str(AT_ONCE)]
        run(*client, str(source), *more)
        source.unlink()
        yield lambda: run(*client, "", *more)


@contextmanager
def seaweed(size: int) -> Iterator[Client]:
    """Serve the object, in files, by four volume servers; yield what reads it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weed-", dir=FOLDER)))
        stack.enter_context(namespace())
        inside = ["ip", "netns", "exec", NAMESPACE]
        here = [f"-ip={ADDRESS}", f"-ip.bind={ADDRESS}"]
        port = free_port()
        master = f"{ADDRESS}:{port}"
        words = [*inside, "weed", "master", *here, f"-port={port}", f"-mdir={folder}"]
        words += ["-peers=none", "-telemetry=false"]
        start(stack, words, folder / "master.log")
        for number in range(COUNT):
            disk = folder / f"disk-{number}"
            disk.mkdir()
            words = [*inside, "weed", "volume", *here, f"-port={free_port()}", f"-dir={disk}"]
            words += ["-max=20", f"-master={master}", "-minFreeSpace=1"]
            start(stack, words, folder / f"volume-{number}.log")
        wait_for_volumes(inside, master)
        file = folder / "object"
        file.write_bytes(pattern(FILE_BYTES))
        words = [*inside, "weed", "upload", f"-master={master}", f"-maxMB={FILE_BYTES >> 20}"]
        count = max(1, size // FILE_BYTES)
        answers = [json.loads(run(*words, str(file)))[0] for _ in range(count)]
        file.unlink()
        volumes = {answer["fid"].partition(",")[0] for answer in answers}
        lines = [f"ec.encode -volumeId={volume}" for volume in sorted(volumes)]
        orders = "\n".join(["lock", *lines, "ec.balance -apply", "unlock", ""])
        run(*inside, "weed", "shell", f"-master={master}", input=orders)
        urls: list[str] = []
        for answer in answers:
            volume = answer["fid"].partition(",")[0]
            found = ask(inside, f"http://{master}/dir/lookup?volumeId={volume}")
            places = {place["url"] for place in found["locations"]}
            if len(places) < COUNT:
                raise RuntimeError(f"SeaweedFS: expected shards on {COUNT} servers, found {places}")
            urls.append(f"http://{sorted(places)[len(urls) % COUNT]}/{answer['fid']}")
        words = ["curl", "--silent", "--fail", "--parallel", "--parallel-max", str(AT_ONCE)]
        for url in urls:
            words += ["--output", "/dev/null", url]
        yield lambda: run(*inside, *words)


@contextmanager
def namespace() -> Iterator[None]:
    """Have a network namespace with one address that is not one of loopback."""
    ip("netns", "add", NAMESPACE)
    try:
        ip("-n", NAMESPACE, "link", "set", "lo", "up")
        ip("-n", NAMESPACE, "address", "add", f"{ADDRESS}/32", "dev", "lo")
        yield
    finally:
        ip("netns", "delete", NAMESPACE)


def ask(inside: list[str], url: str) -> Any:
    """Return what a server in the namespace answers, from its JSON."""
    return json.loads(run(*inside, "curl", "--silent", "--fail", url))


def wait_for_volumes(inside: list[str], master: str) -> None:
    """Return once the master knows all volume servers."""
    limit = time.monotonic() + LIMIT_S
    count = 0
    while time.monotonic() < limit:
        with contextlib.suppress(RuntimeError):
            centers = ask(inside, f"http://{master}/dir/status")["Topology"]["DataCenters"] or []
            racks = [rack for center in centers for rack in center["Racks"] or []]
            count = sum(len(rack["DataNodes"] or []) for rack in racks)
            if count == COUNT:
                return
        time.sleep(POLL_S)
    raise TimeoutError(f"SeaweedFS: expected {COUNT} volume servers, found {count}")
