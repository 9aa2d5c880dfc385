"""A lab for the tests: four block servers behind links, and the striped store `wide:` over them."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import swathe
from swathe.trace.analysis.report import TraceReport
from tests.support import servers
from tests.support.block_servers import BlockServer, block_server

NAMES = ("hosta", "hostb", "hostc", "hostd")


@dataclass
class Lab:
    """Block servers with two disks each, behind proxies, and objects on `wide:`."""

    folder: Path
    stack: ExitStack
    ports: list[int] = field(default_factory=list)
    running: list[BlockServer] = field(default_factory=list)
    proxies: list[servers.Proxy] = field(default_factory=list)

    def disks(self, number: int) -> list[Path]:
        return [self.folder / f"{NAMES[number]}-disk{disk}" for disk in (1, 2)]

    def trace(self, number: int) -> Path:
        return self.folder / f"{NAMES[number]}.ulm"

    def start(self, number: int, prefix: tuple[str, ...] = ()) -> BlockServer:
        return self.stack.enter_context(
            block_server(
                *self.disks(number),
                options=("--port", self.ports[number]),
                trace=self.trace(number),
                prefix=prefix,
            )
        )

    def restart(self, number: int, *prefix: str) -> None:
        """Start a server again, run by another program."""
        self.running[number].end()
        self.running[number] = self.start(number, prefix)

    def fuller_disk(self, number: int) -> Path:
        """The disk of a server that has most parts."""
        return max(self.disks(number), key=lambda disk: len(parts_of(disk)))

    def report(self, work: Callable[[Path], None]) -> TraceReport:
        """Do work in a process of its own, end the servers, and join the events.

        In this process, reads of an earlier test may still wait for its servers.
        """
        client = self.folder / "client.ulm"
        made = multiprocessing.get_context("spawn")
        process = made.Process(target=record, args=(work, self.folder, client))
        process.start()
        process.join()
        assert process.exitcode == 0
        for server in self.running:
            if server.process.poll() is None:
                server.end()
        return swathe.trace.report([client, *map(self.trace, range(len(NAMES)))])


def parts_of(disk: Path) -> list[Path]:
    return sorted(disk.glob("*.stripe.*"))


@contextmanager
def stripe_lab(folder: Path) -> Iterator[Lab]:
    """Run the servers, and add `wide:` with parity 1 to the catalogue."""
    with ExitStack() as stack:
        there = Lab(folder, stack)
        for number, name in enumerate(NAMES):
            for disk in there.disks(number):
                disk.mkdir()
            there.ports.append(servers.free_port())
            there.running.append(there.start(number))
            link = stack.enter_context(servers.proxy(there.running[number].url, rtt_ms=1))
            there.proxies.append(link)
            swathe.stores.add(name, link.url.replace("http", "dav", 1) + "/")
        swathe.stores.add("wide", "striped:", over=NAMES, parity=1, block_bytes=1 << 18)
        yield there


def record(work: Callable[[Path], None], folder: Path, trace: Path) -> None:
    with swathe.trace.recording(str(trace)):
        work(folder)


@contextmanager
def throttled(server: BlockServer) -> Iterator[None]:
    """Let a process run for 10 of 100 ms, as a quota of the processor does."""
    ending = threading.Event()

    def throttle() -> None:
        while not ending.wait(0.01):
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.09)
            server.process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
