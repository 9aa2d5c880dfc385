"""A control group of the kernel: a limit of memory for processes, and what they use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
GONE_S = 20.0
"""For processes to leave a group before it is removed."""


@dataclass(frozen=True)
class Usage:
    """What the processes of a group used: CPU seconds until now, bytes of memory now.

    Memory is that of processes and memory disks; the page cache, which is given back, is left out.
    """

    cpu_s: float
    memory_bytes: int


class ControlGroup:
    """A group of version 1 (`memory` and `cpuacct`) or version 2, removed at its end."""

    def __init__(self, name: str, memory_bytes: int) -> None:
        """Make the group.

        Raises:
            SystemExit: If this user may not, or the kernel has no such groups.
        """
        self._is_new = (ROOT / "cgroup.controllers").is_file()
        kinds = ("",) if self._is_new else ("memory", "cpuacct")
        self._folders = [ROOT / kind / name for kind in kinds]
        limit = "memory.max" if self._is_new else "memory.limit_in_bytes"
        try:
            for folder in self._folders:
                folder.mkdir()
            (self._folders[0] / limit).write_text(str(memory_bytes))
        except OSError as error:
            self.remove()
            raise SystemExit(f"{self._folders[0]}: cannot be made: {error}") from None

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Be in the group meanwhile, so that processes that are started are in it."""
        homes = [ROOT / kind / path.lstrip("/") for kind, path in self._homes()]
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            for folder in homes:
                (folder / "cgroup.procs").write_text(str(os.getpid()))

    def _homes(self) -> Iterator[tuple[str, str]]:
        """Yield the hierarchies that the group is in, and where this process is in each."""
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kind, path = line.split(":", 2)
            if kind == "" if self._is_new else kind in ("memory", "cpuacct"):
                yield kind, path

    def usage(self) -> Usage:
        """Return what the processes use."""
        numbers = _numbers(self._folders[0] / "memory.stat")
        if self._is_new:
            cpu_s = _numbers(self._folders[0] / "cpu.stat")["usage_usec"] / 1e6
            return Usage(cpu_s, numbers["anon"] + numbers["shmem"])
        cpu_s = int((self._folders[1] / "cpuacct.usage").read_text()) / 1e9
        return Usage(cpu_s, numbers["total_rss"] + numbers["total_shmem"])

    def kills(self) -> int:
        """Return how many processes the kernel killed for want of memory."""
        name = "memory.events" if self._is_new else "memory.oom_control"
        return _numbers(self._folders[0] / name)["oom_kill"]

    def remove(self) -> None:
        """Remove the group when its processes have ended."""
        until = time.monotonic() + GONE_S
        for folder in filter(Path.exists, self._folders):
            while True:
                with suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > until:
                    raise SystemExit(f"{folder}: it still has processes")
                time.sleep(0.1)


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers of a file of lines, each of a name and a number."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number in pairs}
